"""The command `demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from causalformer.cli.fitting import run_discovery
from causalformer.cli.terminal import figure, show, show_columns

if TYPE_CHECKING:
    from causalformer.estimator import CausalFormer
    from causalformer.metrics import Metrics


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo-results"),
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the report, if there is a screen.")
    ] = True,
) -> None:
    """Try it: discover the graph of a bundled example, and open its report."""
    from causalformer.datasets import load_example
    from causalformer.estimator import CausalFormer

    example = load_example()
    names = ", ".join(example.series.names)
    show(f"An invented greenhouse: {names}; {example.series.n_slots} slots.\n")
    model = CausalFormer()
    run_discovery(model, example.series, out, browser=browser)
    _compare_with_truth(model, example)
    show(
        "\nNext:"
        "\n  causalformer discover YOUR.csv --out results    one column per series"
        "\n  causalformer presets                            the paper's settings, for --preset"
    )


def _compare_with_truth(model: "CausalFormer", example: Any) -> None:
    """Print how good the graph is, beside the two methods that any other must beat."""
    from causalformer.baselines import SelfLoops, VarGranger
    from causalformer.metrics import evaluate as compare

    def row(name: str, fitted: Any) -> tuple[str, ...]:
        m: Metrics = compare(fitted.graph_, example.truth, fitted.edge_scores_)
        counts = (m.n_correct, m.n_predicted - m.n_correct, m.n_true - m.n_correct)
        figures = (m.f1, m.off_diagonal_f1, m.pod)
        return (name, *map(str, counts), *map(figure, figures))

    show("\nThe truth is known here, so the graph can be judged:")
    show_columns(
        ("method", "correct", "false", "missed", "F1", "F1 off diagonal", "PoD strict"),
        [
            row("CausalFormer", model),
            row("VAR F-test", VarGranger().fit(example.series)),
            row("self-loops only", SelfLoops().fit(example.series)),
        ],
    )
    show(
        "F1 off the diagonal leaves out self-loops; PoD is the share of correct edges whose lag is "
        "right, too."
    )

"""The command `evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from causalformer.cli.options import JsonOption
from causalformer.cli.terminal import figure, show_columns, show_json


def evaluate(
    graph: Annotated[Path, typer.Argument(help="graph.json of a discovery.")],
    truth: Annotated[Path, typer.Argument(help="True edges, lines of cause,effect,lag.")],
    scores: Annotated[
        Path | None, typer.Option(help="scores.csv of the discovery, for AUROC and AUPRC.")
    ] = None,
    reverse: Annotated[
        bool, typer.Option("--reverse", help="The truth lists effects before causes.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare a discovered graph with the true one."""
    from causalformer.graph import CausalGraph
    from causalformer.metrics import evaluate as compare
    from causalformer.results import read_scores, without_nan
    from causalformer.truth import read_truth

    found = CausalGraph.load(graph)
    true = read_truth(truth, found.names, reverse=reverse)
    matrix = None if scores is None else read_scores(scores, found.names)
    figures = compare(found, true, matrix).to_dict()
    if as_json:
        show_json(without_nan(figures))
    else:
        show_columns(("measure", "value"), [(n, figure(v)) for n, v in figures.items()])

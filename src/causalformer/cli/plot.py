"""The command `plot`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from causalformer.cli.options import QuietOption
from causalformer.cli.terminal import show
from causalformer.errors import FileFormatError, SettingsError
from causalformer.names import printable_name

if TYPE_CHECKING:
    from causalformer.estimator import CausalFormer
    from causalformer.graph import CausalGraph


def plot(
    result: Annotated[
        Path,
        typer.Argument(
            help="graph.json, the folder of a fitted model (discover --save-model), or the folder "
            "of a discovery."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The picture: a .png, .svg or .pdf file.")],
    kind: Annotated[
        str,
        typer.Option(
            help="summary, unrolled, lags, scores or map; of a model also p_values, series, "
            "training or held_out."
        ),
    ] = "summary",
    truth: Annotated[
        Path | None, typer.Option(help="True edges, lines of cause,effect,lag: to compare with.")
    ] = None,
    evidence: Annotated[
        str, typer.Option(help="For scores: score, p_value, q_value, strength or frequency.")
    ] = "score",
    at: Annotated[
        str | None, typer.Option(metavar="ROW|TIME", help="For series: the slot to explain.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="For series: the file that the model was fitted to.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="For series: column of --data that tells recordings apart.")
    ] = None,
    effect: Annotated[
        str | None, typer.Option(help="For series: whose prediction to explain.")
    ] = None,
    places: Annotated[
        Path | None,
        typer.Option(help="For maps: lines of name,latitude,longitude; else read from the names."),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Draw a result: graph, lags, evidence, one prediction explained, training, or a map."""
    from causalformer.files import write_atomically
    from causalformer.graph import PICTURES
    from causalformer.plot import MODEL_KINDS, picture_of, read_places
    from causalformer.truth import read_truth

    if out.suffix.lower() not in PICTURES:
        raise SettingsError(f"--out {out} is no picture: end its name with {', '.join(PICTURES)}")
    if kind not in MODEL_KINDS:
        raise SettingsError(f"there is no kind {kind!r}; choose from {', '.join(MODEL_KINDS)}")
    if kind == "series" and (at is None or data is None):
        raise SettingsError("--kind series explains one slot of the data: add --at and --data")
    found = _load(result, kind)
    options: dict[str, Any] = {"kind": kind, "evidence": evidence}
    if truth is not None:
        options["truth"] = read_truth(truth, _names(found))
    if places is not None:
        options["places"] = read_places(places)
    if kind == "series":
        slot = int(at) if at is not None and at.isdecimal() else at
        options |= {"at": slot, "effect": effect, "X": data, "group": group}
    content = picture_of(found.plot(**options).get_figure(root=True), out.suffix.lower()[1:])  # type: ignore[arg-type]
    write_atomically(out, lambda temporary: temporary.write_bytes(content))
    if not quiet:
        show(f"The picture is {printable_name(str(out))}.")


def _load(path: Path, kind: str) -> "CausalFormer | CausalGraph":
    """Read a model where there is one, else a graph."""
    from causalformer.graph import CausalGraph
    from causalformer.plot import GRAPH_KINDS

    for folder in (path, path / "model"):
        if (folder / "model.json").exists():
            from causalformer.estimator import CausalFormer

            return CausalFormer.load(folder)
    if kind not in GRAPH_KINDS:
        raise SettingsError(
            f"--kind {kind} needs a fitted model, and {path} is none: give the folder that "
            "discover --save-model wrote"
        )
    file = path / "graph.json" if path.is_dir() else path
    if path.is_dir() and not file.exists():
        raise FileFormatError(f"{path}: there is no model.json and no graph.json in this folder")
    return CausalGraph.load(file)


def _names(found: "CausalFormer | CausalGraph") -> tuple[str, ...]:
    return found.graph_.names if hasattr(found, "graph_") else found.names

"""What all pictures share: colours, captions, figures that pyplot does not know, and their files.

Fonts are those of matplotlib's settings, which nothing here changes; sizes are in points.
"""

import io
import math
import textwrap
import warnings
from typing import TYPE_CHECKING, Any, Final, Literal

from causalformer.errors import SettingsError
from causalformer.names import printable_name
from causalformer.notebook import in_notebook

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, VERMILLION, BLACK, GREY = "#0072B2", "#D55E00", "#000000", "#999999"
INK, PALE, FAINT = "#444444", "#F0F0F0", "#DDDDDD"  # outlines, fillings, what is not there
Dashes = Literal["-"] | tuple[int, tuple[float, ...]]
SOLID: Final[Dashes] = "-"
DASHED: Final[Dashes] = (0, (3.5, 2))
DASH_DOT: Final[Dashes] = (0, (6, 2, 1, 2))  # of edges that may be confounded
NO_HEAD, CONFOUNDED = "no head: direction unknown", "perhaps a hidden driver"
SMALL, NORMAL = 8.0, 9.0

_DATES = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def axes_for(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """Return `ax`, or else axes on a new figure of this size in inches.

    Examples
    --------
    >>> axes_for(None, (4.0, 3.0)).get_figure().get_size_inches()
    array([4., 3.])
    """
    if ax is None:
        return new_figure(size).add_subplot()
    if isinstance(ax, str):
        raise SettingsError(f"ax is {ax!r}, which is no axes of matplotlib; write kind={ax!r}")
    return ax


def new_figure(size: tuple[float, float], *, for_file: bool = False) -> "Figure":
    """Return a white figure; labels get the room they need.

    pyplot does not know it, except in a notebook, which shows the figures of pyplot below the cell.
    """
    look: dict[str, Any] = {"figsize": size, "facecolor": "white", "layout": "constrained"}
    if in_notebook() and not for_file:
        from matplotlib import pyplot as plt

        return plt.figure(**look)
    from matplotlib.figure import Figure

    return Figure(**look)


def size_in_points(axes: "Axes") -> tuple[float, float]:
    """Width and height of the box of the axes."""
    box = axes.get_window_extent()
    scale = 72 / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    return float(box.width) * scale, float(box.height) * scale


def caption(name: str, line: int = 24, lines: int = 1) -> str:
    r"""Return a name as a picture shows it: printable, wrapped, cut where it is too long.

    Examples
    --------
    >>> caption("sea surface temperature, north", 12, 2)
    'sea surface\ntemperatur…'
    >>> caption("flow\nnorth"), caption("")
    ('flow north', '')
    """
    wrapped = textwrap.wrap(printable_name(" ".join(name.split())), line)
    if len(wrapped) > lines:
        wrapped = [*wrapped[: lines - 1], wrapped[lines - 1][: line - 2] + "…"]
    return "\n".join(wrapped)


def legend_of(
    axes: "Axes",
    entries: dict[str, tuple[str, Dashes]],
    size: float = SMALL,
    columns: int = 1,
    place: Literal["lower left", "best"] = "lower left",
) -> None:
    """Explain lines: name, colour and dashes."""
    from matplotlib.lines import Line2D

    lines = [
        Line2D([], [], color=colour, linestyle=dashes, label=name)
        for name, (colour, dashes) in entries.items()
    ]
    axes.legend(handles=lines, loc=place, fontsize=size, frameon=False, ncols=columns)


def rising() -> "Colormap":
    """Return colours from nearly white to dark blue, for numbers that rise from nothing."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("rising", ["#F4F8FB", "#9CCBE6", BLUE, "#00304D"])


def two_sided() -> "Colormap":
    """Return colours from blue through white to vermillion, for numbers around zero."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(
        "two_sided", [BLUE, "#A9D0E8", "white", "#F3BE94", VERMILLION]
    )


def picture_of(figure: "Figure", file_format: str, dpi: int = 150) -> bytes:
    """Return a figure as the content of a PNG, SVG or PDF file; equal figures give equal files.

    Examples
    --------
    >>> figure = axes_for(None, (1.0, 1.0)).get_figure()
    >>> picture_of(figure, "svg") == picture_of(figure, "svg")
    True
    """
    from matplotlib import rc_context

    stream = io.BytesIO()
    with warnings.catch_warnings(), rc_context({"svg.hashsalt": "causalformer"}):
        # A name may use a script or an emoji that the font lacks: boxes are drawn, which shows.
        warnings.filterwarnings("ignore", message=r"(?s)Glyph .* missing from")
        figure.savefig(
            stream,
            format=file_format,
            dpi=dpi,
            metadata=_DATES.get(file_format),
            bbox_inches="tight",
            pad_inches=0.08,
        )
    return stream.getvalue()


def short_number(value: float) -> str:
    """Write a number into a small cell: two digits that count.

    Examples
    --------
    >>> [short_number(v) for v in (0.0, 0.034, 0.5, 12.3, 123456.0, 1e-7, -2.0)]
    ['0', '.034', '.5', '12', '1e5', '1e-7', '-2']
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else ""
    text = f"{value:.2g}"
    if "e" in text:
        base, _, power = f"{value:.0e}".partition("e")
        if 10 <= abs(value) < 1000:
            return f"{value:.0f}"
        return f"{base}e{int(power)}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text

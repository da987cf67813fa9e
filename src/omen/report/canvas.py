"""A blank figure, and writing it so that equal contents give equal bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from omen.errors import CannotWrite, MissingDependency
from omen.tables import replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNDATED = {"svg": {"Date": None}, "png": {}, "pdf": {"CreationDate": None}}


def blank_figure(width: float, height: float) -> Figure:
    """A figure of so many inches."""
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependency(
            "a figure needs matplotlib: install it with pip install 'omen-overlay[report]'"
        ) from None
    rcParams["svg.hashsalt"] = "omen"
    return Figure(figsize=(width, height), layout="constrained")


def figure_kind(path: str | Path) -> str:
    """One of `UNDATED`, by the ending of the name."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in UNDATED:
        raise CannotWrite(f"{path}: a figure is written as .{', .'.join(UNDATED)}, by the ending of its name")
    return kind


def save_figure(path: str | Path, figure: Figure, kind: str = "svg") -> None:
    """Write it as one of `UNDATED`."""
    with replace_file(path) as aside:
        figure.savefig(aside, format=kind, metadata=UNDATED[kind])

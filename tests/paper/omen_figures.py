"""The figures on fairness (omen Figs. 3-6) and degrees (Fig. 9) in docs/figures, from the cells of the claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from omen.report.fairness_figure import draw_by_subscriptions, draw_degrees, draw_in_degrees, draw_views

from . import omen
from .omen_cells import Cell, NotThere
from .shadows import workload

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
RULES = ("pd-weight", "pd-cover", "greedy-weight", "greedy-cover")
SYSTEMS = {"OMen": "omen", "OMen-G": "omen-g", "LowODA-Inc": "lowoda-inc", "LowODA-Re": "lowoda-re"}


def draw_all() -> None:
    """Each figure, of what is there."""
    for draw in (_draw_backups, _draw_views, _draw_degrees):
        draw()


def _those_there(wanted: Mapping[str, Callable[[], Cell]]) -> dict[str, Cell]:
    found = {}
    for name, cell in wanted.items():
        try:
            found[name] = cell()
        except NotThere as missing:
            print(f"{name} is not drawn: {missing} is not there", flush=True)
    return found


def _draw_backups() -> None:
    panels = {
        name: {rule: omen.backup_sets(0, popularity, rule).in_degrees.tolist() for rule in RULES}
        for name, popularity in omen.POPULARITIES.items()
    }
    draw_in_degrees(FIGURES / "backup-in-degrees.svg", panels)
    wants = np.diff(workload(0).node_offsets).tolist()
    by_rule = {rule: omen.backup_sets(0, omen.POPULARITIES["Unif"], rule) for rule in ("pd-weight", "greedy-cover")}
    draw_by_subscriptions(
        FIGURES / "backups-by-subscriptions.svg",
        {f"Unif, {rule}": (wants, one.out_degrees.tolist(), one.in_degrees.tolist()) for rule, one in by_rule.items()},
    )


def _draw_views() -> None:
    wanted = {"Facebook 1K": partial(omen.views, omen.FULL, 5)}
    wanted |= {name: partial(omen.synthetic_views, name) for name in omen.POPULARITIES}
    panels = {name: list(omen.last_views(cell)) for name, cell in _those_there(wanted).items()}
    if panels:
        draw_views(FIGURES / "view-sizes.svg", panels)


def _draw_degrees() -> None:
    wanted = {label: partial(omen.replayed, omen.FULL, system) for label, system in SYSTEMS.items()}
    curves = {label: (cell["max_degree"], cell["avg_degree"]) for label, cell in _those_there(wanted).items()}
    if curves:
        draw_degrees(FIGURES / "omen-degrees.svg", curves)

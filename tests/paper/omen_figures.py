"""The figures on fairness (omen Figs. 3-6) and degrees (Fig. 9) in docs/figures, from the cells of the claims."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from omen.report.fairness_figure import draw_by_subscriptions, draw_degrees, draw_in_degrees, draw_views

from . import omen
from .omen_cells import NotThere
from .shadows import workload

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
RULES = ("pd-weight", "pd-cover", "greedy-weight", "greedy-cover")
SYSTEMS = {"OMen": "omen", "OMen-G": "omen-g", "LowODA-Inc": "lowoda-inc", "LowODA-Re": "lowoda-re"}


def draw_all() -> None:
    """Each figure whose cells are there."""
    for draw in (_draw_backups, _draw_views, _draw_degrees):
        try:
            draw()
        except NotThere as missing:
            print(f"{draw.__name__.removeprefix('_draw_')}: no figure, {missing} is not there", flush=True)


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
    panels = {"Facebook 1K": list(omen.last_views(omen.views(omen.FULL, 5)))}
    panels |= {name: list(omen.last_views(omen.synthetic_views(name))) for name in omen.POPULARITIES}
    draw_views(FIGURES / "view-sizes.svg", panels)


def _draw_degrees() -> None:
    cells = {label: omen.replayed(omen.FULL, system) for label, system in SYSTEMS.items()}
    curves = {label: (cell["max_degree"], cell["avg_degree"]) for label, cell in cells.items()}
    draw_degrees(FIGURES / "omen-degrees.svg", curves)

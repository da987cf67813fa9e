"""Measure the claims at the papers' own sizes and write docs/claims.md: python -m tests.paper.measure [PAPER]...

Results are kept in tests/paper/measured, one file a paper, and the page is made from all of them, so that each may be
measured again by itself. `page`: nothing is measured, the page is made anew. Without arguments: everything but what
takes an hour: `spidercast`, and `omen`, `omen-rivals` and `figures`, which need the raw graphs and cluster trace
(--data). Those are made from cells that are kept (--cells), so that it can be done in pieces: what was stopped goes on
where it was, `--seconds` stops by itself, `omen --cell NAME` makes one, `omen --list` names them, and `--ready` takes
the claims whose cells are there.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from . import ktco, low_oda, omen, omen_figures, omen_rivals, shadows, spidercast
from .claims import Measured, claims
from .omen_cells import NotThere, Store
from .page import write_page
from .readings import all_readings

PAPERS: dict[str, ModuleType] = {
    "low-oda": low_oda,
    "ktco": ktco,
    "shadows": shadows,
    "omen": omen,
    "spidercast": spidercast,
}
FURTHER: dict[str, ModuleType] = {"omen-rivals": omen_rivals}  # of the claims on OMen, those next to SpiderCast
LONG = ("omen", "spidercast", *FURTHER)
MEASURED = Path(__file__).parent / "measured"
omen.DEVIATIONS.update(omen_rivals.DEVIATIONS)


class Paced(Store):
    """Begins no cell after `seconds` of this process."""

    seconds: float | None = None

    def get(self, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if self.seconds is not None and time.perf_counter() - STARTED > self.seconds:
            self.make = False
        return super().get(name, compute)


STARTED = time.perf_counter()


def measure_paper(paper: ModuleType) -> dict[str, Any]:
    results = {}
    started = time.process_time()
    for claim_id, measure in paper.MEASURES.items():
        try:
            found: Measured = measure(paper.FULL)
        except NotThere as missing:
            print(f"{claim_id}: left out, {missing} is not there", flush=True)
            continue
        results[claim_id] = asdict(found)
        claim = claims()[claim_id]
        print(f"{claim_id}: paper {claim.shown}, ours {found.shown} ({found.note})", flush=True)
    tables = []
    with suppress(NotThere):
        tables = list(paper.tables(paper.FULL)) if hasattr(paper, "tables") else []
    spent = round(time.process_time() - started, 1)
    return {"effort": asdict(paper.FULL), "processor_s": spent, "results": results, "tables": tables}


def measure_readings() -> dict[str, Any]:
    found = []
    for one in all_readings():
        found.append(asdict(one))
        print(f"{one.claims}: {one.reading}: {one.result}", flush=True)
    return {"readings": found}


def make_cells(wanted: list[str]) -> int:
    """Make those named; without names, say which there are."""
    known = omen.cells(omen.FULL)
    if unknown := [name for name in wanted if name not in known]:
        print(f"there is no cell {unknown[0]!r} (there are {', '.join(known)})", file=sys.stderr)
        return 2
    for name in wanted:
        cell = known[name]()
        print(f"{name}: {cell['processor_s']} s of processor time", flush=True)
    for name in () if wanted else known:
        try:
            print(f"{name}: {known[name]()['processor_s']} s of processor time")
        except NotThere:
            print(f"{name}: missing")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.paper.measure", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="PAPER|readings|figures|page", help="what to measure (all)")
    parser.add_argument("--data", type=Path, help="folder of the raw graphs and the cluster trace (data)")
    parser.add_argument("--cells", type=Path, default=omen.STORE.folder, help="where cells are kept (.cache/claims)")
    parser.add_argument("--cell", action="append", default=[], help="make this cell and no page; again for more")
    parser.add_argument("--list", action="store_true", help="name the cells, and say which are there")
    parser.add_argument("--events", type=int, help="make replays of the first so many events (of all)")
    parser.add_argument("--seconds", type=float, help="begin no cell after so many (spidercast, omen-rivals)")
    parser.add_argument("--ready", action="store_true", help="make no cells: leave out what lacks one")
    arguments = parser.parse_args()
    omen.STORE = Store(arguments.cells, arguments.data, not arguments.ready and not arguments.list, arguments.events)
    omen_rivals.STORE = spidercast.STORE = Paced(arguments.cells, arguments.data, not arguments.ready)
    Paced.seconds = arguments.seconds
    if arguments.cell or arguments.list:
        return make_cells(arguments.cell)
    wanted = arguments.what or [*(name for name in PAPERS if name not in LONG), "readings"]
    known = (*PAPERS, *FURTHER, "readings", "figures", "page")
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"there is no {unknown[0]!r} (there are {', '.join(known)})")
    MEASURED.mkdir(exist_ok=True)
    for name in wanted:
        if name == "page":
            continue
        if name == "figures":
            omen_figures.draw_all()
            continue
        found = measure_readings() if name == "readings" else measure_paper((PAPERS | FURTHER)[name])
        (MEASURED / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write_page(PAPERS, MEASURED)
    return 0


if __name__ == "__main__":
    sys.exit(main())

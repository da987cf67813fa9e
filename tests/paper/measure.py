"""Measure the claims at the papers' own sizes and write docs/claims.md: python -m tests.paper.measure [PAPER]...

Results are kept in tests/paper/measured, one file a paper, and the page is made from all of them, so that each may be
measured again by itself. Without arguments: everything. `page`: nothing is measured, the page is made anew.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from . import ktco, low_oda, shadows
from .claims import Measured, claims
from .page import write_page
from .readings import all_readings

PAPERS: dict[str, ModuleType] = {"low-oda": low_oda, "ktco": ktco, "shadows": shadows}
MEASURED = Path(__file__).parent / "measured"


def measure_paper(paper: ModuleType) -> dict[str, Any]:
    results = {}
    started = time.process_time()
    for claim_id, measure in paper.MEASURES.items():
        found: Measured = measure(paper.FULL)
        results[claim_id] = asdict(found)
        claim = claims()[claim_id]
        print(f"{claim_id}: paper {claim.shown}, ours {found.shown} ({found.note})", flush=True)
    tables = list(paper.tables(paper.FULL)) if hasattr(paper, "tables") else []
    spent = round(time.process_time() - started, 1)
    return {"effort": asdict(paper.FULL), "processor_s": spent, "results": results, "tables": tables}


def measure_readings() -> dict[str, Any]:
    found = []
    for one in all_readings():
        found.append(asdict(one))
        print(f"{one.claims}: {one.reading}: {one.result}", flush=True)
    return {"readings": found}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.paper.measure", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="PAPER|readings|page", help="what to measure (all)")
    wanted = parser.parse_args().what or [*PAPERS, "readings"]
    if unknown := [name for name in wanted if name not in {*PAPERS, "readings", "page"}]:
        parser.error(f"there is no {unknown[0]!r} (there are {', '.join(PAPERS)}, readings, page)")
    MEASURED.mkdir(exist_ok=True)
    for name in wanted:
        if name == "page":
            continue
        found = measure_readings() if name == "readings" else measure_paper(PAPERS[name])
        (MEASURED / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write_page(PAPERS, MEASURED)
    return 0


if __name__ == "__main__":
    sys.exit(main())

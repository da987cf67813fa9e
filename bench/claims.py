"""Put a run of `omen reproduce` into the documentation: python -m bench.claims RUN.

The ledger becomes docs/claims.csv and docs/claims.md, the page and the figures that pages show go to docs/reproduction,
and README's summary line is written anew. `make claims RUN=F` makes all of it from the cells in F first.
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

from bench.measure import ROOT
from omen.report.ledger import VERDICTS

DOCS = ROOT / "docs"
NOT_RUN = VERDICTS[-1]
SUMMARY = re.compile(r"Of \d+ claims \d+ are measured.*?\.\n", re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.claims", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="what was OUT of omen reproduce")
    run: Path = parser.parse_args().run
    for name, folder in (("claims.csv", DOCS), ("claims.md", DOCS), ("page.html", DOCS / "reproduction")):
        shutil.copyfile(run / name, folder / name)
    for name in shown_figures():
        drawn = run / "figures" / name
        if drawn.exists():
            shutil.copyfile(drawn, DOCS / "reproduction" / name)
        else:
            print(f"{name}: not drawn in {run}, what docs/reproduction has of it stays", file=sys.stderr)
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(SUMMARY.sub(f"{summary(DOCS / 'claims.csv')}\n", text, count=1), encoding="utf-8")
    return 0


def shown_figures() -> list[str]:
    """Those that README or a page of docs shows."""
    pages = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    found = {name for page in pages for name in re.findall(r"\]\((?:\S*/)?([\w.-]+\.svg)\)", page.read_text("utf-8"))}
    return sorted(name for name in found if not (DOCS / "figures" / name).exists() and not (DOCS / name).exists())


def summary(ledger: Path) -> str:
    with ledger.open(newline="", encoding="utf-8") as file:
        counts = Counter(row["verdict"] for row in csv.DictReader(file))
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS[:-1] if counts[verdict])
    return (
        f"Of {counts.total()} claims {counts.total() - counts[NOT_RUN]} are measured at the papers' own sizes: {told}."
    )


if __name__ == "__main__":
    sys.exit(main())

"""docs/claims.md from what was measured."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from .claims import TABLE, Claim, Measured, claims

PAGE = TABLE.with_suffix(".md")

TITLES = {
    "low-oda": "Onus, Richa: Low-ODA and the constant-diameter family",
    "ktco": "Chen, Vitenberg, Jacobsen: GM2 and HararyPT",
    "shadows": "Chen, Jacobsen, Vitenberg: repairs among shadows",
    "omen": "Chen, Vitenberg, Jacobsen: OMen",
    "spidercast": "Chockler, Melamed, Tock, Vitenberg: SpiderCast",
}

INTRODUCTION = """\
# The papers' numbers next to ours

What the papers claim in numbers is in [claims.csv](claims.csv), a row each, with the tolerance fixed before anything
was measured: `approx` within the tolerance (relative unless it says absolute), `at-most`, `at-least`, `greater-than`,
and `order` for a trend stated in words, which has no tolerance at all. This page is written by

    .venv/bin/python -m tests.paper.measure            # everything, at the papers' own sizes; minutes
    .venv/bin/python -m tests.paper.measure ktco       # one paper

from results kept in `tests/paper/measured`. `make test` measures the same quantities on fewer and smaller workloads,
one test a claim, and prints both numbers. A claim that does not reproduce keeps its tolerance: its test then holds us
to our own number.
"""


def write_page(papers: dict[str, ModuleType], measured: Path) -> None:
    PAGE.write_text("\n".join(_lines(papers, measured)) + "\n", encoding="utf-8")


def _lines(papers: dict[str, ModuleType], folder: Path) -> Iterator[str]:
    yield INTRODUCTION
    unmeasured: list[Claim] = []
    for paper, title in TITLES.items():
        those = [claim for claim in claims().values() if claim.paper == paper]
        stored = folder / f"{paper}.json"
        if paper in papers and stored.exists():
            found = json.loads(stored.read_text(encoding="utf-8"))
            for further in sorted(folder.glob(f"{paper}-*.json")):
                found["results"] |= json.loads(further.read_text(encoding="utf-8"))["results"]
            yield from _paper_lines(title, those, papers[paper], found)
            unmeasured += [claim for claim in those if claim.id not in found["results"]]
        else:
            unmeasured += those
    yield from _reading_lines(folder / "readings.json")
    yield from _unmeasured_lines(unmeasured)


def _paper_lines(title: str, those: list[Claim], paper: ModuleType, found: dict[str, Any]) -> Iterator[str]:
    rows = [(claim, Measured(**found["results"][claim.id])) for claim in those if claim.id in found["results"]]
    verdicts = Counter(claim.agrees(measured.ours) for claim, measured in rows)
    yield f"## {title}\n"
    yield f"{verdicts[True]} of {len(rows)} claims reproduce. Measured with {_effort(found['effort'])}.\n"
    yield "| claim | setting | quantity | paper | ours | reproduces | ours in detail |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for claim, measured in rows:
        verdict = "yes" if claim.agrees(measured.ours) else "**no**"
        cells = (claim.id, claim.setting, claim.quantity, claim.shown, measured.shown, verdict, measured.note)
        yield _row(cells)
    yield ""
    deviating = [(claim, measured) for claim, measured in rows if not claim.agrees(measured.ours)]
    if deviating:
        yield "What does not reproduce, and why, as far as we know:\n"
    for claim, measured in deviating:
        yield f"- **{claim.id}**: paper {claim.shown}, ours {measured.shown}. {_reason(paper, claim)}"
    yield ""
    for table in found.get("tables", []):
        yield f"{table['title']}:\n"
        yield _row(tuple(table["header"]))
        yield _row(("---",) * len(table["header"]))
        yield from (_row(tuple(cells)) for cells in table["rows"])
        yield ""


def _reason(paper: ModuleType, claim: Claim) -> str:
    known = paper.DEVIATIONS.get(claim.id)
    return known.reason if known is not None else "Not looked into yet."


def _effort(effort: dict[str, Any]) -> str:
    words = []
    for name, value in effort.items():
        shown = f"{value[0]}..{value[-1]} ({len(value)} values)" if isinstance(value, list) else value
        words.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(words)


def _reading_lines(stored: Path) -> Iterator[str]:
    if not stored.exists():
        return
    yield "## Other readings\n"
    yield "What the papers leave open, read otherwise (`.venv/bin/python -m tests.paper.measure readings`)."
    yield "The verdicts above do not use any of it.\n"
    yield "| claims | other reading | gives |"
    yield "| --- | --- | --- |"
    for one in json.loads(stored.read_text(encoding="utf-8"))["readings"]:
        yield _row((one["claims"], one["reading"], one["result"]))
    yield ""


def _unmeasured_lines(those: list[Claim]) -> Iterator[str]:
    if not those:
        return
    yield "## Not measured yet\n"
    yield "| claim | setting | quantity | paper |"
    yield "| --- | --- | --- | --- |"
    for claim in those:
        yield _row((f"{claim.paper} {claim.id}", claim.setting, claim.quantity, claim.shown))


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

"""The tables of docs/reliability.md, each between its marks, from what is kept in bench/results/reliability.json."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"

Rows = list[dict[str, Any]]


def fill_tables(parts: dict[str, Rows]) -> None:
    """Put the table of each part that was measured between `<!-- part -->` and `<!-- end of part -->`."""
    text = PAGE.read_text(encoding="utf-8")
    for part, rows in parts.items():
        if part in TABLES:
            table = "\n".join(TABLES[part](rows))
            marks = f"<!-- {part} -->", f"<!-- end of {part} -->"
            filled = f"{marks[0]}\n{table}\n{marks[1]}"
            text = re.sub(f"{marks[0]}.*?{marks[1]}", lambda _, filled=filled: filled, text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")


def _table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    names = list(heads)
    yield f"| {' | '.join(names)} |"
    yield f"|{' --- |'}{' ---: |' * (len(names) - 1)}"
    for row in rows:
        yield f"| {' | '.join(_shown(cell) for cell in row)} |"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _detector(rows: Rows) -> Iterator[str]:
    lossy = [row for row in rows if "median s" in row["details"]]
    still = [row for row in rows if "pauses" in row["details"]]
    rates = ("suspicions per node-hour", "declared failed wrongly per node-hour")
    names = ("median s", "95% s", "longest s", *rates, "whole")
    heads = ("", "noticed, median s", *names[1:5], "whole")
    words = [(row["what"].removeprefix("detector, "), row["details"]) for row in (*lossy, *still)]
    yield from _table(heads, ([what, *(facts[name] for name in names)] for what, facts in words[: len(lossy)]))
    yield ""
    names = ("pauses", "declared failed wrongly", "whole")
    heads = ("", "pauses", "declared failed wrongly", "whole")
    yield from _table(heads, ([what, *(facts[name] for name in names)] for what, facts in words[len(lossy) :]))


def _links(rows: Rows) -> Iterator[str]:
    for row in rows:
        facts = row["details"]
        left = facts["links"] - facts["dropped"]
        yield (
            f"{row['what']}: {facts['dropped']} of {facts['links']:,} links, {facts['split']} topics split. All were"
            f" whole after {facts['periods']} periods of the audit: {facts['audit bytes per node']:,.0f} bytes per"
            " node.\n"
        )
        cells = [
            ("the audit", facts["added"], left + facts["added"], facts["max degree"], facts["average degree"]),
            (
                "the engine, seeing everything, on what is left",
                facts["engine added"],
                left + facts["engine added"],
                facts["engine max degree"],
                facts["engine average degree"],
            ),
            (
                "the engine, from nothing",
                facts["fresh links"],
                facts["fresh links"],
                facts["fresh max degree"],
                facts["fresh average degree"],
            ),
        ]
        yield from _table(("", "links added", "links", "D", "d"), cells)


def _churn(rows: Rows) -> Iterator[str]:
    facts = rows[0]["details"]
    cells = []
    for name, value in facts.items():
        if isinstance(value, str):
            early, late = map(float, value.split(" then "))
            cells.append((name, f"{early:.2f}", f"{late:.2f}", f"{late / early - 1:+.1%}"))
    yield f"{facts['events']:,} events; topics split at {facts['split at a sample']} of the samples.\n"
    yield from _table(("", "early", "late", "change"), cells)


def _remedies(rows: Rows) -> Iterator[str]:
    names = ("worlds", "split at seed", "nodes", "events", "runs", "processor s")
    heads = ("without", "worlds", "first split at seed", "shrunk to nodes", "events", "runs", "processor s")
    yield from _table(heads, ([f"`{row['what']}`", *(row["details"][name] for name in names)] for row in rows))


def _search(rows: Rows) -> Iterator[str]:
    names = list(rows[0]["details"])
    yield from _table(("worlds", *names), ([row["what"], *(row["details"][name] for name in names)] for row in rows))


TABLES: dict[str, Callable[[Rows], Iterator[str]]] = {
    "detector": _detector,
    "links": _links,
    "churn": _churn,
    "remedies": _remedies,
    "search": _search,
}

"""The ledger as Markdown: a table a paper, then why what is not reproduced is not, and what was not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from omen.report.ledger import PAPERS, Entry, summary_line

EXPLAINED = ("close", "not reproduced", "other data")


@dataclass(frozen=True)
class Table:
    """Numbers next to a paper's claims, such as what variants of an algorithm come to."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


INTRODUCTION = """\
What the papers claim in numbers, a row each, as in claims.csv. The tolerance was fixed before anything was measured:
`approx` within it (relative unless it says absolute), `at-most`, `at-least`, `greater-than`, and `order` for a trend
stated in words, which has none. A claim that does not reproduce keeps its tolerance. Ours is a mean over seeds, with
the lowest and the highest of them where there are several. What other readings of a paper would give stands in
`docs/claims-readings.md`.
"""
VERDICTS = Table(
    "Verdicts",
    ("verdict", "means"),
    (
        ("reproduced", "within the tolerance"),
        (
            "close",
            "outside it by no more than as much again; by a tenth of the value where a bound has no tolerance; by 2% of"
            " what is compared where an order is claimed",
        ),
        ("not reproduced", "anything else"),
        ("other data", "measured on other data than the paper's, which is not to be had; what was taken is said below"),
        ("not run at this scale", "with the reason"),
    ),
)


@dataclass(frozen=True)
class Work:
    """What was run for a paper: cells of those declared, what they took, and what was sampled instead of run whole."""

    cells: int
    declared: int
    failed: int
    seconds: float
    sampled: str = ""


@dataclass(frozen=True)
class Beside:
    """What a paper's section holds besides its claims."""

    work: Work
    tables: tuple[Table, ...] = ()


def ledger_lines(entries: Sequence[Entry], made: str, beside: Mapping[str, Beside]) -> Iterator[str]:
    """All of it, line by line; `made` says how, in a sentence."""
    yield "# The papers' numbers next to ours"
    yield ""
    yield f"{summary_line(entries)}. {made}"
    yield ""
    yield from INTRODUCTION.splitlines()
    yield from _table_lines(VERDICTS)
    yield from _table_lines(_work(beside))
    for paper, title in PAPERS.items():
        those = [entry for entry in entries if entry.claim.paper == paper]
        if those:
            yield ""
            yield from _paper_lines(title, those)
            for table in beside[paper].tables:
                yield from _table_lines(table)


def _work(beside: Mapping[str, Beside]) -> Table:
    rows = []
    for paper, one in beside.items():
        work = one.work
        failed = f", {work.failed} failed" if work.failed else ""
        cells = f"{work.cells:,} of {work.declared:,}{failed}"
        rows.append((PAPERS[paper], cells, f"{work.seconds:,.0f}", work.sampled))
    return Table("What was run", ("paper", "cells", "seconds of work", "sampled"), tuple(rows))


def _paper_lines(title: str, entries: Sequence[Entry]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield f"{summary_line(entries)}."
    yield ""
    yield "| claim | where | setting | quantity | paper | ours | verdict | ours in detail |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for one in entries:
        claim, note = one.claim, one.measured.note if one.measured else ""
        yield _row((claim.id, claim.where, claim.setting, claim.quantity, claim.shown, one.shown, one.verdict, note))
    explained = [one for one in entries if one.verdict in EXPLAINED]
    missing = [one for one in entries if one.measured is None]
    if explained:
        yield ""
    for one in explained:
        yield f"- **{one.claim.id}**, {one.verdict}: {one.reason}"
    if missing:
        yield ""
        yield "Not run: " + " ".join(f"**{one.claim.id}** ({one.reason})" for one in missing)


def _table_lines(table: Table) -> Iterator[str]:
    yield ""
    yield f"{table.title}:"
    yield ""
    yield _row(table.header)
    yield _row(("---",) * len(table.header))
    yield from (_row(row) for row in table.rows)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

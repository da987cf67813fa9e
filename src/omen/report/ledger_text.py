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


def ledger_lines(
    entries: Sequence[Entry], made: str, tables: Mapping[str, Sequence[Table]] | None = None
) -> Iterator[str]:
    """All of it, line by line; `made` says how, in a sentence, and `tables` what else a paper's section holds."""
    yield "# The ledger"
    yield ""
    yield f"{summary_line(entries)}. {made}"
    for paper, title in PAPERS.items():
        those = [entry for entry in entries if entry.claim.paper == paper]
        if those:
            yield ""
            yield from _paper_lines(title, those)
            for table in (tables or {}).get(paper, ()):
                yield from _table_lines(table)


def _paper_lines(title: str, entries: Sequence[Entry]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield f"{summary_line(entries)}."
    yield ""
    yield "| claim | where | setting | quantity | paper | ours | verdict |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for one in entries:
        claim = one.claim
        yield _row((claim.id, claim.where, claim.setting, claim.quantity, claim.shown, one.shown, one.verdict))
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

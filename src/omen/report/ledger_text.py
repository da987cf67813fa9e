"""The ledger as Markdown: a table a paper, then why what is not reproduced is not, and what was not run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omen.report.ledger import PAPERS, Entry, summary_line

EXPLAINED = ("close", "not reproduced", "other data")


def ledger_lines(entries: Sequence[Entry], made: str) -> Iterator[str]:
    """All of it, line by line; `made` says how, in a sentence."""
    yield "# The ledger"
    yield ""
    yield f"{summary_line(entries)}. {made}"
    for paper, title in PAPERS.items():
        those = [entry for entry in entries if entry.claim.paper == paper]
        if those:
            yield ""
            yield from _paper_lines(title, those)


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


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

"""The page: one HTML file with everything in it, that opens from disk and asks no network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.report.figures import Drawing, table_of
from omen.report.ledger import PAPERS, VERDICTS, Entry
from omen.report.recorded_run import record_run
from omen.tables import replace_file
from omen.web import read_part

if TYPE_CHECKING:
    from omen.report.reproduce import Reproduction

PARTS = Path(__file__).with_name("page_parts")
ROWS_SHOWN = 400
_ID = re.compile(r'\bid="([^"]+)"')
_REFERENCE = re.compile(r'(url\(#|xlink:href="#|href="#)([^")]+)')


def write_page(out: str | Path, found: Reproduction) -> Path:
    """Write OUT/page.html from what was found, and from the figures in OUT/figures."""
    path = Path(out) / "page.html"
    text = make_page(found, Path(out) / "figures")
    with replace_file(path) as aside:
        aside.write_text(text, encoding="utf-8")
    return path


def make_page(found: Reproduction, figures: Path) -> str:
    """The page's text; figures that were not drawn are there as tables."""
    filled = {
        "style": f"{read_part('base.css')}\n{_part('page.css')}",
        "script": _part("page.js"),
        "summary": escape(found.summary),
        "papers": "".join(_option(name, PAPERS[name]) for name in found.papers),
        "verdicts": "".join(_option(verdict, verdict) for verdict in VERDICTS),
        "claims": "\n".join(_claim_row(entry) for entry in found.entries),
        "figures": "\n".join(_figure(drawing, figures) for drawing in found.drawings) or "<p>None were drawn.</p>",
        "beyond": _beyond(found.beyond, figures),
        "about": "\n".join(_facts(found.about)),
        "run": json.dumps(record_run(), separators=(",", ":")).replace("</", "<\\/"),
    }
    return re.sub(r"@@(\w+)@@", lambda match: filled[match[1]], _part("template.html"))


def _part(name: str) -> str:
    return (PARTS / name).read_text(encoding="utf-8").rstrip()


def _option(value: str, text: str) -> str:
    return f'<option value="{escape(value)}">{escape(text)}</option>'


def _claim_row(entry: Entry) -> str:
    claim = entry.claim
    remarks = " ".join(
        part
        for part in (entry.reason, f"({entry.measured.note})" if entry.measured and entry.measured.note else "")
        if part
    )
    cells = (
        claim.where,
        claim.setting,
        claim.quantity,
        claim.shown,
        entry.shown,
    )
    told = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return (
        f'<tr data-paper="{escape(claim.paper)}" data-verdict="{escape(entry.verdict)}">'
        f'<th scope="row">{escape(claim.id)}</th>{told}<td class="verdict">{escape(entry.verdict)}</td>'
        f"<td>{escape(remarks)}</td></tr>"
    )


def _figure(drawing: Drawing, figures: Path) -> str:
    return (
        f'<figure id="{escape(drawing.name)}"><h3>{escape(drawing.title)}</h3>\n{_svg(drawing, figures)}\n'
        f"<figcaption>{escape(drawing.caption)}</figcaption>\n{_data(drawing)}</figure>"
    )


def _svg(drawing: Drawing, figures: Path) -> str:
    path = figures / f"{drawing.name}.svg"
    if not path.is_file():
        return '<p class="small">Not drawn: matplotlib was not installed.</p>'
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    return isolate(text, drawing.name).replace(
        "<svg ", f'<svg role="img" aria-label="{escape(f"{drawing.title}. {drawing.caption}")}" ', 1
    )


def isolate(svg: str, name: str) -> str:
    """Names inside a drawing begin with the drawing's, so that several fit on one page."""
    svg = _ID.sub(lambda match: f'id="{name}-{match[1]}"', svg)
    return _REFERENCE.sub(lambda match: f"{match[1]}{name}-{match[2]}", svg)


def _data(drawing: Drawing) -> str:
    columns = table_of(drawing)
    rows = list(zip(*columns.values(), strict=True))
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(_number(cell))}</td>" for cell in row) + "</tr>" for row in rows[:ROWS_SHOWN]
    )
    more = f"<p>{len(rows) - ROWS_SHOWN} rows more stand in {drawing.name}.csv.</p>" if len(rows) > ROWS_SHOWN else ""
    return (
        f'<details><summary>The data</summary><div class="scroll" tabindex="0" role="region"'
        f' aria-label="Data of {escape(drawing.title)}"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody>'
        f"</table>{more}</div></details>"
    )


def _number(cell: Any) -> str:
    return "" if cell is None else cell if isinstance(cell, str) else f"{cell:.5g}"


def _beyond(drawings: Iterable[Drawing], figures: Path) -> str:
    made = "\n".join(_figure(drawing, figures) for drawing in drawings)
    if not made:
        return ""
    return (
        '<section aria-labelledby="beyond-title"><h2 id="beyond-title">Beyond the papers</h2>'
        f"<p>What none of the five asks.</p>\n{made}\n</section>"
    )


def _facts(about: dict[str, Any]) -> Iterator[str]:
    for name, value in about.items():
        if isinstance(value, dict):
            told = ", ".join(f"{key} {one}" for key, one in value.items())
        else:
            told = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        yield f"<dt>{escape(name.replace('_', ' '))}</dt><dd>{escape(told)}</dd>"

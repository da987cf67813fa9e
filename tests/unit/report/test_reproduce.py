"""omen reproduce, at sizes of a second: what it writes, that it goes on, and what the page holds."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from bench import claims as publishing

from commands import run, run_json
from omen.report.experiments import papers
from omen.report.experiments.low_oda import Effort
from omen.report.figures import Drawing, Line, Panel, PaperValue, draw, table_of
from omen.report.ledger import VERDICTS
from omen.report.page import isolate

TINY = Effort((100, 200), (10, 20), (0, 1), (0, 1))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    paper = replace(papers.PAPERS["low-oda"], effort=lambda scale, inputs: TINY)
    monkeypatch.setitem(papers.PAPERS, "low-oda", paper)


def reproduce(capsys: pytest.CaptureFixture[str], out: Path) -> dict[str, object]:
    words = "reproduce low-oda --engine local --papers-only --out"
    found: dict[str, object] = run_json(capsys, words, out)
    return found


@pytest.mark.usefixtures("tiny")
def test_reproduce_writes_ledger_figures_and_page_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    found = reproduce(capsys, tmp_path / "r")
    assert found["measured"] == 9
    assert found["cells_reused"] == 0
    with (tmp_path / "r" / "claims.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [f"L0{number}" for number in range(1, 10)]
    assert {row["verdict"] for row in rows} <= set(VERDICTS)
    assert all(row["verdict"] == found[row["id"]] for row in rows)
    assert rows[4]["lowest_seed"] <= rows[4]["ours"] <= rows[4]["highest_seed"]
    assert len(list((tmp_path / "r" / "figures").iterdir())) == 9
    again = reproduce(capsys, tmp_path / "r")
    assert again["cells_reused"] == found["cells"]
    assert again["summary"] == found["summary"]


@pytest.mark.usefixtures("tiny")
def test_a_run_is_put_into_the_documentation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    found = reproduce(capsys, tmp_path / "r")
    (tmp_path / "docs" / "reproduction").mkdir(parents=True)
    shown = "![one](docs/reproduction/low-oda-fig5.svg) ![none](docs/reproduction/omen-fig4.svg)"
    (tmp_path / "README.md").write_text(f"Before.\nOf 133 claims 1 are measured: 1\nclose.\nAfter.\n{shown}\n")
    monkeypatch.setattr(publishing, "ROOT", tmp_path)
    monkeypatch.setattr(publishing, "DOCS", tmp_path / "docs")
    monkeypatch.setattr("sys.argv", ["claims", str(tmp_path / "r")])
    assert publishing.main() == 0
    told = str(found["summary"]).removeprefix("9 claims: ")
    said = f"Before.\nOf 9 claims 9 are measured at the papers' own sizes: {told}.\nAfter.\n"
    assert (tmp_path / "README.md").read_text() == f"{said}{shown}\n"
    assert f"9 claims: {told}." in (tmp_path / "docs" / "claims.md").read_text(encoding="utf-8")
    assert sorted(path.name for path in (tmp_path / "docs").rglob("*.*")) == [
        "claims.csv",
        "claims.md",
        "low-oda-fig5.svg",
        "page.html",
    ]
    assert "omen-fig4.svg: not drawn" in capsys.readouterr().err


@pytest.mark.usefixtures("tiny")
def test_the_page_asks_no_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = reproduce(capsys, tmp_path / "r")
    text = Path(str(found["page"])).read_text(encoding="utf-8")
    without_names = re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
    assert "http" not in re.sub(r'"http://www\.w3\.org/2000/svg"', "", without_names)
    assert "@@" not in text
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=\"(?!data:)", text)


def test_nothing_is_run_where_only_a_report_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, "reproduce all --engine none --out", tmp_path / "r")
    assert (found["measured"], found["cells"]) == (0, 0)
    assert found["summary"] == "133 claims: 133 not run at this scale"
    assert Path(found["page"]).is_file()


def test_the_readme_and_the_ledger_it_shows_agree() -> None:
    root = Path(__file__).parents[3]
    with (root / "docs" / "claims.csv").open(newline="", encoding="utf-8") as file:
        counts = Counter(row["verdict"] for row in csv.DictReader(file))
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    measured = sum(counts.values()) - counts["not run at this scale"]
    ledger = (root / "docs" / "claims.md").read_text(encoding="utf-8")
    assert f"{sum(counts.values())} claims: {told}." in ledger
    shown = told.removesuffix(f", {counts['not run at this scale']} not run at this scale")
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    assert f"Of 133 claims {measured} are measured" in readme
    assert f"{shown}." in readme


def test_a_paper_that_does_not_exist_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reproduce shadow --out", tmp_path / "r") == 2
    assert "did you mean 'shadows'" in capsys.readouterr().err


def test_data_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reproduce omen --out", tmp_path / "r", "--data", tmp_path / "none") == 2
    assert "there is no such folder" in capsys.readouterr().err
    assert run("reproduce omen --out", tmp_path / "r", "--data", tmp_path) == 2
    assert "facebook_combined.txt.gz" in capsys.readouterr().err


def test_a_figure_is_the_same_bytes_again_and_has_its_data_beside_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    line = Line("ours", (1.0, 2.0), (3.0, 4.0), (2.5, 3.5), (3.5, 4.5))
    drawing = Drawing("f", "title", "caption", (Panel("x", "y", (line,), (PaperValue("3", 3.0),)),))
    first = {path.name: path.read_bytes() for path in draw(tmp_path / "a", drawing)}
    second = {path.name: path.read_bytes() for path in draw(tmp_path / "b", drawing)}
    assert first == second
    assert set(first) == {"f.svg", "f.png", "f.csv"}
    assert table_of(drawing)["line"] == ["ours", "ours", "paper: 3"]


def test_names_in_drawings_do_not_meet() -> None:
    svg = '<svg><g id="a"/><use xlink:href="#a"/><rect clip-path="url(#a)"/></svg>'
    assert isolate(svg, "f") == '<svg><g id="f-a"/><use xlink:href="#f-a"/><rect clip-path="url(#f-a)"/></svg>'

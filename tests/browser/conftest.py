"""A page made from small sweeps, open in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from omen.report.experiments.papers import PAPERS, Paper
from omen.report.experiments.results import InProcess
from omen.report.figures import draw
from omen.report.ledger import claims, judge
from omen.report.page import write_page
from omen.report.reproduce import Reproduction, judge_paper
from omen.report.versions import machine, versions

from .chromium import Browser, find_chromium


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Low-ODA at tiny sizes, all other claims not run."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from omen.report.experiments.low_oda import Effort

    out = tmp_path_factory.mktemp("page")
    paper, effort, found = PAPERS["low-oda"], Effort((100, 200), (10, 20), (0, 1), (0, 1)), InProcess()
    entries = [*judge_paper(paper, found, effort), *_others(paper)]
    drawings = tuple(drawing(found, effort) for drawing in paper.drawings)
    about = {"scale": "quick", "machine": machine(), "versions": versions()}
    made = Reproduction(tuple(PAPERS), "quick", tuple(entries), drawings, (), {}, about, 0)
    for drawing in drawings:
        draw(out / "figures", drawing)
    return write_page(out, made)


def _others(paper: Paper) -> list[object]:
    return [judge(claim, None, not_run="a test") for claim in claims().values() if claim.paper != paper.name]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium is installed: on Debian, apt-get install chromium")
    opened = Browser(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def fresh(browser: Browser, page: Path) -> Browser:
    """The browser, with the page just loaded."""
    browser.show_as(1280, 900, "light")
    browser.errors.clear()
    browser.requests.clear()
    browser.open(page)
    return browser

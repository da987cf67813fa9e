"""What a person does with the page, done in a real browser."""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path
from typing import Any

import networkx
import numpy
import pytest

from omen.report.page import ROWS_SHOWN

from .chromium import Browser

VISIBLE = "Array.from(document.querySelectorAll('#claims tbody tr')).filter(r => !r.hidden)"


@pytest.fixture(scope="session")
def run(page: Path) -> Any:
    """What was recorded for the overlay on the page."""
    found = re.search(r'<script type="application/json" id="run">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    return json.loads(found[1])


def lit_links(browser: Browser) -> set[str]:
    return set(browser.evaluate("Array.from(document.querySelectorAll('.link.lit')).map(l => l.dataset.link)"))


def all_links(browser: Browser) -> set[str]:
    return set(browser.evaluate("Array.from(document.querySelectorAll('.link')).map(l => l.dataset.link)"))


def said(browser: Browser) -> str:
    return str(browser.evaluate("document.getElementById('state').textContent"))


def test_the_page_opens_without_errors_and_without_a_network(fresh: Browser) -> None:
    assert fresh.evaluate("document.querySelector('h1').textContent").startswith("OMen")
    assert fresh.errors == []
    assert all(url.startswith(("file:", "data:")) for url in fresh.requests)


def test_every_claim_is_on_the_page(fresh: Browser) -> None:
    assert fresh.evaluate(f"{VISIBLE}.length") == 133
    assert "133 of 133" in fresh.evaluate("document.getElementById('shown').textContent")


def test_filters_leave_the_claims_that_fit(fresh: Browser) -> None:
    fresh.choose("#paper", "low-oda")
    assert fresh.evaluate(f"{VISIBLE}.length") == 9
    assert fresh.evaluate(f"{VISIBLE}.every(r => r.dataset.paper === 'low-oda')")
    fresh.choose("#verdict", "reproduced")
    kept = fresh.evaluate(f"{VISIBLE}.map(r => r.dataset.verdict)")
    assert 0 < len(kept) < 9
    assert set(kept) == {"reproduced"}
    fresh.choose("#verdict", "")
    fresh.choose("#words", "diameter every")
    assert fresh.evaluate(f"{VISIBLE}.map(r => r.cells[0].textContent)") == ["L09"]
    fresh.choose("#paper", "")
    fresh.choose("#words", "")
    assert fresh.evaluate(f"{VISIBLE}.length") == 133


def test_every_pair_of_filters_leaves_exactly_what_it_names(fresh: Browser) -> None:
    rows = fresh.evaluate(f"{VISIBLE}.map(r => [r.cells[0].textContent, r.dataset.paper, r.dataset.verdict])")
    options = {
        name: fresh.evaluate(f"Array.from(document.getElementById('{name}').options).map(o => o.value)")
        for name in ("paper", "verdict")
    }
    assert {paper for _, paper, _ in rows} == set(options["paper"]) - {""}
    assert {verdict for _, _, verdict in rows} <= set(options["verdict"])
    for paper in options["paper"]:
        fresh.choose("#paper", paper)
        for verdict in options["verdict"]:
            fresh.choose("#verdict", verdict)
            wanted = [name for name, of, found in rows if paper in ("", of) and verdict in ("", found)]
            assert fresh.evaluate(f"{VISIBLE}.map(r => r.cells[0].textContent)") == wanted
            assert f"{len(wanted)} of 133" in fresh.evaluate("document.getElementById('shown').textContent")


def test_choosing_a_topic_lights_exactly_its_links(fresh: Browser, run: Any) -> None:
    assert lit_links(fresh) == set()
    for topic in range(len(run["topics"])):
        fresh.choose("#topic", str(topic))
        wanted = {f"{u}-{v}" for u, v in run["links"] if all(topic in run["nodes"][node]["topics"] for node in (u, v))}
        assert lit_links(fresh) == wanted
        lit_nodes = fresh.evaluate("Array.from(document.querySelectorAll('.node.lit')).map(n => +n.dataset.node)")
        assert lit_nodes == [place for place, node in enumerate(run["nodes"]) if topic in node["topics"]]


def test_a_topic_stays_lit_link_by_link_while_it_is_mended(fresh: Browser, run: Any) -> None:
    lost = max(range(len(run["nodes"])), key=lambda node: len(run["losses"][node]["added"]))
    fresh.choose("#lose", str(lost))
    made_and_lit = 0
    while not fresh.evaluate("document.getElementById('forward').disabled"):
        fresh.click("#forward")
        for topic in range(len(run["topics"])):
            fresh.choose("#topic", str(topic))
            members = {place for place, node in enumerate(run["nodes"]) if topic in node["topics"] and place != lost}
            here = {link for link in all_links(fresh) if set(map(int, link.split("-"))) <= members}
            assert lit_links(fresh) == here
            made_and_lit += fresh.evaluate("document.querySelectorAll('.link.lit.new').length")
    assert made_and_lit > 0


def test_the_mending_ends_with_every_topic_connected(fresh: Browser, run: Any) -> None:
    split_on_the_way = 0
    for lost in range(len(run["nodes"])):
        fresh.choose("#lose", str(lost))
        split_on_the_way += "Split topics" in said(fresh)
        while not fresh.evaluate("document.getElementById('forward').disabled"):
            fresh.evaluate("document.getElementById('forward').click()")
        assert "Every topic is connected." in said(fresh)
        graph = networkx.Graph(tuple(map(int, link.split("-"))) for link in all_links(fresh))
        assert lost not in graph
        for topic in range(len(run["topics"])):
            members = [place for place, n in enumerate(run["nodes"]) if topic in n["topics"] and place != lost]
            graph.add_nodes_from(members)
            assert len(members) < 2 or networkx.is_connected(graph.subgraph(members))
    assert split_on_the_way > len(run["nodes"]) / 2
    assert fresh.errors == []


def test_a_node_is_lost_by_a_click_and_the_steps_go_back(fresh: Browser, run: Any) -> None:
    fresh.click('.node[data-node="3"] circle')
    assert "node 3 is lost" in said(fresh)
    fresh.click("#forward")
    assert "shadow set" in said(fresh)
    assert fresh.evaluate("document.querySelectorAll('.node.shadow').length") == len(run["losses"][3]["shadow"])
    fresh.click("#back")
    fresh.click("#back")
    assert len(all_links(fresh)) == len(run["links"])
    fresh.click("#reset")
    assert said(fresh) == "Every topic is connected."


def test_the_overlay_can_be_used_with_the_keyboard_alone(fresh: Browser) -> None:
    fresh.press("Enter", '.node[data-node="7"]')
    assert "node 7 is lost" in said(fresh)
    fresh.press("Enter", "#forward")
    assert "Step 2" in said(fresh)
    assert "lost" in fresh.evaluate("document.querySelector('.node[data-node=\"7\"]').getAttribute('aria-label')")


def test_everything_to_use_has_a_name_for_screen_readers(fresh: Browser) -> None:
    nameless = fresh.evaluate(
        "Array.from(document.querySelectorAll('select, input, button, [role=button], svg[role=img], [role=region]'))"
        ".filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() && e.tagName === 'BUTTON'"
        " || (e.labels && e.labels.length))).map(e => e.outerHTML.slice(0, 100))"
    )
    assert nameless == []
    assert fresh.evaluate("document.documentElement.lang") == "en"
    assert fresh.evaluate("document.querySelectorAll('[role=status][aria-live]').length") == 2
    doubles = fresh.evaluate(
        "(() => { const ids = Array.from(document.querySelectorAll('[id]')).map(e => e.id);"
        " return ids.filter((id, at) => ids.indexOf(id) !== at); })()"
    )
    assert doubles == []


def test_play_goes_to_the_end_by_itself(fresh: Browser) -> None:
    fresh.choose("#lose", "0")
    fresh.evaluate("document.getElementById('play').click()")
    fresh.evaluate(
        "new Promise(done => { const look = setInterval(() => {"
        " if (document.getElementById('forward').disabled) { clearInterval(look); done(); } }, 100); })"
    )
    assert "Every topic is connected." in said(fresh)
    assert fresh.evaluate("document.getElementById('play').getAttribute('aria-pressed')") == "false"


def test_figures_stand_in_the_page_with_their_data(fresh: Browser, page: Path) -> None:
    assert fresh.evaluate("document.querySelectorAll('figure svg[role=img]').length") == 3
    for name in fresh.evaluate("Array.from(document.querySelectorAll('figure')).map(f => f.id)"):
        rows = fresh.evaluate(f"document.querySelectorAll('#{name} details tbody tr').length")
        data = (page.parent / "figures" / f"{name}.csv").read_text().splitlines()
        assert rows == min(len(data) - 1, ROWS_SHOWN) > 0
        assert (page.parent / "figures" / f"{name}.svg").is_file()
        assert (page.parent / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        drawn = fresh.evaluate(f"document.querySelector('#{name} svg').textContent")
        for line in {row.split(",")[1] for row in data[1:] if ",paper: " in row}:
            assert line.strip('"') in drawn, "the paper's number is drawn in"


def test_the_page_says_on_what_it_was_made(fresh: Browser) -> None:
    made = fresh.evaluate("document.querySelector('section[aria-labelledby=made-title]').textContent")
    assert f"python {platform.python_version()}" in made
    assert f"numpy {numpy.__version__}" in made
    assert f"cores {os.cpu_count()}" in made

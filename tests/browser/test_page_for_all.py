"""The page for those who use a keyboard, a screen reader, a small screen, or see colours differently."""

from __future__ import annotations

from itertools import pairwise

import pytest

from .chromium import Browser

STOPS = (
    "Array.from(document.querySelectorAll('a[href], button, select, input, summary, [tabindex=\"0\"]'))"
    ".filter(e => !e.disabled && e.checkVisibility())"
)
CONTRASTS = """
(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const channels = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return Array.from(canvas.getImageData(0, 0, 1, 1).data);
  };
  const light = (colour) => {
    const [r, g, b] = channels(colour).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (channels(colour)[3] === 255) { return colour; }
    }
    return 'white';
  };
  const held = (e) => Array.from(e.childNodes).some((n) => n.nodeType === 3 && n.textContent.trim());
  return Array.from(document.querySelectorAll('body *:not(svg *):not(script):not(style):not(noscript)'))
    .filter((e) => held(e) && e.checkVisibility() && !e.disabled && !e.closest('option'))
    .map((e) => {
      const pair = [light(getComputedStyle(e).color), light(behind(e))].sort((a, b) => b - a);
      return [(pair[0] + 0.05) / (pair[1] + 0.05), e.tagName + ' ' + e.textContent.trim().slice(0, 40)];
    });
})()
"""


def test_the_tab_key_leads_to_everything_in_reading_order(fresh: Browser) -> None:
    fresh.choose("#lose", "4")  # then the buttons can be used
    count = fresh.evaluate(
        f"(() => {{ const all = {STOPS}; all.forEach((e, at) => e.dataset.stop = at); return all.length; }})()"
    )
    assert count > 45
    fresh.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(count):
        fresh.strike("Tab")
        reached.append(fresh.evaluate("+document.activeElement.dataset.stop"))
    assert reached == list(range(count))


def test_the_first_stop_leads_past_the_overlay_to_the_claims(fresh: Browser) -> None:
    fresh.strike("Tab")
    assert fresh.evaluate("document.activeElement.textContent") == "Skip to the claims"
    fresh.strike("Enter")
    fresh.strike("Tab")
    assert fresh.evaluate("document.activeElement.id") == "paper"


def test_the_whole_story_can_be_told_by_keys(fresh: Browser) -> None:
    """A topic, a loss and all of its mending, without a mouse."""
    fresh.press("ArrowDown", "#topic")
    assert "Topic" in fresh.evaluate("document.getElementById('state').textContent")
    fresh.press("Enter", '.node[data-node="2"]')
    steps = 0
    while not fresh.evaluate("document.getElementById('forward').disabled"):
        fresh.press("Enter", "#forward")
        steps += 1
    assert steps > 1
    assert fresh.evaluate("document.getElementById('state').textContent").endswith("Every topic is connected.")
    fresh.write("maximum degree", "#words")
    shown = fresh.evaluate("document.getElementById('shown').textContent")
    assert 0 < int(shown.split(" ")[0]) < 133


def test_a_screen_reader_is_given_a_name_for_all_that_can_be_used(fresh: Browser) -> None:
    told = fresh.told()
    assert [one for one in told if one["focusable"] and not one["name"]] == []
    roles = [one["role"] for one in told]
    assert {"main", "banner", "heading", "table", "combobox", "button", "status"} <= set(roles)
    nodes = [one["name"] for one in told if one["name"].startswith("node 7,")]
    assert nodes == [nodes[0]]
    assert "wants topics" in nodes[0]
    figures = [one["name"] for one in told if one["role"] in ("image", "img")]
    assert len(figures) == 3
    assert all(len(name) > 60 for name in figures), "what a figure shows is told in words"


def test_headings_go_down_one_level_at_a_time(fresh: Browser) -> None:
    levels = fresh.evaluate("Array.from(document.querySelectorAll('h1, h2, h3, h4')).map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_what_is_behind_it(fresh: Browser, scheme: str) -> None:
    """By the measure of WCAG 2, level AA: 4.5 to 1."""
    fresh.show_as(1280, 900, scheme)
    found = fresh.evaluate(CONTRASTS)
    assert len(found) > 100
    assert [one for one in found if one[0] < 4.5] == []


@pytest.mark.parametrize("width", [360, 768])
def test_a_small_screen_needs_no_scrolling_sideways(fresh: Browser, width: int) -> None:
    fresh.show_as(width, 700, "light")
    assert fresh.evaluate("document.scrollingElement.scrollWidth") <= width

"""An overlay as a picture: SVG by itself, or in a page that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np

from omen.interests import Interests, plain
from omen.overlay import Overlay
from omen.quality import degree_summary
from omen.rules import FleetRules

MOST_DRAWN = 2000
"""Nodes up to which links are drawn; above, how many nodes have which degree."""
LABELLED = 60

_SIDE = 1000
_COLOURS = (
    "#4269d0",
    "#efb118",
    "#ff725c",
    "#6cc5b0",
    "#3ca951",
    "#ff8ab7",
    "#a463f2",
    "#97bbf5",
    "#9c6b4e",
    "#9498a0",
)
_STYLE = (
    "text{font:12px sans-serif;fill:#333}.l{stroke:#bbb;stroke-width:1}.b{stroke:#e8a33d}"
    ".t{stroke:#d62728;stroke-width:2}"
    ".off{opacity:.25}.zone{fill:none;stroke:#ccc;stroke-dasharray:4 4}"
)


@dataclass(frozen=True)
class Picture:
    """What to draw; `topic` is the code of the one to highlight."""

    interests: Interests
    overlay: Overlay
    rules: FleetRules
    topic: int | None = None


def draw(picture: Picture) -> list[str]:
    """SVG, line by line: zones as groups, degrees as sizes, a topic highlighted."""
    body = _links_and_nodes(picture) if picture.overlay.node_count <= MOST_DRAWN else _degrees(picture.overlay)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIDE} {_SIDE + 40}" role="img">'
    return [head, f"<title>{escape(caption(picture))}</title>", f"<style>{_STYLE}</style>", *body, "</svg>"]


def draw_page(picture: Picture) -> list[str]:
    """The same inside a page that needs no network."""
    said = escape(caption(picture))
    head = f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{said}</title>"
    style = "<style>body{margin:2em auto;max-width:60em;font:16px sans-serif}svg{width:100%}</style>"
    return [head, style, f"<h1>{said}</h1>", *draw(picture), "</html>"]


def caption(picture: Picture) -> str:
    """The picture in words."""
    overlay, degrees = picture.overlay, degree_summary(picture.overlay)
    text = f"{overlay.node_count:,} nodes, {overlay.link_count:,} links, at most {degrees.maximum} at a node"
    if picture.topic is None:
        return text
    wanted = picture.interests.subscribers_of(picture.topic).size
    return f"{text}; topic {plain(picture.interests.topics, picture.topic)} with {wanted:,} subscribers"


def _links_and_nodes(picture: Picture) -> Iterator[str]:
    overlay, rules = picture.overlay, picture.rules
    places, zones = _places(rules)
    wants = set() if picture.topic is None else set(picture.interests.subscribers_of(picture.topic).tolist())
    for name, (x, y, radius) in zones.items():
        yield f'<circle class="zone" cx="{x:.0f}" cy="{y:.0f}" r="{radius:.0f}"/>'
        if name:
            yield f'<text x="{x:.0f}" y="{y - radius - 4:.0f}" text-anchor="middle">{escape(name)}</text>'
    for u, v in zip(overlay.u.tolist(), overlay.v.tolist(), strict=True):
        kind = "l t" if u in wants and v in wants else "l b" if rules.zones[u] != rules.zones[v] else "l"
        off = " off" if wants and kind != "l t" else ""
        (x1, y1), (x2, y2) = places[u], places[v]
        yield f'<line class="{kind}{off}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
    for node, degree in enumerate(overlay.degrees.tolist()):
        x, y = places[node]
        label = escape(str(plain(overlay.nodes, node)))
        colour = _COLOURS[int(rules.zones[node]) % len(_COLOURS)]
        off = ' class="off"' if wants and node not in wants else ""
        size = 2.5 + 1.5 * math.sqrt(degree)
        said = f"<title>{label}: {degree} links</title>"
        yield f'<circle{off} cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" fill="{colour}">{said}</circle>'
        if overlay.node_count <= LABELLED:
            yield f'<text x="{x + size + 2:.1f}" y="{y + 4:.1f}">{label}</text>'


def _places(rules: FleetRules) -> tuple[list[tuple[float, float]], dict[str, tuple[float, float, float]]]:
    """Zones in a circle, and the nodes of each as the seeds of a sunflower stand."""
    counts = np.bincount(rules.zones, minlength=len(rules.zone_names))
    shown = [zone for zone in range(len(rules.zone_names)) if counts[zone]]
    several = len(shown) > 1
    ring = 300.0 if several else 0.0
    most = 440.0 if not several else min(180.0, 300.0 * math.sin(math.pi / len(shown)) * 0.95)
    centres: dict[int, tuple[float, float, float]] = {}
    for place, zone in enumerate(shown):
        angle = 2 * math.pi * place / max(len(shown), 1) - math.pi / 2
        radius = most * math.sqrt(counts[zone] / counts.max())
        centres[zone] = (_SIDE / 2 + ring * math.cos(angle), _SIDE / 2 + 20 + ring * math.sin(angle), max(radius, 12.0))
    seated = dict.fromkeys(centres, 0)
    places = []
    for zone in rules.zones.tolist():
        x, y, radius = centres[zone]
        seat = seated[zone]
        seated[zone] += 1
        away = radius * 0.92 * math.sqrt((seat + 0.5) / counts[zone])
        places.append((x + away * math.cos(seat * 2.39996), y + away * math.sin(seat * 2.39996)))
    return places, {rules.zone_names[zone]: centre for zone, centre in centres.items()}


def _degrees(overlay: Overlay) -> Iterator[str]:
    """How many nodes have which degree, as bars."""
    histogram = degree_summary(overlay).histogram
    most = max(nodes for _, nodes in histogram)
    width = (_SIDE - 80) / (histogram[-1][0] + 1)
    for degree, nodes in histogram:
        height = 900 * nodes / most
        x = 60 + degree * width
        yield (
            f'<rect x="{x:.1f}" y="{960 - height:.1f}" width="{max(width - 1, 1):.1f}" height="{height:.1f}"'
            f' fill="{_COLOURS[0]}"><title>{nodes:,} nodes with {degree} links</title></rect>'
        )
    for degree in sorted({0, histogram[-1][0] // 2, histogram[-1][0]}):
        yield f'<text x="{60 + (degree + 0.5) * width:.1f}" y="980" text-anchor="middle">{degree}</text>'
    yield f'<text x="50" y="70" text-anchor="end">{most:,}</text>'
    yield f'<text x="{_SIDE / 2}" y="1010" text-anchor="middle">links of a node; height: nodes</text>'

"""An overlay for other programs: GraphML (Gephi, yEd, networkx), DOT (Graphviz), JSON (D3, networkx)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from xml.sax.saxutils import quoteattr

from omen.errors import InvalidInput
from omen.interests import Interests, Label
from omen.overlay import Overlay

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def export_lines(interests: Interests, overlay: Overlay, form: str) -> Iterator[str]:
    """The overlay as text in the form asked for, line by line, with topics and degree of each node."""
    if form not in FORMS:
        raise InvalidInput(f"cannot export as {form!r}: choose one of {', '.join(FORMS)}")
    return FORMS[form](interests, overlay)


def _node_facts(interests: Interests, overlay: Overlay) -> Iterator[tuple[Label, int, int]]:
    topics = (interests.node_offsets[1:] - interests.node_offsets[:-1]).tolist()
    return zip(overlay.nodes.tolist(), topics, overlay.degrees.tolist(), strict=True)


def _graphml(interests: Interests, overlay: Overlay) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    yield '  <key id="topics" for="node" attr.name="topics" attr.type="int"/>'
    yield '  <key id="degree" for="node" attr.name="degree" attr.type="int"/>'
    yield '  <graph id="overlay" edgedefault="undirected">'
    for label, topics, degree in _node_facts(interests, overlay):
        facts = f'<data key="topics">{topics}</data><data key="degree">{degree}</data>'
        yield f"    <node id={_xml(label)}>{facts}</node>"
    for u, v in overlay.links():
        yield f"    <edge source={_xml(u)} target={_xml(v)}/>"
    yield "  </graph>"
    yield "</graphml>"


def _xml(label: Label) -> str:
    text = str(label)
    if _NOT_XML.search(text):
        raise InvalidInput(f"node {label!r} holds a character that XML cannot: export as json instead")
    return quoteattr(text)


def _dot(interests: Interests, overlay: Overlay) -> Iterator[str]:
    yield "graph overlay {"
    for label, topics, degree in _node_facts(interests, overlay):
        yield f"  {_quoted(label)} [topics={topics}, degree={degree}];"
    for u, v in overlay.links():
        yield f"  {_quoted(u)} -- {_quoted(v)};"
    yield "}"


def _quoted(label: Label) -> str:
    text = str(label).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    if "\0" in text:
        raise InvalidInput(f"node {label!r} holds a character that DOT cannot: export as json instead")
    return f'"{text}"'


def _json(interests: Interests, overlay: Overlay) -> Iterator[str]:
    """One node and one link a line: readable by a program as a whole and by a person or `grep` in parts."""
    yield '{"directed": false, "multigraph": false, "nodes": ['
    for code, label in enumerate(overlay.nodes.tolist()):
        wanted = interests.topics[interests.topics_of(code)].tolist()
        node = json.dumps({"id": label, "topics": wanted}, ensure_ascii=False)
        yield node if code + 1 == overlay.node_count else f"{node},"
    yield '], "links": ['
    for place, (u, v) in enumerate(overlay.links(), start=1):
        link = json.dumps({"source": u, "target": v}, ensure_ascii=False)
        yield link if place == overlay.link_count else f"{link},"
    yield "]}"


FORMS: dict[str, Callable[[Interests, Overlay], Iterator[str]]] = {"graphml": _graphml, "dot": _dot, "json": _json}

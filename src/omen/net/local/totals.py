"""What the nodes of a cluster say of themselves, added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TopicTotal:
    """One topic: who wants it, who carries it for others, in how many pieces they are; None: not all have answered."""

    topic: str
    subscribers: int
    carried: int
    pieces: int | None


def total_survey(nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts and degrees over a survey (`cluster.survey`); a node that did not answer counts as a node alone."""
    answered = [node for node in nodes if "links" in node]
    degrees = [len(node["links"]) for node in answered]
    links = {frozenset((node["name"], peer)) for node in answered for peer in node["links"]}
    return {
        "nodes": len(nodes),
        "well": sum(node["status"] in ("ok", "left") for node in nodes),
        "topics": len({topic["topic"] for node in answered for topic in node["topics"]}),
        "links": len(links),
        "avg_degree": sum(degrees) / len(degrees) if degrees else 0.0,
        "max_degree": max(degrees, default=0),
        "refused": _by_reason(answered, "refused"),
        "denied": _by_reason(answered, "denied"),
    }


def _by_reason(nodes: Sequence[dict[str, Any]], what: str) -> dict[str, int]:
    """Refusals or denials of all nodes, by reason."""
    total: dict[str, int] = {}
    for node in nodes:
        for reason, count in node.get(what, {}).items():
            total[reason] = total.get(reason, 0) + count
    return dict(sorted(total.items()))


def topics_of(nodes: Sequence[dict[str, Any]]) -> list[TopicTotal]:
    """All topics of a survey, by name. A node that has not answered may connect what seems split."""
    answered = {node["name"]: node for node in nodes if "links" in node}
    carriers: dict[str, dict[str, bool]] = {}
    for name, node in answered.items():
        for topic in node["topics"]:
            carriers.setdefault(topic["topic"], {})[name] = topic["subscribed"]
    are_all_known = all(peer in answered for node in answered.values() for peer in node["links"])
    return [
        TopicTotal(
            topic,
            sum(found.values()),
            len(found) - sum(found.values()),
            _pieces({name: answered[name]["links"] for name in found}) if are_all_known else None,
        )
        for topic, found in sorted(carriers.items())
    ]


def _pieces(links: dict[str, list[str]]) -> int:
    """In how many pieces nodes are, by the links among them."""
    pieces, left = 0, set(links)
    while left:
        pieces += 1
        reached = [left.pop()]
        while reached:
            near = left.intersection(links[reached.pop()])
            left -= near
            reached += near
    return pieces

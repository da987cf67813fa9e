"""What the nodes of a cluster say of themselves, added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def total_survey(nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts and degrees over a survey (`cluster.survey`); a node that did not answer counts as a node alone."""
    answered = [node for node in nodes if "links" in node]
    degrees = [len(node["links"]) for node in answered]
    return {
        "nodes": len(nodes),
        "well": sum(node["status"] in ("ok", "left") for node in nodes),
        "topics": len({topic["topic"] for node in answered for topic in node["topics"]}),
        "links": sum(degrees) // 2,
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

"""The only judge: is an overlay topic-connected (k-topic-connected), and what does it cost?"""

from typing import Any
from warnings import warn

from omen.quality.connectivity import (
    Check,
    FailingTopic,
    check_overlay,
    component_labels,
    topic_components,
    topic_connectivity,
)
from omen.quality.measures import (
    Degrees,
    Diameters,
    PerTopicLinks,
    degree_summary,
    diameter_summary,
    per_topic_mesh_links,
    per_topic_ring_links,
    topic_diameters,
)
from omen.quality.topic_graphs import topic_link_counts

__all__ = [
    "Check",
    "Degrees",
    "Diameters",
    "FailingTopic",
    "PerTopicLinks",
    "check_overlay",
    "component_labels",
    "degree_summary",
    "diameter_summary",
    "per_topic_mesh_links",
    "per_topic_ring_links",
    "topic_components",
    "topic_connectivity",
    "topic_diameters",
    "topic_link_counts",
]


def __getattr__(name: str) -> Any:
    if name == "BrokenTopic":
        warn("omen.quality.BrokenTopic is now FailingTopic", DeprecationWarning, stacklevel=2)
        return FailingTopic
    raise AttributeError(f"module 'omen.quality' has no attribute {name!r}")

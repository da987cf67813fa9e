"""What a maintainer starts from."""

from __future__ import annotations

import numpy as np

from omen.design.dispensable import design_low_oda_2
from omen.design.greedy import design_low_oda
from omen.errors import InvalidInput
from omen.fleet.designing import FleetDesign
from omen.fleet.repairing import Within, begin_within
from omen.interests import Interests, Label, plain
from omen.maintain.state import State
from omen.overlay import Overlay


def initial_state(
    interests: Interests, overlay: Overlay | None, rho: float, k: int = 1, within: Within | None = None
) -> State:
    """The state to start from: the overlay given, which must be (k-)topic-connected, or Low-ODA's, within the rules."""
    if overlay is None and within is not None:
        rules = within.rules.restricted(interests.nodes)
        return State(interests, begin_within(interests, rules, FleetDesign(rho, within.sigma)))
    if overlay is None:
        return State(interests, design_low_oda(interests, rho) if k == 1 else design_low_oda_2(interests, rho))
    state = State(interests, overlay)
    split = _first_split(interests, overlay)
    if split is not None:
        topic, parts = split
        raise InvalidInput(f"topic {topic!r} is in {parts} pieces: a maintainer starts from a topic-connected overlay")
    if k > 1:
        require_two_connected(interests, overlay)
    return state


def require_two_connected(interests: Interests, overlay: Overlay) -> None:
    from omen.quality import check_overlay

    failing = check_overlay(interests, overlay, k=2).failing
    if failing:
        topic = failing[0].topic
        what = "with k = 2 a maintainer starts from a 2-topic-connected overlay, as low-oda-2 designs them"
        raise InvalidInput(f"the loss of one node would cut topic {topic!r}: {what}")


def _first_split(interests: Interests, overlay: Overlay) -> tuple[Label, int] | None:
    from omen.quality import topic_components

    parts = np.asarray(topic_components(interests, overlay))
    split = np.flatnonzero(parts > 1)
    if not split.size:
        return None
    return plain(interests.topics, int(split[0])), int(parts[split[0]])

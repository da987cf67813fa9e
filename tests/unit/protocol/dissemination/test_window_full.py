"""What waits behind a hole, where windows are full when the hole is filled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omen.protocol.config import Config
from omen.protocol.config import Dissemination as Settings
from omen.protocol.context import Outbox
from omen.protocol.dissemination.plumtree import Dissemination
from omen.protocol.events import Deliver, Gap
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import make_publication, stream_key

TOPIC, PUBLISHER = 7, 9


@pytest.mark.parametrize("count", range(50, 62))
def test_what_leaves_a_full_window_as_the_hole_in_front_of_it_is_filled_is_delivered_first(count: int) -> None:
    """It was let go of in silence, and the stream stood still there: nothing was missing that could be awaited."""
    me, topics = Ref(1, 1, ""), frozenset({TOPIC})
    config = replace(Config(), dissemination=Settings(total_window_bytes=20_000))
    part = Dissemination(me, config, Outbox(me.id))
    part.refresh(topics, topics, frozenset(), {2: (Ref(2, 1, ""), topics)}, 0)
    key = stream_key(TOPIC, PUBLISHER, 1)
    given: list[int] = []
    for sequence in (1, *range(3, count), 2, count, count + 1):
        publication = make_publication(key, sequence, b"x", opening=sequence == 1)
        for output in part.receive(2, publication, sequence):
            if isinstance(output, Deliver):
                given.append(output.sequence)
            elif isinstance(output, Gap):
                given += range(output.first, output.last + 1)
    assert given == list(range(1, count + 2))

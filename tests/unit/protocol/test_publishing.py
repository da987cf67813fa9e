"""Topics that a node carries only to publish on them, and the links that publications follow."""

from __future__ import annotations

from tests.unit.protocol.contexts import describe, make_context, ref

from omen.protocol.context import NodeContext
from omen.protocol.dissemination.plumtree import Dissemination
from omen.protocol.dissemination.window import SweepTimer
from omen.protocol.events import Multicast
from omen.protocol.parts import Parts, build_parts
from omen.protocol.publishing import Publishing
from omen.protocol.storage.store import RecordStore

ME, PEER = 10, 5


def build() -> tuple[Publishing, Parts, Dissemination, NodeContext]:
    """A node that wants topic 1 and has a link."""
    context = make_context(ME, (1,))
    parts = build_parts(context, None, {}, RecordStore(context.config.storage_bytes))
    parts.links.preset(ref(PEER), ())
    dissemination = Dissemination(ref(ME), context.config, context.out)
    return Publishing(context, parts, dissemination), parts, dissemination, context


def test_a_lent_topic_is_carried_until_its_windows_have_lived() -> None:
    publishing, parts, dissemination, context = build()
    publishing.lend(2)
    dissemination.publish(2, b"x", 0, b"")
    assert parts.requests.wanted == {1, 2}
    context.clock.now = context.config.dissemination.window_age - 1
    publishing.on_timer(SweepTimer())
    assert parts.requests.wanted == {1, 2}
    context.clock.now += 1
    publishing.on_timer(SweepTimer())
    assert parts.requests.wanted == {1}
    assert publishing.lent == set()


def test_a_topic_that_the_application_asks_for_is_lent_no_more() -> None:
    publishing, parts, dissemination, context = build()
    publishing.lend(2)
    dissemination.publish(2, b"x", 0, b"")
    publishing.subscribe((2,), ())
    context.clock.now = 2 * context.config.dissemination.window_age
    publishing.on_timer(SweepTimer())
    assert parts.requests.wanted == {1, 2}


def test_lent_topics_are_handed_to_the_next_incarnation() -> None:
    publishing, parts, dissemination, context = build()
    publishing.lend(2)
    later = Publishing(context, parts, dissemination, publishing.lent)
    publishing.lent.clear()
    assert later.lent == {2}


def test_publications_follow_the_links_there_are() -> None:
    publishing, parts, dissemination, _ = build()
    parts.peer_table.learn(describe(PEER, (1,)))

    def targets() -> list[tuple[int, ...]]:
        publishing.follow_links()
        _, outputs = dissemination.publish(1, b"x", 0, b"")
        return [output.to for output in outputs if isinstance(output, Multicast)]

    assert targets() == [(PEER,)]
    parts.links.drop(PEER)
    assert targets() == []

"""When a hole ends: not too late, and not while what is missing may still come."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from omen.net.settings import LIVE
from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.dissemination.plumtree import Dissemination
from omen.protocol.dissemination.retransmission import RetransmissionTimer
from omen.protocol.events import MILLISECOND, SECOND, Send, SetTimer
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import (
    Announce,
    Publication,
    RetransmissionRequest,
    StreamMark,
    make_publication,
    stream_key,
)
from unit.protocol.dissemination.neighbourhood import TOPIC, Neighbourhood

TEN = list(range(1, 11))


def test_what_a_neighbour_told_as_a_gap_is_not_taken_for_older_than_it_is() -> None:
    """A slow consumer hears of a gap when it reads again: its neighbour knew of it only by an announcement."""
    nodes = Neighbourhood([(1, 2), (2, 4)])
    for _ in range(10):
        nodes.publish(1)
        nodes.run(10)
    nodes.run(10_000)
    nodes.waiting.add(3)
    nodes.add(3)
    nodes.link(2, 3)
    nodes.run(100)
    nodes.waiting.discard(3)
    nodes.refresh()
    nodes.run(3000)
    nodes.behind(2, 3)
    nodes.drops = lambda sender, to, message: (sender, to) == (2, 3) or (to == 2 and type(message) is Publication)
    for _ in range(10):
        nodes.publish(1)
        nodes.run(10)
    nodes.run(500)
    nodes.crash(1)
    nodes.drops = lambda sender, to, message: (sender, to) == (2, 3)
    nodes.run(1000)
    nodes.refresh()
    nodes.run(6500)
    missing = [-number for number in range(11, 21)]
    assert nodes.sequences(2, 1) == nodes.sequences(4, 1) == TEN + missing
    nodes.drops = lambda sender, to, message: False
    nodes.ready(2, 3)
    nodes.run(12_000)
    assert nodes.sequences(3, 1) == missing


@pytest.mark.parametrize("still_ms", [1500, 2600, 4500])
def test_a_hole_is_awaited_from_a_neighbour_that_has_not_answered(still_ms: int) -> None:
    """One that keeps little, and delivered it all, says nothing of what another keeps."""
    nodes = Neighbourhood([(1, 3)])
    small = replace(nodes.config.dissemination, total_window_bytes=20_000)
    nodes.config = replace(nodes.config, dissemination=small)
    nodes.add(2, refresh=False)
    nodes.links |= {frozenset({1, 2}), frozenset({2, 3})}
    nodes.refresh()
    for _ in range(10):
        nodes.publish(1, bytes(500))
        nodes.run(10)
    nodes.run(6000)
    nodes.drops = lambda _, to, message: to == 3 and type(message) is Publication and 11 <= message.sequence <= 20
    for _ in range(10):
        nodes.publish(1, bytes(500))
        nodes.run(1)
    nodes.drops = lambda sender, to, message: (sender, to) == (1, 3) and type(message) is Publication
    for _ in range(40):
        nodes.publish(1, bytes(500))
        nodes.run(1)
    end = nodes.now + still_ms * MILLISECOND
    nodes.drops = lambda sender, to, message: False
    nodes.latency = lambda one, other: max(MILLISECOND, end - nodes.now) if 1 in (one, other) else MILLISECOND
    nodes.run(15_000)
    assert nodes.sequences(3, 1) == list(range(1, 61))


@pytest.mark.parametrize(("age_ms", "repair_ms"), [(1100, 8000), (300, 9000)])
def test_a_node_whose_last_neighbour_crashed_waits_for_its_repair(age_ms: int, repair_ms: int) -> None:
    nodes = Neighbourhood([(1, 2), (2, 3)])
    for _ in range(10):
        nodes.publish(1)
        nodes.run(10)
    nodes.drops = lambda _, to, message: to == 3 and type(message) is Publication
    for _ in range(10):
        nodes.publish(1)
        nodes.run(10)
    nodes.run(age_ms)
    nodes.crash(2)
    nodes.drops = lambda sender, to, message: False
    nodes.run(2000)
    nodes.refresh()
    nodes.run(repair_ms - 2000)
    nodes.link(1, 3)
    nodes.run(20_000)
    assert nodes.sequences(3, 1) == list(range(1, 21))


@pytest.mark.parametrize(("rate", "one_way_ms", "size"), [(1000, 600, 100), (250, 150, 20_000)])
def test_a_cut_of_five_seconds_is_filled_over_a_long_link(rate: int, one_way_ms: int, size: int) -> None:
    """With as many requests under way as a short link needs, the neighbour would still keep what is told as a gap."""
    nodes = Neighbourhood([(1, 2)], graft_delay=1000 * MILLISECOND, pull_retry=500 * MILLISECOND)
    nodes.latency = lambda one, other: one_way_ms * MILLISECOND
    payload = bytes(size)

    def publish_for(seconds: int) -> None:
        for _ in range(50 * seconds):
            for _ in range(rate // 50):
                nodes.publish(1, payload)
            nodes.run(20)

    publish_for(2)
    nodes.drops = lambda one, other, message: True
    nodes.broken(1, 2)
    nodes.broken(2, 1)
    publish_for(5)
    nodes.drops = lambda one, other, message: False
    nodes.ready(1, 2)
    nodes.ready(2, 1)
    publish_for(4)
    nodes.run(10_000)
    assert nodes.sequences(2, 1) == list(range(1, 11 * rate + 1))


def test_a_node_left_alone_before_it_knew_where_a_stream_begins_does_not_wait_for_ever() -> None:
    nodes = Neighbourhood([(1, 2)])
    for _ in range(50):
        nodes.publish(1)
        nodes.run(10)
    nodes.waiting.add(3)
    nodes.add(3)
    nodes.drops = lambda _, to, message: to == 3 and type(message) is Announce
    nodes.link(2, 3)
    nodes.waiting.discard(3)
    nodes.refresh()
    nodes.run(20)
    for _ in range(3):
        nodes.publish(1)
        nodes.run(5)
    nodes.run(30)
    assert nodes.sequences(3, 1) == []
    nodes.crash(2)
    nodes.refresh()
    nodes.run(10_000)
    assert nodes.sequences(3, 1)[-3:] == [51, 52, 53]


def test_the_answer_to_the_first_question_counts() -> None:
    """Else a neighbour that has answered is taken for silent, and asked for nothing until it is forgiven."""
    nodes = Neighbourhood([(1, 2)], graft_delay=1000 * MILLISECOND, pull_retry=500 * MILLISECOND)
    for _ in range(100):
        nodes.publish(1)
        nodes.run(10)
    nodes.waiting.add(3)
    nodes.add(3)
    nodes.drops = lambda _, to, message: to == 3 and type(message) is Announce and not message.answers
    nodes.link(2, 3)
    nodes.waiting.discard(3)
    nodes.refresh()
    nodes.publish(1)
    nodes.run(1300)
    assert [kept.sequence for kept in nodes.parts[3].kept(TOPIC)] == list(range(1, 102))


@pytest.mark.parametrize(("crashes", "linked_after_ms"), [(True, 6000), (True, 8500), (False, 4900)])
def test_a_new_neighbour_is_heard_before_a_stream_ends_its_wait(crashes: bool, linked_after_ms: int) -> None:
    """A newcomer does not know where a stream begins: the new neighbour does, and keeps it."""
    nodes = Neighbourhood([(1, 2), (1, 4)])
    nodes.latency = lambda one, other: (300 if 4 in (one, other) else 1) * MILLISECOND
    for _ in range(50):
        nodes.publish(1)
        nodes.run(10)
    nodes.run(1000)
    nodes.waiting.add(3)
    nodes.add(3)
    nodes.drops = lambda sender, to, message: (sender, to) == (2, 3) and type(message) is Announce
    nodes.link(2, 3)
    nodes.waiting.discard(3)
    nodes.refresh()
    nodes.run(20)
    for _ in range(3):
        nodes.publish(1)
        nodes.run(5)
    nodes.run(20)
    if crashes:
        nodes.crash(2)
        nodes.refresh()
    nodes.run(linked_after_ms)
    assert nodes.sequences(3, 1) == []
    nodes.link(3, 4)
    nodes.run(3000)
    found = nodes.sequences(3, 1)
    assert min(found) > 0
    assert found[-3:] == [51, 52, 53]


def test_answers_that_a_full_link_dropped_are_asked_for_again_as_soon_as_there_is_room() -> None:
    """The neighbour says how far it is then; until its answers were overdue a second passed each time."""
    nodes = Neighbourhood([(1, 2)], **asdict(LIVE.dissemination))
    for dropped in (3, None):  # how long an answer takes is known from the first hole
        nodes.drops = lambda sender, to, message, at=dropped: (
            isinstance(message, Publication) and message.sequence == at
        )
        for _ in range(5):
            nodes.publish(1)
            nodes.run(2)
        nodes.run(3000)
    assert nodes.sequences(2, 1) == list(range(1, 11))
    nodes.behind(1, 2)
    for _ in range(600):
        nodes.publish(1, bytes(1000))
    nodes.ready(1, 2)
    nodes.drops = lambda sender, to, message: sender == 1 and getattr(message, "answers", 1) != 0
    nodes.run(5)
    nodes.behind(1, 2)
    nodes.drops = lambda sender, to, message: False
    nodes.run(20)
    assert len(nodes.sequences(2, 1)) == 10
    nodes.ready(1, 2)
    nodes.run(100)
    assert nodes.sequences(2, 1) == list(range(1, 611))


def test_a_neighbour_that_is_asked_in_vain_for_streams_that_are_none_is_asked_for_what_it_has() -> None:
    """9 makes up streams, 2 is honest. Before: each question in vain had 2 shunned in all its streams, so that honest
    publications of the topic came seconds late, and some were told as gaps.
    """
    out = Outbox(1)
    part = Dissemination(Ref(1, 1, ""), replace(Config(), dissemination=LIVE.dissemination), out)
    topics = frozenset({TOPIC})
    part.refresh(topics, topics, frozenset(), {peer: (Ref(peer, 1, ""), topics) for peer in (2, 9)}, 0)
    timers: dict[Any, int] = {}
    asked_at = None
    in_vain = 0
    outputs = list(out.take())
    for now in range(0, 3 * SECOND, 10 * MILLISECOND):
        if now % (50 * MILLISECOND) == 0:
            made_up = stream_key(TOPIC, 100 + now // MILLISECOND, 1)
            outputs += part.receive(9, make_publication(made_up, 7, b"x", False), now)
        if now == SECOND:
            part.on_control(2, Announce(((TOPIC, (StreamMark(5, 1, 1, 1, 3, -1, 0),)),)), now)
        for timer in [timer for timer, due in timers.items() if due <= now]:
            del timers[timer]
            part.on_timer(timer, now)
        outputs += out.take()
        while outputs:
            output = outputs.pop(0)
            if isinstance(output, SetTimer):
                timers[output.timer] = now + output.delay
            elif isinstance(output, Send) and output.to == 2 and isinstance(output.message, RetransmissionRequest):
                if any(want[1] == 5 for want in output.message.wants):
                    asked_at = asked_at or now
                else:
                    in_vain += 1
                    part.on_control(2, Announce((), False, output.message.number), now)
                    outputs += out.take()
    assert in_vain > 5 and asked_at is not None and asked_at - SECOND <= 1100 * MILLISECOND, "as without them"


def test_a_neighbour_that_has_it_by_now_is_asked_though_a_silent_one_was_asked_in_vain() -> None:
    """One that freezes keeps its links, and whoever hears that something is missing asks it as well as the others."""
    out = Outbox(1)
    part = Dissemination(Ref(1, 1, ""), replace(Config(), dissemination=LIVE.dissemination), out)
    topics = frozenset({TOPIC})
    part.refresh(topics, topics, frozenset(), {peer: (Ref(peer, 1, ""), topics) for peer in (2, 9)}, 0)
    part.note_round_trip(MILLISECOND)
    part.receive(9, make_publication(stream_key(TOPIC, 5, 1), 1, b"x", True), 0)
    awaits = StreamMark(5, 1, 1, 1, 1, 1, 0, top=2, holes=((2, 2),))
    has = StreamMark(5, 1, 1, 1, 2, 1, 0, top=2)
    asked: list[tuple[int, int]] = []
    for now in range(SECOND, 2 * SECOND, 10 * MILLISECOND):
        if now in (SECOND, SECOND + 200 * MILLISECOND):
            part.on_control(2, Announce(((TOPIC, (awaits if now == SECOND else has,)),)), now)
        part.on_timer(RetransmissionTimer(), now)
        sends = [output for output in out.take() if isinstance(output, Send)]
        asked += [(send.to, now) for send in sends if isinstance(send.message, RetransmissionRequest)]
    assert asked[0][0] == 9, "nobody was known to have it"
    assert asked[1] == (2, SECOND + 200 * MILLISECOND)


def test_what_is_under_way_is_not_asked_for_again_when_the_window_moves_past_its_beginning() -> None:
    """Node 2 was cut off for almost as long as windows keep things, and fetches what it can over slow links."""
    nodes = Neighbourhood([(1, 2), (1, 3), (2, 3)], window_age=2 * SECOND)
    nodes.latency = lambda _, __: 100 * MILLISECOND
    nodes.run(4000)
    is_cut_off = False
    nodes.drops = lambda _, to, __: is_cut_off and to == 2

    def publish_for(milliseconds: int) -> None:
        for _ in range(milliseconds // 5):
            nodes.publish(1)
            nodes.run(5)

    publish_for(500)
    is_cut_off = True
    publish_for(1800)
    is_cut_off, before = False, nodes.duplicates
    publish_for(3000)
    nodes.run(8000)
    assert nodes.duplicates - before < 10


def test_a_neighbour_that_had_nothing_is_asked_again_over_a_new_link_without_delay() -> None:
    """And a stream that lasts keeps nothing of neighbours that have gone."""
    nodes = Neighbourhood([(1, 2)], pull_retry=2 * SECOND)
    nodes.publish(1)
    nodes.run(1000)
    nodes.drops = lambda sender, to, message: type(message) is Publication
    for _ in range(9):
        nodes.publish(1)
    nodes.run(250)
    nodes.behind(1, 2)  # so it answers with nothing
    nodes.run(260)
    nodes.drops = lambda sender, to, message: False
    (stream,) = nodes.parts[2].topics[TOPIC].streams.values()
    assert stream.shunned.keys() == {1}
    nodes.unlink(1, 2)
    assert not stream.shunned
    nodes.link(1, 2)
    nodes.run(50)
    assert nodes.sequences(2, 1) == TEN

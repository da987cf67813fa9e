"""What a core notifies of, as log lines: one each, with names."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from omen.net.observe.event_log import EventLog
from omen.net.observe.logs import LOGGER, Log, write_log
from omen.protocol import events
from omen.protocol.events import Notification, RepairOutcome, RepairStage
from omen.protocol.messages.base import EventId, EventKind, Ref

NAMES = {1: "ann", 2: "bob", 3: "cat"}
BOB = Ref(2, 7, "127.0.0.1:2")
LOSS, JOIN = EventId(2, 7, EventKind.LEAVE), EventId(3, 1, EventKind.JOIN)
S = 1_000_000


class Peers:
    """Names of some; bob cannot be reached."""

    def label_of(self, node: int) -> str:
        return NAMES.get(node, f"{node:016x}")

    def is_unreachable(self, node: int) -> bool:
        return node == 2


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    logger = logging.getLogger(LOGGER)
    before = (list(logger.handlers), logger.level, logger.propagate)
    stream = io.StringIO()
    write_log("text", stream)
    yield stream
    logger.handlers[:], logger.level, logger.propagate = before[0], before[1], before[2]


def lines(stream: io.StringIO, *notified: tuple[Notification, int]) -> list[str]:
    """Level, event and fields of what is written."""
    log = EventLog(1, Log("ann", {77: "tea"}), Peers())
    for notification, at in notified:
        log.note(notification, at)
    return [line.partition(" ")[2].replace(" ann:", "") for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("notification", "line"),
    [
        (events.PeerSuspected(BOB), "warning peer_suspected peer=bob incarnation=7"),
        (
            events.SuspicionRefuted(BOB, 1_250_000),
            "info suspicion_refuted peer=bob incarnation=7 suspected_s=1.25",
        ),
        (events.StoodStill(12 * S), "warning node_stood_still for_s=12.0"),
        (
            events.PeerDeclaredFailed(BOB, 1),
            "warning peer_declared_failed peer=bob incarnation=7 cause=unreachable by=ann",
        ),
        (
            events.PeerDeclaredFailed(BOB, 3),
            "warning peer_declared_failed peer=bob incarnation=7 cause=told by=cat",
        ),
        (events.PeerLeft(BOB, True), "info peer_left peer=bob incarnation=7 repaired=True"),
        (events.Rejoined(8), "warning node_rejoined incarnation=8"),
        (events.RequestHandled(EventId(1, 4, EventKind.JOIN)), "info node_joined incarnation=4"),
        (
            events.SplitTopicsLinked(((2, 3), (1, 4)), (5, 77)),
            "warning split_topics_linked topics=0000000000000005,tea links=bob-cat,ann-0000000000000004",
        ),
        (events.WindowCut(77, 2 * S, 9), "warning window_cut topic=tea covers_s=2.0 bytes=9"),
    ],
)
def test_one_line_with_names(stream: io.StringIO, notification: Notification, line: str) -> None:
    assert lines(stream, (notification, 0)) == [line]


def test_a_repair_has_a_beginning_and_an_end_that_names_the_lost_node_and_the_links(stream: io.StringIO) -> None:
    seen = lines(
        stream,
        (events.RepairStageEntered(LOSS, RepairStage.WAITING, ()), 0),
        (events.RepairStageEntered(LOSS, RepairStage.ASKING, (3,)), S),
        (events.RepairFinished(LOSS, ((1, 3),), 2, (LOSS, EventId(4, 1, EventKind.LEAVE))), 2 * S),
        (events.RepairStageEntered(JOIN, RepairStage.ASKING, ()), 3 * S),
        (events.RepairFinished(JOIN, (), 2, (JOIN,)), 4 * S),
    )
    assert seen == [
        "info repair_begun kind=leave peer=bob incarnation=7",
        "info repair_finished kind=leave peer=bob incarnation=7 along_with=0000000000000004 links=ann-cat members=2"
        " took_s=2.0",
        "info repair_begun kind=join peer=cat incarnation=1",
        "info repair_finished kind=join peer=cat incarnation=1 links=none members=2 took_s=1.0",
        "info peer_joined peer=cat incarnation=1 links=none",
    ]


def test_a_repair_that_is_put_off_often_is_one_repair_and_one_left_to_another_ends(stream: io.StringIO) -> None:
    begun = events.RepairStageEntered(LOSS, RepairStage.WAITING, ())
    put_off = events.RepairStopped(LOSS, RepairOutcome.PUT_OFF)
    left = events.RepairStopped(LOSS, RepairOutcome.LEFT_TO_ANOTHER)
    seen = lines(stream, (begun, 0), (put_off, S), (begun, 2 * S), (put_off, 3 * S), (left, 4 * S), (begun, 5 * S))
    assert [line.split()[1] for line in seen] == ["repair_begun", "repair_stopped", "repair_begun"]
    assert seen[1].endswith("outcome=left_to_another")


def test_of_repairs_that_never_end_the_oldest_are_forgotten(stream: io.StringIO) -> None:
    log = EventLog(1, Log("ann"), Peers())
    for place in range(300):
        log.note(events.RepairStageEntered(EventId(place, 1, EventKind.LEAVE), RepairStage.WAITING, ()), 0)
    log.note(events.RepairFinished(EventId(299, 1, EventKind.LEAVE), (), 0, ()), S)
    assert log.repairs.total == 1.0


def test_a_long_list_of_links_is_cut(stream: io.StringIO) -> None:
    (line,) = lines(stream, (events.SplitTopicsLinked(tuple((1, node) for node in range(30)), (77,)), 0))
    assert line.endswith(',and 10 more"') and line.count("ann-") == 20

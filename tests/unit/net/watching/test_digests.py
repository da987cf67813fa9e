"""What a node says of itself, but for what needs a node."""

from __future__ import annotations

from omen.net.watching.digests import BRANCH_S, Branches, Happenings, percentile, rounded
from omen.net.watching.messages import EVENTS_AT_MOST
from omen.protocol.events import (
    LinkUp,
    PeerDeclaredFailed,
    PeerSuspected,
    RepairFinished,
    RepairStage,
    RepairStageEntered,
)
from omen.protocol.messages.base import EventId, EventKind, Ref

BOB = Ref(5, 3, "127.0.0.1:1")
LOSS = EventId(5, 3, EventKind.LEAVE)


def test_events_have_the_names_of_the_log_and_the_nodes_they_are_about() -> None:
    happenings = Happenings(clock=lambda: 12.5)
    happenings.note(PeerSuspected(BOB))
    happenings.note(PeerDeclaredFailed(BOB, 1, refused=True))
    found = [(event.what, event.peer, event.incarnation, event.time_ms) for event in happenings.events]
    assert found == [("peer_suspected", 5, 3, 12_500), ("peer_declared_failed", 5, 3, 12_500)]


def test_a_repair_begins_once_however_many_stages_it_has_and_links_are_left_to_the_digest() -> None:
    happenings = Happenings()
    for stage in list(RepairStage):
        happenings.note(RepairStageEntered(LOSS, stage, 4))
    happenings.note(LinkUp(9))
    happenings.note(RepairFinished(LOSS, ((1, 2),), 4, (LOSS,)))
    assert [event.what for event in happenings.events] == ["repair_begun", "repair_finished"]
    assert happenings.events[-1].detail == "leave, links 1"


def test_the_last_events_are_kept_and_told_from_where_a_viewer_is() -> None:
    happenings = Happenings()
    for _ in range(EVENTS_AT_MOST + 10):
        happenings.note(PeerSuspected(BOB))
    assert len(happenings.since(0)) == EVENTS_AT_MOST
    assert [event.number for event in happenings.since(happenings.last - 2)] == [happenings.last - 1, happenings.last]


def test_the_tree_is_where_publications_went_lately() -> None:
    branches = Branches()
    branches.note(7, (1, 2), 0.0)
    assert branches.tree(0.0) == {}, "nobody looks at it"
    branches.follow(frozenset({7}))
    branches.note(7, (2, 1), 1.0)
    branches.note(8, (3,), 1.0)
    branches.note(7, (2,), BRANCH_S)
    assert branches.tree(BRANCH_S) == {7: (1, 2)}
    assert branches.tree(BRANCH_S + 2) == {7: (2,)}
    branches.follow(frozenset())
    assert branches.tree(BRANCH_S + 2) == {}


def test_figures_are_short_and_percentiles_are_bounds() -> None:
    assert [rounded(value) for value in (0, 0.123, 1234.5)] == [0.0, 0.12, 1200.0]
    bounds = (0.1, 1.0)
    assert percentile(bounds, [0, 0, 0], 0.5) is None
    assert percentile(bounds, [9, 1, 0], 0.5) == 0.1
    assert percentile(bounds, [9, 1, 0], 0.99) == 1.0
    assert percentile(bounds, [0, 0, 1], 0.5) == 2.0

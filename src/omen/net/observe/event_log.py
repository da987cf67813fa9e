"""What a core says of itself and its peers, as log lines: one for each event, with names.

Also how long repairs take, since both ends of one are seen here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, assert_never

from omen.net.observe.logs import Log
from omen.net.observe.metrics import Histogram
from omen.protocol.events import (
    Left,
    LinkPruned,
    LinkUp,
    NameConflict,
    NodeId,
    Notification,
    OwnNameSeen,
    PeerBanned,
    PeerDeclaredFailed,
    PeerLeft,
    PeerSuspected,
    Rejoined,
    RepairFinished,
    RepairOutcome,
    RepairStageEntered,
    RepairStopped,
    RequestHandled,
    SplitTopicsLinked,
    StoodStill,
    SuspicionRefuted,
    Time,
    Topic,
    WindowCut,
)
from omen.protocol.messages.base import EventId, EventKind
from omen.protocol.messages.publications import Publication

REPAIR_BOUNDS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
REPAIRS_TIMED_AT_MOST = 256
NAMED_AT_MOST = 20  # of topics and links in a line


class KnownPeers(Protocol):
    """What is asked about peers: their names, and whether connections to them can be made."""

    def label_of(self, node: NodeId) -> str: ...

    def is_unreachable(self, node: NodeId) -> bool: ...


class EventLog:
    """Writes what the core of `node` notifies of. `repairs`: how long those that it coordinated took."""

    def __init__(self, node: NodeId, log: Log, peers: KnownPeers) -> None:
        self._node = node
        self._log = log
        self._peers = peers
        self._repairs_begun: dict[EventId, Time] = {}
        self.repairs = Histogram(REPAIR_BOUNDS_S)

    def note(self, notification: Notification, now: Time) -> None:
        """One line, where it is worth one."""
        match notification:
            case PeerSuspected() | SuspicionRefuted() | StoodStill() | PeerDeclaredFailed() | PeerLeft():
                self._note_peer(notification)
            case RepairStageEntered() | RepairFinished() | RepairStopped():
                self._note_repair(notification, now)
            case PeerBanned(peer, offence, lasts):
                self._log.warning("peer_banned", peer=self._label_of(peer), offence=offence, for_s=round(lasts / 1e6))
            case Rejoined(incarnation):
                self._log.warning("node_rejoined", incarnation=incarnation)
            case RequestHandled(event):
                if event.kind is EventKind.JOIN:
                    self._log.info("node_joined", incarnation=event.incarnation)
            case SplitTopicsLinked(links, topics):
                self._log.warning("split_topics_linked", topics=self._topics(topics), links=self._links(links))
            case WindowCut(topic, span, size):
                self._log.warning("window_cut", topic=self._log.topic(topic), covers_s=round(span / 1e6, 2), bytes=size)
            case LinkUp(peer):
                self._log.debug("link_up", peer=self._label_of(peer))
            case LinkPruned(peer):
                self._log.debug("link_pruned", peer=self._label_of(peer))
            case NameConflict() | OwnNameSeen():
                pass  # the name guard tells what came of it
            case Left():
                pass  # the broker, that was asked to leave, tells how it went
            case _:
                assert_never(notification)

    def note_refused(self, publication: Publication, sender: str, cause: str) -> None:
        """A publication was refused for its signature."""
        self._log.warning(
            "publication_refused",
            peer=sender,
            cause=str(cause),
            topic=self._log.topic(publication.topic),
            publisher=self._label_of(publication.publisher),
            sequence=publication.sequence,
        )

    def _note_peer(
        self, notification: PeerSuspected | SuspicionRefuted | StoodStill | PeerDeclaredFailed | PeerLeft
    ) -> None:
        match notification:
            case PeerSuspected(peer):
                self._log.warning("peer_suspected", peer=self._label_of(peer.id), incarnation=peer.incarnation)
            case SuspicionRefuted(peer, suspected_for):
                self._log.info(
                    "suspicion_refuted",
                    peer=self._label_of(peer.id),
                    incarnation=peer.incarnation,
                    suspected_s=round(suspected_for / 1e6, 3),
                )
            case StoodStill(period):
                self._log.warning("node_stood_still", for_s=round(period / 1e6, 3))
            case PeerDeclaredFailed(peer, by, refused):
                cause = "unreachable" if self._peers.is_unreachable(peer.id) else "no_answer"
                cause = "refused" if refused else cause
                self._log.warning(
                    "peer_declared_failed",
                    peer=self._label_of(peer.id),
                    incarnation=peer.incarnation,
                    cause=cause if by == self._node else "told",
                    by=self._label_of(by),
                )
            case PeerLeft(peer, repaired):
                self._log.info(
                    "peer_left", peer=self._label_of(peer.id), incarnation=peer.incarnation, repaired=repaired
                )
            case _:
                assert_never(notification)

    def _note_repair(self, notification: RepairStageEntered | RepairFinished | RepairStopped, now: Time) -> None:
        match notification:
            case RepairStageEntered(event, stage):
                if event in self._repairs_begun:
                    self._log.debug("repair_stage", **self._event(event), stage=stage)
                    return
                if len(self._repairs_begun) >= REPAIRS_TIMED_AT_MOST:
                    del self._repairs_begun[next(iter(self._repairs_begun))]
                self._repairs_begun[event] = now
                self._log.info("repair_begun", **self._event(event))
            case RepairFinished(event, links, members, events):
                begun = self._repairs_begun.pop(event, now)
                took_s = (now - begun) / 1e6
                self.repairs.observe(took_s)
                along = ",".join(self._label_of(other.node) for other in events if other != event)
                self._log.info(
                    "repair_finished",
                    **self._event(event),
                    **({"along_with": along} if along else {}),
                    links=self._links(links),
                    members=members,
                    took_s=round(took_s, 3),
                )
                if event.kind is EventKind.JOIN:
                    peer = self._label_of(event.node)
                    self._log.info("peer_joined", peer=peer, incarnation=event.incarnation, links=self._links(links))
            case RepairStopped(event, RepairOutcome.PUT_OFF):
                self._log.debug("repair_put_off", **self._event(event))  # it goes on soon, and may be put off often
            case RepairStopped(event, outcome):
                self._repairs_begun.pop(event, None)
                self._log.info("repair_stopped", **self._event(event), outcome=outcome)
            case _:
                assert_never(notification)

    def _label_of(self, node: NodeId) -> str:
        return self._log.node if node == self._node else self._peers.label_of(node)

    def _event(self, event: EventId) -> dict[str, object]:
        return {"kind": event.kind, "peer": self._label_of(event.node), "incarnation": event.incarnation}

    def _links(self, links: Iterable[tuple[NodeId, NodeId]]) -> str:
        return _listed([f"{self._label_of(one)}-{self._label_of(other)}" for one, other in links])

    def _topics(self, topics: Iterable[Topic]) -> str:
        return _listed([self._log.topic(topic) for topic in topics])


def _listed(names: list[str]) -> str:
    more = len(names) - NAMED_AT_MOST
    return ",".join(names[:NAMED_AT_MOST]) + (f",and {more} more" if more > 0 else "") or "none"

"""What a node says of itself: taken from its status and its counters, and from what its core notifies of."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from omen.net.names import topic_key
from omen.net.observe.health import readiness_of
from omen.net.watching.messages import EVENTS_AT_MOST, SHOWN_AT_MOST, Event, NodeDigest, Stall
from omen.protocol.events import (
    Left,
    Notification,
    PeerBanned,
    PeerDeclaredFailed,
    PeerLeft,
    PeerSuspected,
    Rejoined,
    RepairFinished,
    RepairStageEntered,
    RequestHandled,
    SplitTopicsLinked,
    StoodStill,
    SuspicionRefuted,
    WindowCut,
)
from omen.protocol.messages.base import EventId, EventKind, Ref

if TYPE_CHECKING:
    from omen.net.broker import Broker
    from omen.net.driver import Driver
    from omen.protocol.status import NodeStatus

FIGURES_S = 2.0  # rates and latency are of so long
BRANCH_S = 30.0  # a peer that publications went to within this is on the tree
STALLED_AT_MOST = SLOW_AT_MOST = 20
NAME_CHARACTERS, NAMES_BYTES = 200, 30_000  # a topic without a name is shown by its key
REPAIRS_AT_MOST = 64


def rounded(value: float) -> float:
    """Two digits: a figure that hardly changes is not told again."""
    return float(f"{value:.2g}")


def percentile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float | None:
    """The bound below which this share of a histogram's values lies; None: it has none."""
    wanted, so_far = share * sum(counts), 0
    for bound, count in zip((*bounds, bounds[-1] * 2), counts, strict=True):
        so_far += count
        if count and so_far >= wanted:
            return bound
    return None


class Happenings:
    """What happened at a node lately, from what its core notifies of. Link by link is left to the digest's links."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._count = 0
        self._repairs: dict[EventId, None] = {}
        self.events: deque[Event] = deque(maxlen=EVENTS_AT_MOST)

    def since(self, number: int) -> tuple[Event, ...]:
        return tuple(event for event in self.events if event.number > number)

    @property
    def last(self) -> int:
        return self._count

    def add(self, what: str, peer: Ref | None = None, detail: str = "") -> None:
        self._count += 1
        node, incarnation = (peer.id, peer.incarnation) if peer is not None else (0, 0)
        self.events.append(Event(self._count, int(self._clock() * 1e3), what, node, incarnation, detail))

    def note(self, notification: Notification) -> None:
        """Events by the names that they have in the log."""
        match notification:
            case PeerSuspected(peer):
                self.add("peer_suspected", peer)
            case SuspicionRefuted(peer, period):
                self.add("suspicion_refuted", peer, f"after {period / 1e6:.1f} s")
            case StoodStill(period):
                self.add("node_stood_still", None, f"for {period / 1e6:.1f} s")
            case PeerDeclaredFailed(peer, _, refused):
                self.add("peer_declared_failed", peer, "its process has ended" if refused else "")
            case PeerLeft(peer):
                self.add("peer_left", peer)
            case PeerBanned(peer, offence):
                self.add("peer_banned", Ref(peer, 0, ""), str(offence))
            case Rejoined():
                self.add("node_rejoined")
            case RequestHandled(EventId(_, _, EventKind.JOIN)):
                self.add("node_joined")
            case RepairStageEntered(event):
                self._note_begun(event)
            case RepairFinished(event, links):
                self._repairs.pop(event, None)
                self.add("repair_finished", Ref(event.node, event.incarnation, ""), f"{event.kind}, links {len(links)}")
            case SplitTopicsLinked(links, topics):
                self.add("split_topics_linked", None, f"topics {len(topics)}, links {len(links)}")
            case WindowCut(_, span):
                self.add("window_cut", None, f"covers {span / 1e6:.1f} s")
            case Left():
                self.add("node_left")
            case _:
                pass

    def _note_begun(self, event: EventId) -> None:
        if event not in self._repairs:
            if len(self._repairs) >= REPAIRS_AT_MOST:
                del self._repairs[next(iter(self._repairs))]
            self._repairs[event] = None
            self.add("repair_begun", Ref(event.node, event.incarnation, ""), str(event.kind))


class Branches:
    """Which peers publications of some topics were handed on to: the tree as this node sees it."""

    def __init__(self) -> None:
        self._last: dict[int, dict[int, float]] = {}

    def follow(self, topics: frozenset[int]) -> None:
        """These topics from now on."""
        self._last = {topic: self._last.get(topic, {}) for topic in topics}

    def note(self, topic: int, to: Sequence[int], now: float) -> None:
        peers = self._last.get(topic)
        if peers is not None:
            peers.update(dict.fromkeys(to, now))

    def tree(self, now: float) -> dict[int, tuple[int, ...]]:
        found = {}
        for topic, peers in self._last.items():
            for peer in [peer for peer, last in peers.items() if now - last > BRANCH_S]:
                del peers[peer]
            if peers:
                found[topic] = tuple(sorted(peers))[:SHOWN_AT_MOST]
        return found


class OwnDigest:
    """A node's digest as it is now. `role`: what it is beside a node of the overlay."""

    def __init__(self, broker: Broker, role: str = "") -> None:
        self._broker = broker
        self.role = role
        self.branches = Branches()
        self._taken_at: float | None = None
        self._before = (0, 0)
        self._latency_before: list[int] = []
        self._figures: tuple[float, float, float | None, float | None] = (0.0, 0.0, None, None)

    def take(self, now: float) -> NodeDigest | None:
        """None: the node has not begun yet."""
        broker, driver = self._broker, self._broker.driver
        if driver is None or driver.core is None:
            return None
        status = driver.status()
        spread, limit = status.dissemination, status.config.dissemination.total_window_bytes
        subscribed, carried = self._topics(status)
        readiness = readiness_of(broker)
        out, into, p50, p99 = self._take_figures(now)
        repair = status.repairs.current
        return NodeDigest(
            name=broker.name,
            state=readiness["status"],
            role=self.role,
            http=broker.http_address,
            warnings=tuple(readiness["warnings"]),
            links=tuple(status.neighbours()[:SHOWN_AT_MOST]),
            topics=subscribed,
            carried=carried,
            names=self._names((*subscribed, *carried)),
            suspected=status.membership.suspected[:SHOWN_AT_MOST],
            slow=tuple(driver.peers.queues.slow_consumers()[:SLOW_AT_MOST]),
            stalled=self._stalled(),
            tree=self.branches.tree(now),
            repairing=None if repair is None else (str(repair.event.kind), repair.event.node),
            out=out,
            into=into,
            p50=p50,
            p99=p99,
            gaps=broker.gaps,
            window=(_coarse(spread.publications), _coarse(spread.bytes), limit),
            queue=_coarse(_queued(driver)),
        )

    def _topics(self, status: NodeStatus) -> tuple[tuple[int, ...], tuple[int, ...]]:
        subscribed = self._broker.subscribed_keys
        shown = status.topics[:SHOWN_AT_MOST]
        return tuple(key for key in shown if key in subscribed), tuple(key for key in shown if key not in subscribed)

    def _names(self, keys: Sequence[int]) -> dict[int, str]:
        """With access rules a name is for those that may have the topic: the viewer shows what it knows itself."""
        if self._broker.config.access or self._broker.admission.access.rules:
            return {}
        names, told, room = self._broker.names, {}, NAMES_BYTES
        for key in keys:
            name = names.get(key, "")[:NAME_CHARACTERS]
            room -= len(name.encode()) + 12
            if name and room >= 0:
                told[key] = name
        return told

    def _stalled(self) -> tuple[Stall, ...]:
        return tuple(
            Stall(topic_key(stream.topic), stream.publisher, stream.missing, rounded(stream.seconds))
            for stream in self._broker.stalled[:STALLED_AT_MOST]
        )

    def _take_figures(self, now: float) -> tuple[float, float, float | None, float | None]:
        """Of the time since they were last taken, once that is long enough."""
        broker = self._broker
        counts = (broker.published, broker.delivered)
        if self._taken_at is not None and now - self._taken_at < FIGURES_S:
            return self._figures
        latency = broker.latency.times
        if self._taken_at is not None:
            past = now - self._taken_at
            out, into = (rounded((count - before) / past) for count, before in zip(counts, self._before, strict=True))
            fresh = [count - before for count, before in zip(latency.counts, self._latency_before, strict=True)]
            p50, p99 = (percentile(latency.bounds, fresh, share) for share in (0.5, 0.99))
            self._figures = out, into, p50, p99
        self._taken_at, self._before, self._latency_before = now, counts, list(latency.counts)
        return self._figures


def _queued(driver: Driver) -> int:
    return sum(connection.bulk_bytes + connection.urgent_bytes for connection in driver.peers.connections())


def _coarse(count: int) -> int:
    """To two digits."""
    return int(rounded(count))

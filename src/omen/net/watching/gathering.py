"""A node's part in gathering: it tells viewers what changed of itself, passes on what others say, and may be a viewer.

A flood of `Watch` lays a tree towards its viewer: the peers it came from with the fewest hops are nearer to it, so that
what goes to one of them never goes in a circle. What is lost, as when a peer on the way fails, the viewer finds out by
the numbers of entries, and asks for everything again with its next round.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec

from omen.net.security.hello import UNREADABLE, WATCHING_REVISION
from omen.net.sending import WATCHING
from omen.net.watching.digests import Happenings, OwnDigest
from omen.net.watching.feed import Feed
from omen.net.watching.messages import (
    FRAME_BYTES,
    LACKING_AT_MOST,
    TOPICS_AT_MOST,
    Entry,
    NodeDigest,
    Told,
    Watch,
    decode,
    difference,
    encode,
    read_entry,
    write_entry,
)
from omen.protocol.events import Multicast, Notification, PeerDeclaredFailed
from omen.protocol.messages.publications import Publication

if TYPE_CHECKING:
    from omen.net.broker import Broker

ROUND_S, LEASE_S = 10.0, 32.0
SOONEST_ROUND_S = 1.0
LOOK_S, SOONEST_LOOK_S, NEWS_S = 1.0, 0.25, 0.1
PASS_ON_S = 0.1
ALIVE_S = 4.0  # something is told at least so often, if only that nothing has changed
VIEWERS_AT_MOST = 8
HOPS_AT_MOST = 32
WAITING_AT_MOST, WAITING_BYTES, BYTES_PER_S = 2_000, 1 << 20, 256 << 10
LINGER_S = 10.0  # a page that is loaded again finds the feed as it was


class Viewer(msgspec.Struct):
    """A node that wants to hear of all others, as this one sees it. `parents`: peers nearer to it, the first told."""

    parents: list[int]
    hops: int
    round: int
    heard_at: float
    topics: tuple[int, ...] = ()
    told: NodeDigest | None = None
    number: int = 0
    told_at: float = 0.0
    event: int = 0
    waiting: list[msgspec.Raw] = msgspec.field(default_factory=list)
    room: float = WAITING_BYTES
    room_at: float = 0.0

    def add(self, raw: msgspec.Raw, now: float) -> bool:
        """Keep an entry until it can be passed on, at once or so many bytes per second: what others say must not fill
        a link. Beyond the bounds it is dropped, and asked for again.
        """
        self.room = min(WAITING_BYTES, self.room + (now - self.room_at) * BYTES_PER_S)
        self.room_at = now
        size = len(bytes(raw))
        if len(self.waiting) >= WAITING_AT_MOST or size > self.room:
            return False
        self.waiting.append(raw.copy())  # or it would keep the whole frame it came in, which may be much larger
        self.room -= size
        return True

    def take(self) -> list[msgspec.Raw]:
        taken, self.waiting = self.waiting, []
        return taken


class Gathering:
    """`feed`: what was gathered here, while a page is open. `sent_bytes`: of all that was said for pages.
    `follows_trees`: whether a page looks at the tree of a topic; asked with every publication.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.happenings = Happenings()
        self._own = OwnDigest(broker)
        self._viewers: dict[int, Viewer] = {}
        self.feed: Feed | None = None
        self._pages = 0
        self._ending: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = float("inf")
        self._look_at = 0.0
        self._looked_at = 0.0
        self._round = 0
        self._round_at = 0.0
        self._rounds_end_at = 0.0
        self.sent_bytes = 0
        self.follows_trees = False

    def set_role(self, role: str) -> None:
        """What this node is beside a node of the overlay."""
        self._own.role = role

    # What the driver tells

    def on_frame(self, sender: int, body: bytes) -> bool:
        """Whether the frame of a peer could be read. The core hears nothing of it."""
        driver = self._broker.driver
        if driver is not None:
            driver.received[WATCHING] += 1
            driver.bytes_received[WATCHING] += len(body) + 4
        try:
            frame = decode(body)
        except UNREADABLE:
            return False
        match frame:
            case Watch() as watch:
                self._hear_watch(sender, watch)
            case Told(viewer, entries):
                self._hear_entries(viewer, entries)
        return True

    def note(self, notification: Notification) -> None:
        """What the core of this node notifies of."""
        self.happenings.note(notification)
        if not self._viewers and self.feed is None:
            return
        now = self._now()
        self._look_at = min(self._look_at, max(now + NEWS_S, self._looked_at + SOONEST_LOOK_S))
        self._wake_at(self._look_at)
        if isinstance(notification, PeerDeclaredFailed):
            self._round_at = min(self._round_at, now + NEWS_S)

    def note_multicast(self, output: Multicast) -> None:
        """What this node hands on, for topics whose tree a page looks at."""
        message = output.message
        if type(message) is Publication:
            self._own.branches.note(message.topic, output.to, self._now())

    # A viewer, here

    def open(self) -> Feed:
        """A page was opened here: gather from now on, until the last is closed."""
        self._pages += 1
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        if self.feed is None:
            self.feed = Feed(self._broker.node, self._name_topic)
            now = self._now()
            self._viewers[self._broker.node] = Viewer([], 0, 0, now)
            self._round_at = self._look_at = now
            self._wake_at(now)
        return self.feed

    def close(self) -> None:
        """A page was closed here."""
        self._pages -= 1
        if not self._pages:
            self._ending = asyncio.get_running_loop().call_later(LINGER_S, self._end_viewing)

    def look_at(self, topics: list[int]) -> None:
        """The trees of these topics are looked at here, from the next moment on."""
        if self.feed is not None and tuple(topics) != self.feed.focus:
            self.feed.focus = tuple(topics[:TOPICS_AT_MOST])
            self._round_at = min(self._round_at, self._rounds_end_at)
            self._wake_at(self._round_at)

    def stop(self) -> None:
        """The node stops, or begins another incarnation."""
        for timer in (self._timer, self._ending):
            if timer is not None:
                timer.cancel()
        self._timer, self._ending, self._due = None, None, float("inf")
        self._end_viewing()
        self._viewers.clear()

    def _end_viewing(self) -> None:
        self._viewers.pop(self._broker.node, None)
        if self.feed is not None:
            self.feed.end()
            self.feed = None

    def _name_topic(self, key: int, told: str | None) -> str | None:
        """A topic as the page shows it. None: it is not for those who see this page.

        With access rules only topics whose name this node knows itself, and may subscribe to.
        """
        access = self._broker.admission.access
        if not access.rules:
            return told or self._broker.names.get(key) or f"{key:016x}"
        name = access.name_of(key)
        return name if name is not None and access.may_subscribe(self._broker.name, name) else None

    # What comes from peers

    def _hear_watch(self, sender: int, watch: Watch) -> None:
        now, viewer = self._now(), self._viewers.get(watch.viewer)
        if watch.viewer == self._broker.node or watch.hops >= HOPS_AT_MOST:
            return
        if viewer is not None and watch.round <= viewer.round:
            if watch.round == viewer.round and watch.hops == viewer.hops and sender not in viewer.parents:
                viewer.parents.append(sender)  # as near to the viewer as the first
            return
        if viewer is None:
            if len(self._viewers) >= VIEWERS_AT_MOST:
                return
            viewer = self._viewers[watch.viewer] = Viewer([], 0, 0, 0.0)
        elif now - viewer.heard_at < SOONEST_ROUND_S / 2:
            return
        viewer.parents, viewer.hops = [sender], watch.hops
        viewer.round, viewer.heard_at, viewer.topics = watch.round, now, watch.topics
        if self._broker.node in watch.lacking:
            viewer.told = None
        self._follow_trees()
        self._flood(msgspec.structs.replace(watch, hops=watch.hops + 1), sender)
        self._look_at = min(self._look_at, max(now + PASS_ON_S, self._looked_at + SOONEST_LOOK_S))
        self._wake_at(self._look_at)

    def _hear_entries(self, place: int, entries: tuple[msgspec.Raw, ...]) -> None:
        viewer = self._viewers.get(place)
        if viewer is None:
            return
        if place != self._broker.node:
            now = self._now()
            for raw in entries:
                viewer.add(raw, now)
            self._wake_at(now + PASS_ON_S)
        elif self.feed is not None:
            for entry in filter(None, map(read_entry, entries)):
                self.feed.take(entry, self._now())
            self._wake_at(self._now() + PASS_ON_S)

    # Turns

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _wake_at(self, at: float) -> None:
        if at < self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due = at
            self._timer = asyncio.get_running_loop().call_at(at, self._turn)

    def _turn(self) -> None:
        """Look at this node where that is due, pass on what waits, flood where that is due."""
        self._due, self._timer = float("inf"), None
        now, me = self._now(), self._broker.node
        expired = [place for place, viewer in self._viewers.items() if place != me and now - viewer.heard_at > LEASE_S]
        for place in expired:
            del self._viewers[place]
        if expired:
            self._follow_trees()
        if not self._viewers:
            return
        if now >= self._look_at:
            self._look(now)
        for place, viewer in self._viewers.items():
            if place != me and viewer.waiting:
                self._pass_on(place, viewer)
        if self.feed is not None:
            self._view(self.feed, now)
        self._wake_at(now + PASS_ON_S if self.feed is not None and self.feed.is_pending else self._look_at)

    def _look(self, now: float) -> None:
        self._look_at, self._looked_at = now + LOOK_S, now
        digest, core = self._own.take(now), self._broker.core
        if digest is None or core is None:
            return
        for place, viewer in self._viewers.items():
            changed = difference(viewer.told, digest)
            events = self.happenings.since(viewer.event)
            if changed == NodeDigest() and not events and now - viewer.told_at < ALIVE_S:
                continue
            viewer.number = 1 if viewer.told is None else viewer.number + 1
            viewer.told, viewer.told_at, viewer.event = digest, now, self.happenings.last
            entry = Entry(self._broker.node, core.ref.incarnation, viewer.number, changed, events)
            if place == self._broker.node and self.feed is not None:
                self.feed.take(entry, now)
            elif (raw := write_entry(entry)) is not None:
                viewer.add(raw, now)

    def _view(self, feed: Feed, now: float) -> None:
        """Ask before it is time where something was lost, or a node has come that was not asked yet."""
        if feed.is_short:
            feed.is_short = False
            self._round_at = min(self._round_at, now + PASS_ON_S)
        if now >= self._round_at:
            if now < self._rounds_end_at:
                self._round_at = self._rounds_end_at
            else:
                self._begin_round(feed, now)
        feed.turn(now)
        self._wake_at(self._round_at)

    def _begin_round(self, feed: Feed, now: float) -> None:
        self._round = max(self._round + 1, int(time.time() * 1e3))
        self._round_at, self._rounds_end_at = now + ROUND_S, now + SOONEST_ROUND_S
        self._viewers[self._broker.node].topics = feed.focus
        self._follow_trees()
        self._flood(Watch(self._broker.node, self._round, 0, tuple(feed.lacking()[:LACKING_AT_MOST]), feed.focus), 0)

    def _follow_trees(self) -> None:
        topics = frozenset(topic for viewer in self._viewers.values() for topic in viewer.topics)
        self._own.branches.follow(topics)
        self.follows_trees = bool(topics)

    # What goes out

    def _flood(self, watch: Watch, source: int) -> None:
        driver = self._broker.driver
        if driver is not None:
            body = encode(watch)
            for node in list(driver.peers.table):
                if node not in (source, watch.viewer):
                    self._send(node, body)

    def _pass_on(self, place: int, viewer: Viewer) -> None:
        driver = self._broker.driver
        while viewer.parents and driver is not None:
            parent = viewer.parents[0]
            if driver.peers.revision_of(parent) >= WATCHING_REVISION:
                for part in _in_frames(viewer.take()):
                    self._send(parent, encode(Told(place, part)))
                return
            del viewer.parents[0]

    def _send(self, node: int, body: bytes) -> None:
        """Over a connection that is there; a node of an older revision does not know these frames."""
        driver = self._broker.driver
        if driver is not None and driver.peers.revision_of(node) >= WATCHING_REVISION:
            driver.sender.send_watching(node, body)
            self.sent_bytes += len(body) + 4


def _in_frames(entries: list[msgspec.Raw]) -> list[tuple[msgspec.Raw, ...]]:
    """Entries in parts, none of which is large."""
    parts: list[list[msgspec.Raw]] = [[]]
    size = 0
    for raw in entries:
        length = len(bytes(raw))
        if parts[-1] and size + length > FRAME_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(raw)
        size += length
    return [tuple(part) for part in parts if part]

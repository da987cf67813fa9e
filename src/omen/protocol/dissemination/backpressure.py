"""Backpressure: how many bytes a topic can still take, told upstream hop by hop; only `publish` waits for it.

The driver says how much room the queue of each link has. A node tells each neighbour on the tree of a topic the
smallest of what its other links have room for and of what the neighbours behind them said. Nobody stops reading or
forwarding because of it: on a cyclic overlay that would be a deadlock. A slow consumer is left out, and so is what was
said longer ago than `MEMORY`.
"""

from __future__ import annotations

from omen.protocol.config import Dissemination as Settings
from omen.protocol.context import Outbox
from omen.protocol.dissemination.stream import NEVER, Stream
from omen.protocol.dissemination.window import TopicWindow, Windows
from omen.protocol.events import PLENTY, SECOND, NodeId, Time, Topic
from omen.protocol.messages.publications import Announce

MEMORY = SECOND
RISE_PAUSE = MEMORY // 4
"""That there is more room is told no sooner after what was told last; a smaller value is told at once."""
STEP = 2
"""A value is told again when it has changed by this factor, or is remembered no longer."""


class Backpressure:
    """`rooms`: what the queue of each link can still take, where that is not plenty."""

    def __init__(self, settings: Settings, out: Outbox, windows: Windows, slow: set[NodeId]) -> None:
        self._settings = settings
        self._out = out
        self._windows = windows
        self._slow = slow
        self._rooms: dict[NodeId, int] = {}
        self._heard: dict[tuple[Topic, NodeId], tuple[int, Time]] = {}
        self._told: dict[tuple[Topic, NodeId], tuple[int, Time]] = {}

    @property
    def is_none(self) -> bool:
        """Whether nothing holds back a publication of any size on any topic; for each one that is published."""
        if self._rooms or self._heard:
            return False
        settings = self._settings
        return self._windows.unheld_bytes <= settings.total_window_bytes // 4 - settings.largest_payload

    def room(self, carried: TopicWindow, now: Time, besides: NodeId | None = None) -> int:
        """The smallest value of this topic, one neighbour's own left out."""
        least = PLENTY
        if not self._rooms and not self._heard:
            return least
        for peer in carried.eager:
            if peer != besides and peer not in self._slow:
                value, at = self._heard.get((carried.topic, peer), (PLENTY, NEVER))
                least = min(least, self._rooms.get(peer, PLENTY), value if now - at < MEMORY else PLENTY)
        return least

    def room_to_publish(self, carried: TopicWindow, own: Stream | None, now: Time) -> int:
        """The same, and no more than neighbours' windows cover of what they have not acknowledged, over all topics."""
        least = self.room(carried, now)
        if own is not None and carried.eager and own.last > own.held:
            half = self._settings.total_window_bytes // 2
            unheld = self._windows.unheld_bytes
            if unheld > half // 2:  # that may be of topics that no neighbour wants
                unheld = sum(stream.unheld_bytes for stream in self._windows.streams.values() if stream.carried.eager)
            least = min(least, max(0, half - unheld))
        return least

    def on_room(self, peer: NodeId, room: int, now: Time) -> None:
        """The driver: so much can be queued for this peer."""
        if room >= PLENTY:
            self._rooms.pop(peer, None)
        else:
            self._rooms[peer] = room
        for carried in self._windows.topics.values():
            if peer in carried.eager:
                self._tell(carried, peer, now)

    def hear(self, sender: NodeId, rooms: tuple[tuple[Topic, int], ...], now: Time) -> None:
        """A neighbour: so much can be taken behind it."""
        for topic, room in rooms:
            carried = self._windows.topics.get(topic)
            if carried is not None and sender in carried.peers:
                if room >= PLENTY:
                    self._heard.pop((topic, sender), None)
                else:
                    self._heard[topic, sender] = (room, now)
                self._tell(carried, sender, now)

    def forget_peer(self, peer: NodeId) -> None:
        self._rooms.pop(peer, None)
        for table in (self._heard, self._told):
            for key in [key for key in table if key[1] == peer]:
                del table[key]

    def forget(self, topic: Topic, peer: NodeId) -> None:
        """This node, or the neighbour, has given the topic up."""
        self._heard.pop((topic, peer), None)
        self._told.pop((topic, peer), None)

    def _tell(self, carried: TopicWindow, cause: NodeId, now: Time) -> None:
        """Everybody on the tree but the one it comes from, where the value is another one by much."""
        for peer in sorted(carried.eager):
            if peer == cause or peer in self._slow:
                continue
            value = self.room(carried, now, besides=peer)
            told, at = self._told.get((carried.topic, peer), (PLENTY, NEVER))
            if told <= value * STEP and value <= told * STEP and (value >= PLENTY or now - at < MEMORY // 2):
                continue
            if value >= PLENTY and told >= PLENTY:
                continue
            if value > told and now - at < RISE_PAUSE:
                continue  # in a circle of links two values would chase each other for ever, as fast as links are
            self._told[carried.topic, peer] = (value, now)
            self._out.send(carried.peers[peer], Announce((), room=((carried.topic, value),)))

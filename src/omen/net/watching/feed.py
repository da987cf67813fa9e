"""What a viewer has gathered, as its pages get it: a picture to begin with, then what changes, a few times per second.

Nodes and topics go by small numbers in it: places on the ring are too large for a browser's numbers. The last minutes
stay, so that a page that is opened late, or again, can be wound back too.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from omen.net.watching.messages import Entry, Event, NodeDigest

NODES_AT_MOST, PLACES_AT_MOST, TOPICS_AT_MOST = 5_000, 20_000, 20_000
TICKS_AT_MOST, HISTORY_BYTES = 3_000, 4 << 20
SILENT_S = 13.0  # three times what is told at least
FORGET_S = 300.0
TURN_S = 0.25
ENDED = {"peer_declared_failed": "failed", "peer_left": "left"}
PLAIN = ("name", "state", "role", "http", "warnings", "slow", "out", "into", "p50", "p99", "gaps", "window", "queue")
"""Fields of a digest that a page gets as they are."""

NameTopic = Callable[[int, str | None], str | None]


class Seen(msgspec.Struct):
    """A node as it was last heard of. `fate`: what became of it, where it is not there any more."""

    index: int
    incarnation: int = -1
    number: int = 0
    heard_at: float = 0.0
    fate: str | None = None
    fate_at: float = 0.0
    event: tuple[int, int] = (0, 0)
    lacks: bool = False


class Tick(msgspec.Struct, frozen=True):
    """What changed in one turn, as text."""

    number: int
    text: str


def _fold(picture: dict[str, Any], values: dict[str, Any]) -> None:
    """A picture after what changed."""
    picture["time"] = values["time"]
    picture["topics"].update(values.get("topics", {}))
    nodes: dict[str, Any] = picture["nodes"]
    for index, changed in values.get("nodes", {}).items():
        if changed is None:
            nodes.pop(index, None)
        else:
            nodes.setdefault(index, {}).update(changed)


class Feed:
    """`focus`: the topics whose trees are looked at. `name_topic`: what a topic is called here; None: it is hidden.

    `is_short`: something was lost on the way, or a node is told of that has said nothing yet.
    """

    def __init__(self, own: int, name_topic: NameTopic, clock: Callable[[], float] = time.time) -> None:
        self.stream = os.urandom(6).hex()
        self.focus: tuple[int, ...] = ()
        self.is_short = False
        self._own = own
        self._name_topic = name_topic
        self._clock = clock
        self._seen: dict[int, Seen] = {}
        self._indexes: dict[int, int] = {}
        self._topics: dict[int, int] = {}
        self._hides = False
        self._keys: dict[int, int] = {}
        self._picture: dict[str, Any] = {"time": self._time(), "topics": {}, "nodes": {}}
        self._ticks: deque[Tick] = deque()
        self._bytes = 0
        self._count = 0
        self._nodes: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._events: list[list[Any]] = []
        self._turned_at = 0.0
        self._news = asyncio.Event()
        self.is_ended = False

    def _time(self) -> int:
        return int(self._clock() * 1e3)

    @property
    def is_pending(self) -> bool:
        """Whether something is to be told with the next turn."""
        return bool(self._nodes or self._names or self._events)

    def key_of(self, topic: int) -> int | None:
        """The key of a topic that pages know by this number."""
        return self._keys.get(topic)

    def lacking(self) -> list[int]:
        """Nodes of which something was lost on the way: they are to say everything again."""
        return [place for place, seen in self._seen.items() if seen.lacks and seen.fate is None]

    def take(self, entry: Entry, now: float) -> bool:
        """What a node says of itself; whether nothing was lost on the way."""
        seen = self._seen.get(entry.node)
        if seen is None:
            if len(self._seen) >= NODES_AT_MOST:
                return False
            index = self._index(entry.node)
            if not index:
                return False
            seen = self._seen[entry.node] = Seen(index)
        if entry.incarnation < seen.incarnation:
            return False
        restarted = entry.incarnation > seen.incarnation
        if restarted and entry.number == 1:
            self._nodes.pop(str(seen.index), None)
        changed: dict[str, Any] = {}
        if seen.fate is not None and (restarted or seen.fate == "silent"):
            seen.fate = None
            changed["fate"] = None
        seen.heard_at = now
        fits = entry.number == 1 or (not restarted and entry.number == seen.number + 1 and not seen.lacks)
        if fits:
            if restarted:
                changed["incarnation"] = entry.incarnation
            seen.incarnation, seen.number, seen.lacks = entry.incarnation, entry.number, False
            changed |= self._shown(entry.changed)
        else:
            seen.lacks = self.is_short = True
        if changed:
            self._nodes.setdefault(str(seen.index), {}).update(changed)
        for event in entry.events:
            self._note(seen, event, now)
        return fits

    def _note(self, seen: Seen, event: Event, now: float) -> None:
        if event.number <= seen.event[0] and event.time_ms <= seen.event[1]:
            return
        seen.event = event.number, event.time_ms
        peer = self._index(event.peer) if event.peer else None
        self._events.append([event.time_ms, seen.index, event.what, peer, event.detail])
        fate, other = ENDED.get(event.what), self._seen.get(event.peer)
        if event.what == "repair_finished" and (other is None or other.incarnation < event.incarnation):
            self.is_short = True  # it has joined
        is_present = abs(self._time() - event.time_ms) < SILENT_S * 1e3
        if fate is not None and other is not None and other.incarnation <= event.incarnation and is_present:
            self._end(other, fate, now)

    def _end(self, seen: Seen, fate: str, now: float) -> None:
        if seen.fate is None or seen.fate == "silent":
            seen.fate, seen.fate_at = fate, now
            self._nodes.setdefault(str(seen.index), {})["fate"] = fate

    def turn(self, now: float) -> None:
        """Tell pages what has changed, a few times per second; look for nodes that nothing is heard of."""
        if now - self._turned_at < TURN_S:
            return
        self._turned_at = now
        for place, seen in list(self._seen.items()):
            if seen.fate is None and now - seen.heard_at > SILENT_S:
                self._end(seen, "silent", now)
            elif seen.fate is not None and now - seen.fate_at > FORGET_S:
                del self._seen[place]
                self._nodes[str(seen.index)] = None
        if self.is_pending:
            self._tell()

    def _tell(self) -> None:
        values: dict[str, Any] = {"time": self._time()}
        for name, found in (("topics", self._names), ("nodes", self._nodes), ("events", self._events)):
            if found:
                values[name] = found
        self._nodes, self._names, self._events = {}, {}, []
        self._count += 1
        text = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
        self._ticks.append(Tick(self._count, text))
        self._bytes += len(text)
        while len(self._ticks) > TICKS_AT_MOST or (self._bytes > HISTORY_BYTES and len(self._ticks) > 1):
            oldest = self._ticks.popleft()
            self._bytes -= len(oldest.text)
            _fold(self._picture, json.loads(oldest.text))
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def end(self) -> None:
        """Nothing more is gathered."""
        self.is_ended = True
        self._wake()

    async def wait(self, at_most: float) -> None:
        """Until there is something new for pages, or the time is over."""
        try:
            async with asyncio.timeout(at_most):
                await self._news.wait()
        except TimeoutError:
            pass

    def since(self, last_id: str, more: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
        """What a page lacks that has got all up to `last_id`: (id, kind, text) of each; and the id it has then.

        One that is new here, or was away for too long, gets a picture first. `more`: what stands in that too.
        """
        stream, _, number = last_id.partition("-")
        oldest = self._ticks[0].number if self._ticks else self._count + 1
        knows = stream == self.stream and number.isdigit() and oldest - 1 <= int(number) <= self._count
        found = []
        if not knows:
            picture = {**more, "me": self._index(self._own), **self._picture}
            text = json.dumps(picture, separators=(",", ":"), ensure_ascii=False)
            found.append((self._id(oldest - 1), "picture", text))
        last = int(number) if knows else oldest - 1
        found += [(self._id(tick.number), "tick", tick.text) for tick in self._ticks if tick.number > last]
        return self._id(self._count), found

    def _id(self, number: int) -> str:
        return f"{self.stream}-{number}"

    def _index(self, place: int) -> int:
        """The number of a node. 0: nodes tell of more of them than there can be."""
        if len(self._indexes) >= PLACES_AT_MOST:
            return self._indexes.get(place, 0)
        return self._indexes.setdefault(place, len(self._indexes) + 1)

    def _index_list(self, places: Iterable[int]) -> list[int]:
        return [index for index in map(self._index, places) if index]

    def _topic(self, key: int, told: str | None = None) -> int | None:
        """The number of a topic. None: it is not shown."""
        known = self._topics.get(key)
        if known is None:
            name = self._name_topic(key, told) if len(self._topics) < TOPICS_AT_MOST else None
            if name is None:
                self._hides = True
                return None
            known = self._topics[key] = len(self._topics) + 1
            self._keys[known] = key
            self._names[str(known)] = name
        return known

    def _topic_list(self, keys: Iterable[int], names: dict[int, str]) -> list[int]:
        found = (self._topic(key, names.get(key)) for key in keys)
        return [topic for topic in found if topic is not None]

    def _shown(self, digest: NodeDigest) -> dict[str, Any]:
        """A digest, or what of it has changed, as a page gets it."""
        shown = {name: value for name in PLAIN if (value := getattr(digest, name)) is not UNSET}
        names = digest.names if digest.names is not UNSET else {}
        for name in ("topics", "carried"):
            keys = getattr(digest, name)
            if keys is not UNSET:
                shown[name] = self._topic_list(keys, names)
                if self._hides:
                    shown[f"{name}_hidden"] = len(keys) - len(shown[name])
        for name in ("links", "suspected"):
            places = getattr(digest, name)
            if places is not UNSET:
                shown[name] = self._index_list(places)
        if digest.stalled is not UNSET:
            shown["stalled"] = [
                [topic, stall.publisher, stall.missing, stall.seconds]
                for stall in digest.stalled
                if (topic := self._topic(stall.topic)) is not None
            ]
        if digest.tree is not UNSET:
            shown["tree"] = {
                str(topic): self._index_list(peers)
                for key, peers in digest.tree.items()
                if (topic := self._topic(key)) is not None
            }
        if digest.repairing is not UNSET:
            about = digest.repairing
            shown["repairing"] = None if about is None else [about[0], self._index(about[1])]
        return shown

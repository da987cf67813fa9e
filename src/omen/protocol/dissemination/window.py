"""What a node keeps of each topic it carries: the newest publications, the streams they belong to, the tree's links.

Also the numbers of what the node publishes itself, and the table of all streams, which the other parts share.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Set

from omen.protocol.config import Dissemination
from omen.protocol.context import Outbox
from omen.protocol.events import Deliver, NodeId, Time, Timer, Topic
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import Publication, StreamKey, StreamMark, read_key

OVERHEAD = 300
"""Bytes that keeping one publication costs beside its frame, measured."""
EVICTED_AT_MOST = 4
"""Of so many times the streams that a topic has room for, a node knows at least how far they are."""
CHUNK = 4 << 10
"""A window asks for so many bytes more than it needs, so that it need not ask for each publication."""
TOPICS_AT_MOST = 1 << 16
"""Topics on which a node goes on counting: a number used twice would be taken for a duplicate."""
NOBODY = -1
NEVER: Time = -(1 << 62)


class AnnounceTimer(Timer, frozen=True):
    """Neighbours are told how far this node is."""


class SweepTimer(Timer, frozen=True):
    """What is old is let go."""


ROUND, SWEEP = AnnounceTimer(), SweepTimer()


class Numbering:
    """How far this node is on each topic; it goes on counting when it begins another life. `silence`: ends a run."""

    def __init__(self, silence: Time) -> None:
        self._silence = silence
        self._latest: dict[Topic, tuple[int, Time, int]] = {}

    def take(self, topic: Topic, incarnation: int, now: Time) -> tuple[int, bool]:
        """The next number, and whether it is the first of a run."""
        before, when, life = self._latest.get(topic, (0, 0, 0))
        if before == 0 and len(self._latest) >= TOPICS_AT_MOST:
            del self._latest[next(iter(self._latest))]
        self._latest[topic] = (before + 1, now, incarnation)
        return before + 1, life != incarnation or now - when >= self._silence


class Stream:
    """What one life of a publisher says on one topic.

    Everything up to `last` is settled: delivered, passed over or given up; of that, `first` to `last` is still kept in
    `recent`. `early` came before what should come first. Nothing up to `silent_until` is delivered: it was there before
    this node wanted the topic. `is_determined`: known where it begins. `plain`: nothing of this needs a second look, so
    the next in sequence can go straight through.
    """

    __slots__ = (
        "asked_at",
        "asked_from",
        "asked_peer",
        "attempts",
        "carried",
        "early",
        "early_bytes",
        "first",
        "heard",
        "held",
        "incarnation",
        "is_determined",
        "is_dirty",
        "is_own",
        "key",
        "known",
        "last",
        "marked_last",
        "marked_time",
        "opened",
        "parent",
        "plain",
        "publisher",
        "recent",
        "rounds",
        "silent_until",
        "told",
        "told_at",
        "told_last",
        "want",
        "want_since",
    )

    def __init__(self, carried: TopicWindow, key: StreamKey, last: int, opened: int, now: Time) -> None:
        self.carried = carried
        self.key = key
        _, self.publisher, self.incarnation = read_key(key)
        self.is_own = False
        self.is_determined = True
        self.opened = opened
        self.first = last + 1
        self.last = last
        self.silent_until = 0
        self.recent: dict[int, Publication] = {}
        self.early: dict[int, Publication] = {}
        self.early_bytes = 0
        self.plain = True
        self.heard = now
        self.parent: NodeId = NOBODY
        self.held = 0
        # What neighbours said they have (first, last), and what they were told.
        self.known: dict[NodeId, tuple[int, int]] = {}
        self.told: dict[NodeId, int] = {}
        self.told_last = -1
        self.told_at: Time = NEVER
        self.rounds = 0
        self.is_dirty = False
        # Publications up to the mark were that old when a neighbour announced them.
        self.marked_last = 0
        self.marked_time: Time = now
        # The hole: up to where, since when, and who was asked for it.
        self.want = 0
        self.want_since: Time = 0
        self.attempts = 0
        self.asked_peer: NodeId = NOBODY
        self.asked_at: Time = 0
        self.asked_from = 0

    @property
    def is_settled(self) -> bool:
        """Whether others can go by this node: it knows where the stream begins, and has what was before its time."""
        return self.is_determined and self.last >= self.silent_until

    def put_aside(self, publication: Publication) -> None:
        """It came before its turn."""
        self.early[publication.sequence] = publication
        self.early_bytes += len(publication.frame)
        self.plain = False

    def take_early(self, sequence: int) -> Publication | None:
        publication = self.early.pop(sequence, None)
        if publication is not None:
            self.early_bytes -= len(publication.frame)
        return publication

    def judge(self) -> None:
        """Whether the next in sequence can go straight through."""
        self.plain = self.is_settled and not self.early and self.asked_peer == NOBODY

    def mark_for(self, peer: NodeId, now: Time) -> StreamMark:
        known = self.known.get(peer)
        return StreamMark(
            self.publisher,
            self.incarnation,
            self.opened,
            self.first,
            self.last,
            known[1] if known is not None else -1,
            max(0, now - self.heard) // 1000,
        )

    def speak_from(self, settled: int) -> list[Publication]:
        """Be silent up to `settled` only: what is kept behind it, to be delivered now."""
        self.silent_until = settled
        self.judge()
        numbers = range(max(self.first, settled + 1), self.last + 1)
        return [self.recent[sequence] for sequence in numbers if sequence in self.recent]

    def clear(self) -> None:
        """Forget what neighbours have, and what came too early: only what is settled and kept counts."""
        self.known.clear()
        self.told.clear()
        self.early.clear()
        self.early_bytes = 0
        self.asked_peer = NOBODY
        self.judge()

    def forget_peer(self, peer: NodeId) -> None:
        self.known.pop(peer, None)
        self.told.pop(peer, None)
        if self.asked_peer == peer:
            self.asked_at = 0


class WindowBudget:
    """The bytes that are `left` for the windows of all topics of a node together. Windows are given some at a time."""

    __slots__ = ("_most", "_topics", "left")

    def __init__(self, most: int, topics: Mapping[Topic, TopicWindow]) -> None:
        self.left = self._most = most
        self._topics = topics

    def make(self) -> None:
        """The largest window gives way, its oldest publications first: more of them than needed, to do this seldom."""
        while self.left < self._most // 32:
            largest = max(self._topics.values(), key=lambda carried: carried.size)
            if len(largest.times) < 2:
                return
            largest.shrink_to(largest.size - largest.size // 16)


class TopicWindow:
    """One topic. `peers`: the neighbours that want it too. `eager`: those on the tree; the others hear announcements.

    `linked_at`: when this node was linked in the topic; None while it waits for that. `limit`: what the window may hold
    in bytes before it has to ask for room.
    """

    def __init__(self, topic: Topic, config: Dissemination, is_wanted: bool, room: WindowBudget) -> None:
        self.topic = topic
        self.is_wanted = is_wanted
        self.replays = False
        self.linked_at: Time | None = None
        self.peers: dict[NodeId, Ref] = {}
        self.eager: set[NodeId] = set()
        self.fanout: dict[NodeId, tuple[NodeId, ...]] = {}
        self.streams: dict[StreamKey, Stream] = {}
        self.evicted: dict[StreamKey, Stream] = {}
        # What is kept, the oldest first: of which stream, which sequence, since when. Three rows of what exists anyway,
        # for a tuple each would be looked at by every garbage collection.
        self.owners: deque[Stream] = deque()
        self.numbers: deque[int] = deque()
        self.times: deque[Time] = deque()
        self.size = 0
        self.limit = 0
        self.pruned_at: dict[NodeId, Time] = {}
        self.held = 0
        self._config = config
        self._room = room
        self._pace: Stream | None = None
        self._pace_until: Time = -1

    def add_peer(self, ref: Ref) -> None:
        """A link for this topic: on the tree until it proves to be one too many."""
        self.peers[ref.id] = ref
        self.make_eager(ref.id)

    def drop_peer(self, peer: NodeId) -> None:
        if self.peers.pop(peer, None) is not None:
            self.make_lazy(peer)
            self.pruned_at.pop(peer, None)
            for stream in self.streams.values():
                stream.forget_peer(peer)

    def make_eager(self, peer: NodeId) -> None:
        self.eager.add(peer)
        self.fanout.clear()

    def make_lazy(self, peer: NodeId) -> None:
        self.eager.discard(peer)
        self.fanout.clear()

    def evict(self, missing: Set[Stream]) -> Stream:
        """Too many publishers: the one silent for longest is told of no more, but how far it is stays known."""

        def order(stream: Stream) -> tuple[bool, bool, bool, Time, StreamKey]:
            """Last those of which something is still to be said or to come."""
            return (stream.is_own, stream in missing, stream.is_dirty, stream.heard, stream.key)

        stream = min(self.streams.values(), key=order)
        del self.streams[stream.key]
        stream.clear()
        if stream.is_determined:
            self.evicted[stream.key] = stream
            if len(self.evicted) > EVICTED_AT_MOST * self._config.streams:
                del self.evicted[next(iter(self.evicted))]
        return stream

    def pace(self, now: Time) -> Stream | None:
        """The stream the tree follows: of those that are active the lowest, so that all nodes agree on one.

        If each node cut branches by whatever stream it saw twice, concurrent publishers could cut all of a circle.
        """
        if now >= self._pace_until:
            oldest = now - self._config.pace_time
            active = (stream for stream in self.streams.values() if stream.heard > oldest)
            self._pace = min(active, key=lambda stream: stream.key, default=None)
            self._pace_until = now + self._config.announce_period
        return self._pace

    def keep(self, stream: Stream, publication: Publication, time: Time) -> None:
        """Into the window; what is too much leaves it, the oldest first."""
        stream.recent[publication.sequence] = publication
        self.owners.append(stream)
        self.numbers.append(publication.sequence)
        self.times.append(time)
        self.size += len(publication.frame) + OVERHEAD
        if self.size > self.limit or len(self.times) > self._config.window_count:
            self.make_room()

    def make_room(self) -> None:
        """Within the limits of this topic, and of all together."""
        config, times = self._config, self.times
        while len(times) > 1 and (self.size > config.window_bytes or len(times) > config.window_count):
            self._drop_oldest()
        if self.size > self.limit or self.limit > config.window_bytes:
            self._set_limit(max(self.size, min(self.size + CHUNK, config.window_bytes)))
            if self._room.left < 0:
                self._room.make()

    def shrink_to(self, size: int) -> None:
        """The oldest go; the newest stays however large it is."""
        while self.size > size and len(self.times) > 1:
            self._drop_oldest()
        self._set_limit(self.size)

    def _set_limit(self, limit: int) -> None:
        self._room.left -= limit - self.limit
        self.limit = limit

    def expire(self, now: Time) -> None:
        """Let go of what is too old."""
        oldest = now - self._config.window_age
        while self.times and self.times[0] <= oldest:
            self._drop_oldest()
        self._set_limit(self.size)

    def _drop_oldest(self) -> None:
        stream, sequence = self.owners.popleft(), self.numbers.popleft()
        self.times.popleft()
        self.size -= len(stream.recent.pop(sequence).frame) + OVERHEAD
        if sequence >= stream.first:
            stream.first = sequence + 1


class Windows:
    """All topics and streams of a node, shared by the parts that fill, compare and repair them.

    `missing`: the streams with a hole. `changed`: those in which some neighbour may not be as far as this node, or not
    know how far it is. `waiting`: the topics in which this node is still to be linked. `evictions`: how often a stream
    made way for another, because its topic had too many.
    """

    def __init__(self, settings: Dissemination, out: Outbox) -> None:
        self._settings = settings
        self._out = out
        self.topics: dict[Topic, TopicWindow] = {}
        self.streams: dict[StreamKey, Stream] = {}
        self.budget = WindowBudget(settings.total_window_bytes, self.topics)
        self.missing: dict[Stream, None] = {}
        self.changed: list[Stream] = []
        self.waiting: Set[Topic] = frozenset()
        self.evictions = 0
        self._retired: dict[StreamKey, tuple[int, Time]] = {}
        self._is_sweeping = False

    def is_fresh(self, carried: TopicWindow) -> bool:
        """Whether this node was never linked in the topic."""
        return carried.linked_at is None and carried.topic in self.waiting

    def settled_before(self, key: StreamKey) -> int:
        """How far this stream was delivered when the topic was carried last."""
        return self._retired.get(key, (0, 0))[0]

    def open_stream(self, carried: TopicWindow, key: StreamKey, last: int, opened: int, heard: Time) -> Stream:
        """A publisher to keep track of, from `last` on; one that had to make way goes on where it was."""
        stream = carried.evicted.pop(key, None)
        if stream is None:
            stream = Stream(carried, key, last, opened, heard)
            stream.silent_until = self.settled_before(key)
        if len(carried.streams) >= self._settings.streams:
            self.evictions += 1
            evicted = carried.evict(self.missing.keys())
            del self.streams[evicted.key]
            self.missing.pop(evicted, None)
        self.streams[key] = carried.streams[key] = stream
        if not self._is_sweeping:
            self._is_sweeping = True
            self._out.set_timer(SWEEP, self._settings.window_age // 6)
        return stream

    def retire(self, topic: Topic) -> TopicWindow:
        """A topic given up: should it be taken up again, nothing is delivered twice."""
        carried = self.topics.pop(topic)
        self.budget.left += carried.limit
        for stream in (*carried.streams.values(), *carried.evicted.values()):
            self.streams.pop(stream.key, None)
            self._retired[stream.key] = (stream.last, stream.heard)
        carried.streams.clear()
        return carried

    def note_change(self, stream: Stream) -> bool:
        """Neighbours are to hear of this stream; whether the announce timer has to be set for it."""
        if stream.is_dirty:
            return False
        stream.is_dirty = True
        stream.rounds = 0
        self.changed.append(stream)
        return len(self.changed) == 1

    def touch(self, stream: Stream) -> None:
        if self.note_change(stream):
            self._out.set_timer(ROUND, self._settings.announce_period)

    def settle(self, stream: Stream, now: Time) -> None:
        """Deliver and keep whatever is next in sequence by now."""
        if not stream.is_determined:
            return
        carried = stream.carried
        moved = False
        while (publication := stream.take_early(stream.last + 1)) is not None:
            moved = True
            stream.last = sequence = publication.sequence
            if publication.is_opening:
                stream.opened = sequence
            is_new = sequence > stream.marked_last
            carried.keep(stream, publication, now if is_new else stream.marked_time)
            stream.heard = max(stream.heard, now if is_new else stream.marked_time)
            if carried.is_wanted and sequence > stream.silent_until:
                delivery = Deliver(carried.topic, stream.publisher, stream.incarnation, sequence, publication.payload)
                self._out.put(delivery)
        if moved:
            self.touch(stream)
        stream.judge()

    def sweep(self, now: Time) -> None:
        """Let go of what is old, and of publishers that have been silent for twice as long as windows last."""
        oldest = now - 2 * self._settings.window_age
        for carried in self.topics.values():
            carried.expire(now)
            carried.evicted = {key: stream for key, stream in carried.evicted.items() if stream.heard > oldest}
        for stream in [stream for stream in self.streams.values() if stream.heard <= oldest and not stream.early]:
            del self.streams[stream.key], stream.carried.streams[stream.key]
        self._retired = {key: entry for key, entry in self._retired.items() if entry[1] > oldest}
        self._is_sweeping = bool(self.streams or self._retired)
        self.set_sweep_timer()

    def set_sweep_timer(self) -> None:
        if self._is_sweeping:
            self._out.set_timer(SWEEP, self._settings.window_age // 6)

"""What a node keeps of each topic it carries: the newest publications, the streams they belong to, the tree's links.

Also the numbers of what the node publishes itself, and the table of all streams, which the other parts share.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Set

from omen.protocol.config import Dissemination
from omen.protocol.context import Outbox
from omen.protocol.dissemination.past import Past
from omen.protocol.dissemination.stream import FAR, NEVER, Stream, make_delivery
from omen.protocol.events import SECOND, Gap, NodeId, Time, Timer, Topic, WindowCut
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import Publication, StreamKey

OVERHEAD = 300
"""Bytes that keeping one publication costs beside its frame, measured."""
EVICTED_AT_MOST = 4
"""Of so many times the streams that a topic has room for, a node knows at least how far they are."""
CHUNK = 4 << 10
"""A window asks for so many bytes more than it needs, and a 64th of what it has, so that it need not ask each time."""
TOPICS_AT_MOST = 1 << 16
"""Topics on which a node goes on counting, those used last; on others it begins behind all numbers it has forgotten: a
number used twice would be taken for a duplicate."""
LAGGING = 240 * SECOND
"""So long a silent publisher is told of, at least, where some neighbour has not said that it is as far."""


class AnnounceTimer(Timer, frozen=True):
    """Neighbours are told how far this node is."""


class SweepTimer(Timer, frozen=True):
    """What is old is let go."""


ROUND, SWEEP = AnnounceTimer(), SweepTimer()


THERE = 2 * SECOND
"""A node that has been linked in a topic for so long would have heard of a stream that is older."""


class Numbering:
    """How far this node is on each topic; the count outlasts its incarnations. `silence`: ends a run."""

    def __init__(self, silence: Time) -> None:
        self._silence = silence
        self._latest: dict[Topic, tuple[int, Time, int]] = {}
        self._runs: dict[Topic, tuple[int, Time]] = {}
        self._forgotten = 0

    def last_at(self, topic: Topic) -> Time:
        return self._latest.get(topic, (0, NEVER, 0))[1]

    def run_of(self, topic: Topic) -> tuple[int, Time]:
        """Where its present run began, and when: a topic may have been given up and taken up again meanwhile."""
        return self._runs[topic]

    def peek(self, topic: Topic, incarnation: int, now: Time) -> tuple[int, bool]:
        """The next number, and whether it is the first of a run."""
        before, when, life = self._latest.get(topic, (self._forgotten, 0, 0))
        return before + 1, life != incarnation or now - when >= self._silence

    def take(self, topic: Topic, incarnation: int, now: Time) -> tuple[int, bool]:
        """The same, and the number is used."""
        number, opening = self.peek(topic, incarnation, now)
        if self._latest.pop(topic, None) is None and len(self._latest) >= TOPICS_AT_MOST:
            oldest = next(iter(self._latest))
            self._forgotten = max(self._forgotten, self._latest.pop(oldest)[0])
            del self._runs[oldest]
        self._latest[topic] = (number, now, incarnation)
        if opening:
            self._runs[topic] = (number, now)
        return number, opening


class WindowBudget:
    """The bytes that are `left` for the windows of all topics of a node together. Windows are given some at a time.

    `cuts`: how often a window came to cover less than the time a repair takes.
    """

    __slots__ = ("_most", "_out", "_repair_time", "_topics", "cuts", "left")

    def __init__(self, settings: Dissemination, out: Outbox, topics: Mapping[Topic, TopicWindow]) -> None:
        self.left = self._most = settings.total_window_bytes
        self._repair_time = settings.repair_time
        self._out = out
        self._topics = topics
        self.cuts = 0

    @property
    def reserve(self) -> int:
        """What is kept free, so that room is made seldom."""
        return self._most // 32

    def make(self, asking: TopicWindow) -> None:
        """The largest window gives way, its oldest publications first: more of them than needed, to do this seldom.

        The newest of the window that asks stays, however large it is; of other topics even the last may go.
        """
        while self.left < self.reserve:
            spare = (each for each in self._topics.values() if len(each.times) > (each is asking))
            largest = max(spare, key=lambda each: (each.size, -each.times[0]), default=None)
            if largest is None:
                return
            newest = largest.times[-1]
            largest.shrink_to(largest.size - largest.size // 16, int(largest is asking))
            span = newest - largest.times[0] if largest.times else asking.times[-1] - newest
            if span < self._repair_time and not largest.is_cut:
                largest.is_cut = True
                self.cuts += 1
                self._out.notify(WindowCut(largest.topic, span, largest.size))


class TopicWindow:
    """One topic. `peers`: the neighbours that want it too. `eager`: those on the tree; the others hear announcements.
    `grafted`: those on the tree since the last round of announcements: what came before that, they were not sent.

    `linked_at`: when this node was linked in the topic; None while it waits for that. `limit`: what the window may hold
    in bytes before it has to ask for room. `company_since`, `linked_last`, `lost_at`: since when there is a neighbour,
    when the last one came and when one was last lost. `copies_until`: branches that are new, or took the place of a
    broken one, bring what comes by others too; by then those are cut.
    """

    def __init__(self, topic: Topic, config: Dissemination, is_wanted: bool, windows: Windows) -> None:
        self.topic = topic
        self.is_wanted = is_wanted
        self.replays = False
        self.linked_at: Time | None = None
        self.peers: dict[NodeId, Ref] = {}
        self.eager: set[NodeId] = set()
        self._grafted: set[NodeId] = set()
        self._grafted_in = 0
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
        self.is_cut = False
        self.is_held_back = False
        self.is_compared = False
        self.company_since: Time = NEVER
        self.linked_last: Time = NEVER
        self.lost_at: Time = NEVER
        self.copies_until: Time = NEVER
        self._config = config
        self._windows = windows
        self._room = windows.budget
        self._pace: Stream | None = None
        self._pace_until: Time = -1

    def add_peer(self, ref: Ref, now: Time) -> None:
        """A link for this topic: on the tree until it proves to be one too many."""
        if not self.peers:
            self.company_since = now
            if self.is_held_back:
                self._age_from(now)
            for stream in self.streams.values():
                if stream.is_own:
                    stream.alone_until = stream.first - 1
        self.linked_last = now
        self.expect_copies(now)
        self.peers[ref.id] = ref
        self.make_eager(ref.id)

    def expect_copies(self, now: Time) -> None:
        self.copies_until = now + self._config.pace_time

    def _age_from(self, now: Time) -> None:
        """What was kept because nobody could have it yet ages from now on, as if it had just been published."""
        self.is_held_back = False
        self.times = deque([now] * len(self.times))
        for stream in self.streams.values():
            if stream.recent:
                stream.heard = now

    def drop_peer(self, peer: NodeId, now: Time) -> None:
        if self.peers.pop(peer, None) is not None:
            self.lost_at = now
            self.make_lazy(peer)
            self.pruned_at.pop(peer, None)
            for stream in self.streams.values():
                stream.forget_peer(peer)

    def make_eager(self, peer: NodeId) -> None:
        if peer not in self.eager:
            self.eager.add(peer)
            if self._grafted_in != self._windows.rounds:
                self._grafted_in = self._windows.rounds
                self._grafted.clear()
            self._grafted.add(peer)
        self.fanout.clear()

    def make_lazy(self, peer: NodeId) -> None:
        self.eager.discard(peer)
        self._grafted.discard(peer)
        self.fanout.clear()

    @property
    def grafted(self) -> Set[NodeId]:
        return self._grafted if self._grafted_in == self._windows.rounds else frozenset()

    def evict(self, missing: Set[Stream]) -> Stream:
        """Too many publishers: the one silent for longest is told of no more, but how far it is stays known."""

        def order(stream: Stream) -> tuple[bool, bool, bool, Time, StreamKey]:
            """Last those of which something is still to be said or to come."""
            return (stream.is_own, stream in missing, stream.is_dirty, stream.heard, stream.key)

        stream = min(self.streams.values(), key=order)
        self._windows.end_holes(stream)
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
        if self.size > self.limit:
            self.make_room()

    def keep_older(self, stream: Stream, publication: Publication) -> bool:
        """Into the window as its oldest, if nothing newer has to leave for it; whether it is kept."""
        size = len(publication.frame) + OVERHEAD
        is_kept = publication.sequence in stream.recent  # it came out of order, and stayed when newer ones left
        if not is_kept and self._room.left < size + self._room.reserve:
            return False
        stream.first = publication.sequence
        if stream.passed == publication.sequence:
            stream.passed -= 1
        if is_kept:
            return True
        stream.recent[publication.sequence] = publication
        self.owners.appendleft(stream)
        self.numbers.appendleft(publication.sequence)
        self.times.appendleft(min(self.times[0], stream.marked_time) if self.times else stream.marked_time)
        self.size += size
        if self.size > self.limit:
            self._set_limit(self.size)
        return True

    def make_room(self) -> None:
        """Within the bytes of all topics together."""
        self._set_limit(self.size + self.size // 64 + CHUNK)
        if self._room.left < 0:
            self._room.make(self)
            if self._room.left < 0:
                self._set_limit(self.size)

    def shrink_to(self, size: int, least: int = 1) -> None:
        """The oldest go; the newest so many stay however large they are."""
        self._drop(size, NEVER, least)
        self._set_limit(self.size)

    def _set_limit(self, limit: int) -> None:
        self._room.left -= limit - self.limit
        self.limit = limit

    def expire(self, now: Time) -> None:
        """Let go of what is too old."""
        self._drop(FAR, now - self._config.window_age, 0)
        self._set_limit(self.size)
        if self.is_cut and (not self.times or self.times[-1] - self.times[0] > 2 * self._config.repair_time):
            self.is_cut = False

    def _drop(self, size: int, oldest: Time, least: int) -> None:
        """From the oldest on, as long as there is more than this size or it is so old, and `least` are left.

        Written for speed: under load every publication that comes in drives another out.
        """
        times, left, count = self.times, self.size, len(self.times)
        next_owner, next_number, next_time = self.owners.popleft, self.numbers.popleft, times.popleft
        while count > least and (left > size or times[0] <= oldest):
            stream, sequence, count = next_owner(), next_number(), count - 1
            next_time()
            if sequence > stream.last:
                self._windows.end_holes(stream, sequence)
            each = len(stream.recent.pop(sequence).frame) + OVERHEAD
            left -= each
            if stream.is_own and sequence > stream.held:
                self._windows.note_unheld(stream, -each)
            if sequence >= stream.first:
                stream.first = sequence + 1
        self.size = left


class Windows:
    """All topics and streams of a node, shared by the parts that fill, compare and repair them.

    `missing`: the streams with a hole. `changed`: those in which some neighbour may not be as far as this node, or
    not know how far it is. `waiting`: the topics in which this node is still to be linked. `evictions`: how often a
    stream made way for another, because its topic had too many. `gaps`: told; `late`: publications that came after
    their gap. `unheld_bytes`: of all streams of this node's own; `not_held`: publications of these that will not be
    held. `past`: the streams of publishers silent for long. `rounds`: of announcements, so far.
    """

    def __init__(self, settings: Dissemination, out: Outbox) -> None:
        self.settings = settings
        self._out = out
        self.topics: dict[Topic, TopicWindow] = {}
        self.streams: dict[StreamKey, Stream] = {}
        self.budget = WindowBudget(settings, out, self.topics)
        self.missing: dict[Stream, None] = {}
        self.changed: list[Stream] = []
        self.waiting: Set[Topic] = frozenset()
        self.backfilling: dict[Stream, None] = {}
        self.evictions = 0
        self.gaps = 0
        self.late = 0
        self.unheld_bytes = 0
        self.not_held = 0
        self.past = Past()
        self.rounds = 0
        self._retired: dict[StreamKey, tuple[int, Time]] = {}
        self._is_sweeping = False

    def is_fresh(self, carried: TopicWindow) -> bool:
        """Whether this node was never linked in the topic."""
        return carried.linked_at is None and carried.topic in self.waiting

    def settled_before(self, key: StreamKey) -> int:
        """How far this stream was delivered when the topic was carried last."""
        return self._retired.get(key, (0, 0))[0]

    def forgotten_at(self, key: StreamKey) -> int:
        """How far this stream was when its publisher had been silent for long; 0: not known."""
        former = self.past.get(key)
        return former.last if former is not None else 0

    def open_stream(self, carried: TopicWindow, key: StreamKey, last: int, opened: int, heard: Time) -> Stream:
        """A publisher to keep track of, from `last` on; one that had to make way goes on where it was."""
        stream = carried.evicted.pop(key, None)
        if stream is None:
            stream = Stream(carried, key, last, opened, heard)
            stream.silent_until = self.settled_before(key)
            former = self.past.get(key)
            if former is not None and last == former.last:
                stream.passed = former.passed
                stream.silent_until = max(stream.silent_until, former.silent_until)
        self.past.forget(key)
        if len(carried.streams) >= self.settings.streams:
            self.evictions += 1
            evicted = carried.evict(self.missing.keys())
            del self.streams[evicted.key]
            self.missing.pop(evicted, None)
            self.backfilling.pop(evicted, None)
        self.streams[key] = carried.streams[key] = stream
        if not self._is_sweeping:
            self._is_sweeping = True
            self._out.set_timer(SWEEP, self.settings.window_age // 6)
        return stream

    def open_topic(self, topic: Topic, is_wanted: bool, replays: bool) -> TopicWindow:
        """A topic that is carried from now on. `replays`: deliver what neighbours keep of it too."""
        carried = self.topics[topic] = TopicWindow(topic, self.settings, is_wanted, self)
        carried.replays = replays
        return carried

    def await_links(self, topics: Set[Topic]) -> None:
        """The topics in which this node is still to be linked."""
        self.waiting = topics

    def note_hole(self, stream: Stream) -> None:
        self.missing[stream] = None

    def note_whole(self, stream: Stream) -> None:
        self.missing.pop(stream, None)

    def begin_backfill(self, stream: Stream) -> None:
        self.backfilling[stream] = None

    def end_backfill(self, stream: Stream) -> None:
        self.backfilling.pop(stream, None)

    def count_late(self) -> None:
        """A publication came after its gap was told."""
        self.late += 1

    def keep_changed(self, streams: list[Stream]) -> None:
        """What is still to be told of after a round of announcements."""
        self.changed = streams
        self.rounds += 1

    def retire(self, topic: Topic, now: Time) -> TopicWindow:
        """A topic given up: should it be taken up again, nothing is delivered twice."""
        carried = self.topics.pop(topic)
        self.budget.left += carried.limit
        for stream in (*carried.streams.values(), *carried.evicted.values()):
            self.streams.pop(stream.key, None)
            self.missing.pop(stream, None)
            self.backfilling.pop(stream, None)
            self._retired[stream.key] = (max(stream.last, stream.silent_until), now)
            self.note_unheld(stream, -stream.unheld_bytes)
            if stream.is_own and carried.peers:
                self.not_held += stream.unheld()
        carried.streams.clear()
        self.past.forget_topic(topic)
        return carried

    def note_change(self, stream: Stream) -> bool:
        """Neighbours are to hear of this stream; whether the announce timer has to be set for it."""
        if stream.is_dirty:
            return False
        stream.is_dirty = True
        stream.rounds = 0
        self.changed.append(stream)
        return len(self.changed) == 1

    def note_unheld(self, own: Stream, size: int) -> None:
        """So much more of this node's own is kept, and was not acknowledged."""
        own.unheld_bytes += size
        self.unheld_bytes += size

    def note_acknowledged(self, own: Stream, upto: int, passed: int) -> None:
        """Neighbours have all up to there, but some of what is up to `passed`."""
        if passed > max(own.held, own.passed):
            self.not_held += max(0, passed - max(own.held, own.passed, own.alone_until))
            own.passed = passed
        kept = (own.recent.get(sequence) for sequence in range(max(own.held + 1, own.first), upto + 1))
        own.held = upto
        self.note_unheld(
            own, -sum(len(publication.frame) + OVERHEAD for publication in kept if publication is not None)
        )

    def touch(self, stream: Stream) -> None:
        if self.note_change(stream):
            self._out.set_timer(ROUND, self.settings.announce_period)

    def settle(self, stream: Stream, now: Time) -> None:
        """Deliver whatever is next in sequence by now."""
        if not stream.is_determined:
            return
        carried, recent = stream.carried, stream.recent
        is_wanted, silent_until, begun = carried.is_wanted, stream.silent_until, stream.last
        while (publication := recent.get(stream.last + 1)) is not None:
            stream.last = sequence = publication.sequence
            stream.ahead_bytes -= len(publication.frame)
            if publication.is_opening:
                stream.opened = sequence
                stream.opened_at = now
            if is_wanted and sequence > silent_until:
                self._out.put(make_delivery(stream, publication))
        if stream.last > begun:
            self.touch(stream)
        if not stream.holes:
            self.missing.pop(stream, None)
        stream.judge()

    def end_hole(self, stream: Stream, upto: int, now: Time) -> None:
        """What is missing in front, up to there, will not come: tell a gap, and go on behind it."""
        hole = stream.holes[0]
        carried = stream.carried
        if hole.first > stream.last + 1:  # what is in front of it came just now, and made this necessary
            self.settle(stream, now)
        first, last = max(stream.last, stream.silent_until) + 1, upto
        if first <= last:
            self.gaps += 1
            stream.gap = (first, last)
            if carried.is_wanted:
                self._out.put(Gap(carried.topic, stream.publisher, stream.incarnation, first, last))
        if upto >= hole.last:
            del stream.holes[0]
        else:
            hole.first = upto + 1
        stream.last, stream.first = upto, upto + 1
        stream.passed = max(stream.passed, upto)
        stream.heard = max(stream.heard, hole.since)  # else others would take it to be as old as what came before
        if stream.backfill:  # what is kept in front of the gap would be fetched, and kept, once more
            stream.backfill = 0
            stream.backlog.clear()
            self.end_backfill(stream)
        self.touch(stream)
        self.settle(stream, now)

    def end_holes(self, stream: Stream, upto: int = FAR) -> None:
        """There is no room for what waits behind the holes of a stream: all in front of there end now."""
        if not stream.is_determined and stream.recent:
            stream.begin_at(min(stream.recent) if self.is_fresh(stream.carried) else 1, stream.heard)
            linked_at = stream.carried.linked_at
            if stream.opened_at == NEVER and linked_at is not None and stream.marked_time - linked_at > THERE:
                # No neighbour said when it began, and this node, which was there, had not heard of it before.
                stream.opened_at = stream.marked_time
            self.settle(stream, stream.heard)
        while stream.holes and stream.holes[0].first <= upto:
            self.end_hole(stream, stream.holes[0].last, stream.heard)
        self.settle(stream, stream.heard)  # what came just now may have filled the last hole in front

    def sweep(self, now: Time) -> None:
        """Let go of what is old, and of publishers that have been silent for twice as long as windows last."""
        oldest = now - self.settings.memory
        for carried in self.topics.values():
            carried.is_held_back = not carried.peers and carried.topic in self.waiting
            if not carried.is_held_back:  # else nobody could have had it yet
                carried.expire(now)
            for stream in [stream for stream in carried.evicted.values() if stream.heard <= oldest]:
                del carried.evicted[stream.key]
                self.past.note_stream(stream)
        lagging = min(oldest, now - LAGGING)
        for stream in list(self.streams.values()):
            if stream.is_own and stream.held < stream.last and stream.carried.peers:
                self.touch(stream)  # what is kept no longer need not be held
            if stream.carried.is_held_back and stream.recent:
                continue
            if max(stream.heard, stream.noted_at) <= (lagging if stream.is_dirty else oldest) and not stream.holes:
                del self.streams[stream.key], stream.carried.streams[stream.key]
                self.backfilling.pop(stream, None)
                self.past.note_stream(stream)
        self._retired = {key: entry for key, entry in self._retired.items() if entry[1] > oldest}
        self._is_sweeping = bool(self.streams or self._retired)
        self.set_sweep_timer()

    def set_sweep_timer(self) -> None:
        if self._is_sweeping:
            self._out.set_timer(SWEEP, self.settings.window_age // 6)

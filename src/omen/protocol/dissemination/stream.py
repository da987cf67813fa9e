"""A stream, what one incarnation of a publisher publishes on one topic, as a node knows it: what came, what is missing,
and how far neighbours are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING

from omen.protocol.events import SECOND, Deliver, NodeId, Time
from omen.protocol.messages.publications import HOLES_AT_MOST, Publication, StreamKey, StreamMark, read_key

if TYPE_CHECKING:
    from omen.protocol.dissemination.window import TopicWindow

NOBODY = -1
FAR = 1 << 62
NEVER: Time = -(1 << 62)
AGES: tuple[Time, ...] = (SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND, 16 * SECOND)
"""A new neighbour is told from where on a stream came within these times."""
APART = SECOND // 2
"""How far a stream was is remembered about so often."""


class Hole:
    """Sequences of a stream that are known of and have not come. `due`: when they are requested.

    `by_mark`: a neighbour announced them, and the tree has not brought them. `is_told`: the others know of them too.
    """

    __slots__ = ("by_mark", "due", "first", "is_told", "last", "since")

    def __init__(self, first: int, last: int, since: Time, due: Time, by_mark: bool) -> None:
        self.first = first
        self.last = last
        self.since = since
        self.due = due
        self.by_mark = by_mark
        self.is_told = False


class Position:
    """What a neighbour says it has of a stream: its mark, and when it came."""

    __slots__ = ("at", "awaits", "first", "holes", "last", "passed", "top")

    def __init__(self, mark: StreamMark, now: Time) -> None:
        self.at = now
        self.first = mark.first
        self.last = mark.last
        self.top = mark.top
        self.holes = mark.holes
        self.awaits = mark.awaits
        self.passed = mark.passed

    def keeps_until(self, sequence: int) -> int:
        """The end of what it keeps without a hole from this sequence on; smaller than the sequence if it does not."""
        if self.first <= sequence <= self.last:
            return self.last
        if self.last < sequence <= self.top:
            end = self.top
            for first, last in self.holes:
                if first <= sequence <= last:
                    return sequence - 1
                if first > sequence:
                    end = min(end, first - 1)
            return end
        return sequence - 1

    def next_kept(self, sequence: int) -> int:
        """The lowest sequence from this one on that it keeps or may still get; far beyond all if there is none.

        What is beyond all it has heard of may still come to it.
        """
        if sequence > self.top:
            return sequence
        candidate = max(sequence, self.awaits or self.first)
        return candidate if candidate <= self.top else FAR


class Stream:
    """What one incarnation of a publisher publishes on one topic.

    Everything up to `last` is settled: delivered, passed over or told as a gap; of that, `first` to `last` is kept.
    `recent` holds all that is kept, what came ahead of a hole included; `top` is the highest sequence known of, and
    `holes` what up to there has not come. Nothing up to `silent_until` is delivered: it was there before this node
    wanted the topic. Something up to `passed` may never have come: it was told as a gap, or before this node began;
    of a stream of this node's own, to some neighbour. `alone_until`: nothing up to there could be acknowledged, for
    no neighbour had the topic while it was kept. `heard`: when its newest publication was new; `noted_at`: when a
    neighbour last told of one that was not known here, however old. `unheld_bytes`: what is kept of a stream of
    this node's own and was not acknowledged. `is_determined`: known where it begins. `plain`: nothing of this needs
    a second look, so the next in sequence can go straight through; `top` is then behind, for nobody looks at it. A
    stream of this node's own never is: what comes next in it comes from nobody else.
    """

    __slots__ = (
        "ahead_bytes",
        "alone_until",
        "backfill",
        "backlog",
        "carried",
        "first",
        "gap",
        "heard",
        "held",
        "history",
        "holes",
        "incarnation",
        "is_determined",
        "is_dirty",
        "is_own",
        "key",
        "known",
        "last",
        "lazy_told_at",
        "marked_last",
        "marked_time",
        "noted_at",
        "opened",
        "opened_at",
        "parent",
        "passed",
        "plain",
        "progress_at",
        "publisher",
        "questioned",
        "recent",
        "requested_to",
        "rounds",
        "shunned",
        "silent_until",
        "told",
        "told_at",
        "told_last",
        "top",
        "unheld_bytes",
    )

    def __init__(self, carried: TopicWindow, key: StreamKey, last: int, opened: int, now: Time) -> None:
        self.carried = carried
        self.key = key
        _, self.publisher, self.incarnation = read_key(key)
        self.is_own = False
        self.is_determined = True
        self.opened = opened
        self.opened_at: Time = NEVER
        self.first = last + 1
        self.last = last
        self.top = last
        self.holes: list[Hole] = []
        self.ahead_bytes = 0
        self.silent_until = 0
        self.passed = last
        self.recent: dict[int, Publication] = {}
        self.plain = True
        self.heard = now
        self.noted_at: Time = NEVER
        self.parent: NodeId = NOBODY
        self.held = 0
        self.unheld_bytes = 0
        self.alone_until = 0
        # Up to where it was known when, at times; the latest of these is of the last announcement.
        self.history: deque[tuple[Time, int]] = deque()
        # What neighbours said they have, and what they were told.
        self.known: dict[NodeId, Position] = {}
        self.told: dict[NodeId, int] = {}
        self.told_last = -1
        self.told_at: Time = NEVER
        self.lazy_told_at: Time = NEVER
        self.rounds = 0
        self.is_dirty = False
        # Publications up to the mark were that old when a neighbour announced them.
        self.marked_last = 0
        self.marked_time: Time = now
        # Retransmission: up to where something was ever requested, when something last came, whom was asked when, who
        # had nothing and is not asked until when, the last gap told, and what is fetched of the time before this node
        # began (from there on; 0: nothing).
        self.requested_to = 0
        self.progress_at: Time = NEVER
        self.questioned: dict[NodeId, Time] = {}
        self.shunned: dict[NodeId, Time] = {}
        self.gap = (0, -1)
        self.backfill = 0
        self.backlog: dict[int, Publication] = {}

    @property
    def is_settled(self) -> bool:
        """Whether others can go by this node: it knows where the stream begins, and has what was before its time."""
        return self.is_determined and self.last >= self.silent_until

    def unheld(self) -> int:
        """How many publications of this node's own neighbours have not acknowledged; now they are alone or not."""
        since = self.alone_until if self.carried.peers else self.first - 1
        return max(0, self.last - max(self.held, since))

    @property
    def known_to(self) -> int:
        """The highest sequence this node knows of."""
        return self.last if self.plain else max(self.top, self.last)

    def judge(self) -> None:
        """Whether the next in sequence can go straight through."""
        self.plain = not self.is_own and self.is_settled and not self.holes and self.top <= self.last

    def leave_fast_path(self) -> None:
        if self.plain:
            self.plain = False
            self.top = self.last

    def add_hole(self, upto: int, since: Time, due: Time, by_mark: bool) -> None:
        """Sequences up to there are known of, and have not come."""
        self.leave_fast_path()
        self.holes.append(Hole(self.top + 1, upto, since, due, by_mark))
        self.top = upto

    def fill(self, sequence: int) -> None:
        """It has come: the hole it was missing from becomes smaller, or two."""
        holes = self.holes
        place = bisect_right(holes, sequence, key=first_of) - 1
        if place < 0:
            return
        hole = holes[place]
        if sequence > hole.last:
            return
        if hole.first == hole.last:
            del holes[place]
        elif sequence == hole.first:
            hole.first += 1
        elif sequence == hole.last:
            hole.last -= 1
        else:
            rest = Hole(sequence + 1, hole.last, hole.since, hole.due, hole.by_mark)
            rest.is_told = hole.is_told
            holes.insert(place + 1, rest)
            hole.last = sequence - 1

    def begin_at(self, first: int, now: Time) -> None:
        """It is known now where the stream begins: what came ahead of that is put in its place."""
        self.is_determined = True
        self.first, self.last = first, first - 1
        self.passed = self.last
        self.holes = []
        self.top = self.last
        self.plain = False
        self.ahead_bytes = 0
        for sequence in sorted(sequence for sequence in self.recent if sequence >= first):
            if sequence > self.top + 1:
                self.add_hole(sequence - 1, now, now, False)
            self.top = sequence
            self.ahead_bytes += len(self.recent[sequence].frame)

    def note_pace(self, now: Time) -> None:
        """Remember how far it is now, so that a newcomer can be told what came since when."""
        history = self.history
        if len(history) > 1 and now - history[-2][0] < APART:
            history.pop()
        history.append((now, self.known_to))
        while len(history) > 1 and now - history[1][0] > AGES[-1]:
            history.popleft()

    def take_history(self, mark: StreamMark, now: Time) -> None:
        """What a neighbour says came since when, so that newcomers can be told by one that is a newcomer itself."""
        top = max(mark.top, mark.last)
        for age, number in zip(AGES, mark.by_age, strict=False):
            self.history.appendleft((now - age, number - 1 if number else top))

    def by_age(self, now: Time) -> tuple[int, ...]:
        """From which sequence on all came within each of `AGES`, as far back as it is known; 0: none did."""
        found = []
        for age in AGES:
            before = next((last for time, last in reversed(self.history) if now - time >= age), None)
            if before is None and self.opened_at != NEVER and self.passed < self.opened:
                before = self.opened - 1  # all of the run has come here
            if before is None:
                break
            found.append(before + 1 if before < self.known_to else 0)
        return tuple(found)

    def mark_for(self, peer: NodeId, now: Time) -> StreamMark:
        """What this node has of it. A neighbour that has said nothing of it may be new, and hears when it came."""
        known = self.known.get(peer)
        top = self.known_to
        ranges: tuple[tuple[int, int], ...] = ()
        if self.holes:
            told = self.holes[:HOLES_AT_MOST]
            ranges = tuple((hole.first, hole.last) for hole in told)
            if len(self.holes) > len(told):
                top = told[-1].last
        return StreamMark(
            self.publisher,
            self.incarnation,
            self.opened,
            self.first,
            self.last,
            known.last if known is not None else -1,
            max(0, now - self.heard) // 1000,
            top,
            ranges,
            self.backfill,
            -1 if self.opened_at == NEVER else max(0, now - self.opened_at) // 1000,
            self.by_age(now) if known is None else (),
            self.passed,
        )

    def speak_from(self, settled: int) -> list[Publication]:
        """Be silent up to `settled` only: what is kept behind it, to be delivered now."""
        self.silent_until = settled
        self.judge()
        numbers = range(max(self.first, settled + 1), self.last + 1)
        return [self.recent[sequence] for sequence in numbers if sequence in self.recent]

    def clear(self) -> None:
        """Forget what neighbours have, and all holes: only what is settled counts."""
        self.known.clear()
        self.told.clear()
        self.questioned.clear()
        self.shunned.clear()
        self.backlog.clear()
        self.backfill = 0
        self.holes = []
        self.top = self.last
        self.ahead_bytes = 0
        self.judge()

    def forget_peer(self, peer: NodeId) -> None:
        self.known.pop(peer, None)
        self.told.pop(peer, None)
        self.questioned.pop(peer, None)
        self.shunned.pop(peer, None)


def make_delivery(stream: Stream, publication: Publication) -> Deliver:
    return Deliver(
        stream.carried.topic,
        stream.publisher,
        stream.incarnation,
        publication.sequence,
        publication.payload,
        publication.fields,
    )


def first_of(hole: Hole) -> int:
    return hole.first


def heard_of(stream: Stream) -> Time:
    return stream.heard

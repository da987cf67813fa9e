"""Neighbours compare what they have of a topic: on a new link all of it at once, later what has changed.

A node says how far it is in each stream, and repeats that until the other end has said the same: so announcements to
links off the tree, acknowledgements for the publisher, and the repair of whatever was lost on the way are one thing.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, islice
from operator import itemgetter

from omen.protocol.context import Outbox
from omen.protocol.dissemination.pace import Pace
from omen.protocol.dissemination.retransmission import Retransmission
from omen.protocol.dissemination.stream import AGES, FAR, NEVER, Position, Stream
from omen.protocol.dissemination.window import ROUND, TopicWindow, Windows
from omen.protocol.events import SECOND, Held, NodeId, Time, Topic
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import Announce, StreamKey, StreamMark, stream_key

News = dict[NodeId, tuple[Ref, dict[Topic, list[StreamMark]]]]
"""What each neighbour is to hear in this round."""


SETTLING = 10
"""For so many announce periods after it was linked, a node takes what is older than its links for none of its own."""
SELDOM = 32
"""What nobody answers is repeated ever less often, at last once in so many rounds."""
EARLY, CLOSE = SECOND, SECOND // 4
"""A node is owed what was published so shortly before it was linked too, for a publisher's clock is not asked; for
longer before that where its neighbour keeps it."""
MARKS_AT_MOST = 1024
"""In one message, of streams of the past."""


class AntiEntropy:
    """Compares windows with each neighbour; slow consumers are told nothing until they read again."""

    def __init__(
        self,
        me: Ref,
        out: Outbox,
        windows: Windows,
        retransmission: Retransmission,
        slow: set[NodeId],
        pace: Pace,
    ) -> None:
        self._me = me
        self._pace = pace
        self._slow = slow
        self._settings = windows.settings
        self._out = out
        self._windows = windows
        self._retransmission = retransmission

    def rejoin(self, me: Ref) -> None:
        """This node goes on in another incarnation: its timer may have ended with the former one."""
        self._me = me
        self.set_timer()

    def compare(self, peer: Ref, topics: Iterable[TopicWindow], now: Time) -> None:
        """A link for these topics is there, or there again: say everything, and ask for the same."""
        marks: list[tuple[Topic, tuple[StreamMark, ...]]] = []
        for carried in topics:
            told = [stream for stream in carried.streams.values() if stream.is_settled]
            if told:
                named = tuple(stream.mark_for(peer.id, now) for stream in told)
                marks.append((carried.topic, named))
            for stream in told:
                stream.told[peer.id] = stream.last
            for stream in carried.streams.values():
                self._windows.touch(stream)
        if marks:
            self._out.send(peer, Announce(tuple(marks), compare=True))
        self._tell_past(peer, topics, now)

    def _tell_past(self, peer: Ref, topics: Iterable[TopicWindow], now: Time) -> None:
        """Also how far publishers were that have been silent for long. As far as here, a neighbour need not answer."""
        named = (
            (carried.topic, former.mark(former.last, now))
            for carried in topics
            for former in islice(self._windows.past.of(carried.topic), self._settings.streams)
        )
        while some := list(islice(named, MARKS_AT_MOST)):
            by_topic = groupby(some, key=itemgetter(0))
            self._out.send(peer, Announce(tuple((topic, tuple(mark for _, mark in each)) for topic, each in by_topic)))

    def announce(self, now: Time) -> None:
        """Once per period: tell each neighbour what it may not know. `changed` keeps what is to be repeated.

        A stream that goes on comes over the tree by itself; only its publisher waits to hear how far it came.
        """
        self._pace.end_round(now)
        news: News = {}
        retell, longest = self._settings.retell_period, SELDOM * self._settings.announce_period
        unsettled: list[Stream] = []
        for stream in self._windows.changed:
            carried = stream.carried
            if carried.streams.get(stream.key) is not stream:
                stream.is_dirty = False
                continue
            stream.note_pace(now)
            goes_on = stream.told_last != stream.last
            pause = retell if goes_on else min(retell << max(stream.rounds - 1, 0), longest)
            if not stream.is_settled:
                unsettled.append(stream)
                continue
            if now - stream.told_at < pause:
                unsettled.append(stream)
                if goes_on:
                    if stream.publisher in carried.peers:
                        self._tell_publisher(stream, carried.peers[stream.publisher], news, now)
                    if carried.grafted or len(carried.eager) < len(carried.peers):
                        self._tell_lazy(stream, news, now)
                continue
            stream.rounds = 0 if goes_on else stream.rounds + 1
            stream.told_last, stream.told_at = stream.last, now
            if self._tell(stream, news, now):
                stream.is_dirty = False
            else:
                unsettled.append(stream)
            if stream.is_own:
                self.note_held(stream)
        self._windows.keep_changed(unsettled)
        for node in sorted(news):
            ref, topics = news[node]
            self._out.send(ref, Announce(tuple((topic, tuple(marks)) for topic, marks in topics.items())))
        self.set_timer()

    def set_timer(self) -> None:
        if self._windows.changed:
            self._out.set_timer(ROUND, self._settings.announce_period)

    def _tell_publisher(self, stream: Stream, ref: Ref, news: News, now: Time) -> None:
        """It is a neighbour, and waits to hear how far its stream came."""
        if ref.id not in self._slow and stream.told.get(ref.id) != stream.last:
            self._add_mark(stream, ref, news, now)

    def _tell_lazy(self, stream: Stream, news: News, now: Time) -> None:
        """Those off the tree may hear of a stream that goes on by this alone, if their branch is silent. So may those
        that have only just been grafted, of what came before.
        """
        carried, last = stream.carried, stream.last
        to = carried.grafted
        if now - stream.lazy_told_at >= self._pace.by_round_trip:
            stream.lazy_told_at = now
            to = to | (carried.peers.keys() - carried.eager)
        for peer in to - self._slow:
            theirs = stream.known.get(peer)
            if stream.told.get(peer) != last and (theirs is None or theirs.last < last):
                self._add_mark(stream, carried.peers[peer], news, now)

    def _add_mark(self, stream: Stream, ref: Ref, news: News, now: Time) -> None:
        stream.told[ref.id] = stream.last
        entry = news.get(ref.id)
        if entry is None:
            entry = news[ref.id] = (ref, {})
        entry[1].setdefault(stream.carried.topic, []).append(stream.mark_for(ref.id, now))

    def _tell(self, stream: Stream, news: News, now: Time) -> bool:
        """Whether all neighbours are as far as this node."""
        last, known, told = stream.last, stream.known, stream.told
        settled = True
        for peer, ref in stream.carried.peers.items():
            if peer in self._slow:
                continue
            theirs = known.get(peer)
            lags = theirs is None or theirs.last < last
            settled = settled and not lags
            if lags or told.get(peer) != last:
                self._add_mark(stream, ref, news, now)
        return settled

    def hear(
        self,
        carried: TopicWindow,
        sender: NodeId,
        marks: tuple[StreamMark, ...],
        compare: bool,
        now: Time,
    ) -> set[Stream]:
        """A neighbour says how far it is; the streams it spoke of."""
        named = set()
        heard = set()
        replies = []
        noted = []
        for mark in marks:
            key = stream_key(carried.topic, mark.publisher, mark.incarnation)
            named.add(key)
            former = self._windows.past.get(key)
            if former is not None and (max(mark.top, mark.last) <= former.last or self._is_own(mark)):
                if mark.yours != former.last:
                    replies.append(former.mark(mark.last, now))
                continue
            stream = self._hear_mark(carried, sender, key, mark, compare, now)
            if stream is not None:
                heard.add(stream)
            elif former is None and (noted_now := self._windows.past.get(key)) is not None:
                noted.append(noted_now.mark(-1, now))
        if replies:
            self._out.send(carried.peers[sender], Announce(((carried.topic, tuple(replies)),)))
        if noted:  # a neighbour that was there longer may not be as far
            for peer in sorted(carried.peers.keys() - {sender} - self._slow):
                self._out.send(carried.peers[peer], Announce(((carried.topic, tuple(noted)),)))
        if compare:
            carried.is_compared = True
            for key, stream in carried.streams.items():
                if key not in named:
                    stream.forget_peer(sender)
                    stream.told_at = NEVER
                    self._windows.touch(stream)
        return heard

    def _hear_mark(
        self, carried: TopicWindow, sender: NodeId, key: StreamKey, mark: StreamMark, compare: bool, now: Time
    ) -> Stream | None:
        stream = carried.streams.get(key)
        if stream is None or not stream.is_determined:
            if self._is_own(mark):
                return stream
            if mark.idle * 1000 >= self._settings.memory and self._is_over(carried, key, mark, now):
                return stream
            stream = self._begin(carried, stream, key, mark, now)
        known = stream.known.get(sender)
        if known is None or known.last <= mark.last:
            stream.known[sender] = Position(mark, now)
        if mark.last >= stream.marked_last:
            stream.marked_last, stream.marked_time = mark.last, now - mark.idle * 1000
        if mark.yours != stream.last and (stream.rounds or not stream.is_dirty):
            stream.told.pop(sender, None)
            stream.told_at = NEVER
            self._windows.touch(stream)
        elif mark.last < stream.last:
            self._windows.touch(stream)
        if stream.is_own:
            self.note_held(stream)
            return stream
        top = max(mark.top, mark.last)
        if top > stream.known_to:
            stream.noted_at = now
            # What follows something that was given, or told, is not passed over, however old it is.
            given = stream.last > max(stream.silent_until, stream.passed) or stream.gap[1] > 0
            if self._is_before(carried, mark, now) and not carried.replays and not given:
                stream.silent_until = max(stream.silent_until, top)
            self._retransmission.note_known(stream, top, now, compare)
        if stream.backfill and stream.backfill > mark.first:
            stream.backfill = mark.first
        return stream

    def _is_own(self, mark: StreamMark) -> bool:
        return mark.publisher == self._me.id and mark.incarnation == self._me.incarnation

    def _is_over(self, carried: TopicWindow, key: StreamKey, mark: StreamMark, now: Time) -> bool:
        """Whether nothing is missing here of a stream whose publisher has been silent for long.

        A neighbour that knows nothing of it says 0. What was over before this node was linked is noted, no more.
        """
        top = max(mark.top, mark.last)
        if top <= 0 or key in carried.streams:
            return True
        heard = now - mark.idle * 1000
        is_known = self._windows.forgotten_at(key) or key in carried.evicted
        if is_known or (carried.linked_at is not None and carried.linked_at < heard):
            return False
        self._windows.past.note(key, top, mark.opened, heard, top)
        return True

    @staticmethod
    def _is_before(carried: TopicWindow, mark: StreamMark, now: Time) -> bool:
        """Whether all that a neighbour tells of came to it before this node was linked."""
        linked_at = carried.linked_at if carried.linked_at is not None else now
        return max(mark.top, mark.last) == mark.last and now - mark.idle * 1000 < linked_at - EARLY

    def is_settling(self, carried: TopicWindow, now: Time) -> bool:
        """Whether this node was linked in the topic only just now, or is still to be."""
        return carried.linked_at is None or now - carried.linked_at < SETTLING * self._settings.announce_period

    def _begin(
        self, carried: TopicWindow, stream: Stream | None, key: StreamKey, mark: StreamMark, now: Time
    ) -> Stream:
        """A stream this node knows nothing of: what of it is still to come, what was before its time, what is missing.

        A newcomer begins at the live edge of what its first neighbour names, or where the stream was when it was linked
        if that was before; what turns up later comes from another piece of the topic, and all that is kept of it is
        taken. A node that was there all the time should have it all.
        """
        top = max(mark.top, mark.last)
        settling = self.is_settling(carried, now)
        fresh = self._windows.is_fresh(carried)
        forgotten = self._windows.forgotten_at(key)
        since = now - mark.since * 1000 if mark.since >= 0 else NEVER
        if forgotten:
            start = forgotten + 1
        elif carried.replays:
            start = min(mark.first, self._owed_from(carried, mark, since, now))
        elif carried.linked_at is not None and self._is_before(carried, mark, now):
            start = top + 1  # it was over before this node was linked
        elif not fresh and not settling:
            start = self._missed_from(carried, mark, since, now)
        elif carried.is_compared:
            start = min(mark.first, self._owed_from(carried, mark, since, now))
        else:
            start = min(max(mark.last, 0) + 1, self._owed_from(carried, mark, since, now))
        is_edge = start > top
        if stream is not None and stream.recent and not forgotten:
            start = min(start, min(stream.recent))
        if stream is None:
            stream = self._windows.open_stream(carried, key, start - 1, mark.opened, now - mark.idle * 1000)
        else:
            stream.opened = mark.opened
            stream.begin_at(start, now)
        if mark.since >= 0:
            stream.opened_at = since
        if not stream.history:
            stream.take_history(mark, now)
        came = self._came_from(mark, now - carried.linked_at if carried.linked_at is not None else 0)
        if came is not None and not forgotten and not carried.replays:
            # A hole of the neighbour's is no gap for a node that came later, but others may go by this one.
            stream.silent_until = max(stream.silent_until, min(came, top + 1) - 1)
            stream.judge()
        if is_edge:
            stream.silent_until = max(stream.silent_until, start - 1)
            stream.judge()
        if not forgotten:
            self._retransmission.note_backfill(stream, mark.first)
        self._windows.touch(stream)
        self._windows.settle(stream, now)
        return stream

    def _missed_from(self, carried: TopicWindow, mark: StreamMark, since: Time, now: Time) -> int:
        """From where on a node that has been there for a while misses a stream that it has never heard of.

        All of the run, unless that began before this node was there: then what was published since. Where it is not
        known when that was, all that is kept; after more than `window_age` all there was, for silence is worse.
        """
        linked_at = carried.linked_at
        if since == NEVER or linked_at is None or since >= linked_at or now - linked_at > self._settings.window_age:
            return mark.opened
        came = self._came_from(mark, now - linked_at)
        owed = min(self._owed_from(carried, mark, since, now), mark.first) if came is None else came
        return min(max(mark.last, 0) + 1, owed)

    @staticmethod
    def _came_from(mark: StreamMark, there: Time) -> int | None:
        """From where on a stream came to the neighbour in the time a node has been there; None: it does not say."""
        for age, number in zip(AGES, mark.by_age, strict=False):
            if there + CLOSE <= age:
                return number or FAR
        return None

    def _owed_from(self, carried: TopicWindow, mark: StreamMark, since: Time, now: Time) -> int:
        """From where on a stream was published after this node was linked, or just before.

        What came to the neighbour since then, where it says so. Otherwise as if it had gone on evenly until it was
        heard last: where windows are shorter, some is kept by no neighbour any more, and told.
        """
        if carried.linked_at is None:
            return FAR
        came = self._came_from(mark, now - carried.linked_at)
        if came is not None:
            return came
        if since == NEVER:
            return FAR
        idle = mark.idle * 1000
        lasted, linked = max(1, now - since - idle), now - carried.linked_at - idle
        top = max(mark.top, mark.last)

        def published_from(before: Time) -> int:
            owed = min(linked + before, lasted)
            return top - (top - mark.opened) * owed // lasted if owed > 0 else FAR

        return min(published_from(CLOSE), max(published_from(EARLY), mark.first))

    def note_held(self, stream: Stream) -> None:
        """Tell the publisher's application how far those who pass its publications on are."""
        carried = stream.carried
        peers = [peer for peer in carried.eager or carried.peers if peer not in self._slow]
        held = min((self._held_by(stream, peer) for peer in peers), default=0)
        if held <= stream.held:
            return
        passed = max(stream.known[peer].passed for peer in peers)
        self._windows.note_acknowledged(stream, held, min(passed, held))
        held = passed = 0
        for own in sorted((own for own in carried.streams.values() if own.is_own), key=lambda own: own.incarnation):
            held, passed = max(held, own.held), max(passed, own.passed)
            if own.held < own.last:
                break
        if held > carried.held:
            carried.held = held
            self._out.put(Held(carried.topic, held, passed))

    @staticmethod
    def _held_by(stream: Stream, peer: NodeId) -> int:
        """Nothing more where it may lack something that is still kept here: it may yet fetch that.

        A neighbour of version 0.1 does not say what it passed over.
        """
        known = stream.known.get(peer)
        if known is None:
            return 0
        # what it says it has cannot be more than there is
        return stream.held if known.passed >= max(stream.held + 1, stream.first) else min(known.last, stream.last)

"""Holes in a stream: requested from neighbours beside the live edge, told as a gap in the end, never in silence.

Several requests are under way at a time, to each neighbour as many as it has credits; an answer gives one back. A hole
ends when it is certain that no neighbour keeps or awaits it, when what waits behind it is too much, or when its
time is over: then one `Gap` is told, and the stream goes on. What comes after its gap is dropped and counted.

A newcomer begins at the live edge. What was before its time it fetches too, one request at a time, and delivers nothing
of it: others may reach the rest of the topic only through it.
"""

from __future__ import annotations

from itertools import islice

from omen.protocol.config import Dissemination as Settings
from omen.protocol.context import Outbox
from omen.protocol.dissemination.pace import Pace
from omen.protocol.dissemination.stream import FAR, NEVER, Hole, Stream
from omen.protocol.dissemination.window import Windows
from omen.protocol.events import MILLISECOND, SECOND, NodeId, Time, Timer, Topic
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import (
    Announce,
    Publication,
    RetransmissionRequest,
    StreamMark,
    stream_key,
)


class RetransmissionTimer(Timer, frozen=True):
    """Holes are looked after."""


DUE = RetransmissionTimer()
TICK_AT_MOST = 250 * MILLISECOND
ALONE = 2 * SECOND
"""So much longer than `hole_limit` a node that has lost its last neighbour in the topic waits for another."""
LINK_LOST = 3 * SECOND
"""So long after a link was lost nothing is certain: a repair may bring another."""
STILL_FILLING = SECOND
ENDED_ELSEWHERE = 2 * SECOND
"""A hole that a neighbour has told as a gap already is waited for no longer than this."""
WANTS_AT_MOST = 64
STREAMS_PLANNED = 64
"""Streams looked at for one message or timer: one that is told of many in vain must not stand still over it."""
HOLES_PLANNED = 64
CREDITS_AT_MOST = 32
LONGEST_PATIENCE = 3 * SECOND
UNKNOWN = 1 << 40
"""Milliseconds: the age of a stream that a node knows nothing of."""

Want = tuple[Topic, NodeId, int, int, int]


class Request:
    """Under way to one neighbour."""

    __slots__ = ("asked_at", "is_backfill", "number", "peer", "ranges")

    def __init__(self, peer: NodeId, number: int, asked_at: Time, is_backfill: bool) -> None:
        self.peer = peer
        self.number = number
        self.asked_at = asked_at
        self.is_backfill = is_backfill
        self.ranges: list[tuple[Stream, int, int]] = []


class Flow:
    """How much may be under way to one neighbour, and how long its answers are waited for.

    As in TCP Vegas: one request more for each answer that did not take longer than the fastest, one less where they
    queue up. So a hole is filled as fast over a long link as over a short one, and a thin link is not filled up.
    `is_numbered`: its answers say to which request they are, so what it announces otherwise ends none. Requests that
    were given up are remembered for a while: an answer that comes late tells how long the link is. `answered`: the
    latest request that was answered.
    """

    __slots__ = ("_fastest", "_given_up", "_settings", "answered", "credits", "is_numbered", "patience")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._fastest = FAR
        self._given_up: dict[int, Time] = {}
        self.answered = 0
        self.credits = settings.credits
        self.is_numbered = False
        self.patience = 2 * settings.pull_retry

    def note_answer(self, took: Time) -> None:
        self._fastest = min(self._fastest, took)
        if took <= self._fastest + self._fastest // 4:
            self.credits = min(self.credits + 1, max(CREDITS_AT_MOST, self._settings.credits))
        elif took > 2 * self._fastest:
            self.credits = max(self.credits - 1, self._settings.credits)
        least = 2 * self._settings.pull_retry
        self.patience = max(least, min(2 * took, LONGEST_PATIENCE))

    def note_late(self, number: int, now: Time) -> None:
        asked_at = self._given_up.pop(number, None)
        if asked_at is not None:
            self.note_answer(now - asked_at)

    def give_up(self, request: Request) -> None:
        self._given_up[request.number] = request.asked_at
        if len(self._given_up) > CREDITS_AT_MOST:
            del self._given_up[next(iter(self._given_up))]

    def is_lost(self, request: Request, now: Time) -> bool:
        """Whether the neighbour had this request when it said what has just come: links keep order."""
        return now - request.asked_at > self._fastest

    def note_overdue(self) -> None:
        self.credits = max(self.credits // 2, self._settings.credits)


class Draft:
    """A request that is being put together. `fill`: how full its answer will be, in publications of no size."""

    __slots__ = ("count", "fill", "graft", "request", "wants")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.wants: list[Want] = []
        self.count = self.fill = 0
        self.graft = False


class Retransmission:
    """A stream has a hole where a neighbour is further, or a publication came before an earlier one."""

    def __init__(
        self, settings: Settings, out: Outbox, windows: Windows, slow: set[NodeId], pace: Pace, has_deadline: bool
    ) -> None:
        self._settings = settings
        self._pace = pace
        self._has_deadline = has_deadline
        self._out = out
        self._windows = windows
        self._slow = slow
        self._is_armed = False
        self._is_urgent = False
        self._number = 0
        self._requests: dict[NodeId, list[Request]] = {}
        self._came_at: dict[NodeId, Time] = {}
        self._shunned: dict[NodeId, Time] = {}
        self._flows: dict[NodeId, Flow] = {}
        self._drafts: dict[NodeId, Draft] = {}

    def note_known(self, stream: Stream, upto: int, now: Time, new_link: bool) -> None:
        """A neighbour knows of more. What a new link offers is requested at once; the rest may come by itself."""
        delay = 0 if new_link else self._pace.wait(now)
        stream.add_hole(upto, now, now + delay, by_mark=True)
        self._note(stream, new_link)

    def note_skipped(self, stream: Stream, upto: int, now: Time) -> None:
        """A publication came ahead of others."""
        stream.add_hole(upto, now, now + self._pace.wait(now) // 4, by_mark=False)
        self._note(stream, False)

    def note_undetermined(self, stream: Stream) -> None:
        self._note(stream, True)

    def note_backfill(self, stream: Stream, first: int) -> None:
        """What is kept of the time before this node began: from there on."""
        if first < stream.first:
            stream.backfill = first
            self._windows.begin_backfill(stream)
            self._is_urgent = True
            self._arm()

    def _note(self, stream: Stream, is_urgent: bool) -> None:
        self._windows.note_hole(stream)
        self._is_urgent |= is_urgent
        self._arm()

    def _arm(self) -> None:
        if not self._is_armed:
            self.set_timer()

    def set_timer(self) -> None:
        self._is_armed = bool(self._windows.missing or self._windows.backfilling)
        if self._is_armed:
            self._out.set_timer(DUE, min(self._pace.delay // 4, TICK_AT_MOST))

    def note_came(self, sender: NodeId, now: Time) -> None:
        """What was requested is on its way."""
        self._came_at[sender] = now

    def forget_peer(self, peer: NodeId) -> None:
        """Its link is gone: what was requested of it is requested of others."""
        if self._requests.pop(peer, None):
            self._is_urgent = True
        self._came_at.pop(peer, None)
        self._shunned.pop(peer, None)
        self._flows.pop(peer, None)

    def note_restart(self, peer: NodeId, now: Time) -> None:
        """It begins anew to say how far it is, for it has dropped what its link had no room for.

        That may be answers: what they were to bring is requested again, less of it at a time.
        """
        flow = self._flows.get(peer)
        lost = [request for request in self._requests.get(peer, ()) if flow is not None and flow.is_lost(request, now)]
        for request in lost:
            self._requests[peer].remove(request)
            self._flow(peer).give_up(request)
        if lost:
            self._flow(peer).note_overdue()
            self._is_urgent = True

    # Requests

    def on_timer(self, now: Time) -> None:
        self._is_armed = False
        for stream in list(self._windows.missing):
            if stream.carried.streams.get(stream.key) is not stream:
                self._windows.note_whole(stream)
            else:
                self._end_what_is_over(stream, now)
        for requests in self._requests.values():
            for request in [request for request in requests if self._is_overdue(request, now)]:
                requests.remove(request)
                flow = self._flow(request.peer)
                flow.give_up(request)
                flow.note_overdue()
                self._shunned[request.peer] = now + self._settings.pull_retry
        self._is_urgent = True
        self.send_requests(now)
        self._arm()

    def _is_overdue(self, request: Request, now: Time) -> bool:
        flow, last = self._flow(request.peer), request.asked_at
        if request.number > flow.answered:  # what comes may be the answer to this one
            last = max(last, self._came_at.get(request.peer, NEVER))
        return now - last >= flow.patience

    def _flow(self, peer: NodeId) -> Flow:
        flow = self._flows.get(peer)
        if flow is None:
            flow = self._flows[peer] = Flow(self._settings)
        return flow

    def on_answer(self, sender: NodeId, answers: int, streams: set[Stream], now: Time) -> None:
        """A neighbour has sent what it sends for one request. Version 0.1 does not say for which: for the oldest."""
        flow, requests = self._flows.get(sender), self._requests.get(sender)
        if flow is None:  # it was never asked
            return
        flow.is_numbered |= answers != 0
        if not answers and flow.is_numbered:
            return
        for request in requests or ():
            if request.number == answers or (not answers and any(stream in streams for stream, _, _ in request.ranges)):
                break
        else:
            flow.note_late(answers, now)
            return
        assert requests is not None
        requests.remove(request)
        if answers:
            flow.answered = max(flow.answered, answers)
            flow.note_answer(now - request.asked_at)
        else:
            flow.give_up(request)
        if self._came_at.get(sender, NEVER) < request.asked_at:
            for stream, _, _ in request.ranges:  # it had nothing of these: streams that are none shut out no other
                stream.shunned[sender] = now + self._settings.pull_retry
        self._is_urgent = True

    def send_requests(self, now: Time) -> None:
        """Whatever is due and not under way goes out, as far as credits allow; what is asked of one goes together."""
        if not self._is_urgent:
            return
        self._is_urgent = False
        missing = self._windows.missing
        under_way = self._under_way()
        for stream in list(islice(missing, STREAMS_PLANNED)):
            if len(missing) > STREAMS_PLANNED:
                del missing[stream]  # to the end: the others have their turn next
                missing[stream] = None
                self._is_urgent = True
            self._plan(stream, sorted(under_way.get(stream, ())), now)
        for stream in list(self._windows.backfilling):
            self._plan_backfill(stream, now)
        for peer in list(self._drafts):
            self._send(peer)

    def _under_way(self) -> dict[Stream, list[tuple[int, int]]]:
        """What is requested of each stream; found for all of them at once, for there may be many.

        Only from neighbours that keep some of it: one that was asked whether it does may be silent, and others have it
        by then.
        """
        found: dict[Stream, list[tuple[int, int]]] = {}
        for requests in self._requests.values():
            for request in requests:
                for stream, first, last in request.ranges:
                    if request.peer in stream.carried.peers and self._keeps_some(stream, request.peer, first, last):
                        found.setdefault(stream, []).append((first, last))
        return found

    def _plan(self, stream: Stream, taken: list[tuple[int, int]], now: Time) -> None:
        if not stream.is_determined:
            self._ask_where_it_begins(stream, now)
            return
        for hole in stream.holes:  # also those that must wait until there are credits again
            if hole.due <= now and not hole.is_told:
                self._pass_word_on(stream, hole)
        for hole in stream.holes[:HOLES_PLANNED]:
            if hole.due <= now:
                first = hole.first
                for begin, end in taken:
                    if begin > hole.last or end < first:
                        continue
                    if begin > first and not self._plan_range(stream, hole, first, begin - 1, now):
                        return
                    first = max(first, end + 1)
                if first <= hole.last and not self._plan_range(stream, hole, first, hole.last, now):
                    return

    def _pass_word_on(self, stream: Stream, hole: Hole) -> None:
        """Neighbours hear what is missing here at once: if each waited for its own gap, a hop would add that time."""
        hole.is_told = True
        for peer in stream.carried.peers:
            known = stream.known.get(peer)
            if known is None or known.top < hole.last:
                stream.told.pop(peer, None)
        stream.told_at = NEVER
        self._windows.touch(stream)

    def _plan_range(self, stream: Stream, hole: Hole, first: int, last: int, now: Time) -> bool:
        """Request it from those who keep it; whether there are credits left for more."""
        most = self._batch(stream)
        while first <= last:
            reach = [(peer, self._reach(stream, peer, first)) for peer in stream.carried.peers]
            able = [(peer, until) for peer, until in reach if until >= first]
            if not able:
                self._ask_around(stream, hole, now)
                following = min((self._next(stream, peer, first) for peer in stream.known), default=FAR)
                if following > last:
                    return True
                first = following
                continue
            free = [(peer, until) for peer, until in able if self._may_ask(stream, peer, now)]
            if not free:
                return False
            peer, until = min(free, key=lambda entry: (self._load(entry[0]), -entry[1], entry[0]))
            until = min(until, last, first + most - 1)
            self._add(stream, peer, first, until, now, graft=hole.by_mark and peer not in stream.carried.eager)
            first = until + 1
        return True

    def _reach(self, stream: Stream, peer: NodeId, sequence: int) -> int:
        known = stream.known.get(peer)
        return known.keeps_until(sequence) if known is not None else sequence - 1

    def _keeps_some(self, stream: Stream, peer: NodeId, first: int, last: int) -> bool:
        return peer in stream.known and self._next(stream, peer, first) <= last

    def _next(self, stream: Stream, peer: NodeId, sequence: int) -> int:
        """The next one it keeps."""
        known = stream.known[peer]
        if known.keeps_until(sequence) >= sequence:
            return sequence
        starts = [known.first, *(last + 1 for _, last in known.holes)]
        return min((start for start in starts if start > sequence and known.keeps_until(start) >= start), default=FAR)

    def _batch(self, stream: Stream) -> int:
        newest = next(reversed(stream.recent.values()), None)
        size = len(newest.frame) if newest is not None else 1
        return max(1, min(self._settings.batch_count, self._settings.batch_bytes // size))

    def _load(self, peer: NodeId) -> int:
        draft = self._drafts.get(peer)
        waiting = sum(last - first + 1 for request in self._requests.get(peer, ()) for _, first, last in request.ranges)
        return waiting + (draft.count if draft is not None else 0)

    def _may_ask(self, stream: Stream, peer: NodeId, now: Time) -> bool:
        return stream.shunned.get(peer, NEVER) <= now and self._has_credit(peer, now)

    def _has_credit(self, peer: NodeId, now: Time) -> bool:
        if self._shunned.get(peer, NEVER) > now:
            return False
        return peer in self._drafts or len(self._requests.get(peer, ())) < self._flow(peer).credits

    def _add(
        self, stream: Stream, peer: NodeId, first: int, last: int, now: Time, graft: bool = False, older: bool = False
    ) -> None:
        carried = stream.carried
        draft = self._drafts.get(peer)
        if draft is None:
            self._number += 1
            draft = self._drafts[peer] = Draft(Request(peer, self._number, now, older))
        draft.wants.append((carried.topic, stream.publisher, stream.incarnation, first, last))
        draft.request.ranges.append((stream, first, last))
        count, most = max(1, last - first + 1), self._settings.batch_count
        draft.count += count
        draft.fill += count * most // self._batch(stream)
        stream.requested_to = max(stream.requested_to, last)
        if graft:
            draft.graft = True
            carried.make_eager(peer)
        if draft.fill >= most or len(draft.wants) >= WANTS_AT_MOST:
            self._send(peer, carried.peers[peer])

    def _send(self, peer: NodeId, ref: Ref | None = None) -> None:
        draft = self._drafts.pop(peer)
        request = draft.request
        self._flow(peer)  # it was asked: its answer counts
        self._requests.setdefault(peer, []).append(request)
        ref = ref or request.ranges[-1][0].carried.peers[peer]
        self._out.send(ref, RetransmissionRequest(tuple(draft.wants), draft.graft, request.number))

    def _ask_around(self, stream: Stream, hole: Hole, now: Time) -> None:
        """Nobody is known to keep it: those who have not answered since it was noticed are asked."""
        for peer in sorted(stream.carried.peers):
            known = stream.known.get(peer)
            if known is not None and known.at >= hole.since and known.at > stream.carried.linked_last:
                continue
            is_due = now - stream.questioned.get(peer, NEVER) >= self._flow(peer).patience
            if is_due and self._has_credit(peer, now):
                stream.questioned[peer] = now
                self._add(stream, peer, hole.first, hole.first, now)

    def _ask_where_it_begins(self, stream: Stream, now: Time) -> None:
        first = min(stream.recent, default=0)
        peers = sorted(stream.carried.peers, key=lambda peer: (peer != stream.parent, peer))
        for peer in peers[:1] if now - stream.heard < self._settings.pull_retry else peers:
            if first > 1 and now - stream.questioned.get(peer, NEVER) >= self._settings.pull_retry:
                stream.questioned[peer] = now
                self._add(stream, peer, first, first - 1, now)

    def _plan_backfill(self, stream: Stream, now: Time) -> None:
        """The newest first, one request at a time."""
        wanted = stream.first - 1
        is_here = stream.carried.streams.get(stream.key) is stream
        if not is_here or not stream.backfill <= wanted <= stream.passed:  # else it was here, and has left the window
            self._end_backfill(stream)
            return
        peers = sorted(stream.carried.peers)
        if any(other is stream for peer in peers for r in self._requests.get(peer, ()) for other, _, _ in r.ranges):
            return
        able = [peer for peer in peers if self._reach(stream, peer, wanted) >= wanted]
        if not able:
            self._end_backfill(stream)
            return
        free = [peer for peer in able if self._may_ask(stream, peer, now) and self._load(peer) == 0]
        if free:
            peer = free[0]
            batch = self._batch(stream)
            if stream.backlog:  # the answer was full before it came to what is next here: ask for less
                batch = min(batch, max(1, len(stream.backlog) // 2))
            first = max(stream.backfill, stream.known[peer].first, wanted - batch + 1)
            stream.backlog.clear()
            self._add(stream, peer, first, wanted, now, older=True)

    def _end_backfill(self, stream: Stream) -> None:
        stream.backfill = 0
        stream.backlog.clear()
        self._windows.end_backfill(stream)

    def take_older(self, stream: Stream, publication: Publication) -> bool:
        """Whether it belongs to what is fetched of the time before this node began."""
        if not stream.backfill or not stream.backfill <= publication.sequence < stream.first:
            return False
        stream.backlog[publication.sequence] = publication
        while (older := stream.backlog.pop(stream.first - 1, None)) is not None:
            if not stream.carried.keep_older(stream, older):
                self._end_backfill(stream)
                break
        return True

    # The end of a hole

    def _end_what_is_over(self, stream: Stream, now: Time) -> None:
        settings, carried = self._settings, stream.carried
        if not stream.is_determined:
            if not carried.peers:
                is_over = self._is_alone_for_good(stream, stream.marked_time, now)
            else:
                since = max(stream.marked_time, carried.company_since)
                waited = now - max(since, carried.linked_last)
                is_over = waited >= settings.hole_patience or now - since >= settings.hole_limit
            if stream.recent and is_over:
                self._windows.end_holes(stream)
            return
        while stream.holes:
            hole = stream.holes[0]
            upto = hole.last if self._is_over(stream, hole, now) else self._certain_until(stream, hole, now)
            if upto < hole.first:
                return
            self._windows.end_hole(stream, upto, now)
        self._windows.settle(stream, now)

    def _is_over(self, stream: Stream, hole: Hole, now: Time) -> bool:
        settings, carried = self._settings, stream.carried
        if stream.ahead_bytes > settings.reorder_bytes:
            return True
        if not self._has_deadline:
            return False
        if not carried.peers:
            return self._is_alone_for_good(stream, hole.since, now)
        since = max(hole.since, carried.company_since)
        if now - since >= settings.hole_limit:
            return True
        if now - stream.progress_at < STILL_FILLING:
            return False
        waited = now - max(since, carried.linked_last)
        return waited >= settings.hole_patience or (
            waited >= ENDED_ELSEWHERE and now - carried.lost_at >= LINK_LOST and self._has_ended_around(stream, hole)
        )

    def _is_alone_for_good(self, stream: Stream, since: Time, now: Time) -> bool:
        """Whether a repair would have brought another neighbour by now."""
        carried = stream.carried
        if carried.topic in self._windows.waiting:
            return False
        return now - max(since, carried.lost_at) >= self._settings.hole_limit + ALONE

    def _has_ended_around(self, stream: Stream, hole: Hole) -> bool:
        """Whether all neighbours have answered, one has given it up, and none keeps or still fetches any of it.

        The others await it too, maybe from here: each would wait until its own patience ends, a hop after the other.
        """
        has_ended = False
        for peer in stream.carried.peers:
            known = stream.known.get(peer)
            if known is None or known.at < hole.since or 0 < known.awaits <= hole.last:
                return False
            if self._next(stream, peer, hole.first) <= hole.last:
                return False
            has_ended |= known.first > hole.last and known.passed >= hole.last
        return has_ended

    def _certain_until(self, stream: Stream, hole: Hole, now: Time) -> int:
        """Up to where all neighbours have said that they neither keep nor await it."""
        carried = stream.carried
        if not carried.peers or now < hole.due or now - carried.lost_at < LINK_LOST:
            return hole.first - 1
        following = hole.last + 1
        for peer in carried.peers:
            known = stream.known.get(peer)
            if known is None or known.at < hole.since or known.at < carried.linked_last:
                return hole.first - 1
            following = min(following, known.next_kept(hole.first))
        return following - 1

    # The other side

    def serve(self, sender: NodeId, message: RetransmissionRequest, now: Time) -> None:
        """Send what is asked for, a batch at most, and say how far one is."""
        marks: dict[Topic, list[StreamMark]] = {}
        room, ref = self._settings.batch_bytes, None
        left = 2 * self._settings.batch_count
        for topic, publisher, incarnation, first, last in message.wants:
            carried = self._windows.topics.get(topic)
            if carried is None or sender not in carried.peers:
                continue
            ref = carried.peers[sender]
            if message.graft:
                carried.make_eager(sender)
            stream = carried.streams.get(stream_key(topic, publisher, incarnation))
            if stream is None or not stream.is_settled:
                if message.number and stream is None:
                    former = self._windows.past.get(stream_key(topic, publisher, incarnation))
                    nothing = StreamMark(publisher, incarnation, 0, 0, 0, -1, UNKNOWN, 0)
                    marks.setdefault(topic, []).append(former.mark(-1, now) if former is not None else nothing)
                continue
            if sender not in self._slow and now - stream.heard < self._settings.window_age:
                recent, end = stream.recent, min(last or stream.known_to, stream.known_to)
                sequence = first if first in recent else max(first, stream.first if first < stream.first else 0)
                while sequence <= end and room > 0 and left > 0:
                    publication = recent.get(sequence)
                    sequence += 1
                    if publication is not None:
                        room -= len(publication.frame)
                        self._out.send(ref, publication)
                    left -= 1
            stream.told[sender] = stream.last
            marks.setdefault(topic, []).append(stream.mark_for(sender, now))
        if ref is not None and (marks or message.number):
            answer = tuple((topic, tuple(named)) for topic, named in marks.items())
            self._out.send(ref, Announce(answer, answers=message.number))

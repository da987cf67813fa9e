"""Holes in a stream: waited for, requested from neighbours, and told as a gap in the end, never in silence."""

from __future__ import annotations

from omen.protocol.config import Dissemination as Settings
from omen.protocol.context import Outbox
from omen.protocol.dissemination.window import NOBODY, Stream, Windows
from omen.protocol.events import Gap, NodeId, Time, Timer, Topic
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import Announce, RetransmissionRequest, StreamMark, stream_key


class RetransmissionTimer(Timer, frozen=True):
    """What was announced should have come by now."""


DUE = RetransmissionTimer()
FEWEST_EACH = 16
SILENT_ATTEMPTS = 4

Want = tuple[Topic, NodeId, int, int, int]


class Retransmission:
    """A stream has a hole where a neighbour is further, or a publication came before an earlier one."""

    def __init__(self, settings: Settings, out: Outbox, windows: Windows) -> None:
        self._settings = settings
        self._out = out
        self._windows = windows
        self.gaps = 0
        self._is_armed = False
        self._room = 0
        self._asked: dict[tuple[NodeId, bool], tuple[Ref, list[Want]]] = {}

    def note_hole(self, stream: Stream, upto: int, now: Time, by: NodeId = NOBODY, new_link: bool = False) -> None:
        """Somebody has more. What a new link offers is requested at once, the rest is given time to come by itself.

        Whoever was asked says how far it is when all it sends for one request is sent: then the next is asked for.
        """
        if stream not in self._windows.missing:
            stream.want, stream.want_since, stream.attempts = upto, now, 0
            self._windows.missing[stream] = None
        if stream.asked_peer == NOBODY:
            if new_link:
                self._request(stream, now)
        elif stream.asked_peer == by and stream.last > stream.asked_from:
            self._request(stream, now)
        self._arm()

    def send_requests(self) -> None:
        """Everything asked of one neighbour goes out as one."""
        for (_, graft), (ref, wants) in self._asked.items():
            self._out.send(ref, RetransmissionRequest(tuple(wants), graft))
        self._asked.clear()

    def _arm(self) -> None:
        if not self._is_armed:
            self.set_timer()

    def set_timer(self) -> None:
        self._is_armed = bool(self._windows.missing)
        if self._windows.missing:
            self._out.set_timer(DUE, self._settings.graft_delay)

    def look_after_all(self, now: Time) -> None:
        """The timer: request what did not come, and again what was requested in vain."""
        self._is_armed = False
        for stream in list(self._windows.missing):
            if stream.carried.streams.get(stream.key) is stream:
                self._look_after(stream, now)
            else:
                del self._windows.missing[stream]
        self._arm()

    def _look_after(self, stream: Stream, now: Time) -> None:
        if stream.is_determined and stream.last >= stream.want:
            ahead = min(stream.early) if stream.early else max((last for _, last in stream.known.values()), default=0)
            if ahead <= stream.last:
                self._end(stream)
                return
            stream.want, stream.want_since, stream.attempts = ahead, now, 0
        has_come = stream.asked_peer != NOBODY and stream.last > stream.asked_from
        due = stream.asked_at + self._settings.pull_retry if stream.attempts else stream.want_since
        if has_come or now - max(due, stream.want_since + self._settings.graft_delay) >= 0:
            self._request(stream, now)

    def _end(self, stream: Stream) -> None:
        del self._windows.missing[stream]
        stream.asked_peer = NOBODY
        stream.judge()

    def _request(self, stream: Stream, now: Time) -> None:
        """Ask whoever can give what comes next; if nobody can, whoever has something later."""
        if stream.asked_peer != NOBODY and stream.last > stream.asked_from:
            stream.attempts = 0
        carried, needed = stream.carried, stream.last + 1
        peers = sorted(carried.peers)
        ahead = [peer for peer in peers if stream.known.get(peer, (0, 0))[1] >= needed]
        able = [peer for peer in ahead if stream.known[peer][0] <= needed]
        if not stream.is_determined:
            able = ahead = [stream.parent] if stream.parent in carried.peers and not stream.attempts else peers
        if not able and self._gives_up(stream, now):
            return
        stream.attempts += 1
        stream.asked_at, stream.asked_from = now, stream.last
        if not ahead:
            return
        chosen = (able or ahead)[(stream.attempts - 1) % len(able or ahead)]
        stream.asked_peer, stream.plain = chosen, False
        self._ask(stream, chosen, needed)

    def _ask(self, stream: Stream, peer: NodeId, needed: int) -> None:
        carried = stream.carried
        first = max(needed, stream.known.get(peer, (0, 0))[0])
        last = min(stream.early) - 1 if stream.early else 0
        if last and first > last:
            return
        graft = peer not in carried.eager
        if graft:
            carried.make_eager(peer)
        want = (carried.topic, stream.publisher, stream.incarnation, first, last)
        self._asked.setdefault((peer, graft), (carried.peers[peer], []))[1].append(want)

    def _gives_up(self, stream: Stream, now: Time) -> bool:
        """Nobody offers what comes next: pass it over, soon where nobody waits for it, else after a long time."""
        if not stream.is_determined:
            if stream.attempts < self._settings.gap_attempts or not stream.early:
                return False
            stream.is_determined = True
        nexts = [first for first, last in stream.known.values() if last > stream.last]
        if stream.early:
            nexts.append(min(stream.early))
        if not nexts:
            self._end(stream)
            return True
        patience = self._settings.gap_attempts if stream.last >= stream.silent_until else SILENT_ATTEMPTS
        if stream.attempts < patience * (1 if stream.carried.peers else 3):
            return False
        self._pass_over(stream, min(nexts), now)
        return True

    def _pass_over(self, stream: Stream, until: int, now: Time) -> None:
        carried = stream.carried
        first, last = max(stream.last, stream.silent_until) + 1, until - 1
        if first <= last:
            self.gaps += 1
            if carried.is_wanted:
                self._out.put(Gap(carried.topic, stream.publisher, stream.incarnation, first, last))
        stream.last, stream.first = last, until
        stream.attempts = 0
        stream.asked_peer = NOBODY
        self._windows.settle(stream, now)

    def serve(self, sender: NodeId, message: RetransmissionRequest, is_slow: bool, now: Time) -> None:
        """Send what is asked for, a batch at most, and say how far one is."""
        each = max(FEWEST_EACH, self._settings.batch_count // max(1, len(message.wants)))
        marks: dict[Topic, list[StreamMark]] = {}
        self._room = self._settings.batch_bytes
        ref = None
        for topic, publisher, incarnation, first, last in message.wants:
            carried = self._windows.topics.get(topic)
            if carried is None or sender not in carried.peers:
                continue
            ref = carried.peers[sender]
            if message.graft:
                carried.make_eager(sender)
            stream = carried.streams.get(stream_key(topic, publisher, incarnation))
            if stream is None or not stream.is_settled:
                continue
            if not is_slow and now - stream.heard < self._settings.window_age:
                start = max(first, stream.first)
                self._send_batch(ref, stream, start, min(last or stream.last, stream.last, start + each - 1))
            stream.told[sender] = stream.last
            marks.setdefault(topic, []).append(stream.mark_for(sender, now))
        if ref is not None and marks:
            self._out.send(ref, Announce(tuple((topic, tuple(named)) for topic, named in marks.items())))

    def _send_batch(self, to: Ref, stream: Stream, first: int, last: int) -> None:
        for sequence in range(first, last + 1):
            publication = stream.recent.get(sequence)
            if publication is None or self._room < 0:
                return
            self._room -= len(publication.frame)
            self._out.send(to, publication)

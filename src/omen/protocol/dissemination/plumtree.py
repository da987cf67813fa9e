"""Publications over the links of the overlay, to all who want the topic and nobody else.

The tree is Plumtree's (Leitao, Pereira, Rodrigues: Epidemic Broadcast Trees): every link of a topic is on it at first,
a publication that comes twice cuts the branch it came by, one that does not come grafts a branch on. Where we deviate:
identifiers are not announced one by one, but how far a node is in each stream, which also finds what was lost on a link
of the tree; and branches are cut by one stream at a time, for concurrent publishers could cut too many.

Guarantee: what a publisher says on a topic reaches the application in order and once, as long as the topic is connected
again while windows still keep it; otherwise a `Gap` comes in its place. Cost: a look-up, a comparison and one output a
publication in sequence; announcements are bounded by the period, not by the publications.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import assert_never, get_args

from omen.errors import InvalidInput
from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.dissemination.anti_entropy import AntiEntropy
from omen.protocol.dissemination.backpressure import Backpressure
from omen.protocol.dissemination.pace import Pace
from omen.protocol.dissemination.retransmission import Retransmission, RetransmissionTimer
from omen.protocol.dissemination.stream import NEVER, Stream, make_delivery
from omen.protocol.dissemination.tree import Plumtree
from omen.protocol.dissemination.window import (
    OVERHEAD,
    ROUND,
    AnnounceTimer,
    Numbering,
    SweepTimer,
    TopicWindow,
    Windows,
)
from omen.protocol.events import PLENTY, Deliver, Multicast, NodeId, Output, SetTimer, Time, Topic
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import (
    FIELDS,
    HEADER_BYTES,
    HIGHEST_SEQUENCE,
    PLAIN,
    Announce,
    Graft,
    Prune,
    Publication,
    RetransmissionRequest,
    StreamKey,
    make_publication,
    read_key,
    stream_key,
)
from omen.protocol.status import DisseminationStatus, StreamName, StreamStatus

Neighbours = Mapping[NodeId, tuple[Ref, frozenset[Topic]]]
Control = Announce | RetransmissionRequest | Prune | Graft
"""What neighbours say about publications."""
DisseminationTimer = AnnounceTimer | RetransmissionTimer | SweepTimer


class Dissemination:
    """Part of a node. `in_use`: it was told of topics and links; until something is published nobody has to.

    `duplicates`: publications that came once more than needed. `impossible`: with a number nobody could have reached.
    `offenders`: the peers these came from; the node takes them out.
    """

    kinds: tuple[type[Control], ...] = get_args(Control)
    timers: tuple[type[DisseminationTimer], ...] = get_args(DisseminationTimer)

    def __init__(self, me: Ref, config: Config, out: Outbox) -> None:
        self._me = me
        self._settings = config.dissemination
        self._out = out
        self.in_use = False
        self.duplicates = 0
        self.impossible = 0
        self.offenders: list[NodeId] = []
        self._windows = windows = Windows(self._settings, out)
        self._slow: set[NodeId] = set()
        self._pace = Pace(self._settings)
        self._retransmission = Retransmission(
            self._settings, out, windows, self._slow, self._pace, has_deadline=config.remedies.holes_end
        )
        self._anti_entropy = AntiEntropy(me, out, windows, self._retransmission, self._slow, self._pace)
        self._backpressure = Backpressure(self._settings, out, windows, self._slow)
        self._tree = Plumtree(self._settings, out, self._slow)
        self._streams = windows.streams
        self._neighbours: Neighbours = {}
        self._topics: Iterable[Topic] = ()
        self._wanted: Iterable[Topic] = ()
        self._wanted_before: frozenset[Topic] = frozenset()
        self._unlinked: list[TopicWindow] = []
        self._replays: set[Topic] = set()
        self._numbers = Numbering(self._settings.memory)
        self._joined_at: Time | None = NEVER

    @property
    def topics(self) -> Mapping[Topic, TopicWindow]:
        """What is kept of each topic that is carried."""
        return self._windows.topics

    @property
    def me(self) -> Ref:
        return self._me

    def rejoin(self, ref: Ref) -> None:
        """This node goes on in another incarnation: what it says is a new stream, the old one is kept, numbers go on.

        Timers may have ended with the former incarnation: they are set again.
        """
        self._me = ref
        self._anti_entropy.rejoin(ref)
        self._retransmission.set_timer()
        self._windows.set_sweep_timer()

    def note_joining(self, joined_at: Time | None) -> None:
        """This node joins (None), or has joined: what was published before it is not missing."""
        self._joined_at = joined_at

    def status(self, now: Time = 0) -> DisseminationStatus:
        waiting = [stream for stream in self._windows.missing if stream.holes and stream.carried.is_wanted]
        return DisseminationStatus(
            topics=len(self._windows.topics),
            publications=sum(len(carried.times) for carried in self._windows.topics.values()),
            bytes=sum(carried.size for carried in self._windows.topics.values()),
            missing=len(self._windows.missing),
            duplicates=self.duplicates,
            gaps=self._windows.gaps,
            evictions=self._windows.evictions,
            refused=self.impossible,
            cuts=self._windows.budget.cuts,
            late=self._windows.late,
            not_held=self._windows.not_held,
            waiting=len(waiting),
            lacking=sum(stream.top - stream.last for stream in waiting),
            waits=max((now - stream.holes[0].since for stream in waiting), default=0),
        )

    def streams(self, now: Time, past: bool = False) -> dict[StreamName, StreamStatus]:
        """How far each stream is that neighbours compare. `past`: and those of publishers silent for long."""
        found = {
            (stream.carried.topic, stream.publisher, stream.incarnation): StreamStatus(
                max(stream.last, stream.silent_until),
                stream.known_to,
                now - stream.holes[0].since if stream.holes else 0,
            )
            for stream in self._streams.values()
            if stream.is_determined
        }
        for former in (former for topic in self.topics for former in self._windows.past.of(topic)) if past else ():
            found[read_key(former.key)] = StreamStatus(former.last, former.last, 0)
        return found

    def kept(self, topic: Topic) -> list[Deliver]:
        """What is kept of a topic, also of the time before this node began, each stream in its order."""
        carried = self._windows.topics.get(topic)
        return [
            make_delivery(stream, stream.recent[sequence])
            for stream in (carried.streams.values() if carried is not None else ())
            for sequence in sorted(stream.recent)
        ]

    def refresh(
        self,
        topics: frozenset[Topic],
        wanted: Iterable[Topic],
        waiting: Set[Topic],
        neighbours: Neighbours,
        now: Time,
    ) -> None:
        """Take in which topics this node carries, which its application wants, who is linked and carries what.

        `waiting`: the topics in which this node is still to be linked.
        `topics` and `wanted` are new objects whenever they are different.
        """
        is_first = not self.in_use
        self.in_use = True
        is_news = is_first or waiting != self._windows.waiting
        self._windows.await_links(waiting)
        if topics is not self._topics or wanted is not self._wanted or neighbours != self._neighbours:
            is_news = True
            if topics is not self._topics or wanted is not self._wanted:
                self._change_topics(topics, frozenset(wanted), now)
            self._change_links(neighbours, now)
            self._topics, self._wanted, self._neighbours = topics, wanted, dict(neighbours)
        if is_first and self._joined_at is not None:
            for carried in self._unlinked:
                if carried.topic not in waiting:
                    carried.linked_at = self._joined_at
        if is_news and self._unlinked:
            self._note_linked(now)

    def _change_topics(self, topics: frozenset[Topic], wanted: frozenset[Topic], now: Time) -> None:
        """Looks only at what is different: a node may carry thousands, and take them up one by one."""
        windows = self._windows.topics
        self._retire(windows.keys() - topics, now)
        for topic in sorted(topics - windows.keys()):
            self._unlinked.append(self._windows.open_topic(topic, topic in wanted, topic in self._replays))
        for topic in windows.keys() & (wanted ^ self._wanted_before):
            windows[topic].is_wanted = topic in wanted
        self._wanted_before = wanted

    def _retire(self, topics: Set[Topic], now: Time) -> None:
        if topics:
            for topic in sorted(topics):
                for peer in self._windows.topics[topic].peers:
                    self._backpressure.forget(topic, peer)
                self._windows.retire(topic, now)
                self._replays.discard(topic)
            self._unlinked = [carried for carried in self._unlinked if carried.topic not in topics]

    def _change_links(self, neighbours: Neighbours, now: Time) -> None:
        lost = False
        for peer, (ref, _) in self._neighbours.items():
            if peer not in neighbours or neighbours[peer][0] != ref:
                lost = True
                self._slow.discard(peer)
                self._retransmission.forget_peer(peer)
                self._backpressure.forget_peer(peer)
                for carried in self._windows.topics.values():
                    carried.drop_peer(peer, now)
        for peer in sorted(neighbours):
            ref, theirs = neighbours[peer]
            new: list[TopicWindow] = []
            for carried in self._windows.topics.values():
                if carried.topic in theirs:
                    if peer not in carried.peers:
                        carried.add_peer(ref, now)
                        new.append(carried)
                elif peer in carried.peers:
                    lost = True
                    carried.drop_peer(peer, now)
                    self._backpressure.forget(carried.topic, peer)
            self._anti_entropy.compare(ref, new, now)
        if lost:
            for stream in self._streams.values():
                if stream.is_own and stream.held < stream.last:
                    self._windows.touch(stream)

    def _note_linked(self, now: Time) -> None:
        for carried in self._unlinked:
            if carried.linked_at is None and carried.topic not in self._windows.waiting:
                carried.linked_at = now
        self._unlinked = [carried for carried in self._unlinked if carried.linked_at is None]

    def check_payload(self, payload: bytes) -> None:
        """Raises InvalidInput if this is more than one publication may carry."""
        largest = self._settings.largest_payload
        if len(payload) > largest:
            raise InvalidInput(f"a publication of {len(payload)} bytes is too large: {largest} at most")

    def peek(self, topic: Topic, now: Time) -> tuple[StreamKey, int, bool]:
        """What would be published on a topic now: of which stream, with which number, whether it opens a run."""
        me = self._me
        key = stream_key(topic, me.id, me.incarnation)
        sequence, opening = self._numbers.peek(topic, me.incarnation, now)
        return key, sequence, opening and not self._is_held_back(key)

    def _is_held_back(self, key: StreamKey) -> bool:
        """Whether something of a stream waits for a link: what comes next belongs to the same run."""
        stream = self._streams.get(key)
        return stream is not None and stream.carried.is_held_back and bool(stream.recent)

    def keeps(self, key: StreamKey, sequence: int) -> bool:
        """Whether this publication has come before and is still kept: another with its number is not looked at."""
        stream = self._streams.get(key)
        return stream is not None and sequence in stream.recent

    def publish(self, topic: Topic, payload: bytes, now: Time, fields: bytes = b"") -> tuple[int, Sequence[Output]]:
        """Publish on a topic that is carried: the sequence, and what is to be done, complete."""
        self.check_payload(payload)
        carried = self._windows.topics[topic]
        key = stream_key(topic, self._me.id, self._me.incarnation)
        sequence, opening = self._numbers.take(topic, self._me.incarnation, now)
        opening = opening and not self._is_held_back(key)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._open_own(carried, key, sequence, now)
        if opening:
            stream.opened, stream.opened_at = sequence, now
        stream.last, stream.heard = sequence, now
        publication = make_publication(key, sequence, payload, opening, fields)
        self._windows.note_unheld(stream, len(publication.frame) + OVERHEAD)
        carried.keep(stream, publication, now)
        self._windows.touch(stream)
        to = self._tree.fanout(carried, self._me.id)
        if to:
            self._out.put(Multicast(to, publication))
        if carried.is_wanted:
            self._out.put(Deliver(topic, self._me.id, self._me.incarnation, sequence, payload, fields))
        return sequence, self._out.take()

    def _open_own(self, carried: TopicWindow, key: StreamKey, sequence: int, now: Time) -> Stream:
        """Publishing begins, or goes on: in a new incarnation, or on a topic that was given up meanwhile."""
        goes_on = any(stream.is_own for stream in carried.streams.values())
        opened, opened_at = self._numbers.run_of(carried.topic)
        stream = self._windows.open_stream(carried, key, sequence - 1, opened, now)
        stream.is_own, stream.plain = True, False
        stream.opened_at = opened_at
        stream.held = sequence - 1
        stream.passed = 0 if goes_on else sequence - 1
        return stream

    def receive(self, sender: NodeId, publication: Publication, now: Time) -> Sequence[Output]:
        """A publication came in; what is to be done, complete. Written for speed: one in sequence goes straight on."""
        sequence = publication.sequence
        stream = self._streams.get(publication.key)
        if stream is None or not stream.plain or sequence != stream.last + 1:
            self._receive_slowly(stream, sender, publication, now)
            return self._out.take()
        stream.last = sequence
        stream.heard = now
        stream.parent = sender
        carried = stream.carried
        frame = publication.frame
        if frame[0] != PLAIN and publication.is_opening:
            stream.opened, stream.opened_at = sequence, now
        stream.recent[sequence] = publication
        carried.owners.append(stream)
        carried.numbers.append(sequence)
        carried.times.append(now)
        carried.size += len(frame) + OVERHEAD
        outputs: list[Output] = []
        if carried.size > carried.limit:
            carried.make_room()
            outputs = self._out.take()
        to = carried.fanout.get(sender)
        if to is None:
            to = self._tree.fanout(carried, sender)
        if to:
            outputs.append(Multicast(to, publication))
        if carried.is_wanted:
            if frame[0] < FIELDS:
                delivery = Deliver(carried.topic, stream.publisher, stream.incarnation, sequence, frame[HEADER_BYTES:])
            else:
                delivery = make_delivery(stream, publication)
            outputs.append(delivery)
        if not stream.is_dirty and self._windows.note_change(stream):
            outputs.append(SetTimer(ROUND, self._settings.announce_period))
        return outputs

    def _receive_slowly(self, stream: Stream | None, sender: NodeId, publication: Publication, now: Time) -> None:
        sequence = publication.sequence
        if not 0 < sequence <= HIGHEST_SEQUENCE:
            self.impossible += 1
            self.offenders.append(sender)
            return
        stream = stream or self._meet(publication, now)
        if stream is None:
            return
        if stream.is_own and sequence > stream.last:  # made up; who passes it on may not know better
            self.impossible += 1
            return
        if not stream.is_determined and publication.is_opening and not any(other < sequence for other in stream.recent):
            stream.opened, stream.opened_at = sequence, now
            stream.begin_at(sequence, now)
        if (stream.is_determined and sequence <= stream.last) or sequence in stream.recent:
            self._on_former(stream, sender, publication, now)
            return
        stream.leave_fast_path()
        if not stream.is_determined:
            stream.parent = sender
            self._retransmission.note_undetermined(stream)
        elif sequence > stream.top:
            stream.parent = sender
            if sequence > stream.top + 1:
                self._retransmission.note_skipped(stream, sequence - 1, now)
            stream.top = sequence
        else:
            stream.fill(sequence)
            stream.progress_at = now
            self._retransmission.note_came(sender, now)
        self._pass_on(stream, sender, publication)
        is_new = sequence > stream.marked_last
        stream.ahead_bytes += len(publication.frame)
        stream.heard = max(stream.heard, now if is_new else stream.marked_time)
        stream.carried.keep(stream, publication, now if is_new else stream.marked_time)
        self._windows.settle(stream, now)
        if stream.ahead_bytes > self._settings.reorder_bytes and stream.holes:
            self._windows.end_hole(stream, stream.holes[0].last, now)

    def _on_former(self, stream: Stream, sender: NodeId, publication: Publication, now: Time) -> None:
        """It is settled already, or kept: of the time before this node began, late, or a duplicate."""
        sequence = publication.sequence
        if self._retransmission.take_older(stream, publication):
            self._retransmission.note_came(sender, now)
        elif stream.gap[0] <= sequence <= stream.gap[1] and sequence not in stream.recent:
            self._windows.count_late()
        else:
            self.duplicates += 1
            if now >= stream.carried.copies_until:
                self._pace.copies += 1
            if sequence > stream.requested_to:
                self._tree.on_duplicate(stream, sender, now)

    def _meet(self, publication: Publication, now: Time) -> Stream | None:
        """The first of a run begins a stream; where another does is still to be found out."""
        carried = self._windows.topics.get(publication.topic)
        key, sequence = publication.key, publication.sequence
        if carried is None or key == stream_key(carried.topic, self._me.id, self._me.incarnation):
            return None
        opening, forgotten = publication.is_opening, self._windows.forgotten_at(key)
        if sequence <= forgotten:
            self.duplicates += 1
            return None
        if forgotten:
            return self._windows.open_stream(carried, key, forgotten, sequence if opening else forgotten + 1, now)
        known = opening or key in carried.evicted
        # Where the run begins is not known yet: others must not take it to begin here, and pass over what is before.
        first = sequence if opening else 1
        stream = self._windows.open_stream(carried, key, first - 1, first, now)
        stream.is_determined = known
        stream.marked_time = now
        stream.judge()
        return stream

    def _pass_on(self, stream: Stream, sender: NodeId, publication: Publication) -> None:
        """To those on the tree who have not said that they have it."""
        known, sequence = stream.known, publication.sequence
        to = tuple(
            peer
            for peer in self._tree.fanout(stream.carried, sender)
            if (theirs := known.get(peer)) is None or theirs.keeps_until(sequence) < sequence
        )
        if to:
            self._out.put(Multicast(to, publication))

    def on_control(self, sender: NodeId, message: Control, now: Time) -> None:
        """What neighbours say about publications."""
        match message:
            case Announce(topics, compare, answers, room):
                if room:
                    self._backpressure.hear(sender, room, now)
                heard: set[Stream] = set()
                for topic, marks in topics:
                    carried = self._windows.topics.get(topic)
                    if carried is not None and sender in carried.peers:
                        heard |= self._anti_entropy.hear(carried, sender, marks, compare, now)
                self._retransmission.on_answer(sender, answers, heard, now)
                if compare:
                    self._retransmission.note_restart(sender, now)
            case RetransmissionRequest(wants, graft):
                for topic, publisher, incarnation, first, _ in wants if graft else ():
                    carried = self._windows.topics.get(topic)
                    if carried is not None and sender in carried.peers:
                        self._tree.hear_request(carried, sender, stream_key(topic, publisher, incarnation), first, now)
                self._retransmission.serve(sender, message, now)
            case Prune(topic) | Graft(topic):
                carried = self._windows.topics.get(topic)
                if carried is not None and sender in carried.peers:
                    if type(message) is Prune:
                        self._tree.on_prune(carried, sender, now)
                    else:
                        carried.make_eager(sender)
            case _:
                assert_never(message)
        self._retransmission.send_requests(now)

    def on_timer(self, timer: DisseminationTimer, now: Time) -> None:
        match timer:
            case AnnounceTimer():
                self._anti_entropy.announce(now)
            case RetransmissionTimer():
                self._retransmission.on_timer(now)
            case SweepTimer():
                self._windows.sweep(now)
            case _:
                assert_never(timer)

    def replay(self, topic: Topic, now: Time) -> None:
        """Deliver what neighbours keep of a topic too. In streams of which something was delivered order forbids it."""
        carried = self._windows.topics.get(topic)
        if carried is None:
            self._replays.add(topic)
            return
        carried.replays = True
        for stream in carried.streams.values():
            before = self._windows.settled_before(stream.key)
            if stream.last > stream.silent_until or stream.silent_until <= before:
                continue
            for kept in stream.speak_from(before):
                self._out.put(make_delivery(stream, kept))

    def room(self, topic: Topic, now: Time) -> int:
        """How many bytes may be published on a topic now without anybody falling behind."""
        carried = self._windows.topics.get(topic)
        if carried is None or self._backpressure.is_none:
            return PLENTY
        own = self._streams.get(stream_key(topic, self._me.id, self._me.incarnation))
        return self._backpressure.room_to_publish(carried, own, now)

    @property
    def not_held(self) -> int:
        """Publications of this node that some neighbour never had, and that can no longer be had."""
        return self._windows.not_held

    def unheld(self, being_repaired: Set[Topic]) -> int:
        """Publications of this node that not every neighbour on their tree has.

        A topic without a neighbour counts while this node is to be linked in it, or a loss there is `being_repaired`;
        where neither is so, no node will ever hold them.
        """
        return sum(
            stream.unheld()
            for stream in self._streams.values()
            if stream.is_own
            and stream.last > stream.held
            and (
                stream.carried.peers
                or stream.carried.topic in self._windows.waiting
                or stream.carried.topic in being_repaired
            )
        )

    def on_room(self, peer: NodeId, room: int, now: Time) -> None:
        """The queue of a link is filling, or empty again."""
        if peer in self._neighbours:
            self._backpressure.on_room(peer, room, now)

    def published_at(self, topic: Topic) -> Time:
        """When this node published on a topic last."""
        return self._numbers.last_at(topic)

    def note_round_trip(self, round_trip: Time) -> None:
        """What the answer of a neighbour takes at most, as a rule; 0: not known."""
        self._pace.note(round_trip)

    def on_broken(self, peer: NodeId, now: Time) -> None:
        """The connection to a neighbour is down: do not wait until it is back, or declared failed."""
        bypassed: dict[NodeId, list[TopicWindow]] = {}
        for carried in self._windows.topics.values():
            if peer in carried.eager:
                for other in self._tree.bypass(carried, peer, now):
                    bypassed.setdefault(other, []).append(carried)
        for other, shared in sorted(bypassed.items()):  # what was sent into the broken link alone is asked for at once
            self._anti_entropy.compare(shared[0].peers[other], shared, now)
        self._retransmission.forget_peer(peer)
        self._retransmission.send_requests(now)

    def on_slow(self, peer: NodeId) -> None:
        """No room on this link: what passes meanwhile is found missing when the two compare.

        Of a peer that is no neighbour by now nobody may say that it reads again.
        """
        if peer not in self._neighbours:
            return
        self._slow.add(peer)
        for carried in self._windows.topics.values():
            carried.fanout.clear()

    def on_ready(self, peer: NodeId, now: Time) -> None:
        """Room again, as much as there ever is: the queue was emptied, or the connection is a new one."""
        self._slow.discard(peer)
        self._backpressure.on_room(peer, PLENTY, now)
        shared = [carried for carried in self._windows.topics.values() if peer in carried.peers]
        for carried in shared:
            carried.fanout.clear()
            for stream in carried.streams.values():
                stream.forget_peer(peer)
        if shared:
            self._anti_entropy.compare(shared[0].peers[peer], shared, now)

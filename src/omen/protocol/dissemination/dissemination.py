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
from typing import Any

from omen.errors import InvalidInput
from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.dissemination.anti_entropy import AnnounceTimer, AntiEntropy
from omen.protocol.dissemination.numbering import Numbering
from omen.protocol.dissemination.retransmission import Retransmission, RetransmissionTimer
from omen.protocol.dissemination.tree import Plumtree
from omen.protocol.dissemination.window import OVERHEAD, Stream, TopicWindow, WindowBudget
from omen.protocol.events import Deliver, Multicast, NodeId, Output, Time, Timer, Topic
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import (
    HEADER_BYTES,
    HIGHEST_SEQUENCE,
    OPENING,
    Announce,
    Graft,
    Prune,
    Publication,
    RetransmissionRequest,
    StreamKey,
    make_publication,
    stream_key,
)
from omen.protocol.status import DisseminationStatus


class SweepTimer(Timer, frozen=True):
    """What is old is let go."""


SWEEP = SweepTimer()
Neighbours = Mapping[NodeId, tuple[Ref, frozenset[Topic]]]


class Dissemination:
    """Part of a node. `in_use`: it was told of topics and links; until something is published nobody has to.

    `duplicates`: publications that came once more than needed. `impossible`: with a number nobody could have reached.
    `parked`: how often a publisher made way for another, because a topic had too many.
    """

    kinds = (Announce, RetransmissionRequest, Prune, Graft)
    timers = (AnnounceTimer, RetransmissionTimer, SweepTimer)

    def __init__(self, me: Ref, config: Config, out: Outbox) -> None:
        self._me = me
        self._settings = config.dissemination
        self._out = out
        self._waiting: Set[Topic] = frozenset()
        self.in_use = False
        self.duplicates = 0
        self.impossible = 0
        self.parked = 0
        self.carried: dict[Topic, TopicWindow] = {}
        self._room = WindowBudget(self._settings.total_window_bytes, self.carried)
        self._streams: dict[StreamKey, Stream] = {}
        self._window_count = self._settings.window_count
        self._window_bytes = self._settings.window_bytes
        self._retransmission = Retransmission(self._settings, out, self.carried, self._flush)
        self._anti_entropy = AntiEntropy(
            me, self._settings, out, self._retransmission, self._is_fresh, self._open_stream
        )
        self._slow = self._anti_entropy.behind
        self._tree = Plumtree(self._settings, out, self._slow)
        self._neighbours: Neighbours = {}
        self._topics: Iterable[Topic] = ()
        self._wanted: Iterable[Topic] = ()
        self._unlinked: list[TopicWindow] = []
        self._replays: set[Topic] = set()
        self._numbers = Numbering(self._settings.window_age)
        self._retired: dict[StreamKey, tuple[int, Time]] = {}
        self._is_sweeping = False

    @property
    def me(self) -> Ref:
        return self._me

    @me.setter
    def me(self, ref: Ref) -> None:
        """This node goes on in another life: what it says is a new stream, the old one is kept, numbers go on.

        Timers may have ended with the former life: they are set again.
        """
        self._me = self._anti_entropy.me = ref
        self._anti_entropy.set_timer()
        self._retransmission.set_timer()
        if self._is_sweeping:
            self._out.set_timer(SWEEP, self._settings.window_age // 6)

    def status(self) -> DisseminationStatus:
        return DisseminationStatus(
            topics=len(self.carried),
            publications=sum(len(carried.times) for carried in self.carried.values()),
            bytes=sum(carried.size for carried in self.carried.values()),
            missing=len(self._retransmission.lacking),
            duplicates=self.duplicates,
            gaps=self._retransmission.gaps,
            parked=self.parked,
            refused=self.impossible,
        )

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
        self.in_use = True
        self._waiting = waiting
        if topics is not self._topics or wanted is not self._wanted or neighbours != self._neighbours:
            if topics is not self._topics or wanted is not self._wanted:
                self._change_topics(topics, frozenset(wanted), now)
            self._change_links(neighbours, now)
            self._topics, self._wanted, self._neighbours = topics, wanted, dict(neighbours)
        if self._unlinked:
            self._note_linked(now)

    def _change_topics(self, topics: frozenset[Topic], wanted: frozenset[Topic], now: Time) -> None:
        for topic in [topic for topic in self.carried if topic not in topics]:
            self._retire(self.carried.pop(topic))
        for topic in sorted(topics):
            carried = self.carried.get(topic)
            if carried is None:
                carried = self.carried[topic] = TopicWindow(topic, self._settings, topic in wanted, self._room)
                carried.replays = topic in self._replays
                self._unlinked.append(carried)
            carried.is_wanted = topic in wanted

    def _retire(self, carried: TopicWindow) -> None:
        """A topic given up: should it be taken up again, nothing is delivered twice."""
        self._room.left += carried.limit
        self._replays.discard(carried.topic)
        self._unlinked = [other for other in self._unlinked if other is not carried]
        for stream in (*carried.streams.values(), *carried.parked.values()):
            self._streams.pop(stream.key, None)
            self._retired[stream.key] = (stream.last, stream.heard)
        carried.streams.clear()

    def _change_links(self, neighbours: Neighbours, now: Time) -> None:
        lost = False
        for peer, (ref, _) in self._neighbours.items():
            if peer not in neighbours or neighbours[peer][0] != ref:
                lost = True
                self._slow.discard(peer)
                for carried in self.carried.values():
                    carried.drop_peer(peer)
        for peer in sorted(neighbours):
            ref, theirs = neighbours[peer]
            new: list[TopicWindow] = []
            for carried in self.carried.values():
                if carried.topic in theirs:
                    if peer not in carried.peers:
                        carried.add_peer(ref)
                        new.append(carried)
                elif peer in carried.peers:
                    lost = True
                    carried.drop_peer(peer)
            self._anti_entropy.compare(ref, new, now)
        if lost:
            for stream in self._streams.values():
                if stream.is_own and stream.held < stream.last:
                    self._anti_entropy.touch(stream)

    def _note_linked(self, now: Time) -> None:
        for carried in self._unlinked:
            if carried.peers and carried.topic not in self._waiting:
                carried.linked_at = now
        self._unlinked = [carried for carried in self._unlinked if carried.linked_at is None]

    def _is_fresh(self, carried: TopicWindow) -> bool:
        return carried.linked_at is None and carried.topic in self._waiting

    def _settled_before(self, key: StreamKey) -> int:
        """How far this stream was delivered when the topic was carried last."""
        return self._retired.get(key, (0, 0))[0]

    def _open_stream(self, carried: TopicWindow, key: StreamKey, last: int, opened: int, heard: Time) -> Stream:
        """A publisher to keep track of, from `last` on; one that had to make way goes on where it was."""
        stream = carried.parked.pop(key, None)
        if stream is None:
            stream = Stream(carried, key, last, opened, heard)
            stream.silent_until = self._settled_before(key)
        if len(carried.streams) >= self._settings.streams:
            self.parked += 1
            parked = carried.park(self._retransmission.lacking)
            del self._streams[parked.key]
            self._retransmission.lacking.pop(parked, None)
        self._streams[key] = carried.streams[key] = stream
        if not self._is_sweeping:
            self._is_sweeping = True
            self._out.set_timer(SWEEP, self._settings.window_age // 6)
        return stream

    def check_payload(self, payload: bytes) -> None:
        """Raises InvalidInput if this is more than one publication may carry."""
        largest = self._settings.largest_payload
        if len(payload) > largest:
            raise InvalidInput(f"a publication of {len(payload)} bytes is too large: {largest} at most")

    def publish(self, topic: Topic, payload: bytes, now: Time) -> Sequence[Output]:
        """Say something on a topic that is carried; what is to be done, complete. Its number: `last_published`."""
        self.check_payload(payload)
        carried = self.carried[topic]
        key = stream_key(topic, self._me.id, self._me.incarnation)
        sequence, opening = self._numbers.take(topic, self._me.incarnation, now)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._open_stream(carried, key, sequence - 1, sequence, now)
            stream.is_own = True
        if opening:
            stream.opened = sequence
        stream.last, stream.heard = sequence, now
        publication = make_publication(key, sequence, payload, opening)
        carried.keep(stream, publication, now)
        self._anti_entropy.touch(stream)
        to = self._tree.fanout(carried, self._me.id)
        if to:
            self._out.put(Multicast(to, publication))
        if carried.is_wanted:
            self._out.put(Deliver(topic, self._me.id, self._me.incarnation, sequence, payload))
        return self._out.take()

    def last_published(self, topic: Topic) -> int:
        """The sequence of this node's newest publication on a topic; 0: none."""
        return self._numbers.last(topic)

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
        if frame[0] == OPENING:
            stream.opened = sequence
        stream.recent[sequence] = publication
        carried.owners.append(stream)
        carried.numbers.append(sequence)
        carried.times.append(now)
        carried.size += len(frame) + OVERHEAD
        if carried.size > carried.limit or len(carried.times) > self._window_count:
            carried.make_room()
        to = carried.fanout.get(sender)
        if to is None:
            to = self._tree.fanout(carried, sender)
        outputs: list[Output] = [Multicast(to, publication)] if to else []
        if carried.is_wanted:
            outputs.append(Deliver(carried.topic, stream.publisher, stream.incarnation, sequence, frame[HEADER_BYTES:]))
        if not stream.is_dirty:
            timer = self._anti_entropy.note_change(stream)
            if timer is not None:
                outputs.append(timer)
        return outputs

    def _receive_slowly(self, stream: Stream | None, sender: NodeId, publication: Publication, now: Time) -> None:
        sequence = publication.sequence
        if not 0 < sequence <= HIGHEST_SEQUENCE:
            self.impossible += 1
            return
        stream = stream or self._meet(publication, now)
        if stream is None:
            return
        if not stream.is_determined and publication.is_opening and not any(early < sequence for early in stream.early):
            stream.is_determined = True
            stream.opened, stream.first, stream.last = sequence, sequence, sequence - 1
        if (stream.is_determined and sequence <= stream.last) or sequence in stream.early:
            self.duplicates += 1
            self._tree.on_duplicate(stream, sender, now)
            return
        if len(stream.early) >= self._window_count or (stream.early and stream.early_bytes >= self._window_bytes):
            return
        stream.parent = sender
        self._pass_on(stream, sender, publication)
        stream.put_aside(publication)
        self._flush(stream, now)
        if stream.early and not stream.is_own:
            self._retransmission.note_lack(stream, min(stream.early), now)

    def _meet(self, publication: Publication, now: Time) -> Stream | None:
        """The first of a run begins a stream; where another does is still to be found out."""
        carried = self.carried.get(publication.topic)
        key, sequence = publication.key, publication.sequence
        if carried is None or key == stream_key(carried.topic, self._me.id, self._me.incarnation):
            return None
        known = publication.is_opening or key in carried.parked
        stream = self._open_stream(carried, key, sequence - 1 if publication.is_opening else 0, sequence, now)
        stream.is_determined = known
        return stream

    def _pass_on(self, stream: Stream, sender: NodeId, publication: Publication) -> None:
        """To those on the tree who have not said that they have it."""
        known, sequence = stream.known, publication.sequence
        to = tuple(
            peer
            for peer in self._tree.fanout(stream.carried, sender)
            if (theirs := known.get(peer)) is None or theirs[1] < sequence
        )
        if to:
            self._out.put(Multicast(to, publication))

    def _flush(self, stream: Stream, now: Time) -> None:
        """Settle whatever is next in sequence by now."""
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
                said = Deliver(carried.topic, stream.publisher, stream.incarnation, sequence, publication.payload)
                self._out.put(said)
        if moved:
            self._anti_entropy.touch(stream)
        stream.judge()

    def on_control(self, sender: NodeId, message: Any, now: Time) -> None:
        """What neighbours say about publications."""
        match message:
            case Announce(topics, compare):
                for topic, marks in topics:
                    carried = self.carried.get(topic)
                    if carried is not None and sender in carried.peers:
                        self._anti_entropy.hear(carried, sender, marks, compare, now)
            case RetransmissionRequest():
                self._retransmission.serve(sender, message, sender in self._slow, now)
            case Prune(topic) | Graft(topic):
                carried = self.carried.get(topic)
                if carried is not None and sender in carried.peers:
                    if type(message) is Prune:
                        self._tree.on_prune(carried, sender, now)
                    else:
                        carried.make_eager(sender)
        self._retransmission.send_pulls()

    def on_timer(self, timer: Timer, now: Time) -> None:
        match timer:
            case AnnounceTimer():
                self._anti_entropy.announce(now)
            case RetransmissionTimer():
                self._retransmission.look_after_all(now)
                self._retransmission.send_pulls()
            case SweepTimer():
                self._sweep(now)

    def _sweep(self, now: Time) -> None:
        """Let go of what is old, and of publishers that have been silent for twice as long as windows last."""
        oldest = now - 2 * self._settings.window_age
        for carried in self.carried.values():
            carried.expire(now)
            carried.parked = {key: stream for key, stream in carried.parked.items() if stream.heard > oldest}
        for stream in [stream for stream in self._streams.values() if stream.heard <= oldest and not stream.early]:
            del self._streams[stream.key], stream.carried.streams[stream.key]
        self._retired = {key: entry for key, entry in self._retired.items() if entry[1] > oldest}
        self._is_sweeping = bool(self._streams or self._retired)
        if self._is_sweeping:
            self._out.set_timer(SWEEP, self._settings.window_age // 6)

    def replay(self, topic: Topic, now: Time) -> None:
        """Deliver what neighbours keep of a topic too. In streams of which something was delivered order forbids it."""
        carried = self.carried.get(topic)
        if carried is None:
            self._replays.add(topic)
            return
        carried.replays = True
        for stream in carried.streams.values():
            before = self._settled_before(stream.key)
            if stream.last > stream.silent_until or stream.silent_until <= before:
                continue
            for kept in stream.speak_from(before):
                self._out.put(Deliver(topic, stream.publisher, stream.incarnation, kept.sequence, kept.payload))

    def on_slow(self, peer: NodeId) -> None:
        """No room on this link: what passes meanwhile is found missing when the two compare."""
        self._slow.add(peer)
        for carried in self.carried.values():
            carried.fanout.clear()

    def on_ready(self, peer: NodeId, now: Time) -> None:
        """Room again."""
        self._slow.discard(peer)
        shared = [carried for carried in self.carried.values() if peer in carried.peers]
        for carried in shared:
            carried.fanout.clear()
            for stream in carried.streams.values():
                stream.forget_peer(peer)
        if shared:
            self._anti_entropy.compare(shared[0].peers[peer], shared, now)

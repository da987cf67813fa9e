"""Runs one core over TCP: tells it what happened, does what it asks for. Nothing else touches the core."""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, assert_never

from omen.errors import OmenError
from omen.net.core_spec import CoreSpec, make_core
from omen.net.engine import TimedEngine
from omen.net.errors import Stopped
from omen.net.name_guard import NameGuard
from omen.net.observe.counters import DriverCounters
from omen.net.observe.event_log import EventLog
from omen.net.observe.logs import Log
from omen.net.recording import Recorder
from omen.net.security.admission import AdmissionControl
from omen.net.security.hello import (
    NAMES_REVISION,
    UNREADABLE,
    Hello,
    Reason,
    Refused,
)
from omen.net.sending import Sender
from omen.net.transport.connection import Connection
from omen.net.transport.peers import Peers
from omen.net.watching.messages import KIND as WATCHING
from omen.protocol.events import (
    Connect,
    Deliver,
    Disconnect,
    Fetched,
    Gap,
    Held,
    Input,
    LinkBroken,
    LinkReady,
    LinkRoom,
    LinkSlow,
    Multicast,
    NameConflict,
    NameFree,
    NodeId,
    Notification,
    Notify,
    Offence,
    OfRecords,
    Output,
    OwnNameSeen,
    PeerBanned,
    PeerDeclaredFailed,
    PeerLost,
    PeerOffended,
    PeerRefused,
    PeerSuspected,
    PeerUnreached,
    Publish,
    Received,
    RecordDropped,
    RecordKept,
    Rejoined,
    Send,
    SetTimer,
    SplitTopicsLinked,
    StoodStill,
    Stored,
    SuspicionRefuted,
    Time,
    Timer,
    TimerFired,
    Topic,
)
from omen.protocol.messages import wire
from omen.protocol.messages.base import Ref
from omen.protocol.messages.overlay import NameClaimed
from omen.protocol.messages.publications import KINDS, Publication, parse_publication
from omen.protocol.node import OmenNode
from omen.protocol.status import NodeStatus

if TYPE_CHECKING:
    from omen.net.security.signing import Verifier
    from omen.net.watching.gathering import Gathering

PUBLICATION = "Publication"

ForApplication = Gap | Held | OfRecords | Notification
"""What a core has to say to the application above it, apart from publications."""


class Driver:
    """One core from its start to its stop. All calls happen in the event loop that made it."""

    def __init__(
        self,
        hello: Hello,
        log: Log,
        admission: AdmissionControl,
        deliver: Callable[[Deliver], None],
        tell: Callable[[ForApplication], None],
        guard: NameGuard,
        gathering: Gathering,
    ) -> None:
        self.log = log
        self.peers = Peers(hello, self, log, admission)
        self.events = EventLog(hello.node, log, self.peers)
        self._admission = admission
        self._access = admission.access
        self.sender = Sender(self.peers, admission.access)
        self.core: OmenNode | None = None
        self.received: Counter[str] = Counter()
        self.bytes_received: Counter[str] = Counter()
        self.counters = DriverCounters()
        self._choose_links = TimedEngine()
        self.engine_times = self._choose_links.times
        self._deliver = deliver
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._timers: dict[Timer, asyncio.TimerHandle] = {}
        self._recorder: Recorder | None = None
        self._has_detector = False
        self._asker: NodeId | None = None
        self._guard = guard
        self._gathering = gathering
        self._name_search: asyncio.Task[None] | None = None
        self.is_member = False

    @property
    def incarnation(self) -> int | None:
        """The incarnation the core is in."""
        return None if self.core is None else self.core.ref.incarnation

    @property
    def contacts(self) -> tuple[Ref, ...]:
        """The peers that this incarnation joins through."""
        return self._running().contacts

    def _running(self) -> OmenNode:
        if self.core is None:
            raise Stopped("the node has not begun yet")
        return self.core

    def status(self) -> NodeStatus:
        """The core as it is now."""
        return self._running().status()

    def now(self) -> Time:
        return int(self._loop.time() * 1e6)

    def start(self, spec: CoreSpec, record: str = "") -> None:
        """Make the core and start it. `record`: a file to record its inputs in."""
        core = self.core = make_core(spec, self._choose_links)
        self._has_detector = spec.config.detector
        if record:
            self._safely(lambda: self._begin_recording(record, spec))
        now = self.now()
        outputs = core.start(now)
        recorder = self._recorder
        if recorder is not None:
            self._safely(lambda: recorder.note_start(now, outputs))
        self.obey(outputs)

    def _begin_recording(self, path: str, spec: CoreSpec) -> None:
        self._recorder = Recorder(path, spec)

    def _record(self, event: Input, now: Time, outputs: Sequence[Output]) -> None:
        recorder = self._recorder
        if recorder is not None:
            self._safely(lambda: recorder.note(event, now, outputs))

    def _safely(self, step: Callable[[], None]) -> None:
        """A step of the recording. Its errors end the recording, not the node: the disk may be full."""
        try:
            step()
        except Exception as error:
            recorder, self._recorder = self._recorder, None
            self.counters.recording_errors += 1
            if isinstance(error, (OSError, OmenError)):
                self.log.warning("recording_ended", cause=str(error))
            else:
                self.log.error("recording_ended", error)
            if recorder is not None:
                with suppress(OSError):
                    recorder.close()

    def feed(self, event: Input) -> None:
        """Tell the core, and do what follows. What it asks of the caller (InvalidInput) is the caller's to hear."""
        now = self.now()
        outputs = self._running().handle(event, now)
        if self._recorder is not None:
            self._record(event, now, outputs)
        if outputs:
            self.obey(outputs)

    def publish(self, topic: Topic, payload: bytes, fields: bytes = b"") -> int:
        """Publish something; its sequence. InvalidInput: it is too large."""
        now = self.now()
        signatures = self._admission.signatures
        if signatures is not None and signatures.signer is not None:
            key, sequence, opening = self._running().next_publication(topic, now)
            fields = signatures.signer.seal(key, sequence, opening, payload, fields)
        sequence, outputs = self._running().publish(topic, payload, now, fields)
        if self._recorder is not None:
            self._record(Publish(topic, payload, fields), now, outputs)
        if outputs:
            self.obey(outputs)
        return sequence

    def _feed_safely(self, event: Input) -> None:
        """For what comes from outside: an error in one handler must not take the node down."""
        if self.core is None:
            return
        try:
            self.feed(event)
        except Exception as error:
            self._note_failure(error, type(event).__name__)

    def obey(self, outputs: Sequence[Output]) -> None:
        """Do what the core asks for. The two that come with every publication are looked for first."""
        for output in outputs:
            if type(output) is Deliver:
                self._deliver(output)
                continue
            if type(output) is Multicast:
                if self._gathering.follows_trees:
                    self._gathering.note_multicast(output)
                self.sender.multicast(output.to, output.message)
                continue
            match output:
                case Multicast() | Deliver():
                    raise AssertionError(output)
                case Gap() | Held() | Stored() | Fetched() | RecordKept() | RecordDropped():
                    self._tell(output)
                case Send(to, address, message):
                    self.sender.send(to, address, message, self._asker)
                case SetTimer(timer, delay):
                    self._set_timer(timer, delay)
                case Connect(peer, address):
                    self.peers.want(peer, address, self._asker)
                case Disconnect(peer):
                    self.peers.release(peer)
                case Notify(notification):
                    self._note(notification)
                    self._tell(notification)
                case _:
                    assert_never(output)

    def _set_timer(self, key: Timer, delay: Time) -> None:
        former = self._timers.get(key)
        if former is not None:
            former.cancel()
        self._timers[key] = self._loop.call_later(delay / 1e6, self._fire, key)

    def _fire(self, key: Timer) -> None:
        del self._timers[key]
        self._feed_safely(TimerFired(key))

    def _note(self, notification: Notification) -> None:
        """Log and count; a node that rejoins wants no connection of its former incarnation."""
        self.events.note(notification, self.now())
        self._gathering.note(notification)
        counters = self.counters
        match notification:
            case Rejoined():
                counters.rejoins += 1
                self.peers.release_all()
            case PeerSuspected():
                counters.suspicions += 1
            case SuspicionRefuted():
                counters.refutations += 1
            case PeerBanned(peer, _, lasts):
                counters.peers_banned += 1
                self.peers.expel(peer, lasts / 1e6)
            case PeerDeclaredFailed(_, _, refused):
                counters.declared_failed += 1
                counters.peers_refused += refused
            case StoodStill():
                counters.stood_still += 1
            case SplitTopicsLinked(_, topics):
                counters.split_topics += len(topics)
            case NameConflict(claimant):
                self._guard.note_conflict(claimant.address, claimant.incarnation)
            case OwnNameSeen(ref):
                if self._name_search is None:
                    self._name_search = self._loop.create_task(self._look_for_name(ref))
            case _:
                pass

    def on_peer_frames(self, node: NodeId, data: list[bytes], connection: Connection) -> None:
        """All frames of one read."""
        core = self.core
        if core is None:
            return
        now = self.now()
        name = connection.peer.name if connection.peer is not None else ""
        signatures = self._admission.signatures
        verifier = signatures.verifier if signatures is not None else None
        publications = size = 0
        for body in data:
            kind = body[0]
            if kind in KINDS:
                publications += 1
                size += len(body) + 4
                try:
                    publication = parse_publication(body)
                    if verifier is not None and not self._is_genuine(core, verifier, connection, publication):
                        continue
                    if self._access.takes(name, publication):
                        self._receive(core, node, publication, now)
                    elif publication.publisher == node:
                        connection.refuse(Refused(f"{name!r} may not publish on this topic", Reason.ACCESS))
                        break
                except struct.error:
                    self._refuse_frame(connection, "a publication is cut off in its header or fields")
                    break
                except Exception as error:
                    self._note_failure(error, PUBLICATION)
                continue
            if kind == WATCHING:
                if self._gathering.on_frame(node, body):
                    continue
                self._refuse_frame(connection, "nothing for a live page")
                break
            try:
                message = wire.decode(body)
            except UNREADABLE as error:
                self._refuse_frame(connection, str(error))
                break
            kind_name = type(message).__name__
            self.received[kind_name] += 1
            self.bytes_received[kind_name] += len(body) + 4
            if not self._access.is_claim_allowed(name, message):
                connection.refuse(Refused(f"{name!r} may not carry a topic that it lays claim to", Reason.ACCESS))
                break
            self._asker = node
            self._feed_safely(Received(node, message))
            self._asker = None
        self.received[PUBLICATION] += publications
        self.bytes_received[PUBLICATION] += size

    def _is_genuine(self, core: OmenNode, verifier: Verifier, connection: Connection, publication: Publication) -> bool:
        """Whether the signature of a publication lets it go on. What is kept already is not looked at again."""
        signatures, peer = self._admission.signatures, connection.peer
        if signatures is None or peer is None or core.keeps(publication.key, publication.sequence):
            return True
        verdict = signatures.takes(verifier, publication)
        if verdict is None:
            return True
        self.events.note_refused(publication, peer.name, verdict)
        if verifier.blames(peer, publication, verdict):
            self._feed_safely(PeerOffended(peer.node, Offence.FORGED))
        return False

    def _receive(self, core: OmenNode, node: NodeId, publication: Publication, now: Time) -> None:
        """The short way for publications, of which there are most."""
        outputs = core.receive(node, publication, now)
        if self._recorder is not None:
            self._record(Received(node, publication), now, outputs)
        if outputs:
            self.obey(outputs)

    def _refuse_frame(self, connection: Connection, reason: str) -> None:
        self.counters.unreadable_frames += 1
        connection.refuse(Refused(f"a frame that cannot be read: {reason}", Reason.FRAME))
        if connection.peer is not None:
            self._feed_safely(PeerOffended(connection.peer.node, Offence.MALFORMED))

    def _note_failure(self, error: Exception, what: str) -> None:
        self.counters.core_errors += 1
        self.log.error("core_error", error, input=what)

    def on_peer_lost(self, node: NodeId, incarnation: int | None) -> None:
        """With a failure detector the core decides for itself; without one the driver's word counts."""
        self.counters.peers_lost += 1
        self._feed_safely(PeerLost(node, incarnation))
        if not self._has_detector:
            self.peers.forget(node)

    def on_peer_broken(self, node: NodeId) -> None:
        self._feed_safely(LinkBroken(node))

    def on_peer_refused(self, node: NodeId, later: int | None) -> None:
        """Nobody listens any more where a peer did, or a later incarnation answers there."""
        self._feed_safely(PeerRefused(node, later))

    def on_peer_unreached(self, node: NodeId, address: str) -> None:
        """Nobody listens where a peer was said to that this node keeps no connection to."""
        self._feed_safely(PeerUnreached(node, address))

    def on_name_met(self, other: Hello) -> None:
        """Another process of this node's name has answered or called."""
        self._guard.meet(self.peers.hello, other)

    def on_name_claimed(self, node: NodeId, claimant: Hello) -> None:
        """Another process goes by a peer's name: the peer is told."""
        if self.peers.revision_of(node) >= NAMES_REVISION:
            ref = Ref(claimant.node, claimant.incarnation, claimant.address)
            self.obey((Send(node, "", NameClaimed(ref)),))

    def on_refused_by_peer(self, refusal: Refused) -> None:
        self._guard.on_refused(refusal, self.is_member)

    async def _look_for_name(self, ref: Ref) -> None:
        """Is there a process behind a later incarnation of this node? If one answers, it is decided who gives way."""
        try:
            is_free = (await self.peers.greet(ref.address)).node != ref.id
        except Refused as refusal:
            is_free = refusal.reason not in (Reason.NAME_TAKEN, Reason.REFUSED_BY_PEER)
        except OSError:
            is_free = True
        self._name_search = None
        if is_free:
            self._feed_safely(NameFree(ref.incarnation))

    def on_slow_consumer(self, node: NodeId) -> None:
        """Found out while outputs of the core are carried out, so it hears of it afterwards."""
        self.counters.slow_consumers += 1
        self._loop.call_soon(self._feed_safely, LinkSlow(node))

    def on_peer_room(self, node: NodeId, room: int) -> None:
        """How much can still be queued for a peer, found out as above."""
        self._loop.call_soon(self._feed_safely, LinkRoom(node, room))

    def on_peer_ready(self, node: NodeId) -> None:
        """In its turn: behind a `LinkSlow` of the same tick, which else would be the last that the core hears."""
        self._loop.call_soon(self._feed_safely, LinkReady(node))

    async def stop(self) -> None:
        """Send nothing more, and hear nothing more."""
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        if self._name_search is not None:
            self._name_search.cancel()
        self._gathering.stop()
        try:
            await self.peers.close()
        finally:
            recorder = self._recorder
            if recorder is not None:
                self._safely(recorder.close)

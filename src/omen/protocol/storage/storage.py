"""Writing, reading and moving stored records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from omen.protocol.context import NodeContext
from omen.protocol.events import (
    SECOND,
    Fetched,
    Handlers,
    NodeId,
    RecordDropped,
    RecordKept,
    Stored,
    Time,
    Timer,
    TimerHandlers,
)
from omen.protocol.membership.ring import SPARE, Ring, nearest_after
from omen.protocol.membership.ring_lookup import LookupPurpose, RingLookup
from omen.protocol.messages.base import Ref
from omen.protocol.messages.records import (
    ENTRIES_AT_MOST,
    Entry,
    Record,
    RecordAck,
    RecordOffer,
    RecordPut,
    RecordQuery,
    RecordReply,
    RecordWant,
)
from omen.protocol.storage.store import RecordStore, size_of

SYNC_PERIOD, SYNC_SOON = 5 * SECOND, SECOND // 2
"""Records that are new are offered this often; after a change of the ring, so soon."""
GIVEN_UP_AFTER = 60 * SECOND
"""A record that is no longer this node's to hold goes after so long, when those whose it is were offered it."""
PAGE_BYTES = 256 << 10
"""Records sent in one message, in bytes, one at least."""
OPEN_AT_MOST = 4096
"""Writes and reads under way at a time."""
ROUNDS = 3
"""How often a node that does not answer is passed over for others."""


class WriteTimer(Timer, frozen=True):
    """Those a write was sent to have had their time to answer."""

    nonce: int


class ReadTimer(Timer, frozen=True):
    """Those that were asked for a place have had their time to answer."""

    nonce: int


class SyncTimer(Timer, frozen=True):
    """Offer what is new, forget what has expired."""


class StorageLookup(LookupPurpose, frozen=True):
    """Whose is the place of a write or a read?"""

    nonce: int


class Write(msgspec.Struct):
    """One write under way."""

    token: int
    place: int
    records: tuple[Record, ...]
    nodes: dict[NodeId, Ref] = msgspec.field(default_factory=dict)
    asked: set[NodeId] = msgspec.field(default_factory=set)
    kept: Counter[NodeId] = msgspec.field(default_factory=Counter)
    held_by: set[NodeId] = msgspec.field(default_factory=set)
    rounds: int = 0


class Read(msgspec.Struct):
    """One read under way. `open`: who has more to tell."""

    token: int
    place: int
    found: dict[bytes, Record]
    nodes: dict[NodeId, Ref] = msgspec.field(default_factory=dict)
    open: set[NodeId] = msgspec.field(default_factory=set)
    answered: set[NodeId] = msgspec.field(default_factory=set)
    heard: int = 0


class Storage:
    """The storage of one node."""

    def __init__(self, context: NodeContext, ring: Ring, lookup: RingLookup, store: RecordStore) -> None:
        self.store = store
        self._ring = ring
        self._lookup = lookup
        self._clock, self._random, self._out = context.clock, context.random, context.out
        self._peer_table = context.peer_table
        self._config = context.config
        self._nonce = 0
        self._writes: dict[int, Write] = {}
        self._reads: dict[int, Read] = {}
        self._offered: dict[NodeId, int] = {}
        self._again: dict[NodeId, list[Entry]] = {}
        self._ring_version = -1
        self._is_syncing = False

    def handlers(self) -> Handlers:
        return {
            RecordPut: self.on_put,
            RecordAck: self.on_ack,
            RecordQuery: self.on_query,
            RecordReply: self.on_reply,
            RecordOffer: self.on_offer,
            RecordWant: self.on_want,
        }

    def timers(self) -> TimerHandlers:
        return {WriteTimer: self._on_write_timer, ReadTimer: self._on_read_timer, SyncTimer: self._on_sync}

    def start(self) -> None:
        """Go on with what an earlier incarnation kept."""
        if len(self.store):
            self._sync_in(SYNC_SOON)

    def load(self, records: Iterable[Record]) -> None:
        """What a disk had kept."""
        for record in records:
            self.store.put(record, self._clock.now)
        self.start()

    # Writing

    def write(self, token: int, records: tuple[Record, ...]) -> None:
        """Keep records of one place here and at the first L other nodes after it."""
        self._keep(records)
        nonce = self._next_nonce()
        self._writes[nonce] = Write(token, records[0].place, records)
        if len(self._writes) > OPEN_AT_MOST:
            self._end_write(next(iter(self._writes)))
        self._locate(nonce, records[0].place)

    def _next_nonce(self) -> int:
        self._nonce += 1
        return self._nonce

    def _locate(self, nonce: int, place: int) -> None:
        """Who follows a place: known where the ring is small or the place is near, else looked up."""
        members, me = self._ring.members, self._peer_table.id
        room = self._config.resilience + SPARE
        nodes = nearest_after(place, (*members, me), self._config.resilience + 1)
        knows_all = len(members) < 2 * room
        is_near = me in nodes and self._ring.is_in_pred_range(place)
        if knows_all or is_near:
            self.on_located(nonce, members.values())
        else:
            self._lookup.find(place, StorageLookup(nonce), members.values())

    def on_located(self, nonce: int, met: Iterable[Ref]) -> None:
        """Nodes around the place of a write or read."""
        work = self._writes.get(nonce) or self._reads.get(nonce)
        if work is None:
            return
        work.nodes = {ref.id: ref for ref in met if ref.id != self._peer_table.id}
        if isinstance(work, Write):
            self._send(nonce, work)
        else:
            self._ask(nonce, work)

    def _send(self, nonce: int, write: Write) -> None:
        """To as many as are lacking, the nearest that were not asked yet."""
        resilience = self._config.resilience
        fresh = [node for node in write.nodes if node not in write.asked]
        lacking = resilience - len(write.held_by)
        targets = nearest_after(write.place, fresh, lacking)
        if lacking <= 0 or (not targets and write.asked == write.held_by):
            self._end_write(nonce)
            return
        for node in targets:
            write.asked.add(node)
            for part in _pages(write.records):
                self._out.send(write.nodes[node], RecordPut(self._peer_table.ref, nonce, part))
        self._out.set_timer(WriteTimer(nonce), self._config.answer_timeout * 2)

    def on_ack(self, sender: NodeId, message: RecordAck) -> None:
        write = self._writes.get(message.nonce)
        if write is None or sender not in write.asked:
            return
        write.kept[sender] += message.kept
        if write.kept[sender] < len(write.records):
            return
        write.held_by.add(sender)
        if len(write.held_by) >= min(self._config.resilience, len(write.nodes)):
            self._end_write(message.nonce)

    def _on_write_timer(self, timer: WriteTimer) -> None:
        write = self._writes.get(timer.nonce)
        if write is None:
            return
        write.rounds += 1
        if write.rounds >= ROUNDS:
            self._end_write(timer.nonce)
        else:
            living = {node: ref for node, ref in write.nodes.items() if not self._peer_table.is_declared_failed(ref)}
            write.nodes = living | self._ring.members
            self._send(timer.nonce, write)

    def _end_write(self, nonce: int) -> None:
        write = self._writes.pop(nonce)
        self._out.put(Stored(write.token, len(write.held_by)))

    def _keep(self, records: Iterable[Record]) -> int:
        """Keep what is new; how many of them are here now, in this version or a later one."""
        held = 0
        for record in records:
            if self.store.put(record, self._clock.now):
                self._out.put(RecordKept(record))
            held += self.store.holds(record.place, record.key, record.order)
        if held:
            self._sync_in(SYNC_PERIOD)
        return held

    def on_put(self, _: NodeId, message: RecordPut) -> None:
        kept = self._keep(message.records)
        if message.nonce:
            self._out.send(message.me, RecordAck(self._peer_table.ref, message.nonce, kept))

    # Reading

    def read(self, token: int, place: int) -> None:
        """Ask the first L + 1 nodes after a place for its records."""
        nonce = self._next_nonce()
        found = {record.key: record for record in self.store.at(place, self._clock.now)}
        self._reads[nonce] = Read(token, place, found)
        if len(self._reads) > OPEN_AT_MOST:
            self._end_read(next(iter(self._reads)))
        self._locate(nonce, place)

    def _ask(self, nonce: int, read: Read) -> None:
        for node in nearest_after(read.place, read.nodes, self._config.resilience + 1):
            read.open.add(node)
            self._out.send(read.nodes[node], RecordQuery(self._peer_table.ref, nonce, read.place))
        if not read.open:
            self._end_read(nonce)
            return
        self._out.set_timer(ReadTimer(nonce), self._config.answer_timeout)

    def on_query(self, _: NodeId, message: RecordQuery) -> None:
        records: list[Record] = []
        size, more = 0, False
        for record in self.store.at(message.place, self._clock.now, message.after):
            size += size_of(record)
            if records and (size > PAGE_BYTES or len(records) >= ENTRIES_AT_MOST):
                more = True
                break
            records.append(record)
        self._out.send(message.asker, RecordReply(self._peer_table.ref, message.nonce, tuple(records), more))

    def on_reply(self, sender: NodeId, message: RecordReply) -> None:
        read = self._reads.get(message.nonce)
        if read is None or sender not in read.open:
            return
        read.heard += 1
        for record in message.records:
            former = read.found.get(record.key)
            if record.place == read.place and (former is None or former.order < record.order):
                read.found[record.key] = record
        if message.more and message.records:
            after = message.records[-1].key
            query = RecordQuery(self._peer_table.ref, message.nonce, read.place, after)
            self._out.send(read.nodes[sender], query)
            return
        read.open.discard(sender)
        read.answered.add(sender)
        if not read.open:
            self._end_read(message.nonce)

    def _on_read_timer(self, timer: ReadTimer) -> None:
        """Those that are silent are not waited for; those that go on telling are."""
        read = self._reads.get(timer.nonce)
        if read is None:
            return
        if read.heard:
            read.heard = 0
            self._out.set_timer(timer, self._config.answer_timeout)
        else:
            self._end_read(timer.nonce)

    def _end_read(self, nonce: int) -> None:
        read = self._reads.pop(nonce)
        records = tuple(record for _, record in sorted(read.found.items()) if record.value)
        self._out.put(Fetched(read.token, records, bool(read.answered) or not read.nodes))

    # Anti-entropy

    def follow_ring(self) -> None:
        """The ring has changed: others may have to hold what is here."""
        if len(self.store):
            self._sync_in(SYNC_SOON)

    def _sync_in(self, delay: Time) -> None:
        if delay == SYNC_SOON or not self._is_syncing:
            self._is_syncing = True
            self._out.set_timer(SyncTimer(), delay // 2 + self._random.randrange(delay))

    def _on_sync(self, _: SyncTimer) -> None:
        self._is_syncing = False
        now = self._clock.now
        for name in self.store.expired(now):
            self._drop(name)
        if not len(self.store):
            return
        if self._ring.version != self._ring_version:
            self._ring_version = self._ring.version
            self._offered.clear()
            self._again.clear()
        is_done = self._offer()
        self._sync_in(SYNC_PERIOD if is_done else SYNC_SOON)

    def _drop(self, name: tuple[int, bytes]) -> None:
        self.store.drop(name)
        self._out.put(RecordDropped(*name))

    def _offer(self) -> bool:
        """Offer what is new to those that should hold it; whether that was all."""
        me, members, now = self._peer_table.id, self._ring.members, self._clock.now
        holders = self._config.resilience + 1
        least = min((self._offered.get(node, 0) for node in members), default=self.store.stamp)
        offers: dict[NodeId, list[Entry]] = {node: self._again.pop(node) for node in sorted(self._again)}
        foreign = []
        for kept in self.store.newest_first():
            if kept.stamp <= least:
                break
            record = kept.record
            first = nearest_after(record.place, (*members, me), holders + SPARE)
            if me not in first and record.writer != me:
                if now - kept.since > GIVEN_UP_AFTER:
                    foreign.append((record.place, record.key))
                continue
            for node in first[:holders]:
                if node != me and kept.stamp > self._offered.get(node, 0):
                    offers.setdefault(node, []).append((record.place, record.key, record.version, record.writer))
        for name in foreign:
            self._drop(name)
        for node in members:
            self._offered[node] = self.store.stamp
        return self._send_offers(offers)

    def _send_offers(self, offers: dict[NodeId, list[Entry]]) -> bool:
        for node, entries in offers.items():
            ref = self._ring.members.get(node)
            if ref is None:
                continue
            now, later = entries[:ENTRIES_AT_MOST], entries[ENTRIES_AT_MOST:]
            self._out.send(ref, RecordOffer(self._peer_table.ref, tuple(now)))
            if later:
                self._again[node] = later
        return not self._again

    def on_offer(self, _: NodeId, message: RecordOffer) -> None:
        lacking = [entry for entry in message.entries if not self.store.holds(entry[0], entry[1], (entry[2], entry[3]))]
        if lacking:
            self._out.send(message.me, RecordWant(self._peer_table.ref, tuple(lacking)))

    def on_want(self, sender: NodeId, message: RecordWant) -> None:
        """Send a page of them; the rest is offered again."""
        records: list[Record] = []
        size = 0
        for place, (entry_place, key, _, _) in enumerate(message.entries):
            record = self.store.get(entry_place, key, self._clock.now)
            if record is None:
                continue
            size += size_of(record)
            if records and size > PAGE_BYTES:
                if sender in self._ring.members:
                    self._again.setdefault(sender, list(message.entries[place:]))
                    self._sync_in(SYNC_SOON)
                break
            records.append(record)
        if records:
            self._out.send(message.me, RecordPut(self._peer_table.ref, 0, tuple(records)))


def _pages(records: Sequence[Record]) -> Iterable[tuple[Record, ...]]:
    """Records in as many messages as they need."""
    part: list[Record] = []
    size = 0
    for record in records:
        if part and (size + size_of(record) > PAGE_BYTES or len(part) >= ENTRIES_AT_MOST):
            yield tuple(part)
            part, size = [], 0
        part.append(record)
        size += size_of(record)
    if part:
        yield tuple(part)

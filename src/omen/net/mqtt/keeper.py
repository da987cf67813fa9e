"""Sessions and retained messages in the stored records of the cluster, and who goes on with the sessions of a crashed
node.

Every front door says every few seconds that it is there. A session whose door has fallen silent, or has begun anew, is
taken over by the first node after its place on the ring that has a front door and its record; the others would follow
later. A client that connects before that brings its session to the node where it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from omen.errors import OmenError
from omen.net.errors import Stopped
from omen.net.inbox import Gap
from omen.net.mqtt import records
from omen.net.mqtt.keeping import Recent
from omen.net.mqtt.other_doors import OtherDoors, new_door
from omen.net.mqtt.outputs import Claim, Forget, Retained, TellGroup
from omen.net.mqtt.stored import (
    HEAD,
    RETAINED,
    Change,
    Published,
    SessionHead,
    StoredSession,
    head_key,
    place_of_client,
    place_of_retained,
    place_of_topic,
    published_key,
    read_head,
    read_published,
    read_session,
    segment_key,
    without_will,
)
from omen.net.mqtt.topics import filter_of, has_wildcard, matches
from omen.net.security.hello import UNREADABLE
from omen.protocol.membership.ring import clockwise, place_of
from omen.protocol.messages.records import Record

if TYPE_CHECKING:
    from omen.net.mqtt.listener import FrontDoor

HERE_PERIOD_S, TELL_ALL_EVERY = 2.0, 5
"""A front door says so often that it is there; and every so many times, which members of shares it has."""
SESSION_TIMEOUT_S = 2.0
"""CONNACK waits so long for a node that has the session; after that the stored one counts."""
STEP_S = 3.0
"""Each further node after the place of a session waits so much longer before it takes it over."""
PUBLISHED_S = 30.0
"""A message is held for sessions for longer than windows keep it."""
TOPICS_AT_MOST = 200
"""Topics of a session that comes from a crashed node whose held messages are looked up."""
CATCH_UP_AFTER_S = (0.3, 0.7, 2.0, 4.0)
"""A session that comes from a crashed node looks windows through after these pauses: links and windows take time."""
RETRY_S, STORE_FOR_S = 0.5, 10.0
"""Successors that do not take a record are asked again after this pause, for so long."""
GOODBYE_S = 0.05
"""A client with a will that is elsewhere now may have said goodbye here, which has come and is not read yet."""
SETTLE_POLL_S = 0.1
SLOW_S = 60.0
"""A node that has not handed a session over by then, and is there, has none."""
COPIES_S, COPIES_AT_MOST = 0.1, 10_000
"""How many neighbours carry a topic is looked up again after this: it takes as long as to publish."""
FOREVER_S = 9 * 365 * 24 * 3600.0
REMOVED_S = 24 * 3600.0

_retained: msgspec.msgpack.Decoder[Retained] = msgspec.msgpack.Decoder(Retained)


class Keeper:
    """Stores what the state machine wants stored, and brings it back.

    `unheld`: messages that too few nodes would hold; `unstored`: writes of sessions that too few have taken; `adopted`:
    sessions of crashed nodes that go on here; `recovered`: messages of gaps that other nodes held.
    """

    def __init__(self, front: FrontDoor) -> None:
        self._front = front
        self._broker = front.broker
        self._door = front.door
        self.owner = new_door(self._broker.name, time.time())
        self.doors = OtherDoors(self.owner, time.time(), self._door.groups)
        self._owners: dict[str, str] = {}
        self._orphans: dict[str, float] = {}
        self._handed: dict[int, asyncio.Future[None]] = {}
        self._copies: dict[str, tuple[float, bool]] = {}
        self._has_told_groups = False
        self.unheld = self.unstored = self.adopted = self.recovered = 0
        self._holding: dict[str, list[tuple[Published, Callable[[bool], None]]]] = {}

    # Beginning and end

    def begin(self) -> list[Retained]:
        """From now on everything is stored; the retained messages that the disk has kept."""
        self._door.owner = self.owner
        self._broker.records.listen = self._on_record
        kept = list(self._broker.records.kept.values())
        for record in kept:
            self._on_record(record)
        heads = frozenset(record.writer for record in kept if record.key.startswith(HEAD))
        self.doors.writers = heads - {self._broker.node}
        return list(self._door.retained.values())

    async def run(self) -> None:
        """For as long as the door is open."""
        rounds = 0
        incarnation = self._front.incarnation
        while not self._broker.is_leaving:
            rounds += 1
            if self._front.incarnation != incarnation:  # it was out of the cluster, and may have missed anything
                incarnation = self._front.incarnation
                self._front.ask_again(records.RETAINED, records.TOPICS)
            try:
                await self._front.say(records.CLIENTS, records.DoorHere(self.owner, since=self.doors.begun))
                if rounds % TELL_ALL_EVERY == 0:
                    self._tell_groups()  # a door that thought this one had crashed
                await asyncio.sleep(HERE_PERIOD_S / 2)
                if self.doors.is_settled(time.time()):
                    await self._adopt_orphans(time.time())
            except Stopped:
                return
            except OmenError as error:  # as where the access rules forbid it for a while
                self._broker.log.warning("mqtt_publish_failed", topic=records.CLIENTS, cause=str(error))
            await asyncio.sleep(HERE_PERIOD_S / 2)

    async def close(self) -> None:
        """The sessions of this node are free for others."""
        for client_id, changes in self._door.release_all(time.time()):
            await self._write(client_id, changes)
        await self._front.say(records.CLIENTS, records.DoorHere(self.owner, is_closing=True))

    # Storing

    async def save(self, client_id: str) -> None:
        """Store a session for as long as it changes; what waits for it goes on each time."""
        while (changes := self._door.begin_save(client_id, time.time())) is not None:
            await self._write(client_id, changes)
            self._door.saved(client_id)
            self._front.act()
        self._front.act()

    async def _write(self, client_id: str, changes: list[Change]) -> None:
        place, store = place_of_client(client_id), self._broker.records
        with suppress(Stopped):
            written = [store.make(place, one.key, one.value, one.life_s) for one in changes]
            if not await self._store(written):
                self.unstored += 1
                self._broker.log.warning("mqtt_session_not_stored", client=client_id)

    async def _store(self, written: list[Record]) -> bool:
        """Store records until min(L, nodes - 1) others have them; False: they have no room, or do not answer."""
        end = time.monotonic() + STORE_FOR_S
        while await self._broker.records.store(written) < self._enough():
            if time.monotonic() >= end:
                return False
            await asyncio.sleep(RETRY_S)
        return True

    async def forget(self, output: Forget) -> None:
        client_id = output.client_id
        keys = [head_key(client_id), *(segment_key(client_id, number) for number in output.segments)]
        await self._write(client_id, [Change(key, b"", REMOVED_S) for key in keys])

    async def retain(self, kept: Retained) -> bool:
        """Store a retained message, or that it was removed; whether enough nodes have it. Of two the later one counts
        for what is stored as it does for doors, whichever is stored first.
        """
        topic, expires_at = kept.message.topic, kept.message.expires_at
        life = FOREVER_S if expires_at is None else max(expires_at - time.time(), 1.0)
        store = self._broker.records
        value = msgspec.msgpack.encode(kept) if kept.message.payload else b""
        key = RETAINED + topic.encode()
        record = store.make(place_of_retained(topic), key, value, life if value else REMOVED_S)
        return await self._store([msgspec.structs.replace(record, version=kept.version[0])])

    # What acknowledgements promise

    def lacks_copies(self, topic: str) -> bool:
        """Whether too few neighbours carry a topic for L other nodes to hold what is published on it."""
        known = self._copies.get(topic)
        now = time.monotonic()
        if known is None or now - known[0] > COPIES_S:
            if len(self._copies) >= COPIES_AT_MOST:
                self._copies.clear()
            known = self._copies[topic] = (now, self._broker.count_neighbours(topic) < self._enough())
        return known[1]

    def _enough(self) -> int:
        status = self._broker.status()
        return min(status.config.resilience, len(status.membership.ring))

    async def hold(self, published: Published, done: Callable[[bool], None]) -> None:
        """Have L other nodes hold a message, the successors of its topic; those of one topic go together. `done` hears
        whether they do.
        """
        topic = published.message.topic
        if topic in self._holding:
            self._holding[topic].append((published, done))
            return
        self._holding[topic] = [(published, done)]
        try:
            while batch := self._holding[topic]:
                self._holding[topic] = []
                is_held = await self._hold_all(topic, [one for one, _ in batch])
                for _, then in batch:
                    then(is_held)
        except Stopped:
            return
        finally:
            del self._holding[topic]

    async def _hold_all(self, topic: str, batch: list[Published]) -> bool:
        store, place = self._broker.records, place_of_topic(topic)
        written = [store.make(place, published_key(one), msgspec.msgpack.encode(one), PUBLISHED_S) for one in batch]
        is_held = await self._store(written)
        if not is_held:
            self.unheld += len(batch)
            self._broker.log.warning("mqtt_not_held", topic=topic, messages=len(batch))
        return is_held

    async def _catch_up(self, stored: StoredSession) -> None:
        """Messages that were acknowledged, and that the crashed node of a session may not have stored for it."""
        names = self._topics_of([one.pattern for one in stored.head.subscriptions])
        found = await asyncio.gather(*(self._broker.records.fetch(place_of_topic(name)) for name in names))
        now = time.time()
        for name, answer in zip(names, found, strict=True):
            for one in read_published(name, answer.records):
                self._door.remember(one.message, one.stream, one.sequence, now, one.at)

    async def _catch_up_on_windows(self, client_id: str) -> None:
        """What a session missed on its way here is in windows: this node, linked to the subscribers of its topics, gets
        that too, also of the time before it was linked.
        """
        for pause in CATCH_UP_AFTER_S:
            await asyncio.sleep(pause)
            session, now = self._door.sessions.get(client_id), time.time()
            if session is None:
                return
            for topic in self._topics_of(session.subscriptions):
                kept = self._broker.kept(topic)
                missed = [one for one in kept if not session.has(records.stream_of(one), one.sequence)]
                found = [(one, records.message_from(one, "")) for one in missed]
                recent = [Recent(now, told, records.stream_of(one), one.sequence) for one, told in found]
                self._door.catch_up(client_id, recent, now)
                await asyncio.sleep(0)  # windows may be long, and sessions many: others have their turn
            self._front.act()

    def _topics_of(self, patterns: Iterable[str]) -> list[str]:
        """The topics of a session, as far as they are known: few enough to look all of them through."""
        filters = [filter_of(pattern) for pattern in patterns]
        names = [pattern for pattern in filters if not has_wildcard(pattern)]
        wild = [pattern for pattern in filters if has_wildcard(pattern)]
        if wild:
            names += [name for name in self._door.wishes.directory if any(matches(one, name) for one in wild)]
        return list(dict.fromkeys(names))[:TOPICS_AT_MOST]

    async def recover(self, gap: Gap) -> None:
        """What windows have no more, other nodes may hold for sessions: it comes late, but it comes, to those that lack
        it. A node that is told once more what was in a stream hears of gaps that it never had.
        """
        stream = (gap.topic, gap.node, gap.incarnation)
        lacking = self._door.lacking(stream, gap.first, gap.last)
        if not lacking:
            return
        with suppress(Stopped):
            found = await self._broker.records.fetch(place_of_topic(gap.topic))
            for one in read_published(gap.topic, found.records):
                if one.stream == stream and gap.first <= one.sequence <= gap.last:
                    self.recovered += 1
                    self._door.deliver_late(one.message, stream, one.sequence, lacking, time.time())
            self._front.act()

    def _on_record(self, record: Record) -> None:
        """This node keeps a record now."""
        if record.key.startswith(HEAD):
            client_id = record.key[len(HEAD) :].decode(errors="replace")
            head = read_head(record)
            if head is None:
                self._owners.pop(client_id, None)
                return
            self._owners[client_id] = head.owner
            if head.owner not in ("", self.owner):
                self._door.disown(client_id, head.begun)
                self._front.act_soon()
        elif record.key.startswith(RETAINED) and record.value:
            with suppress(*UNREADABLE):
                self._door.retain(_retained.decode(record.value))

    # Other front doors

    def hear(self, said: records.DoorHere, now: float) -> None:
        """Another door is there, or closes. A new one is told of members that are here."""
        if self.doors.hear(said, now):
            self._tell_groups()

    def tell_group(self, told: TellGroup) -> None:
        """The members of one shared subscription at this door have changed."""
        self._has_told_groups = True
        self._front.tell(records.CLIENTS, records.GroupMembers(self.owner, {told.group: told.members}))

    def _tell_groups(self) -> None:
        own = self._door.groups.of(self.owner)
        if own or self._has_told_groups:  # who missed that the last one went hears it by and by
            self._front.tell(records.CLIENTS, records.GroupMembers(self.owner, own, is_all=True))

    async def _adopt_orphans(self, now: float) -> None:
        for since, gone in self.doors.miss(now):
            self._door.choose_again(gone, since, now)
        self._front.act()
        orphans = [client_id for client_id, owner in self._owners.items() if not self.doors.is_there(owner, now)]
        self._orphans = {client_id: self._orphans.get(client_id, now) for client_id in orphans}
        if not orphans:
            return
        ring = (*self._broker.status().membership.ring, self._broker.node)
        for client_id, since in list(self._orphans.items()):
            place = place_of(place_of_client(client_id))
            mine = clockwise(place, self._broker.node)
            rank = sum(clockwise(place, node) < mine for node in ring)
            if now - since >= STEP_S * rank and client_id not in self._door.sessions:
                await self._adopt(client_id, now)

    async def _adopt(self, client_id: str, now: float) -> None:
        stored = await self._read(client_id)
        if stored is None:
            self._owners.pop(client_id, None)
            self._door.groups.forget(client_id)
        elif not self.doors.is_there(stored.head.owner, now):
            await self._catch_up(stored)
            if self.doors.has_come(client_id, now):
                return  # meanwhile, to another node
            self._broker.log.info("mqtt_session_adopted", client=client_id, former=stored.head.owner)
            self.adopted += 1
            self._door.adopt(stored, time.time())
            self._owners[client_id] = self.owner
            self._front.start(self._catch_up_on_windows(client_id))
            self._front.act()

    async def _read(self, client_id: str) -> StoredSession | None:
        """The stored session of a client that has not ended."""
        found = await self._broker.records.fetch(place_of_client(client_id))
        return self._session_in(client_id, found.records)

    def _session_in(self, client_id: str, found: tuple[Record, ...]) -> StoredSession | None:
        for record in found:
            self._broker.records.note_version(record.version)
        stored = read_session(client_id, found)
        ends_at = None if stored is None else stored.head.ends_at
        return None if ends_at is not None and ends_at <= time.time() else stored

    # Clients that come

    async def claim(self, output: Claim) -> None:
        """A client is here now: bring its session, or, where it begins a new one, remove what is stored of it."""
        client_id, token = output.client_id, output.token
        if output.wants_session:
            while not self.doors.is_settled(time.time()):
                await asyncio.sleep(SETTLE_POLL_S)
        try:
            stored = await self._bring(output)
        except Stopped:
            return
        if output.wants_session:
            self._door.claimed(token, stored, time.time())
            if stored is not None:
                self._front.start(self._catch_up_on_windows(client_id))
            self._front.act()
        elif output.is_clean:
            self._door.groups.forget(client_id, but_of=self.owner)
        if output.is_clean and stored is not None and not self._door.stores(client_id):
            await self.forget(Forget(client_id, tuple(number for number, _ in stored.segments)))

    async def _bring(self, output: Claim) -> StoredSession | None:
        client_id, token, now = output.client_id, output.token, time.time()
        if not output.wants_session and not output.is_clean:
            await self._say_here(output, waits=False)
            return None
        found = await self._broker.records.fetch(place_of_client(client_id))
        stored = self._session_in(client_id, found.records)
        if stored is None:
            waits = not found.is_sure
        else:
            waits = stored.head.owner != self.owner and self.doors.is_there(stored.head.owner, now)
        waits = waits and output.wants_session and self._broker.has_neighbours(records.CLIENTS)
        if not waits:
            await self._say_here(output, waits=False)
            if stored is not None and stored.head.owner and output.wants_session:
                await self._catch_up(stored)
            return stored
        handed = self._handed[token] = asyncio.get_running_loop().create_future()
        await self._say_here(output, waits=True)
        await asyncio.wait([handed], timeout=SESSION_TIMEOUT_S)
        stored = await self._read(client_id)
        if stored is not None and stored.head.owner:
            await self._catch_up(stored)
        if handed.done() or stored is None:
            self._handed.pop(token, None)
            return stored
        self._front.start(self._wait_for_slow(token, handed, stored.head))
        return without_will(stored)

    async def _wait_for_slow(self, token: int, handed: asyncio.Future[None], head: SessionHead) -> None:
        """The former node of a client has not answered in time, and may be slow or gone. A slow one knows whether its
        client was lost or said goodbye, and stores the session as it was there: it is stored again as it is here. For
        one that is gone, this node publishes the will.
        """
        end = time.time() + SLOW_S
        while not handed.done() and (now := time.time()) < end and self.doors.is_there(head.owner, now):
            await asyncio.sleep(SETTLE_POLL_S)
        self._handed.pop(token, None)
        if handed.done():
            self._door.store_again(head.client_id)
        elif time.time() < end:
            self._door.publish_will_of(head)
        self._front.act()

    async def _say_here(self, output: Claim, waits: bool) -> None:
        here = records.ClientHere(output.client_id, self._broker.name, output.token, waits, output.is_clean)
        await self._front.say(records.CLIENTS, here)

    async def give(self, said: records.ClientHere) -> None:
        """A client is at another node: what is here of it is stored for that node, or goes."""
        if said.is_clean:
            self.doors.end_client(said.client_id, said.node)
        if self._door.has_will(said.client_id):
            await asyncio.sleep(GOODBYE_S)
        changes = self._door.release(said.client_id, time.time(), said.is_clean)
        self._front.act()
        if changes is None or said.is_clean:
            return
        if said.wants_session:
            await self._write(said.client_id, changes)
            await self._front.say(records.CLIENTS, records.SessionHanded(said.node, said.token))
        else:  # it goes on there already: what this node stores now would take the place of that
            await self._front.say(records.CLIENTS, records.SessionHanded(said.node, said.token, said.client_id))

    def handed(self, token: int) -> None:
        future = self._handed.get(token)
        if future is not None and not future.done():
            future.set_result(None)

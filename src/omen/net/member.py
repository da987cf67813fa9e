"""A node's standing in its cluster: each incarnation begun and joined, a name given up and taken again, the leave."""

from __future__ import annotations

import asyncio
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

import msgspec

from omen.errors import CannotWrite
from omen.net.core_spec import CoreSpec, Preset
from omen.net.driver import Driver, ForApplication
from omen.net.errors import NameTaken, NotJoined, Stopped
from omen.net.flow import Acknowledgements, wait_until_held
from omen.net.joining import POLL_S, SeedSearch, wait_until_joined
from omen.net.name_guard import NameGuard
from omen.net.names import next_incarnation
from omen.net.observe.front_door import FrontDoorFacts
from omen.net.observe.logs import Log
from omen.net.records import Records
from omen.net.security.admission import AdmissionControl
from omen.net.security.hello import REVISION, Hello
from omen.net.seeds import SeedList
from omen.net.settings import NodeConfig
from omen.net.state import last_incarnation, write_state
from omen.net.watching.gathering import Gathering
from omen.protocol import events
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import Ref
from omen.protocol.node import OmenNode
from omen.protocol.status import NodeStatus

HOLDING = 0.75  # of the time to leave: until neighbours hold what was accepted; the rest is for the repair
FIRST_RETURN_S, LONGEST_RETURN_S = 1.0, 30.0
PEERS_ASKED = 8  # of those that a node was connected to when it gave its name up


class Origin(msgspec.Struct, frozen=True):
    """Where a node of a designed overlay comes from: its place in it, its incarnation, the socket it listens on."""

    preset: Preset
    incarnation: int
    socket: socket.socket


class ClusterMember(ABC):
    """What a broker is to other nodes. What it is to its application is `Broker`, which is built on this.

    `subscribed_keys`: the topics every incarnation begins with. `names`: what topics are called, by key. `gathering`:
    its part in what live pages show. `is_brief`: it came to say something, and leaves at once if no topic needs it.
    """

    gathering: Gathering

    def __init__(self, config: NodeConfig, origin: Origin | None) -> None:
        self.config = config
        self.name = config.name
        self.node = place_of(config.name)
        self.address = ""
        self.http_address = ""
        self.mqtt_addresses: list[str] = []
        self.front_door: Callable[[], FrontDoorFacts] | None = None
        self.driver: Driver | None = None
        self.names: dict[int, str] = {}
        self.log = Log(self.name, self.names)
        self.records = Records(self)
        self.guard = NameGuard(self.name, self.log, self._give_way)
        self.subscribed_keys: set[int] = set()
        self._admission: AdmissionControl | None = None
        self._origin = origin
        self._search: SeedSearch | None = None
        self._seeking: asyncio.Task[None] | None = None
        self._returning: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._held = Acknowledgements()
        self._is_direct = False
        self._has_arrived = False
        self._is_draining = False
        self.is_brief = False
        self._is_leaving = False
        self._has_left = False

    @abstractmethod
    def _deliver(self, output: events.Deliver) -> None:
        """A publication for the application."""

    @abstractmethod
    def _hear(self, output: ForApplication) -> None:
        """What else the core has for the application."""

    @abstractmethod
    def _on_name_taken(self, error: NameTaken) -> None:
        """Another living node has this one's name: this one stops until the name is free."""

    @property
    def core(self) -> OmenNode | None:
        """The protocol node inside; None until the broker runs."""
        return self.driver.core if self.driver is not None else None

    @property
    def admission(self) -> AdmissionControl:
        """Admission control, and with it the access rules. Stopped: the broker has not been started."""
        if self._admission is None:
            raise Stopped(f"broker {self.name!r} is not running")
        return self._admission

    def status(self) -> NodeStatus:
        """The protocol node as it is now. Stopped: it has not begun yet."""
        if self.driver is None:
            raise Stopped(f"broker {self.name!r} is not running")
        return self.driver.status()

    @property
    def is_joined(self) -> bool:
        """Whether this node has its place and its links; the first node of a cluster has from the beginning."""
        core = self.core
        if core is None or core.stopped or core.is_joining or self.guard.error is not None:
            return False
        return self._has_arrived or core.has_ring

    @property
    def unreachable_seeds(self) -> list[str]:
        """Seeds that did not answer when they were last asked."""
        return self._search.unreachable if self._search is not None else []

    @property
    def has_stale_keys(self) -> bool:
        """Whether other keys were to come into force, and could not: the former ones go on."""
        return self._admission is not None and bool(self._admission.renewal_error)

    @property
    def is_leaving(self) -> bool:
        """Whether it was asked to drain or to stop."""
        return self._is_leaving or self._is_draining

    async def _begin(self) -> None:
        """Begin an incarnation, alone as yet."""
        config, origin = self.config, self._origin
        last = last_incarnation(config.state, self.name)
        incarnation = origin.incarnation if origin is not None else next_incarnation(last)
        session, seed = (int.from_bytes(os.urandom(size), "big") for size in (6, 8))
        hello = Hello(
            config.cluster,
            self.node,
            self.name,
            incarnation,
            self.address,
            session,
            REVISION,
            is_direct=self._is_direct,
            process=os.getpid(),
            joining=origin is None,
        )
        driver = self.driver = Driver(
            hello, self.log, self.admission, self._deliver, self._hear, self.guard, self.gathering
        )
        self.guard.begin()
        self._held = Acknowledgements()  # a new incarnation counts from 1
        self._has_arrived = False
        self._keep_state(incarnation, left=False)
        topics = tuple(sorted(self.subscribed_keys))
        preset = origin.preset if origin is not None else None
        spec = CoreSpec(Ref(self.node, incarnation, self.address), topics, config.protocol, seed, (), preset)
        self._origin = None
        driver.start(spec, config.record)
        if kept := self.records.open():
            driver.feed(events.LoadRecords(kept))

    async def _enter(self) -> None:
        """Join through any seed that answers; go on asking them for as long as this node lives."""
        driver, config = self._running(), self.config
        if self._search is None:
            seeds = SeedList(config.join, config.join_file)
            own = (self.address, config.listen)
            self._search = SeedSearch(seeds, own, lambda address: self._running().peers.greet(address), self, self.log)
            self._seeking = asyncio.ensure_future(self._search.run())
        await wait_until_joined(self._search, self, config.limits.join_timeout_s)
        self._has_arrived = driver.is_member = True

    def set_seeds(self, addresses: tuple[str, ...], file: str = "") -> None:
        """Ask these from now on."""
        if self._search is not None:
            self._search.set_seeds(addresses, file)

    def on_contact(self, ref: Ref) -> None:
        """A seed has answered."""
        if self.guard.error is None and self.core is not None and self.driver is not None:
            self.driver.feed(events.ContactsFound((ref,)))

    def on_outcome(self) -> None:
        """Something came of asking a seed."""
        self._news.set()

    def is_connected(self, node: int) -> bool:
        """Whether a connection to a node is kept."""
        return self.driver is not None and self.driver.peers.is_connected(node)

    def estimate_nodes(self) -> int:
        """How many nodes the cluster has, as far as this one can tell from the ring around it."""
        core = self.core
        return 1 if core is None else core.estimate_nodes()

    def _give_way(self) -> None:
        """Another living node has this name: a member stops, tells its application, and waits for the name."""
        self._news.set()
        if self.driver is not None and self.driver.is_member and self._returning is None and not self._is_leaving:
            error = self.guard.error or NameTaken(f"the name {self.name!r} is taken")
            self._on_name_taken(error)
            self._returning = asyncio.ensure_future(self._return())

    async def _return(self) -> None:
        """Join again under this name once it is free."""
        pause_s = FIRST_RETURN_S
        known, search = self._known_addresses(), self._search
        assert search is not None
        while not self._is_leaving:
            search.rest()
            await self._running().stop()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_RETURN_S)
            await self._begin()
            search.begin_again(known)
            try:
                await self._enter()
            except NotJoined as error:
                self.log.warning("rejoin_refused", cause=str(error))
                continue
            self.log.info("node_rejoined", incarnation=self._running().incarnation)
            break
        self._returning = None

    def _known_addresses(self) -> tuple[str, ...]:
        """Where those listen that can say whether this node's name is taken: its holder, and peers."""
        connections = self._running().peers.connections()
        peers = sorted({hello.address for hello in (one.peer for one in connections) if hello is not None})
        holder = self.guard.holder
        return (*((holder,) if holder else ()), *peers[:PEERS_ASKED])

    def _keep_state(self, incarnation: int, left: bool) -> None:
        if self.config.state:
            facts = {"name": self.name, "cluster": self.config.cluster, "incarnation": incarnation, "left": left}
            places = {"address": self.address, "http": self.http_address}
            try:
                write_state(self.config.state, self.name, facts | places)
            except CannotWrite as error:  # the clock gives incarnations that are higher too
                self.log.warning("state_not_kept", cause=str(error))

    def _running(self) -> Driver:
        if self.driver is None or self._has_left:
            raise Stopped(f"broker {self.name!r} is not running")
        return self.driver

    def _serving(self) -> Driver:
        """For the application: NameTaken while another living node has this one's name."""
        if self._returning is not None and self.guard.error is not None:
            raise self.guard.error
        return self._running()

    def _accepting(self) -> Driver:
        """For a publication, before its wait for room and after it: what is accepted once a node looks whether all is
        held would be lost with it.
        """
        if self._is_draining:
            raise Stopped(f"broker {self.name!r} is leaving: it takes no more publications")
        return self._serving()

    async def wait_for_news(self, at_most: float) -> None:
        """Until something has happened that may concern those who wait, or the time is over."""
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most):
                await self._news.wait()

    async def _leave(self, driver: Driver) -> int:
        """Leave in good order; how many publications neighbours do not hold."""
        core, left = driver.core, 0
        if core is None or core.stopped:
            return left
        deadline = asyncio.get_running_loop().time() + self.config.limits.leave_timeout_s
        self._is_draining = True
        left = await wait_until_held(driver, HOLDING * self.config.limits.leave_timeout_s)
        driver.feed(events.Depart(self.is_brief))
        while not self._has_left and asyncio.get_running_loop().time() < deadline:
            await self.wait_for_news(POLL_S)
        self.log.info("node_left", repaired=self._has_left)
        self._keep_state(core.ref.incarnation, left=True)
        return left

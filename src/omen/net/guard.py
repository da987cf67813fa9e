"""Everything that stands between a node and those who connect to it. It outlasts the lives of the node."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omen.errors import InvalidInput
from omen.net.access import Access
from omen.net.credentials import Credentials
from omen.net.handshake import Handshake, certified_names
from omen.net.hello import Hello, Refused
from omen.net.limits import REMEMBERED, Backoff, Bucket, Census, Lines
from omen.net.logs import Log
from omen.net.security import Rule, Security
from omen.protocol.events import NodeId

if TYPE_CHECKING:
    from omen.net.connection import Connection
    from omen.net.settings import Limits, NodeConfig

OFFENCES = frozenset({"stranger", "hello", "frame", "secret", "certificate", "identity", "banned", "access", "slow"})
"""Reasons after which an address, or a node that has shown who it is, is not heard for a while."""


class Rates:
    """What one peer may send: frames a second, and among them messages that are no publications."""

    def __init__(self, limits: Limits) -> None:
        self._frames = Bucket(limits.frames_per_s)
        self._messages = Bucket(limits.messages_per_s)

    def charge(self, frames: int, messages: int, now: float) -> float:
        """Count what has come; how long to read nothing from there."""
        return max(self._frames.take(frames, now), self._messages.take(messages, now))


class Guard:
    """`refused`: connections by reason. `credentials`: what is shown and believed. `access`: rules for topics."""

    def __init__(
        self,
        limits: Limits,
        log: Log,
        cluster: str = "",
        name: str = "",
        security: Security | None = None,
        rules: Sequence[Rule] = (),
    ) -> None:
        self.limits = limits
        self.credentials = Credentials(security or Security())
        self.access = Access(rules, name)
        self.refused: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.backoff = Backoff()
        self._unwelcome = Backoff()
        self.census = Census()
        self.lines = Lines()
        self._log = log
        self._cluster = cluster
        self._rates: OrderedDict[NodeId, Rates] = OrderedDict()

    @classmethod
    def of(cls, config: NodeConfig, log: Log) -> Guard:
        return cls(config.limits, log, config.cluster, config.name, config.security, config.access)

    async def watch_keys(self, renew: Callable[[], Awaitable[object]]) -> None:
        """Look at the files now and then; have everything renewed when one is not what it was."""
        while True:
            await asyncio.sleep(self.credentials.security.watch_s)
            if self.credentials.has_changed():
                await renew()

    def begin(
        self, own: Hello, dialled: bool, expected: int | None, certificate: Mapping[str, Any] | None
    ) -> Handshake:
        """A handshake by the keys in force now."""
        credentials = self.credentials
        names = None
        if credentials.contexts is not None:
            names = certified_names(certificate or {}, self._cluster)
        return Handshake(own, dialled, expected, credentials.secrets, names, credentials.security.refuse)

    def turn_away(self, address: str, now: float) -> Refused | None:
        """Why a connection from an address goes no further, before anything is read from it."""
        limits, census = self.limits, self.census
        if self.backoff.pause_left(address, now) and not census.members_by_address[address]:
            return Refused("what came from this address lately broke the protocol", "paused")
        if len(census) >= limits.connections:
            return Refused(f"{limits.connections} connections have come in already", "crowded")
        if census.by_address[address] >= limits.connections_per_address:
            return Refused(f"{limits.connections_per_address} connections from this address already", "crowded")
        if census.half_open_by_address[address] >= limits.half_open_per_address:
            return Refused("too many connections from this address have not said who they are", "crowded")
        return None

    def settle(self, connection: Connection, now: float) -> Refused | None:
        """It has shown who it is: why it is not heard nevertheless."""
        self.census.settle(connection)
        hello = connection.peer
        assert hello is not None
        if self.backoff.pause_left(hello.node, now):
            return Refused(f"{hello.name!r} broke the protocol lately", "paused")
        if self.access.rules:
            self.access.know_peer(hello.name)
        connection.rates = self._rates_of(hello.node)
        return None

    def _rates_of(self, node: NodeId) -> Rates:
        """By node and not by connection: to connect again brings nothing."""
        rates = self._rates.get(node)
        if rates is None:
            rates = self._rates[node] = Rates(self.limits)
            if len(self._rates) > REMEMBERED:
                self._rates.popitem(last=False)
        return rates

    def dial_pause(self, node: NodeId, now: float) -> float:
        """How long not to dial a node: because it broke the protocol, or will not have this one."""
        return max(self.backoff.pause_left(node, now), self._unwelcome.pause_left(node, now))

    def note_refusal(self, refusal: Refused, address: str, peer: Hello | None, now: float) -> None:
        """Count it, say it, and do not listen to whoever it was for a while."""
        self.refused[refusal.why] += 1
        if refusal.why in OFFENCES and not refusal.by_peer:
            who = address if peer is None else peer.node
            if who:
                self.backoff.strike(who, now)
        if refusal.by_peer and peer is not None:
            self._unwelcome.strike(peer.node, now)
        skipped = self.lines.skipped_before(now)
        if skipped is not None:
            facts = {"skipped": skipped} if skipped else {}
            name = peer.name if peer is not None else ""
            self._log.warning("refused", reason=str(refusal), peer=name, address=address, **facts)

    def paused(self) -> int:
        """How many addresses and nodes are not heard now."""
        return self.backoff.paused(asyncio.get_running_loop().time())

    def renew(self, security: Security | None = None, rules: Sequence[Rule] | None = None) -> bool:
        """Go by these settings, and by what the files hold now; whether anything is different.

        What cannot be read is said, and what was in force stays.
        """
        try:
            changed = self.credentials.renew(security or self.credentials.security)
        except InvalidInput as error:
            self.counts["renewals_failed"] += 1
            self._log.warning("keys stay as they were", reason=str(error))
            return False
        if rules is not None and tuple(rules) != self.access.rules:
            self.access.set_rules(rules)
            changed = True
        if changed:
            self.counts["renewals"] += 1
            self._log.info("keys renewed", version=self.credentials.version)
        return changed

"""Admission control: which connections go further, what one peer may send. It outlasts the incarnations of a node."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omen.errors import InvalidInput
from omen.net.observe.counters import AdmissionCounters
from omen.net.observe.logs import Log
from omen.net.security.access import Access
from omen.net.security.config import OFF, Rule, Security
from omen.net.security.credentials import Contexts, Credentials, check_certificate
from omen.net.security.handshake import Handshake, certified_names
from omen.net.security.hello import Hello, Reason, Refused
from omen.net.security.rate_limits import REMEMBERED, Bans, DialBudget, InboundConnections, Rates
from omen.protocol.events import NodeId

if TYPE_CHECKING:
    from omen.net.security.signing import Signatures
    from omen.net.settings import Limits, NodeConfig

OFFENCES = frozenset(
    {
        Reason.ACCESS,
        Reason.CERTIFICATE,
        Reason.FRAME,
        Reason.FRAME_TIMEOUT,
        Reason.HELLO,
        Reason.IDENTITY,
        Reason.NOT_A_NODE,
        Reason.REFUSED_NAME,
        Reason.SECRET,
    }
)
"""Reasons after which an address, or a node whose handshake has ended, is banned for a while."""


class AdmissionControl:
    """`refused`: connections by reason. `credentials`: what is shown and believed. `access`: rules for topics.

    `signatures`: what publications are signed and verified by; None where they never were.
    """

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
        self.counters = AdmissionCounters()
        self.bans = Bans()
        self._refused_by = Bans()
        self.inbound = InboundConnections()
        self.dials = DialBudget(limits.dials_per_asker_s)
        self._most = limits.connections
        self._log = log
        self._cluster = cluster
        self._name = name
        self._rates: OrderedDict[NodeId, Rates] = OrderedDict()
        self.signatures: Signatures | None = None
        self.renewal_error = ""
        self._renew_signatures()

    def _check_certificate(self, contexts: Contexts, path: str) -> None:
        check_certificate(contexts, path, self._cluster, self._name)

    def _renew_signatures(self) -> None:
        """Raises InvalidInput where they cannot be made or verified; then all stays as it was."""
        security = self.credentials.security
        if self.signatures is not None:
            self.signatures.renew(security)
        elif security.sign or security.verify != OFF:
            from omen.net.security.signing import Signatures  # late: it takes `cryptography`, and few nodes need it

            self.signatures = Signatures(security, self._cluster, self._name, self.access.know_peer)

    @classmethod
    def of(cls, config: NodeConfig, log: Log) -> AdmissionControl:
        return cls(config.limits, log, config.cluster, config.name, config.security, config.access)

    def fit_descriptors(self, available: int) -> None:
        """Let no peer use up the process's file descriptors: those for connections that this node makes are kept."""
        self._most = max(1, min(self.limits.connections, available - 2 * self.limits.outgoing))

    async def watch_keys(self, renew: Callable[[], Awaitable[object]]) -> None:
        """Look at the key files now and then; have everything renewed when one has changed."""
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
        limits, inbound = self.limits, self.inbound
        if self.bans.remaining(address, now) and not inbound.peers_by_address[address]:
            return Refused("this address is banned: it broke the protocol", Reason.BANNED)
        if len(inbound) >= self._most:
            return Refused(f"{self._most} connections are open already", Reason.CONNECTION_LIMIT)
        if inbound.by_address[address] >= limits.connections_per_address:
            most = limits.connections_per_address
            return Refused(f"{most} connections from this address are open already", Reason.CONNECTION_LIMIT)
        if inbound.half_open_by_address[address] >= limits.half_open_per_address:
            return Refused("too many half-open connections from this address", Reason.CONNECTION_LIMIT)
        return None

    def admit(self, connection: Hashable, hello: Hello, now: float) -> Rates:
        """Its handshake has ended: the rate limits it is under. Raises Refused where the node is banned."""
        self.inbound.settle(connection)
        if self.bans.remaining(hello.node, now):
            raise Refused(f"{hello.name!r} is banned: it broke the protocol", Reason.BANNED)
        if self.access.rules:
            self.access.know_peer(hello.name)
        return self.rates_of(hello.node)

    def set_limits(self, limits: Limits) -> None:
        """Go by these from now on. Rates begin anew: connections are to be given theirs again."""
        self.limits = limits
        self._rates.clear()

    def rates_of(self, node: NodeId) -> Rates:
        """By node and not by connection: to connect again brings nothing."""
        rates = self._rates.get(node)
        if rates is None:
            rates = self._rates[node] = Rates(self.limits)
            if len(self._rates) > REMEMBERED:
                self._rates.popitem(last=False)
        return rates

    def redial_delay(self, node: NodeId, now: float) -> float:
        """How long not to dial a node: it is banned here, or it has refused this node."""
        return max(self.bans.remaining(node, now), self._refused_by.remaining(node, now))

    def note_refusal(self, refusal: Refused, address: str, peer: Hello | None, now: float) -> None:
        """Count it, log it, and ban the address or node where it was an offence."""
        self.refused[refusal.reason] += 1
        if refusal.reason in OFFENCES and not refusal.by_peer:
            who = address if peer is None else peer.node
            if who:
                self.bans.ban(who, now)
        if refusal.by_peer and peer is not None:
            self._refused_by.ban(peer.node, now)
        name = peer.name if peer is not None else ""
        self._log.warning("connection_refused", peer=name, address=address, reason=refusal.reason, cause=str(refusal))

    def banned(self) -> int:
        """How many addresses and nodes are banned now."""
        return self.bans.active(asyncio.get_running_loop().time())

    def renew(self, security: Security | None = None, rules: Sequence[Rule] | None = None) -> bool:
        """Go by these settings, and by what the files hold now; whether anything is different.

        What cannot be read, or would be refused by others, is logged (`renewal_error`), and what was in force stays.
        """
        try:
            changed = self.credentials.renew(security or self.credentials.security, self._check_certificate)
            if changed:
                self._renew_signatures()
            self.renewal_error = ""
        except InvalidInput as error:
            self.renewal_error = str(error)
            self.counters.key_renewal_failures += 1
            self._log.warning("key_renewal_failed", cause=str(error))
            return False
        if rules is not None and tuple(rules) != self.access.rules:
            self.access.set_rules(rules)
            changed = True
        if changed:
            self.counters.key_renewals += 1
            self._log.info("keys_renewed", version=self.credentials.version)
        return changed

"""Finding the members to join through."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from omen.net.errors import NotJoined
from omen.net.security.hello import Hello, Reason, Refused
from omen.net.settings import NodeConfig
from omen.protocol.messages.base import Ref

POLL_S = 0.25
SEED_PATIENCE = 0.2  # of the time to join: then a node that is itself among those to join through begins alone
HOPELESS = frozenset(
    {
        Reason.CERTIFICATE,
        Reason.CLUSTER,
        Reason.IDENTITY,
        Reason.NOT_A_NODE,
        Reason.REFUSED_BY_PEER,
        Reason.REFUSED_NAME,
        Reason.SECRET,
        Reason.VERSION,
    }
)
"""Reasons for which another try would end the same way."""

Greet = Callable[[str], Awaitable[Hello]]
"""Dials an address and learns which node is there. Raises OSError or Refused."""


async def find_contacts(config: NodeConfig, own_address: str, greet: Greet, deadline: float) -> tuple[Ref, ...]:
    """The members that answer, of those in `config.join`; none: this node is the first of its cluster.

    A node that is itself among them may be the first. NotJoined: no member answered by the deadline.
    """
    loop = asyncio.get_running_loop()
    others = [address for address in config.join if address not in (own_address, config.listen)]
    is_seed = len(others) < len(config.join)
    failure: Exception | None = None
    while others:
        found = []
        for address in list(others):
            try:
                hello = await greet(address)
                found.append(Ref(hello.node, hello.incarnation, hello.address))
            except Refused as refusal:
                if refusal.reason is Reason.SELF:
                    others.remove(address)
                    is_seed = True
                elif refusal.reason in HOPELESS:
                    raise NotJoined(f"{address}: {refusal}") from refusal
            except OSError as error:
                failure = error
        if found:
            return tuple(found)
        if is_seed and loop.time() > deadline - config.limits.join_timeout_s * (1 - SEED_PATIENCE):
            return ()
        if loop.time() > deadline:
            cause = str(failure or "") or "no answer"
            raise NotJoined(f"no member to join through at {', '.join(config.join)}: {cause}")
        await asyncio.sleep(POLL_S)
    return ()

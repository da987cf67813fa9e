"""Finding other members: all seeds at once, for as long as the node lives.

A node listens first, and looks for others meanwhile: seeds that list each other find each other whichever begins
first. Who answers is told to the core, which joins through it or, where it has a ring, makes one ring of two. So it
does not matter who began alone. Once the node has joined, one seed at a time is asked, with growing, jittered pauses.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from omen.errors import OmenError
from omen.net.errors import NotJoined
from omen.net.name_guard import NameGuard
from omen.net.names import split_address
from omen.net.observe.logs import Log
from omen.net.security.hello import Hello, Reason, Refused
from omen.net.seeds import SeedList, resolve
from omen.protocol.messages.base import Ref

POLL_S = 0.25
FIRST_PAUSE_S, GROWTH = 0.1, 1.5
LONGEST_PAUSE_S = 10.0
HOPE = 0.1  # how often a member asks a seed whose refusal should not pass
NODES_IN_TURN = 32  # a larger cluster asks seeds no more often, all its nodes together, than one of this many
LISTED_PATIENCE_S = 1.0  # a node that is itself a seed waits no longer for one that is silent before it begins alone
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
"""Reasons for which another try would end the same way, as far as one can tell."""

Greet = Callable[[str], Awaitable[Hello]]
"""Dials an address and learns which node is there. Raises OSError or Refused."""


class Joiner(Protocol):
    """The node that looks for others: what a search asks of it, and tells."""

    @property
    def is_joined(self) -> bool: ...

    @property
    def guard(self) -> NameGuard: ...

    def is_connected(self, node: int) -> bool: ...

    def estimate_nodes(self) -> int: ...

    def on_contact(self, ref: Ref) -> None: ...

    def on_outcome(self) -> None: ...

    async def wait_for_news(self, at_most: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of asking an address. `hello`: which node answered; `is_self`: it was this one."""

    cause: str = ""
    hello: Hello | None = None
    is_self: bool = False
    is_hopeless: bool = False


class SeedSearch:
    """Asks the seeds of one node. `outcomes`: the last of each address, by seed and address."""

    def __init__(self, seeds: SeedList, own: tuple[str, ...], greet: Greet, joiner: Joiner, log: Log) -> None:
        self.seeds = seeds
        self._own = own
        self._greet = greet
        self._joiner = joiner
        self._log = log
        self._random = random.Random()
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self.outcomes: dict[tuple[str, str], Outcome] = {}
        self._asking: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._skip: set[str] = set()
        self._known: tuple[str, ...] = ()
        self._file_error = ""
        self._incarnation = 0
        self._is_resting = False
        self._is_listed = False
        self._has_resolved = False
        self._changed = asyncio.Event()

    def set_seeds(self, addresses: tuple[str, ...], path: str = "") -> None:
        """Ask these from now on, and at once; what came of others counts no more."""
        self.seeds.set_addresses(addresses, path)
        self._forget_others(self.seeds.current())
        self._changed.set()

    def rest(self) -> None:
        """Ask none until another incarnation begins: this one has ended."""
        self._incarnation += 1
        self._is_resting = True
        for task in self._asking.values():
            task.cancel()
        self._asking.clear()
        self.outcomes.clear()

    def begin_again(self, known: tuple[str, ...]) -> None:
        """Another incarnation looks for its cluster: what came of asking for the former says nothing of this one.

        `known`: addresses that are asked too until it has joined. A node without seeds that gave its name up would
        otherwise begin alone at once, under a higher incarnation, and take the name from the one that has it.
        """
        self._is_resting = self._has_resolved = False
        self._known = known
        self._begun = self._loop.time()
        self._changed.set()

    def _forget_others(self, seeds: tuple[str, ...]) -> None:
        """A seed that is none any more is neither unreachable nor a reason to wait."""
        for key in [key for key in self.outcomes if key[0] not in seeds]:
            del self.outcomes[key]
        for key, task in self._asking.items():
            if key[0] not in seeds:
                task.cancel()

    @property
    def is_first(self) -> bool:
        """Whether there is no other to wait for: no seed, or this node is one and no other has answered."""
        if not self.seeds and not self._known:
            return True
        is_listed = self._is_listed or not self.seeds
        if not is_listed or any(outcome.hello is not None for outcome in self.outcomes.values()):
            return False
        return not self._is_waiting() or self._loop.time() - self._begun >= LISTED_PATIENCE_S

    @property
    def is_hopeless(self) -> bool:
        """Whether every seed has refused this node for a reason that will not pass."""
        return bool(self.outcomes) and not self._is_waiting() and all(o.is_hopeless for o in self.outcomes.values())

    @property
    def unreachable(self) -> list[str]:
        """Seeds of which no address answered when it was last asked."""
        answered = {seed for (seed, _), one in self.outcomes.items() if one.hello is not None or one.is_self}
        return sorted({seed for seed, _ in self.outcomes} - answered)

    def _is_waiting(self) -> bool:
        return not self._has_resolved or any(key not in self.outcomes for key in self._asking)

    def explain(self) -> str:
        """What came of each seed, in words."""
        causes = [f"{_label(*key)}: {outcome.cause or 'no answer'}" for key, outcome in sorted(self.outcomes.items())]
        causes += [f"{_label(*key)}: no answer yet" for key in sorted(self._asking) if key not in self.outcomes]
        causes += [self.seeds.error] if self.seeds.error else []
        return "; ".join(causes) or "no seed is known"

    async def run(self) -> None:
        """Ask for ever."""
        tries = 0
        try:
            while True:
                await self._ask_round()
                tries += 1
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause(tries) * (0.5 + 0.5 * self._random.random())):
                        await self._changed.wait()
                        tries = 0
                self._changed.clear()
        finally:
            for task in self._asking.values():
                task.cancel()

    def _pause(self, tries: int) -> float:
        pause = min(FIRST_PAUSE_S * GROWTH ** min(tries, 30), LONGEST_PAUSE_S)
        if not self._joiner.is_joined:
            return min(pause, 1.0)
        return pause * max(1.0, self._joiner.estimate_nodes() / NODES_IN_TURN)

    async def _ask_round(self) -> None:
        """All seeds at once while this node has not joined; one that is no neighbour, once it has."""
        if self._is_resting:
            return
        incarnation = self._incarnation
        current = self.seeds.current()
        self._note_file()
        if not self._joiner.is_joined:
            current = tuple(dict.fromkeys((*current, *self._known)))
        self._forget_others(current)
        seeds = [seed for seed in current if seed not in self._skip]
        for seed in self._own:
            if seed in seeds:
                seeds.remove(seed)
                self._is_listed = True
        if self._joiner.is_joined:
            seeds = [seed for seed in seeds if not self._is_near(seed)]
            seeds = self._random.sample(seeds, min(len(seeds), 1))
            if seeds and self._has_refused(seeds[0]) and self._random.random() > HOPE:
                return
        found = await asyncio.gather(*(self._resolve(seed) for seed in seeds))
        if incarnation != self._incarnation:
            return
        self._has_resolved = True
        for seed, addresses in zip(seeds, found, strict=True):
            for address in addresses:
                if address in self._own:
                    self._is_listed = True
                elif (seed, address) not in self._asking:
                    self._asking[seed, address] = asyncio.ensure_future(self._ask(seed, address))
        self._joiner.on_outcome()

    def _note_file(self) -> None:
        """A file of seeds that is of no use is said as a seed is: at each attempt, once joined where it is news."""
        error = self.seeds.error
        if error and (error != self._file_error or not self._joiner.is_joined):
            self._log.warning("seeds_not_read", cause=error)
        self._file_error = error

    def _is_near(self, seed: str) -> bool:
        """Whether connections are kept to all nodes that answered for a seed."""
        nodes = [outcome.hello for (of, _), outcome in self.outcomes.items() if of == seed and not outcome.is_self]
        return bool(nodes) and all(hello is not None and self._joiner.is_connected(hello.node) for hello in nodes)

    def _has_refused(self, seed: str) -> bool:
        return any(of == seed and outcome.is_hopeless for (of, _), outcome in self.outcomes.items())

    async def _resolve(self, seed: str) -> tuple[str, ...]:
        try:
            addresses = await resolve(seed)
        except OSError as error:
            self._note(seed, "", Outcome(f"no address is known for {split_address(seed)[0]!r}: {_words(error)}"))
            return ()
        for key in [key for key in self.outcomes if key[0] == seed and key[1] not in addresses]:
            del self.outcomes[key]
        return addresses

    async def _ask(self, seed: str, address: str) -> None:
        before = self.outcomes.get((seed, address))
        hello = before.hello if before is not None else None
        try:
            if hello is None or not self._joiner.is_connected(hello.node):
                hello = await self._greet(address)
            self._note(seed, address, Outcome(hello=hello))
            self._joiner.on_contact(Ref(hello.node, hello.incarnation, hello.address))
        except Refused as refusal:
            is_self = refusal.reason is Reason.SELF
            self._is_listed |= is_self
            if is_self:
                self._skip.add(seed) if address == seed else None
            self._note(
                seed, address, Outcome(str(refusal), None, is_self, (refusal.said or refusal.reason) in HOPELESS)
            )
        except (OSError, OmenError) as error:
            self._note(seed, address, Outcome(_words(error)))
        finally:
            if self._asking.get((seed, address)) is asyncio.current_task():
                del self._asking[seed, address]
            self._joiner.on_outcome()

    def _note(self, seed: str, address: str, outcome: Outcome) -> None:
        """Each attempt is logged until the node has joined; after that only what is news."""
        before = self.outcomes.get((seed, address))
        self.outcomes[seed, address] = outcome
        if outcome.is_self:
            return
        was_same = before is not None and (before.cause, before.hello) == (outcome.cause, outcome.hello)
        if was_same and (self._joiner.is_joined or outcome.hello is not None):
            return
        if outcome.hello is not None:
            self._log.info("seed_answered", seed=seed, address=address, peer=outcome.hello.name)
        else:
            self._log.warning("seed_skipped", seed=seed, address=address, cause=outcome.cause)


async def wait_until_joined(search: SeedSearch, joiner: Joiner, timeout_s: float) -> None:
    """Until the node is a member. NotJoined: it cannot be, or was not in time (0: however long it takes)."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s if timeout_s else float("inf")
    while not joiner.is_joined and (joiner.guard.error is not None or not search.is_first):
        guard, seeds = joiner.guard, ", ".join(search.seeds.current())
        where = f" at {seeds}" if seeds else ""
        if guard.error is not None:
            raise guard.error
        if guard.unreachable:
            raise NotJoined(guard.unreachable)
        if search.is_hopeless:
            raise NotJoined(f"no member to join through{where}: {search.explain()}")
        if loop.time() >= deadline:
            raise NotJoined(f"no member to join through{where} within {timeout_s:g} s: {search.explain()}")
        await joiner.wait_for_news(min(POLL_S, max(deadline - loop.time(), 0.01)))


def _label(seed: str, address: str) -> str:
    return seed if address in ("", seed) else f"{seed} ({address})"


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(getattr(error, "strerror", "") or error) or type(error).__name__

"""Finding the successor of a place on the ring: ask the nearest known, then the nearest it names, until none is
nearer.

A node that seeks its own place knows no ring: it is passed over, unless there is no other. It names the nodes that it
asks itself, so that a lookup ends with such a node only after all of these were asked as well.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId, Timer
from omen.protocol.membership.ring import clockwise
from omen.protocol.messages.overlay import Locate, Located, Ref


class LookupPurpose(msgspec.Struct, frozen=True, gc=False):
    """Base of what a lookup is for. Each part that looks something up defines its own."""


class LookupTimer(Timer, frozen=True):
    """A peer has had its time to answer."""

    nonce: int
    node: NodeId


class LookupDone(msgspec.Struct, frozen=True):
    """A lookup has ended: who follows the place, None where no peer answered, and everyone met on the way.

    `in_doubt`: only nodes that seek their own place have answered, and others that may have one are silent.
    """

    purpose: LookupPurpose
    successor: Ref | None
    met: list[Ref]
    in_doubt: bool = False


class Lookup(msgspec.Struct):
    """One lookup under way."""

    target: NodeId
    purpose: LookupPurpose
    candidates: dict[NodeId, Ref]
    others: tuple[Ref, ...] = ()
    asked: set[NodeId] = msgspec.field(default_factory=set)
    silent: set[NodeId] = msgspec.field(default_factory=set)
    answered: set[NodeId] = msgspec.field(default_factory=set)
    seeking: set[NodeId] = msgspec.field(default_factory=set)

    def counts_on(self, ref: Ref) -> bool:
        """Whether it was asked in this incarnation, at this address, and is not silent."""
        return self.candidates.get(ref.id) == ref and ref.id in self.asked - self.silent


class RingLookup:
    """Runs lookups; where no peer answers, none is met."""

    def __init__(self, context: NodeContext) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._out = context.out
        self._lookups: dict[int, Lookup] = {}
        self._next = 0

    @property
    def open_count(self) -> int:
        """How many lookups are under way."""
        return len(self._lookups)

    def find(self, target: NodeId, purpose: LookupPurpose, known: Iterable[Ref], others: Iterable[Ref] = ()) -> None:
        """Ask around for the node that follows `target`; `known` is where to begin."""
        self._next += 1
        candidates = {ref.id: ref for ref in known if ref.id not in (target, self._peer_table.id)}
        self._lookups[self._next] = Lookup(target, purpose, candidates, tuple(others))
        self._ask(self._next)

    def find_anew(
        self, target: NodeId, purpose: LookupPurpose, known: Iterable[Ref], others: Iterable[Ref] = ()
    ) -> None:
        """In place of what is under way for it. `others`: to be asked where those have no place, or are silent."""
        self._lookups = {nonce: lookup for nonce, lookup in self._lookups.items() if lookup.purpose != purpose}
        self.find(target, purpose, known, others)

    def goes_on_with(self, purpose: LookupPurpose, met: Iterable[Ref]) -> bool:
        """Whether a lookup for this has heard a node that has its place, or has heard or waits for all of these.

        Two that seek their place, and meet again and again, would else begin anew without end.
        """
        lookups = [lookup for lookup in self._lookups.values() if lookup.purpose == purpose]
        has_ring = any(lookup.answered - lookup.seeking for lookup in lookups)
        return has_ring or any(all(lookup.counts_on(ref) for ref in met) for lookup in lookups)

    def on_located(self, sender: NodeId, message: Located) -> LookupDone | None:
        lookup = self._lookups.get(message.nonce)
        if lookup is None or lookup.target != message.target:
            return None
        lookup.answered.add(sender)
        for ref in message.nodes:
            if ref.id not in (lookup.target, self._peer_table.id) and not self._peer_table.is_declared_failed(ref):
                lookup.candidates.setdefault(ref.id, ref)
        if message.seeking:
            lookup.seeking.add(sender)
            self._take_others_in(lookup)
            self._ask_all(message.nonce)
        return self._advance(message.nonce)

    def on_timer(self, timer: LookupTimer) -> LookupDone | None:
        """A peer that has not answered by now is passed over."""
        nonce, node = timer.nonce, timer.node
        lookup = self._lookups.get(nonce)
        if lookup is None or node in lookup.answered:
            return None
        lookup.silent.add(node)
        return self._advance(nonce)

    def _advance(self, nonce: int) -> LookupDone | None:
        lookup = self._lookups[nonce]
        best = self._best(lookup)
        if best is None and lookup.others:
            self._take_others_in(lookup)
            best = self._best(lookup)
        if best is not None and best.id not in lookup.answered:
            if best.id not in lookup.asked:
                self._ask(nonce)
            return None
        del self._lookups[nonce]
        if best is None:
            return LookupDone(lookup.purpose, None, [])
        if best.id in lookup.seeking:
            silent = (lookup.candidates[node] for node in lookup.silent)
            in_doubt = not all(map(self._peer_table.is_declared_failed, silent))
            return LookupDone(lookup.purpose, best, list(lookup.candidates.values()), in_doubt)
        met = [ref for ref in lookup.candidates.values() if ref.id not in lookup.seeking]
        return LookupDone(lookup.purpose, best, met)

    def _take_others_in(self, lookup: Lookup) -> None:
        for ref in lookup.others:
            if ref.id not in (lookup.target, self._peer_table.id):
                lookup.candidates.setdefault(ref.id, ref)
        lookup.others = ()

    def _best(self, lookup: Lookup) -> Ref | None:
        open_to = [ref for ref in lookup.candidates.values() if ref.id not in lookup.silent]
        placed = [ref for ref in open_to if ref.id not in lookup.seeking]
        return min(placed or open_to, key=lambda ref: clockwise(lookup.target, ref.id), default=None)

    def _ask(self, nonce: int) -> None:
        best = self._best(self._lookups[nonce])
        if best is not None:
            self._ask_one(nonce, best)

    def _ask_all(self, nonce: int) -> None:
        """Where some have no place, any may have one: all at once, or each silent one would be waited for."""
        lookup = self._lookups[nonce]
        for ref in list(lookup.candidates.values()):
            if ref.id not in lookup.asked:
                self._ask_one(nonce, ref)

    def _ask_one(self, nonce: int, ref: Ref) -> None:
        lookup = self._lookups[nonce]
        lookup.asked.add(ref.id)
        self._out.send(ref, Locate(self._peer_table.ref, nonce, lookup.target))
        self._out.set_timer(LookupTimer(nonce, ref.id), self._config.answer_timeout * 2)

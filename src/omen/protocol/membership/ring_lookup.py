"""Finding who follows a place on the circle: ask the nearest known, then the nearest it names, till none is nearer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.events import NodeId
from omen.protocol.membership.circle import clockwise
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.messages.overlay import Locate, Located, Ref


@dataclass(slots=True)
class Search:
    """One question under way."""

    target: NodeId
    purpose: object
    candidates: dict[NodeId, Ref]
    asked: set[NodeId] = field(default_factory=set)
    silent: set[NodeId] = field(default_factory=set)
    answered: set[NodeId] = field(default_factory=set)


class RingLookup:
    """Runs searches; a finished one is returned as (purpose, successor or None, everyone met on the way).

    Nobody is met where nobody answers.
    """

    def __init__(self, peer_table: PeerTable, config: Config, out: Outbox) -> None:
        self._peer_table = peer_table
        self._config = config
        self._out = out
        self._searches: dict[int, Search] = {}
        self._next = 0

    @property
    def open_count(self) -> int:
        """How many searches are under way."""
        return len(self._searches)

    def search(self, target: NodeId, purpose: object, known: Iterable[Ref]) -> None:
        """Ask around for the node that follows `target`; `known` is where to begin."""
        self._next += 1
        candidates = {ref.id: ref for ref in known if ref.id not in (target, self._peer_table.id)}
        self._searches[self._next] = Search(target, purpose, candidates)
        self._ask(self._next)

    def on_located(self, message: Located, sender: NodeId) -> tuple[object, Ref | None, list[Ref]] | None:
        search = self._searches.get(message.nonce)
        if search is None or search.target != message.target:
            return None
        search.answered.add(sender)
        for ref in message.nodes:
            if ref.id not in (search.target, self._peer_table.id) and not self._peer_table.is_declared_failed(ref):
                search.candidates.setdefault(ref.id, ref)
        return self._advance(message.nonce)

    def on_timer(self, nonce: int, node: NodeId) -> tuple[object, Ref | None, list[Ref]] | None:
        """Whoever has not answered by now is passed over."""
        search = self._searches.get(nonce)
        if search is None or node in search.answered:
            return None
        search.silent.add(node)
        return self._advance(nonce)

    def _advance(self, nonce: int) -> tuple[object, Ref | None, list[Ref]] | None:
        search = self._searches[nonce]
        best = self._best(search)
        if best is not None and best.id not in search.answered:
            if best.id not in search.asked:
                self._ask(nonce)
            return None
        del self._searches[nonce]
        met = [] if best is None else list(search.candidates.values())
        return search.purpose, best, met

    def _best(self, search: Search) -> Ref | None:
        open_to = [ref for ref in search.candidates.values() if ref.id not in search.silent]
        return min(open_to, key=lambda ref: clockwise(search.target, ref.id), default=None)

    def _ask(self, nonce: int) -> None:
        search = self._searches[nonce]
        best = self._best(search)
        if best is None:
            return
        search.asked.add(best.id)
        self._out.send(best, Locate(self._peer_table.ref, nonce, search.target))
        self._out.set_timer(("locate", nonce, best.id), self._config.answer_timeout * 2)

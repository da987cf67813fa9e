"""Peer sampling by shuffling, after Cyclon: a small view of nodes that behaves like a uniform draw from all of them."""

from __future__ import annotations

from omen.protocol.context import NodeContext
from omen.protocol.events import Handlers, NodeId
from omen.protocol.messages.overlay import Ref, Shuffle, ShuffleReply


class PeerSampling:
    """Keeps `view`: place -> (reference, age in rounds)."""

    def __init__(self, context: NodeContext) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._random = context.random
        self._out = context.out
        self.view: dict[NodeId, tuple[Ref, int]] = {}
        self._given_away: list[NodeId] = []

    def handlers(self) -> Handlers:
        return {Shuffle: self.on_shuffle, ShuffleReply: self.on_reply}

    def add(self, ref: Ref) -> None:
        """Take a node in, where there is room or it replaces its own former incarnation."""
        if ref.id == self._peer_table.id or self._peer_table.is_declared_failed(ref):
            return
        present = self.view.get(ref.id)
        if present is not None:
            if ref.incarnation > present[0].incarnation:
                self.view[ref.id] = (ref, 0)
        elif len(self.view) < self._config.sample_size:
            self.view[ref.id] = (ref, 0)

    def drop(self, node: NodeId) -> None:
        self.view.pop(node, None)

    def shuffle(self) -> None:
        """Once per round: swap a few entries with the one not heard of for longest."""
        if not self.view:
            return
        self.view = {node: (ref, age + 1) for node, (ref, age) in self.view.items()}
        _, oldest = max([(age, node) for node, (_, age) in self.view.items()])
        partner, _ = self.view.pop(oldest)
        entries = self._draw(self._config.shuffle_size - 1)
        self._given_away = [ref.id for ref, _ in entries]
        self._out.send(partner, Shuffle(((self._peer_table.ref, 0), *entries)))

    def on_shuffle(self, sender: NodeId, message: Shuffle) -> None:
        reply = self._draw(self._config.shuffle_size)
        asker = next((ref for ref, _ in message.entries if ref.id == sender), None)
        if asker is not None:
            self._out.send(asker, ShuffleReply(reply))
        self._merge(message.entries, [ref.id for ref, _ in reply])

    def on_reply(self, _: NodeId, message: ShuffleReply) -> None:
        self._merge(message.entries, self._given_away)
        self._given_away = []

    def _draw(self, count: int) -> tuple[tuple[Ref, int], ...]:
        nodes = list(self.view)
        if len(nodes) > count:
            nodes = self._random.sample(nodes, count)
        return tuple(self.view[node] for node in nodes)

    def _merge(self, entries: tuple[tuple[Ref, int], ...], given_away: list[NodeId]) -> None:
        """New entries fill empty places first, then those of entries that were given away."""
        replaceable = list(given_away)
        for ref, age in entries[: self._config.shuffle_size]:
            if ref.id == self._peer_table.id or self._peer_table.is_declared_failed(ref):
                continue
            present = self.view.get(ref.id)
            if present is not None:
                if (ref.incarnation, -age) > (present[0].incarnation, -present[1]):
                    self.view[ref.id] = (ref, age)
                continue
            if len(self.view) >= self._config.sample_size:
                while replaceable and replaceable[-1] not in self.view:
                    replaceable.pop()
                if not replaceable:
                    continue
                del self.view[replaceable.pop()]
            self.view[ref.id] = (ref, age)

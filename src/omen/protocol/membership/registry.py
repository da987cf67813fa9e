"""The global view of OMen-G (omen 6.1): one registry of everybody, shared by all nodes of a driver.

Impractical, and only for comparing: what differs from OMen is what a node knows of others when it chooses backups,
never what it does with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from omen.protocol.events import NodeId, Time, Topic
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.messages.overlay import Descriptor


class Registry:
    """`known`: the last descriptor of everybody who ever was there. `topic_sets`: the topics of those who are.

    `log`: who came, went, or wants other topics, in that order.
    """

    def __init__(self) -> None:
        self.known: dict[NodeId, Descriptor] = {}
        self.topic_sets: dict[NodeId, frozenset[Topic]] = {}
        self.log: list[NodeId] = []

    def publish(self, descriptor: Descriptor) -> None:
        """A node is there, and this is how it is."""
        node = descriptor.digest.ref.id
        before = self.known.get(node)
        self.known[node] = descriptor
        if node not in self.topic_sets or before is None or before.topics != descriptor.topics:
            self.topic_sets[node] = frozenset(descriptor.topics)
            self.log.append(node)

    def withdraw(self, node: NodeId) -> None:
        """A node is gone. How it was last stays: whoever mends has to know."""
        if self.topic_sets.pop(node, None) is not None:
            self.log.append(node)


class SharedPeerTable(PeerTable):
    """A node's book that holds what the registry holds. Only the tombstones are its own."""

    def __init__(self, me: Descriptor, tombstone_life: Time, registry: Registry) -> None:
        super().__init__(me, tombstone_life)
        self._registry = registry
        self.known = registry.known
        self.topic_sets = registry.topic_sets
        registry.publish(me)

    def describe(self, me: Descriptor) -> None:
        super().describe(me)
        self._registry.publish(me)

    def topics_of(self, node: NodeId) -> frozenset[Topic]:
        """Also of those who are gone: the topics their loss is about."""
        if node == self.id or node in self.topic_sets:
            return super().topics_of(node)
        known = self.known.get(node)
        return frozenset(known.topics) if known is not None else frozenset()

    def learn(self, descriptor: Descriptor) -> bool:
        return False

    def forget(self, node: NodeId) -> None:
        pass

    def retain(self, useful: Iterable[NodeId]) -> None:
        pass

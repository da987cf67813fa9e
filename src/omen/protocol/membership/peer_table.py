"""What a node knows of others: descriptors by place on the ring, and tombstones of incarnations that have ended.

`Registry` is the global view of OMen-G (omen 6.1), shared by all nodes of a driver. It is impractical, and there for
comparison alone: what differs from OMen is what a node knows of others when it chooses backups, never what it does
with that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from weakref import WeakValueDictionary

from omen.protocol.events import NodeId, Time, Topic
from omen.protocol.messages.overlay import Descriptor, Digest, Ref

BROUGHT_AT_MOST = 1 << 18
"""Topics of other nodes that one peer may have brought, as long as they are kept: about 25 MB."""


class PeerTable:
    """Bounded by `retain`: each round the peers that are of no use to any part of the node are forgotten.

    `version` counts the changes of `known`, for those who keep something made from it. A peer may have this node keep
    so many topics of others at once (`BROUGHT_AT_MOST`): what it brings beyond that is not taken from it. `id` and
    `ref` are this node's own: a table is of one incarnation.
    """

    def __init__(
        self, me: Descriptor, tombstone_life: Time, tombstones: Mapping[NodeId, tuple[int, Time]] | None = None
    ) -> None:
        self.me = me
        self.ref = me.digest.ref
        self.id = self.ref.id
        self._my_topics = frozenset(me.topics)
        self.known: dict[NodeId, Descriptor] = {}
        self.topic_sets: dict[NodeId, frozenset[Topic]] = {}
        self.tombstones = dict(tombstones or {})
        self._brought_by: dict[NodeId, NodeId] = {}
        self._brought: Counter[NodeId] = Counter()
        self.version = 0
        self._tombstone_life = tombstone_life

    def describe(self, me: Descriptor) -> None:
        """This node itself has changed."""
        if me.topics != self.me.topics:
            self._my_topics = frozenset(me.topics)
        self.me = me

    def outrun(self, digest: Digest) -> None:
        """Others hold a later digest of this node than its own: go beyond it, so that they listen."""
        mine = self.me.digest
        topics = max(digest.topics_version + 1, mine.topics_version)
        fresh = Digest(mine.ref, topics, max(digest.links_version, mine.links_version) + 1)
        self.describe(Descriptor(fresh, self.me.topics, self.me.neighbours, self.me.rules))

    def is_declared_failed(self, ref: Ref) -> bool:
        """Whether this incarnation of the node is known to have ended."""
        ended = self.tombstones.get(ref.id)
        return ended is not None and ref.incarnation <= ended[0]

    def has_begun_anew(self, node: NodeId, incarnation: int) -> bool:
        """Whether a later incarnation of the node is known; it may be this node itself."""
        known = self.get(node)
        return known is not None and known.digest.ref.incarnation > incarnation

    def latest(self, ref: Ref) -> Ref:
        """The same node in the latest incarnation that is known here."""
        known = self.get(ref.id)
        return known.digest.ref if known is not None and known.digest.ref.incarnation > ref.incarnation else ref

    def has_ended(self, ref: Ref) -> bool:
        """Whether it was declared failed, or has begun anew."""
        return self.is_declared_failed(ref) or self.has_begun_anew(ref.id, ref.incarnation)

    def declare_failed(self, node: NodeId, incarnation: int, now: Time, life: Time | None = None) -> None:
        """Remember for a while that this incarnation of a node has ended, and forget what was known of it."""
        before = self.tombstones.get(node)
        if before is None or before[0] < incarnation:
            self.tombstones[node] = (incarnation, now + (self._tombstone_life if life is None else life))
        known = self.known.get(node)
        if known is not None and known.digest.ref.incarnation <= incarnation:
            self.forget(node)

    def forget(self, node: NodeId) -> None:
        if self.known.pop(node, None) is not None:
            self.version += 1
        self._unload(node, len(self.topic_sets.pop(node, ())))

    def has_room_for(self, sender: NodeId) -> bool:
        """Whether a peer may still bring something of others."""
        return self._brought[sender] < BROUGHT_AT_MOST

    def _unload(self, node: NodeId, topics: int) -> None:
        sender = self._brought_by.pop(node, None)
        if sender is not None:
            self._brought[sender] -= topics + 1
            if self._brought[sender] <= 0:
                del self._brought[sender]

    def learn(self, descriptor: Descriptor, sender: NodeId | None = None) -> bool:
        """Take in a descriptor where it is newer; whether the node's topics were news. `sender`: which peer brings it,
        where that is not the node itself.
        """
        ref = descriptor.digest.ref
        if ref.id == self.id or self.is_declared_failed(ref):
            return False
        known = self.known.get(ref.id)
        if known is not None and not is_newer(descriptor.digest, known.digest):
            return False
        if sender is not None and self._brought[sender] + len(descriptor.topics) > BROUGHT_AT_MOST:
            return False
        self.known[ref.id] = descriptor
        self.version += 1
        if known is not None and known.topics == descriptor.topics:
            return False
        self._unload(ref.id, len(self.topic_sets.get(ref.id, ())))
        if sender is not None:
            self._brought_by[ref.id] = sender
            self._brought[sender] += len(descriptor.topics) + 1
        self.topic_sets[ref.id] = topic_set(descriptor.topics)
        return True

    def lacks(self, digest: Digest) -> bool:
        """Whether the descriptor behind a digest would be news."""
        if digest.ref.id == self.id or self.is_declared_failed(digest.ref):
            return False
        known = self.known.get(digest.ref.id)
        return known is None or is_newer(digest, known.digest)

    def topics_of(self, node: NodeId) -> frozenset[Topic]:
        if node == self.id:
            return self._my_topics
        return self.topic_sets.get(node, frozenset())

    def topics_stamp(self) -> int:
        """As long as this is the same, so are the topics of all peers."""
        return self.version

    def get(self, node: NodeId) -> Descriptor | None:
        return self.me if node == self.id else self.known.get(node)

    def retain(self, useful: Iterable[NodeId]) -> None:
        """Forget all other peers."""
        keep = set(useful)
        for node in [node for node in self.known if node not in keep]:
            self.forget(node)


_shared: WeakValueDictionary[int, frozenset[Topic]] = WeakValueDictionary()


def topic_set(topics: tuple[Topic, ...]) -> frozenset[Topic]:
    """The topics as a set: one for all nodes of a process that know the same list, as long as one of them does."""
    known = _shared.get(hash(topics))
    if known is not None and len(known) == len(topics) and known.issuperset(topics):
        return known
    made = _shared[hash(topics)] = frozenset(topics)
    return made


def is_newer(one: Digest, other: Digest) -> bool:
    """Whether `one` describes a later state than `other`: incarnation first, then topics or links."""
    if one.ref.incarnation != other.ref.incarnation:
        return one.ref.incarnation > other.ref.incarnation
    return one.topics_version > other.topics_version or one.links_version > other.links_version


class Registry:
    """`known`: the last descriptor of every node that ever was there. `topic_sets`: the topics of those that are.

    `log`: which nodes joined, ended, or want other topics, in that order.
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
        """A node has failed or left. Its last descriptor stays: the coordinator of its repair has to know it."""
        if self.topic_sets.pop(node, None) is not None:
            self.log.append(node)


class SharedPeerTable(PeerTable):
    """A peer table that holds what the registry holds. Only the tombstones are its own."""

    def __init__(
        self,
        me: Descriptor,
        tombstone_life: Time,
        tombstones: Mapping[NodeId, tuple[int, Time]] | None,
        registry: Registry,
    ) -> None:
        super().__init__(me, tombstone_life, tombstones)
        self._registry = registry
        self.known = registry.known
        self.topic_sets = registry.topic_sets
        registry.publish(me)

    def topics_stamp(self) -> int:
        return len(self._registry.log)

    def describe(self, me: Descriptor) -> None:
        super().describe(me)
        self._registry.publish(me)

    def topics_of(self, node: NodeId) -> frozenset[Topic]:
        """Also of those that have failed or left: the topics their loss is about."""
        if node == self.id or node in self.topic_sets:
            return super().topics_of(node)
        known = self.known.get(node)
        return frozenset(known.topics) if known is not None else frozenset()

    def learn(self, descriptor: Descriptor, sender: NodeId | None = None) -> bool:
        return False

    def forget(self, node: NodeId) -> None:
        pass

    def retain(self, useful: Iterable[NodeId]) -> None:
        pass

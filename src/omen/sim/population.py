"""A population of OMen nodes in a world, by the user's own labels: set up from an overlay, churned, judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from omen.interests import Interests, Label, label_array, label_keys
from omen.overlay import Overlay
from omen.protocol.config import Config
from omen.protocol.events import ContactsFound, Depart, Engine, NodeId, Subscribe, Topic
from omen.protocol.membership.peer_table import Registry
from omen.protocol.membership.ring import SPARE, place_of
from omen.protocol.messages.base import LinkRules
from omen.protocol.messages.overlay import Descriptor, Digest, Ref
from omen.protocol.node import OmenNode
from omen.sim.world import NO_NODE, World, generator_for


class Population:
    """Labels at the edge, places on the ring inside. A label that rejoins is the same place in a later incarnation.

    `places`: where some labels stand; the others are placed by their hash. `contacts`: how many members a newcomer
    knows of. `link_rules`: of nodes that have their own; nodes are made with what stands there.
    """

    def __init__(
        self,
        world: World,
        config: Config,
        engine: Engine,
        places: Mapping[Label, NodeId] | None = None,
        contacts: int = 1,
    ) -> None:
        self.world = world
        self.config = config
        self.engine = engine
        self.link_rules: dict[Label, LinkRules] = {}
        self.labels: dict[NodeId, Label] = {}
        self.topic_labels: dict[Topic, Label] = {}
        self.cores: dict[NodeId, OmenNode] = {}
        self._places = dict(places or {})
        self._contacts = contacts
        self._incarnations: dict[NodeId, int] = {}
        self._wanted: dict[NodeId, set[Topic]] = {}
        self._codes: dict[NodeId, tuple[tuple[Topic, ...], npt.NDArray[np.int64]]] = {}
        self._topics = label_array([], "topic")
        self._code_of: dict[Topic, int] = {}
        self._last_busy = NO_NODE
        self._random = generator_for(world.seed, "population")
        self.registry = Registry() if config.global_view else None

    def place(self, label: Label) -> NodeId:
        """Where a node of this name stands."""
        node = self._places.get(label)
        if node is None:
            node = self._places[label] = place_of(str(label))
        self.labels[node] = label
        return node

    def set_up(self, interests: Interests, overlay: Overlay, absent: Iterable[Label] = ()) -> None:
        """Put all nodes in, linked as the overlay says, with ring and first samples in place."""
        left_out = set(absent)
        nodes = [self.place(label) for label in interests.nodes.tolist()]
        present = [node for node in nodes if self.labels[node] not in left_out]
        keys = self._keys(interests.topics.tolist())
        refs = {node: Ref(node, 1, "") for node in present}
        links: dict[NodeId, list[NodeId]] = {node: [] for node in present}
        for u, v in zip(overlay.u.tolist(), overlay.v.tolist(), strict=True):
            if nodes[u] in refs and nodes[v] in refs:
                links[nodes[u]].append(nodes[v])
                links[nodes[v]].append(nodes[u])
        descriptors = {
            node: Descriptor(
                Digest(refs[node], 1, 1),
                tuple(sorted(keys[topic] for topic in interests.topics_of(code).tolist())),
                tuple(refs[other] for other in sorted(links[node])),
                self._config_of(node).link_rules,
            )
            for code, node in enumerate(nodes)
            if node in refs
        }
        room = self.config.resilience + SPARE
        after, before = _next_on_ring(sorted(present), room), _next_on_ring(sorted(present, reverse=True), room)
        for node in sorted(present):
            self._incarnations[node] = 1
            sample = self._random.sample(present, min(self.config.sample_size, len(present)))
            near = sorted({*after[node], *before[node], *links[node]})
            core = self._core(node, 1, descriptors[node].topics, ())
            core.preset(
                [descriptors[other] for other in near],
                [
                    (refs[other], tuple(refs[following] for following in after[other][: self.config.resilience]))
                    for other in sorted(links[node])
                ],
                [refs[other] for other in sample],
            )
            self.world.add(node, core)

    def _config_of(self, node: NodeId) -> Config:
        """The settings of a node: those of all, with the rules for its links where it has its own."""
        rules = self.link_rules.get(self.labels[node])
        if rules is None:
            return self.config
        return replace(self.config, max_links=rules.max_links, zone=rules.zone, forbid=rules.forbid)

    def _core(self, node: NodeId, incarnation: int, topics: Iterable[Topic], contacts: Sequence[Ref]) -> OmenNode:
        randomness = generator_for(self.world.seed, "node", node, incarnation)
        ref = Ref(node, incarnation, "")
        core = OmenNode(ref, topics, self._config_of(node), randomness, self.engine, contacts, self.registry)
        self.cores[node] = core
        self._wanted.pop(node, None)
        return core

    def _keys(self, topics: Sequence[Label]) -> list[Topic]:
        labels = label_array(topics, "topic")
        keys: list[Topic] = label_keys(labels).tolist()
        self.topic_labels.update(zip(keys, labels.tolist(), strict=True))
        return keys

    def join(
        self, label: Label, topics: Sequence[Label], through: Label | None = None, place: NodeId | None = None
    ) -> NodeId:
        """A node joins or rejoins, through the member named or random ones; `place`: where it stands."""
        if place is not None:
            self._places[label] = place
        members = self.members() if through is None else [self.place(through)]
        first = self._random.randrange(len(members)) if members else 0
        known = [members[(first + step) % len(members)] for step in range(min(self._contacts, len(members)))]
        return self._begin(label, topics, [self._ref(contact) for contact in known])

    def begin_alone(self, label: Label, topics: Sequence[Label]) -> NodeId:
        """A node begins as the first of a cluster, whichever others there are."""
        return self._begin(label, topics, ())

    def _begin(self, label: Label, topics: Sequence[Label], contacts: Sequence[Ref]) -> NodeId:
        node = self.place(label)
        before = self.cores[node].ref.incarnation if node in self.cores else 0
        incarnation = max(self._incarnations.get(node, 0), before) + 1
        self._incarnations[node] = incarnation
        self.world.add(node, self._core(node, incarnation, self._keys(topics), contacts), incarnation)
        return node

    def _ref(self, node: NodeId) -> Ref:
        return Ref(node, self.world.places[node].incarnation, "")

    def meet(self, label: Label, other: Label) -> None:
        """A node's driver finds another alive, as by a seed."""
        node, found = self.place(label), self.place(other)
        if node in self.members() and found in self.members():
            self.world.tell(node, ContactsFound((self._ref(found),)))

    def crash(self, label: Label) -> None:
        node = self.place(label)
        if self.registry is not None:
            self.registry.withdraw(node)
        self.world.crash(node)

    def leave(self, label: Label) -> None:
        self.world.tell(self.place(label), Depart())

    def resubscribe(self, label: Label, topics: Sequence[Label]) -> None:
        node = self.place(label)
        had = self.wanted(node)
        wanted = self._wanted[node] = set(self._keys(topics))
        self.world.tell(node, Subscribe(tuple(sorted(wanted - had)), tuple(sorted(had - wanted))))

    def wanted(self, node: NodeId) -> set[Topic]:
        """What a node was last told to want, whether it has heard or not."""
        return self._wanted.get(node, set(self.cores[node].topics))

    def members(self) -> list[NodeId]:
        """The nodes that are there and have not left."""
        return [node for node in self.world.alive() if not self.cores[node].stopped]

    def stamp(self) -> list[object]:
        """Equal as long as the members, their topics, incarnations and links are what they were."""
        stamp: list[object] = []
        for node in self.members():
            core = self.cores[node]
            stamp += (node, core.topics, core.links_stamp)
        return stamp

    def links(self) -> set[tuple[NodeId, NodeId]]:
        """The links both ends agree on."""
        links = {node: self.cores[node].links() for node in self.members()}
        return {
            (node, other)
            for node, theirs in links.items()
            for other, link in theirs.items()
            if node < other and link.is_up and (back := links.get(other, {}).get(node)) is not None and back.is_up
        }

    def has_split_topics(self) -> bool:
        """Whether the judge would find a split topic: a quick look, over sets of members as bits of numbers."""
        members = self.members()
        bits = {node: 1 << position for position, node in enumerate(members)}
        subscribers: dict[Topic, int] = {}
        near = dict.fromkeys(bits.values(), 0)
        far = near.copy()
        for node, bit in bits.items():
            core = self.cores[node]
            for topic in core.topics:
                subscribers[topic] = subscribers.get(topic, 0) | bit
            for other, link in core.links().items():
                if other in bits and link.is_up:
                    near[bit] |= bits[other]
                    far[bits[other]] |= bit
        agreed = {bit: others & far[bit] for bit, others in near.items()}
        return any(_is_split(some, agreed) for some in subscribers.values())

    def snapshot(self) -> tuple[Interests, Overlay]:
        """What a judge should see: topics that any node wants at present, and links that both ends agree on."""
        self._index_topics()
        members = self.members()
        labels = label_array([self.labels[node] for node in members], "node")
        order = np.argsort(labels, kind="stable")
        codes = {members[int(position)]: code for code, position in enumerate(order)}
        labels = labels[order]
        wanted = [self._topic_codes(self.cores[members[int(position)]]) for position in order]
        sizes = [topics.size for topics in wanted]
        topic_codes = np.concatenate(wanted) if wanted else np.zeros(0, dtype=np.int64)
        present = np.bincount(topic_codes, minlength=self._topics.size) > 0
        interests = Interests.from_codes(
            labels,
            self._topics[present],
            np.repeat(np.arange(len(members)), sizes),
            (np.cumsum(present) - 1)[topic_codes],
        )
        links = [(codes[u], codes[v]) for u, v in self.links()]
        ends = np.array(links, dtype=np.int64).reshape(-1, 2)
        return interests, Overlay.from_codes(labels, ends[:, 0], ends[:, 1])

    def _index_topics(self) -> None:
        if len(self._code_of) == len(self.topic_labels):
            return
        keys = list(self.topic_labels)
        labels = label_array([self.topic_labels[key] for key in keys], "topic")
        order = np.argsort(labels, kind="stable")
        self._topics = labels[order]
        self._code_of = {keys[int(position)]: code for code, position in enumerate(order)}
        self._codes.clear()

    def _topic_codes(self, core: OmenNode) -> npt.NDArray[np.int64]:
        """The topics of a node as codes: counted again only when they have changed."""
        topics = core.topics
        kept = self._codes.get(core.ref.id)
        if kept is None or kept[0] is not topics:
            codes = np.array([self._code_of[topic] for topic in topics], dtype=np.int64)
            kept = self._codes[core.ref.id] = (topics, codes)
        return kept[1]

    def is_busy(self) -> bool:
        """Whether any node has something to repair, to make or to report. The one that had last time comes first."""
        place = self.world.places.get(self._last_busy)
        if place is not None and place.alive and _is_at_work(self.cores[self._last_busy]):
            return True
        for node, place in self.world.places.items():
            if place.alive and _is_at_work(self.cores[node]):
                self._last_busy = node
                return True
        return False


def _is_at_work(core: OmenNode) -> bool:
    return core.is_busy and not core.stopped


def _next_on_ring(order: Sequence[NodeId], count: int) -> dict[NodeId, list[NodeId]]:
    """For each node the next `count` in this order, which begins anew where it ends; fewer where there are fewer."""
    around = [*order, *order]
    count = min(count, len(order) - 1)
    return {node: around[position + 1 : position + 1 + count] for position, node in enumerate(order)}


def _is_split(subscribers: int, near: Mapping[int, int]) -> bool:
    """Whether some of these nodes, each a bit, cannot be reached from the first of them through the others."""
    left = subscribers & (subscribers - 1)
    reached = subscribers ^ left
    while reached and left:
        bit = reached & -reached
        found = near[bit] & left
        left ^= found
        reached = (reached ^ bit) | found
    return left != 0

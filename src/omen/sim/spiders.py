"""A population of SpiderCast nodes in a world, by the user's own labels: set up, churned, judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from omen.interests import Interests, Label, label_array, label_keys
from omen.overlay import Overlay
from omen.protocol.events import SECOND, Depart, Left, NodeId, Subscribe, Time, Topic
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.overlay import Ref
from omen.protocol.spidercast.config import SpiderConfig
from omen.protocol.spidercast.node import SpiderNode
from omen.sim.membership import Membership
from omen.sim.world import Heard, World, generator_for

Link = tuple[NodeId, NodeId]


class Spiders:
    """Labels at the edge, identifiers inside. The membership hears of a crash when a failure detector would.

    `places`: identifiers of some labels; the others have the hash of their name.
    """

    def __init__(
        self,
        world: World,
        config: SpiderConfig,
        membership: Membership,
        places: Mapping[Label, NodeId] | None = None,
    ) -> None:
        self.world = world
        self.config = config
        self.membership = membership
        self.labels: dict[NodeId, Label] = {}
        self.topic_labels: dict[Topic, Label] = {}
        self.cores: dict[NodeId, SpiderNode] = {}
        self.degrees: Counter[NodeId] = Counter()
        self._places = dict(places or {})
        self._wanted: dict[NodeId, set[Topic]] = {}
        self._links: set[Link] = set()
        self._seen: dict[NodeId, tuple[SpiderNode, int, frozenset[NodeId]]] = {}
        self._random = generator_for(world.seed, "spiders")
        world.listeners.append(self._hear)

    def place(self, label: Label) -> NodeId:
        """The identifier of a node of this name."""
        node = self._places.get(label)
        if node is None:
            node = self._places[label] = place_of(str(label))
        self.labels[node] = label
        return node

    def set_up(self, interests: Interests, overlay: Overlay | None = None, absent: Iterable[Label] = ()) -> None:
        """Put all nodes in, with the links of the overlay as their first neighbours."""
        left_out = set(absent)
        nodes = [self.place(label) for label in interests.nodes.tolist()]
        keys = self._keys(interests.topics.tolist())
        topics = [tuple(keys[topic] for topic in interests.topics_of(code).tolist()) for code in range(len(nodes))]
        present = [code for code, node in enumerate(nodes) if self.labels[node] not in left_out]
        for code in present:
            self._add(nodes[code], 1, topics[code])
        if overlay is None:
            return
        here = set(present)
        links: dict[int, list[int]] = {code: [] for code in present}
        for u, v in zip(overlay.u.tolist(), overlay.v.tolist(), strict=True):
            if u in here and v in here:
                links[u].append(v)
                links[v].append(u)
        for code in present:
            core = self.cores[nodes[code]]
            core.preset((self.cores[nodes[other]].ref, len(links[other]), topics[other]) for other in links[code])

    def _add(self, node: NodeId, incarnation: int, topics: Sequence[Topic]) -> None:
        ref = Ref(node, incarnation, "")
        self.membership.put(ref, topics)
        randomness = generator_for(self.world.seed, "node", node, incarnation)
        self.cores[node] = SpiderNode(ref, topics, self.config, randomness, self.membership.view_of(node))
        self._wanted[node] = set(topics)
        self.world.add(node, self.cores[node], incarnation)

    def _keys(self, topics: Sequence[Label]) -> list[Topic]:
        labels = label_array(topics, "topic")
        keys: list[Topic] = label_keys(labels).tolist()
        self.topic_labels.update(zip(keys, labels.tolist(), strict=True))
        return keys

    def join(self, label: Label, topics: Sequence[Label], _through: Label | None = None) -> NodeId:
        """A node joins or rejoins. No member introduces it: the membership service does."""
        node = self.place(label)
        incarnation = self.cores[node].ref.incarnation + 1 if node in self.cores else 1
        self._add(node, incarnation, self._keys(topics))
        return node

    def crash(self, label: Label) -> None:
        node = self.place(label)
        incarnation = self.cores[node].ref.incarnation
        self.world.crash(node)
        detection = self.world.network.detection
        delay = detection(self._random, node, node) if detection is not None else self.config.time_to_notice
        self.world.call(delay, partial(self.membership.drop, node, incarnation))

    def leave(self, label: Label) -> None:
        self.world.tell(self.place(label), Depart())

    def _hear(self, node: NodeId, heard: Heard, time: Time) -> None:
        if isinstance(heard, Left):
            self.membership.drop(node, self.cores[node].ref.incarnation)

    def resubscribe(self, label: Label, topics: Sequence[Label]) -> None:
        node = self.place(label)
        had, wanted = self._wanted[node], set(self._keys(topics))
        self._wanted[node] = wanted
        self.membership.put(self.cores[node].ref, sorted(wanted))
        self.world.tell(node, Subscribe(tuple(sorted(wanted - had)), tuple(sorted(had - wanted))))

    def members(self) -> list[NodeId]:
        """The nodes that are there and have not left."""
        return [node for node in self.world.alive() if not self.cores[node].stopped]

    def links(self) -> set[Link]:
        """The links both ends agree on. Only nodes whose neighbours changed since the last time are looked at."""
        alive = set(self.members())
        changed: dict[NodeId, frozenset[NodeId]] = {}
        for node, (_, _, before) in list(self._seen.items()):
            if node not in alive:
                changed[node] = before
                del self._seen[node]
        for node in alive:
            core = self.cores[node]
            seen = self._seen.get(node)
            if seen is None or seen[0] is not core or seen[1] != core.changes:
                now = frozenset(core.neighbours())
                changed[node] = now if seen is None else now | seen[2]
                self._seen[node] = (core, core.changes, now)
        for node, others in changed.items():
            for other in others:
                self._look_at((min(node, other), max(node, other)))
        return self._links

    def _look_at(self, pair: Link) -> None:
        one, other = pair
        agreed = (
            one in self._seen and other in self._seen and other in self._seen[one][2] and one in self._seen[other][2]
        )
        if agreed and pair not in self._links:
            self._links.add(pair)
            self.degrees.update(pair)
        elif not agreed and pair in self._links:
            self._links.remove(pair)
            for end in pair:
                self.degrees[end] -= 1
                if not self.degrees[end]:
                    del self.degrees[end]

    def one_sided(self) -> list[Link]:
        """Links that only the first of the two counts."""
        self.links()
        return sorted(
            (node, other)
            for node, (_, _, others) in self._seen.items()
            for other in others
            if other not in self._seen or node not in self._seen[other][2]
        )

    def snapshot(self) -> tuple[Interests, Overlay]:
        """What a judge should see."""
        members = self.members()
        labels = label_array([self.labels[node] for node in members], "node")
        order = np.argsort(labels, kind="stable")
        codes = {members[int(position)]: code for code, position in enumerate(order)}
        labels = labels[order]
        pairs = [(codes[node], topic) for node in members for topic in self.cores[node].topics]
        keys = sorted({topic for _, topic in pairs})
        topics = label_array([self.topic_labels[key] for key in keys], "topic")
        by_label = np.argsort(topics, kind="stable")
        topic_codes = {keys[int(position)]: code for code, position in enumerate(by_label)}
        interests = Interests.from_codes(
            labels,
            topics[by_label],
            np.array([node for node, _ in pairs], dtype=np.int64),
            np.array([topic_codes[topic] for _, topic in pairs], dtype=np.int64),
        )
        links = [(codes[u], codes[v]) for u, v in self.links()]
        ends = np.array(links, dtype=np.int64).reshape(-1, 2)
        return interests, Overlay.from_codes(labels, ends[:, 0], ends[:, 1])

    def is_busy(self) -> bool:
        """Whether any node is about to act."""
        return any(self.cores[node].is_busy for node in self.members())

    def settle(self, limit: Time, step: Time = SECOND) -> Time:
        """Run until all is quiet, or until `limit`; when the last link changed.

        Quiet: no node is about to act, or for a quarantine and a half no link has changed. A node that all refuse goes
        on asking for ever.
        """
        world, quarantine = self.world, self.config.quarantine
        changed_at, changes = world.now, self._changes()
        while world.now < limit:
            world.run_until(min(world.now + step, limit))
            now = self._changes()
            if now != changes:
                changed_at, changes = world.now, now
                continue
            waited = world.now - changed_at
            waiting = any(self.cores[node].is_waiting for node in self.members())
            if (not self.is_busy() and not waiting) or 2 * waited > 3 * quarantine:
                break
        return changed_at

    def _changes(self) -> int:
        return sum(core.changes for core in self.cores.values())

"""Overlays under churn by sets and dicts: shadows Algs. 3, 4 and 6 to 10, never optimised.

A batch is as the maintainers define it: all losses together, then gains in the order they came, then links that serve
no topic any more are dropped. A leave loses all topics, a resubscription those it drops; a join gains all, a
resubscription those it adds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reference.backups import Node, Nodes, are_valid, build_backups_at
from reference.greedy import Link, Topics, all_pairs, construct_low_edges, pairs_with, topic_components


def link_of(u: int, v: int) -> Link:
    return (min(u, v), max(u, v))


@dataclass
class Batch:
    """What happens at once: who leaves, who joins with which topics, whose topics become which."""

    leaves: list[int] = field(default_factory=list)
    joins: dict[int, set[int]] = field(default_factory=dict)
    resubscribes: dict[int, set[int]] = field(default_factory=dict)


@dataclass
class Dynamic:
    """One overlay, its backups, and the algorithms on it. `covers` None: the naive algorithms, without backups."""

    nodes: Nodes
    rho: float = 3.0
    covers: int | None = 3
    rule: str = "pd-weight"
    seed: int = 0
    components: str = "exact"
    degree_of: str = "s"
    builds: int = 0

    @classmethod
    def start(cls, topics_of: Topics, links: set[Link], **options: object) -> Dynamic:
        dynamic = cls({v: Node(set(topics)) for v, topics in topics_of.items()}, **options)  # type: ignore[arg-type]
        dynamic.add(links)
        dynamic.build_backups_for_tco()
        return dynamic

    def links(self) -> set[Link]:
        return {link_of(u, v) for u in self.nodes for v in self.nodes[u].neighbours}

    def add(self, links: set[Link] | list[Link]) -> None:
        for u, v in links:
            self.nodes[u].neighbours.add(v)
            self.nodes[v].neighbours.add(u)

    def build_backups_at(self, v: int) -> None:
        if self.covers:
            build_backups_at(self.nodes, v, self.rule, self.covers, self.seed, self.builds)
            self.builds += 1

    def build_backups_for_tco(self) -> None:
        """Alg. 6."""
        for v in sorted(self.nodes):
            self.build_backups_at(v)

    def restricted(self, nodes: set[int], topics: set[int]) -> Topics:
        return {v: self.nodes[v].topics & topics for v in nodes}

    def degrees(self, nodes: set[int]) -> dict[int, int]:
        return {v: len(self.nodes[v].neighbours) for v in nodes}

    def spared_degree(self) -> int | None:
        whole = self.covers is None or self.degree_of == "overlay"
        return max(self.degrees(set(self.nodes)).values(), default=0) if whole else None

    def repair_overlay_on_leave(self, shadow: set[int], former: set[int], topics: set[int]) -> list[Link]:
        """Alg. 4 (S = V') and Alg. 7, lines 3 to 6; the nodes lost and their links are gone already."""
        known, seen = set(self.nodes), self.links()
        if self.components == "literal":
            known = set(shadow)
            seen = {(u, v) for u, v in seen if u in shadow and v in shadow}
        elif self.components.startswith("halo"):
            known = shadow.union(*(self.nodes[s].neighbours for s in shadow))
            seen = {(u, v) for u, v in seen if u in shadow or v in shadow}
        topics_of = self.restricted(known, topics)
        if self.components == "halo-near":
            for t, component_of in topic_components(topics_of, seen).items():
                near = {component_of[v] for v in former if v in component_of}
                for v in component_of:
                    if component_of[v] not in near:
                        topics_of[v].discard(t)
        new = construct_low_edges(
            topics_of,
            seen,
            all_pairs(shadow) - self.links(),
            self.rho,
            self.degrees(shadow),
            self.spared_degree(),
        )
        self.add(new)
        return new

    def repair_overlay_on_join(self, v: int, shadow: set[int], topics: set[int]) -> list[Link]:
        """Alg. 3 (S = V') and Alg. 10, lines 2 to 5."""
        new = construct_low_edges(
            self.restricted(set(self.nodes), topics & self.nodes[v].topics),
            self.links(),
            pairs_with(v, shadow) - self.links(),
            self.rho,
            self.degrees(shadow),
            self.spared_degree(),
        )
        self.add(new)
        return new

    def apply(self, batch: Batch) -> list[Link]:
        """All links added, in the order chosen."""
        former: set[int] = set()
        helpers: set[int] = set()
        lost: set[int] = set()
        bereft: set[int] = set()
        dropping: dict[int, set[int]] = {}
        for v in batch.leaves:
            node = self.nodes[v]
            former |= node.neighbours
            helpers |= node.backups
            lost |= node.topics
            bereft |= node.primaries
        for v, topics in batch.resubscribes.items():
            gone = self.nodes[v].topics - topics
            if gone:
                dropping[v] = gone
                lost |= gone
                former |= {u for u in self.nodes[v].neighbours if self.nodes[u].topics & gone}
                helpers |= {u for u in self.nodes[v].backups if self.nodes[u].topics & gone}
                bereft |= {u for u in self.nodes[v].primaries if self.nodes[u].topics & gone} | {v}
        self.take_out(batch.leaves, dropping)
        shadow = (former | helpers) - set(batch.leaves) if self.covers is not None else set(self.nodes)
        added = self.repair_overlay_on_leave(shadow, former - set(batch.leaves), lost) if lost else []
        gaining = {v: topics - self.nodes[v].topics for v, topics in batch.resubscribes.items()}
        for u in sorted(bereft - set(batch.leaves) - {v for v in gaining if gaining[v]}):
            self.build_backups_at(u)  # Alg. 8
        for v, topics in batch.joins.items():
            self.nodes[v] = Node(set())
            added += self.gain(v, topics)
        for v, topics in gaining.items():
            if topics:
                added += self.gain(v, topics)
        for v in dropping:
            for u in set(self.nodes[v].neighbours):
                if not self.nodes[u].topics & self.nodes[v].topics:
                    self.nodes[v].neighbours.discard(u)
                    self.nodes[u].neighbours.discard(v)
        return added

    def take_out(self, leaves: list[int], dropping: dict[int, set[int]]) -> None:
        for v in leaves:
            del self.nodes[v]
        for node in self.nodes.values():
            for related in (node.neighbours, node.backups, node.primaries):
                related.difference_update(leaves)
        for v, topics in dropping.items():
            self.nodes[v].topics -= topics

    def gain(self, v: int, topics: set[int]) -> list[Link]:
        """Algs. 9 and 10, and our rule for topics that had too few subscribers to choose backups from."""
        self.nodes[v].topics |= topics
        if self.covers is None:
            return self.repair_overlay_on_join(v, set(self.nodes), topics)
        if self.covers:
            self.build_backups_at(v)
            helpers = set(self.nodes[v].backups)
        else:
            build_backups_at(self.nodes, v, self.rule, 1, self.seed, self.builds)
            self.builds += 1
            helpers = set(self.nodes[v].backups)
            for u in helpers:
                self.nodes[u].primaries.discard(v)
            self.nodes[v].backups = set()
        if topics != self.nodes[v].topics:
            helpers = {u for u in helpers if self.nodes[u].topics & topics}
        added = self.repair_overlay_on_join(v, helpers | {v}, topics)
        for t in topics:
            subscribers = {u for u in self.nodes if t in self.nodes[u].topics}
            if len(subscribers) - 2 < self.covers:
                for u in subscribers - {v}:
                    self.nodes[u].backups.add(v)
                    self.nodes[v].primaries.add(u)
        return added

    def backups_hold(self) -> bool:
        return all(are_valid(self.nodes, v, self.covers or 0) for v in self.nodes)

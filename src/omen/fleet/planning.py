"""From one overlay to another, link by link: make before break, no topic split on the way, caps exceeded by little."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from omen.errors import InvalidInput
from omen.fleet.designing import find_violations
from omen.interests import Interests, Label
from omen.overlay import Overlay
from omen.quality import check_overlay
from omen.rules import NO_CAP, FleetRules

MOST_CHOICES = 500
"""Links that are looked at where a cap has to be exceeded."""

Node = int
Link = tuple[Node, Node]


@dataclass(frozen=True, slots=True)
class Step:
    """One change. Steps of one batch can be done in any order, or at once."""

    batch: int  # from 1
    make: bool  # or drop
    u: Node
    v: Node


@dataclass(frozen=True, slots=True)
class Excess:
    """A node that has more links than it may after a step, counted from 1."""

    step: int
    node: Label
    cap: int
    links: int

    @property
    def by(self) -> int:
        """How many too many."""
        return self.links - self.cap


@dataclass(frozen=True)
class Plan:
    """The steps from one overlay to another."""

    start: Overlay
    target: Overlay
    steps: tuple[Step, ...]
    excesses: tuple[Excess, ...]  # after each step that takes a node above its cap, or further above
    judged: int  # overlays that the judge looked at: one for each batch, and those on the way hold more links

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return self.steps[-1].batch if self.steps else 0

    @property
    def most_excess(self) -> int:
        """By how many links a cap is exceeded at most."""
        return max((excess.by for excess in self.excesses), default=0)

    def links_after(self, steps: int) -> Overlay:
        """The overlay after so many steps."""
        links = set(zip(self.start.u.tolist(), self.start.v.tolist(), strict=True))
        for step in self.steps[:steps]:
            (links.add if step.make else links.discard)((step.u, step.v))
        ends = np.array(sorted(links), dtype=np.int64).reshape(-1, 2)
        return Overlay.from_codes(self.start.nodes, ends[:, 0], ends[:, 1])


def make_plan(interests: Interests, rules: FleetRules, start: Overlay, target: Overlay) -> Plan:
    """An order of the changes in which no topic has more pieces after a step than before it.

    Where the first overlay is topic-connected, so is every one on the way. Links are made while both ends have room. A
    link is dropped where a full node needs the room, and only if its ends reach each other without it in every topic
    they share; those that are left go at the end. Where neither is possible a cap is exceeded: where a link can be
    dropped next that ends it, if there is such a place.
    """
    _require_target(interests, rules, target)
    work = _Work(interests, rules, start, target)
    while work.to_make:
        if not (work.make_where_room() or work.drop_for_room()):
            work.exceed()
        work.drop_above_cap()
    work.drop_rest()
    return Plan(start, target, tuple(work.steps), tuple(work.excesses), _judge(interests, start, work.steps))


def _require_target(interests: Interests, rules: FleetRules, target: Overlay) -> None:
    failing = check_overlay(interests, target).failing
    if failing:
        raise InvalidInput(f"the overlay to go to leaves topic {failing[0].topic!r} split: a plan leads to a whole one")
    found = find_violations(target, rules)
    for links, fault in ((found.forbidden, "holds the forbidden link"), (found.missing, "lacks the required link")):
        if links.link_count:
            raise InvalidInput(f"the overlay to go to {fault} {links.links()[0]!r}")


def _judge(interests: Interests, start: Overlay, steps: Iterable[Step]) -> int:
    """Ask the judge after every batch. On the way through one there are more links than before it or after it."""
    links = set(zip(start.u.tolist(), start.v.tolist(), strict=True))
    split = {topic.topic for topic in check_overlay(interests, start).failing}
    by_batch: dict[int, list[Step]] = {}
    for step in steps:
        by_batch.setdefault(step.batch, []).append(step)
    for batch in by_batch.values():
        for step in batch:
            (links.add if step.make else links.discard)((step.u, step.v))
        ends = np.array(sorted(links), dtype=np.int64).reshape(-1, 2)
        found = check_overlay(interests, Overlay.from_codes(start.nodes, ends[:, 0], ends[:, 1]))
        now = {topic.topic for topic in found.failing}
        if now - split:
            raise AssertionError(f"batch {batch[0].batch} splits topic {min(map(str, now - split))}")
        split = now
    return len(by_batch)


class _Work:
    """The overlay as far as it has come, and what is left to do."""

    def __init__(self, interests: Interests, rules: FleetRules, start: Overlay, target: Overlay) -> None:
        before = set(zip(start.u.tolist(), start.v.tolist(), strict=True))
        after = set(zip(target.u.tolist(), target.v.tolist(), strict=True))
        self.to_make = dict.fromkeys(sorted(after - before))
        self.to_drop = dict.fromkeys(sorted(before - after))
        self.steps: list[Step] = []
        self.excesses: list[Excess] = []
        self._labels = rules.nodes.tolist()
        self._caps: list[int] = rules.caps.tolist()
        self._wants = [set(interests.topics_of(node).tolist()) for node in range(interests.node_count)]
        self._subscribers = [set(interests.subscribers_of(topic).tolist()) for topic in range(interests.topic_count)]
        self._near: list[set[Node]] = [set() for _ in self._wants]
        self._blocked: dict[Link, tuple[int, set[Node]]] = {}
        self._blocked_in: dict[int, set[Link]] = {}
        for u, v in before:
            self._link(u, v)

    def make_where_room(self) -> bool:
        """Make all links whose ends both have room."""
        done = False
        for u, v in list(self.to_make):
            if self._room(u) > 0 and self._room(v) > 0:
                self._make((u, v))
                done = True
        return done

    def drop_for_room(self) -> bool:
        """Drop one link of each full node that waits for room, where one can go."""
        waiting = {end for link in self.to_make for end in link if self._room(end) <= 0}
        return sum(self._drop_one(node) for node in sorted(waiting)) > 0

    def exceed(self) -> None:
        """Make a link for which there is no room: the one that is least above, and that lets another go at once."""
        least = min(self._excess_with(link) for link in self.to_make)
        choices = [link for link in self.to_make if self._excess_with(link) == least]
        for link in choices[:MOST_CHOICES]:
            full = [end for end in link if self._room(end) <= 0]
            if all(any(self._would_free(link, other) for other in self._drops_of(end)) for end in full):
                self._make(link)
                return
        self._make(choices[0])

    def _would_free(self, link: Link, other: Link) -> bool:
        """Whether a link that is not there yet would let another go."""
        if other in self._blocked and not self._leads_out(link, *self._blocked[other]):
            return False
        self._link(*link)
        free = self._blocking(other) is None
        self._unlink(*link)
        return free

    def drop_above_cap(self) -> None:
        """Drop what can go at nodes above their caps."""
        above = sorted({end for link in self.to_drop for end in link if self._room(end) < 0})
        for node in above:
            while self._room(node) < 0 and self._drop_one(node):
                pass

    def drop_rest(self) -> None:
        """All links of the target are there: what is left can go in any order."""
        for link in sorted(self.to_drop, key=lambda link: (min(map(self._room, link)), link)):
            self._drop(link)

    def _drop_one(self, node: Node) -> bool:
        for link in self._drops_of(node):
            if self._is_dispensable(link):
                self._drop(link)
                return True
        return False

    def _drops_of(self, node: Node) -> list[Link]:
        links = [(min(node, other), max(node, other)) for other in sorted(self._near[node])]
        return [link for link in links if link in self.to_drop]

    def _room(self, node: Node) -> int:
        return self._caps[node] - len(self._near[node])

    def _excess_with(self, link: Link) -> int:
        return max(1 - self._room(end) for end in link)

    def _is_dispensable(self, link: Link) -> bool:
        """Whether its ends reach each other without it, in every topic they share.

        Where not, a topic and the piece on one side of it are kept: until a link leads out of that piece, it stays so.
        """
        if link in self._blocked:
            return False
        found = self._blocking(link)
        if found is not None:
            self._blocked[link] = found
            self._blocked_in.setdefault(found[0], set()).add(link)
        return found is None

    def _blocking(self, link: Link) -> tuple[int, set[Node]] | None:
        for topic in sorted(self._wants[link[0]] & self._wants[link[1]]):
            piece = self._piece_without(link, topic)
            if piece is not None:
                return topic, piece
        return None

    def _leads_out(self, link: Link, topic: int, piece: set[Node]) -> bool:
        u, v = link
        return topic in self._wants[u] and topic in self._wants[v] and (u in piece) != (v in piece)

    def _unblock(self, link: Link) -> None:
        """A link has been made: those that it leads around are worth another look."""
        for topic in self._wants[link[0]] & self._wants[link[1]]:
            there = self._blocked_in.get(topic, set())
            for other in [other for other in there if self._leads_out(link, *self._blocked[other])]:
                there.discard(other)
                del self._blocked[other]

    def _piece_without(self, link: Link, topic: int) -> set[Node] | None:
        """The piece of a topic on one side of a link, if there is no other way around; searched from both ends."""
        u, v = link
        wants = self._subscribers[topic]
        here, there = {u}, {v}
        front, other_front = (self._near[u] & wants) - {v}, (self._near[v] & wants) - {u}
        here |= front
        there |= other_front
        while front and other_front:
            if not here.isdisjoint(there):
                return None
            if len(front) > len(other_front):
                here, there, front, other_front = there, here, other_front, front
            front = set().union(*(self._near[node] & wants for node in front)) - here
            here |= front
        if not here.isdisjoint(there):
            return None
        return there if front and not other_front else here

    def _make(self, link: Link) -> None:
        del self.to_make[link]
        self._link(*link)
        self._unblock(link)
        self._note(True, link)

    def _drop(self, link: Link) -> None:
        del self.to_drop[link]
        self._unlink(*link)
        self._note(False, link)

    def _note(self, make: bool, link: Link) -> None:
        before = self.steps[-1] if self.steps else None
        batch = 1 if before is None else before.batch + (before.make != make)
        self.steps.append(Step(batch, make, *link))
        if make:
            for end in link:
                if self._room(end) < 0 and self._caps[end] != NO_CAP:
                    held = len(self._near[end])
                    self.excesses.append(Excess(len(self.steps), self._labels[end], self._caps[end], held))

    def _link(self, u: Node, v: Node) -> None:
        self._near[u].add(v)
        self._near[v].add(u)

    def _unlink(self, u: Node, v: Node) -> None:
        self._near[u].discard(v)
        self._near[v].discard(u)

"""Greedy designs in rounds: GM, MinMax-ODA and Low-ODA on all cores, for workloads of any size.

Exact designs look at all pairs of nodes. Rounds look at the pairs within parts: in each round the nodes are divided
anew, the greedy engine runs in every part on the components and degrees of all rounds before, and takes only links
that are worth it now. See docs/algorithms/rounds.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from omen.design.schedule import (
    LAST_LEAST,
    MEET,
    MEET_LATE,
    Auto,
    Profile,
    RoundFacts,
    Schedule,
    Step,
    choose_part_nodes,
    parse_schedule,
)

if TYPE_CHECKING:
    from omen.interests import Interests
    from omen.overlay import Overlay

Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

SAMPLE_NODES = 2048
SAMPLE_LARGE = 64  # nodes of the most topics, which decide the maximum degree
HUBS = 16  # GM: one node for so many of a part is in every part
UNLIMITED = 2**31 - 1
SAMPLE_STEP = Step(1)


@dataclass(frozen=True, slots=True)
class Rounds:
    """How a design in rounds is to be made. `most_links`: a cap for every node from the first round on; 0: none."""

    rho: float
    part_nodes: int = 0  # 0: chosen from the workload
    seed: int = 0
    workers: int = 0  # 0: as many as there are processors
    most_links: int = 0
    late_nodes: int = 0  # of a part at the last level, where topics have fewer pieces; 0: as many as before

    def size_at(self, step: Step) -> int:
        """How many nodes a part has in a round."""
        return self.late_nodes or self.part_nodes if step.least <= LAST_LEAST else self.part_nodes


@dataclass(frozen=True, slots=True)
class PartRows:
    """Interest rows of a part, and the component of each subscriber, parallel to `topic_nodes`."""

    node_offsets: Offsets
    node_topics: Codes
    topic_offsets: Offsets
    topic_nodes: Codes
    labels: Codes


@dataclass(frozen=True, slots=True)
class PartNodes:
    """Of each node of a part: its degree, and in how many topics it is alone. `max_degree`: of all nodes there are."""

    degrees: Codes
    alone: Codes
    max_degree: int


@dataclass(frozen=True, slots=True)
class RoundsDone:
    """The overlay, and what the rounds and the sub-rounds of the last stage came to."""

    overlay: Overlay
    rounds: tuple[RoundFacts, ...]
    last: tuple[RoundFacts, ...]


def with_part_nodes(settings: Rounds, nodes: int, subscriptions: int, squares: int) -> Rounds:
    """The settings with part sizes: of a workload's topics of two subscribers or more, see `choose_part_nodes`."""
    if settings.part_nodes:
        return settings
    early, late = (choose_part_nodes(settings.rho, nodes, subscriptions, squares, meet) for meet in (MEET, MEET_LATE))
    return replace(settings, part_nodes=early, late_nodes=late)


def round_seed(seed: int, number: int) -> np.uint64:
    """What the randomness of a round is drawn from; sub-rounds of the last stage go on counting."""
    from omen.kernels.counter_random import mix

    return np.uint64(mix(np.uint64(seed), np.uint64(number), np.uint64(0)))


def cap_nodes(step: Step, alone: Codes, most_links: int) -> Codes | None:
    """The cap of each node in a round, None where there is none. `alone`: in how many topics each node is."""
    lowest = min(step.cap or UNLIMITED, most_links or UNLIMITED)
    if lowest == UNLIMITED:
        return None
    caps: Codes = np.full(alone.size, lowest, np.int32)
    return np.minimum(caps, (step.cap or UNLIMITED) - alone) if step.keeps else caps


def has_hubs(settings: Rounds) -> bool:
    """Whether the nodes of the most topics are in every part: those at which GM gathers links. No caps hold them."""
    return settings.rho < 1 and not settings.most_links


def each_once(links: Codes) -> Codes:
    """The links in the order of (u, v), doubles merged: two hubs may be linked in several parts."""
    from omen.interests import distinct

    keys = distinct(links[:, 0].astype(np.int64) << 32 | links[:, 1])
    return np.stack((keys >> 32, keys & (2**32 - 1)), axis=1).astype(np.int32)


def accept_links(links: Codes, room: Codes, seed: np.uint64) -> Codes:
    """The proposals that are accepted by both ends: each node takes as many as it has room for, in the order of words.

    Returned in the order of (u, v), each once.
    """
    from omen.kernels.rounds import link_words

    u, v = each_once(links).T.copy()
    words = link_words(u, v, seed)
    ends, owner = np.concatenate((u, v)), np.tile(np.arange(u.size), 2)
    crowded = np.flatnonzero((np.bincount(ends, minlength=room.size) > room)[ends])
    crowded = crowded[np.lexsort((owner[crowded], words[owner[crowded]], ends[crowded]))]
    begins = np.flatnonzero(np.r_[True, ends[crowded][1:] != ends[crowded][:-1]]) if crowded.size else crowded
    rank = np.arange(crowded.size) - np.repeat(begins, np.diff(np.r_[begins, crowded.size]))
    refused = np.zeros(u.size, np.bool_)
    refused[owner[crowded[rank >= room[ends[crowded]]]]] = True
    return np.stack((u[~refused], v[~refused]), axis=1)


def part_rows_of(nodes: Codes, offsets: Offsets, topics: Codes, labels: Codes, topic_count: int) -> PartRows:
    """The rows of a part: its nodes, ascending, and the topics that are split among them."""
    from omen.kernels.rounds import part_rows

    return PartRows(*part_rows(nodes, offsets, topics, labels, topic_count))


def choose_in_part(rows: PartRows, nodes: PartNodes, step: Step, settings: Rounds) -> Codes:
    """The links that a round chooses within a part, as codes of the part."""
    from omen.kernels.engine import Instance, choose_links

    caps = cap_nodes(step, nodes.alone, settings.most_links)
    instance = Instance(rows, rows.labels, nodes.degrees, nodes.max_degree, caps)
    return choose_links(instance, settings.rho, least=step.least, raising=step.raising)


def profile_sample(rows: PartRows, sample_nodes: int, nodes: int, settings: Rounds) -> Profile:
    """Of a sample designed to the end, for a workload of so many nodes."""
    from omen.kernels.rounds import merge_components

    none = np.zeros(sample_nodes, np.int32)
    links = choose_in_part(rows, PartNodes(none, none, 0), SAMPLE_STEP, settings)
    weights = np.empty(len(links), np.int32)
    forest = np.arange(rows.node_topics.size, dtype=np.int32)
    merge_components(links, rows.node_offsets, rows.node_topics, forest, weights)
    return Profile(nodes, tuple(np.sort(weights)[::-1].tolist()))


class LocalRounds:
    """The state of a design in rounds on this machine: rows and components of the topics still split, and degrees."""

    def __init__(self, interests: Interests, settings: Rounds) -> None:
        self.nodes = np.arange(interests.node_count, dtype=np.int32)
        self.offsets, self.topics = interests.node_offsets, interests.node_topics
        self.parents = np.arange(self.topics.size, dtype=np.int32)
        self.labels = np.empty(0, np.int32)
        self.pieces = np.zeros(interests.topic_count, np.int32)
        self.degrees = np.zeros(self.nodes.size, np.int32)
        self.alone = np.zeros(self.nodes.size, np.int32)
        self.max_degree = 0
        self.chosen: list[Codes] = []
        self.left = 0
        self._refresh()
        held = self.pieces.astype(np.int64)
        self.settings = with_part_nodes(settings, self.nodes.size, int(held.sum()), int((held * held).sum()))

    def _refresh(self) -> None:
        from omen.kernels.rounds import drop_connected, name_components

        for _ in range(2):  # once to find what is connected, once to name what is left
            self.labels = np.empty(self.topics.size, np.int32)
            name_components(self.offsets, self.topics, self.parents, self.labels, self.pieces, self.alone)
            if not (self.pieces == 1).any():
                break
            self.offsets, self.topics, self.parents = drop_connected(
                self.offsets, self.topics, self.parents, self.pieces
            )
        self.left = int(np.maximum(self.pieces.astype(np.int64) - 1, 0).sum())

    def take(self, links: Codes) -> None:
        """Add links: degrees, then components."""
        from omen.kernels.rounds import merge_components

        weights = np.empty(len(links), np.int32)
        merge_components(np.ascontiguousarray(links), self.offsets, self.topics, self.parents, weights)
        self.degrees += np.bincount(links.ravel(), minlength=self.nodes.size).astype(np.int32)
        self.max_degree = int(self.degrees.max(initial=0))
        self.chosen.append(links)
        self._refresh()

    def parts(self, step: Step, number: int) -> list[Codes]:
        """The nodes of each part, ascending."""
        order, size = self.divide(step, number), self.settings.size_at(step)
        parts = [np.sort(order[k : k + size]) for k in range(0, order.size, size)]
        if len(parts) == 1 or not has_hubs(self.settings):
            return parts
        hubs = self.largest(size // HUBS)
        return [np.union1d(part, hubs) for part in parts]

    def largest(self, count: int) -> Codes:
        """The nodes of the most open topics, the lowest where they tie."""
        held = np.diff(self.offsets)
        order = np.lexsort((self.nodes, -held))[:count]
        return order[held[order] > 0].astype(np.int32)

    def divide(self, step: Step, number: int) -> Codes:
        """The nodes in the order in which they are cut into parts. Nodes without an open topic are in none."""
        from omen.kernels.rounds import division_keys

        seed = round_seed(self.settings.seed, number)
        keys = division_keys(self.offsets, self.topics, self.nodes, seed, step.alike)
        order = np.lexsort((self.nodes, keys[:, 1], keys[:, 0]))
        return order[np.diff(self.offsets)[order] > 0].astype(np.int32)

    def profile(self) -> Profile:
        """Of nodes that the first round will bring together, and of the largest."""
        sample = np.union1d(self.divide(SAMPLE_STEP, 0)[:SAMPLE_NODES], self.largest(SAMPLE_LARGE))
        rows = part_rows_of(sample, self.offsets, self.topics, self.labels, self.pieces.size)
        return profile_sample(rows, sample.size, self.nodes.size, self.settings)

    def part_links(self, nodes: Codes, step: Step) -> Codes:
        """The links chosen within one part."""
        rows = part_rows_of(nodes, self.offsets, self.topics, self.labels, self.pieces.size)
        present = PartNodes(self.degrees[nodes], self.alone[nodes], self.max_degree)
        return nodes[choose_in_part(rows, present, step, self.settings)]

    def facts(self, step: Step, links_before: int, left_before: int) -> RoundFacts:
        links = sum(map(len, self.chosen))
        needed = int((self.degrees + self.alone).max(initial=0))
        removed = left_before - self.left
        return RoundFacts(step, links - links_before, links, removed, self.left, self.max_degree, needed)

    def run_round(self, step: Step, number: int, pool: ThreadPoolExecutor) -> RoundFacts:
        if step.joins:
            return self.run_last(step, number)
        links_before, left_before = sum(map(len, self.chosen)), self.left
        found = list(pool.map(lambda nodes: self.part_links(nodes, step), self.parts(step, number)))
        self.take(each_once(np.concatenate(found)) if found else np.empty((0, 2), np.int32))
        return self.facts(step, links_before, left_before)

    def run_last(self, step: Step, number: int) -> RoundFacts:
        """One sub-round of the last stage, or one that joins pieces before it."""
        from omen.kernels.rounds import part_rows, propose_links

        links_before, left_before = sum(map(len, self.chosen)), self.left
        seed = round_seed(self.settings.seed, number)
        room = last_room(step, self.degrees, self.alone, self.settings.most_links)
        _, _, offsets, members, labels = part_rows(self.nodes, self.offsets, self.topics, self.labels, self.pieces.size)
        links = propose_links(offsets, members, labels, self.nodes, self.degrees, room, seed)
        self.take(accept_links(links, room, seed))
        return self.facts(step, links_before, left_before)


def last_room(step: Step, degrees: Codes, alone: Codes, most_links: int) -> Codes:
    """How many links each node may take in a sub-round of the last stage.

    One that is alone in a topic must take a link there itself, whatever the cap: others cannot for it. Before the last
    stage it waits for links that serve several of its topics.
    """
    cap = UNLIMITED if step.cap is None else step.cap
    caps = np.maximum(degrees if step.joins else degrees + alone, cap - alone if step.keeps else cap)
    if most_links:
        caps = np.minimum(caps, most_links if step.joins else max(most_links, step.cap or 0))
    room: Codes = np.maximum(caps - degrees, 0).astype(np.int32)
    return room


def design_in_rounds(
    interests: Interests,
    settings: Rounds,
    schedule: str = "auto",
    tell: Callable[[RoundFacts], None] = lambda facts: None,
) -> RoundsDone:
    """An overlay in which every topic is connected, by rounds and a last stage."""
    from omen.overlay import Overlay

    state = LocalRounds(interests, settings)
    plan = plan_rounds(schedule, state.settings, state.profile)
    rounds: list[RoundFacts] = []
    last: list[RoundFacts] = []
    with ThreadPoolExecutor(settings.workers or processors()) as pool:
        while state.left and (step := plan.next_step(rounds)) is not None:
            rounds.append(state.run_round(step, len(rounds), pool))
            tell(rounds[-1])
        while state.left:
            last.append(state.run_last(Step(1, next_cap(rounds, last, settings)), len(rounds) + len(last)))
            tell(last[-1])
    links = np.concatenate(state.chosen) if state.chosen else np.empty((0, 2), np.int32)
    return RoundsDone(Overlay.from_codes(interests.nodes, links[:, 0], links[:, 1]), tuple(rounds), tuple(last))


def plan_rounds(schedule: str, settings: Rounds, profile: Callable[[], Profile]) -> Schedule:
    """The schedule of a text: auto, or steps."""
    return Auto(profile(), settings.rho, settings.part_nodes) if schedule == "auto" else parse_schedule(schedule)


def next_cap(rounds: Sequence[RoundFacts], last: Sequence[RoundFacts], settings: Rounds) -> int | None:
    """The cap of the next sub-round: what rounds came to, and one more whenever a sub-round came to little."""
    if settings.rho < 1 and not settings.most_links:
        return None
    if not last:
        return settings.most_links or max([2, *(facts.max_degree for facts in rounds[-1:])])
    before = last[-1]
    cap = before.step.cap or 0
    return cap + 1 if before.removed * 10 < before.left + before.removed else cap


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

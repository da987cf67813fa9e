"""What all maintainers share, and those that look at every node: rebuilding, and naive repair."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omen.churn import Event, Join, Leave, Resubscribe
from omen.design.dispensable import bypass_all
from omen.design.greedy import design_low_oda
from omen.errors import InvalidInput
from omen.fleet.repairing import AboveCap, Within
from omen.interests import Codes, Interests, Label
from omen.kernels import population
from omen.maintain.change import Change, Ledger
from omen.maintain.engine import NO_LINKS, DegreeRule, Scope, connect_newcomer, reconnect
from omen.maintain.plan import Plan, plan_events
from omen.maintain.rebalance import Swap, by_degree, enough_links, find_relief, find_saving, overburdened
from omen.maintain.ruled import as_pairs, repair_in_fleet
from omen.maintain.state import Pairs, Snapshot, State
from omen.overlay import Overlay

COUNTED_ON = "rebalance drops links that k = 2 counts on"
CREDIT_ROUNDS = 4  # changes a repair did not use are kept for later ones, up to so many repairs' worth


@dataclass
class Loss:
    """What a batch takes away, gathered before it is gone: `dropped` are the topics lost by nodes that stay."""

    leaving: list[int]
    dropped: dict[int, Codes]
    former: Codes
    helpers: Codes
    topics: Codes


@dataclass
class Progress:
    """What was done so far about a batch; `touched` are the ends of the links added."""

    ledger: Ledger = field(default_factory=Ledger)
    shadow: set[int] = field(default_factory=set)
    touched: set[int] = field(default_factory=set)
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("prepare", "links", "backups", "rebalance"), 0.0)
    )
    rebuilt: int = 0
    above: tuple[AboveCap, ...] = ()

    def spend(self, step: str, since: float) -> None:
        self.seconds[step] += time.thread_time() - since


class Maintainer:
    """Keeps an overlay topic-connected while nodes join, leave and change their topics.

    A batch is handled as one event. First all losses together: leaving nodes lose all topics, resubscribing ones
    those they drop; links are added until every topic that a node lost is connected again. Then gains, one node after
    the other, in the order they came: a joining node gains all its topics. Last, links of resubscribing nodes that
    share no topic any more are dropped. Losses come first so that gains always meet connected topics; two linked
    nodes lost at once are one loss whose former neighbours are those of both, which is what makes a batch safe (see
    `split_instance`).
    """

    uses_backups = False

    keeps_links = True

    def __init__(
        self, state: State, options: dict[str, Any], workload: Interests, within: Within | None = None
    ) -> None:
        self.state = state
        self.options = options
        self.workload = workload
        self.within = within
        self.rho = float(options["rho"])
        self.budget = int(options.get("rebalance", 0))
        self.k = int(options.get("k", 1))
        if self.k > 1 and self.budget:
            raise InvalidInput(f"{COUNTED_ON}: give one of the two")
        if within is not None and (self.k > 1 or self.budget):
            raise InvalidInput("k = 2 and rebalance know no rules of a fleet: leave them out, or the rules")

    def prepare(self) -> None:
        """Whatever must be there before the first event."""

    def join(self, node: Label, topics: Iterable[Label] | None = None) -> Change:
        """A node comes with these topics; None: those it has in the workload."""
        return self.apply([Join(0.0, node, None if topics is None else _as_tuple(topics))])

    def leave(self, node: Label) -> Change:
        """A node goes; a crash is the same here."""
        return self.apply([Leave(0.0, node)])

    def resubscribe(self, node: Label, topics: Iterable[Label] | None = None) -> Change:
        """A node's topics become these; None: those it has in the workload."""
        return self.apply([Resubscribe(0.0, node, None if topics is None else _as_tuple(topics))])

    def apply(self, events: Sequence[Event]) -> Change:
        """Handle events that happen together."""
        plan = plan_events(self.state, events, self.workload)
        progress = Progress()
        concerned = self._concerned(plan) if self.k > 1 else set()
        if self.within is None:
            self._handle(plan, progress)
        else:
            self._handle_within(self.within, plan, progress)
        if self.k > 1:
            self._bypass(concerned, progress)
        if self.budget:
            credit = min(self.state.credit + self.budget, CREDIT_ROUNDS * self.budget)
            self.state.credit = self._rebalance(progress.shadow or progress.touched, credit, progress)
        return self._report(progress)

    def _concerned(self, plan: Plan) -> set[Label]:
        """The topics that these events take from nodes or bring to them."""
        found = {
            self.state.topics.label(topic) for slot in plan.leaving for topic in self.state.topics_of.of(slot).tolist()
        }
        lists = [*plan.joining, *plan.losing, *plan.gaining]
        return found.union(*(topics for _, topics in lists))

    def _bypass(self, topics: set[Label], progress: Progress) -> None:
        """Make every node dispensable again in these topics (see `design.dispensable`)."""
        started = time.thread_time()
        interests, overlay = self.state.interests(), self.state.overlay()
        links = zip(overlay.u.tolist(), overlay.v.tolist(), strict=True)
        codes = [code for code, topic in enumerate(interests.topics.tolist()) if topic in topics]
        chosen = bypass_all(interests, links, codes, self.rho)
        progress.spend("links", started)
        self._add(as_pairs(self.state.nodes.sorted_slots(), set(chosen)), progress)

    def _rebalance(self, slots: Iterable[int], credit: int, progress: Progress) -> int:
        """Relief for nodes of much too high degree, then savings around these nodes, from the highest degree down.

        Returns how many of the changes allowed are left.
        """
        state, started = self.state, time.thread_time()
        for slot in overburdened(state):
            credit -= self._swap(find_relief(state, slot, self.rho), credit, progress)
        for slot in by_degree(state, slots):
            if credit < 1:
                break
            credit -= self._swap(find_saving(state, slot, self.rho), credit, progress)
        progress.spend("rebalance", started)
        return credit

    def _swap(self, swap: Swap | None, most: int, progress: Progress) -> int:
        """Make a swap if it is within the budget; returns how many links changed."""
        if swap is None or swap.changes > most:
            return 0
        self._add(swap.made, progress)
        self._drop(swap.dropped, progress)
        return swap.changes

    def rebalance(self, max_changes: int) -> Change:
        """Change at most this many links to bring degrees down; make `added` before dropping `removed`."""
        if max_changes < 0:
            raise InvalidInput(f"max_changes must be at least 0, not {max_changes}")
        if self.k > 1:
            raise InvalidInput(f"{COUNTED_ON}: it cannot be asked of a maintainer with k = 2")
        if self.within is not None:
            raise InvalidInput(
                "rebalance knows no rules of a fleet: it cannot be asked of a maintainer that keeps them"
            )
        progress = Progress()
        self._rebalance(self.state.nodes.slot_of.values(), max_changes, progress)
        return self._report(progress)

    def interests(self) -> Interests:
        """Who is present and wants what."""
        return self.state.interests()

    def overlay(self) -> Overlay:
        """The links at present."""
        return self.state.overlay()

    def snapshot(self) -> Snapshot:
        """All that `resume_maintainer` needs."""
        return self.state.snapshot()

    @property
    def node_count(self) -> int:
        return self.state.node_count

    @property
    def link_count(self) -> int:
        return self.state.link_count

    @property
    def max_degree(self) -> int:
        return self.state.max_degree

    @property
    def average_degree(self) -> float:
        return self.state.average_degree

    def __contains__(self, node: object) -> bool:
        return node in self.state.nodes.slot_of

    def _handle(self, plan: Plan, progress: Progress) -> None:
        if plan.leaving or plan.losing:
            loss = self._take_losses(plan, progress)
            self._repair_losses(loss, progress)
            self._settle_losses(loss, plan, progress)
        for label, topics in plan.joining:
            slot = self.state.add_node(label)
            self._gain(slot, self.state.subscribe(slot, topics), progress)
        for slot, topics in plan.gaining:
            self._gain(slot, self.state.subscribe(slot, topics), progress)
        for slot, _ in plan.losing:
            self._drop_useless(slot, progress)

    def _handle_within(self, within: Within, plan: Plan, progress: Progress) -> None:
        """The same under the rules of a fleet: what is lost and gained first, then all links together."""
        if plan.leaving or plan.losing:
            loss = self._take_losses(plan, progress)
            progress.shadow.update(loss.former.tolist(), loss.helpers.tolist())
            self._settle_losses(loss, plan, progress)
        for label, topics in plan.joining:
            slot = self.state.add_node(label)
            progress.shadow.update(self._welcome(slot, self.state.subscribe(slot, topics), progress))
        for slot, topics in plan.gaining:
            progress.shadow.update(self._welcome(slot, self.state.subscribe(slot, topics), progress))
        for slot, _ in plan.losing:
            self._drop_useless(slot, progress)
        started = time.thread_time()
        asked = progress.shadow if self.uses_backups else None
        repair = repair_in_fleet(self.state, within, self.rho, asked, self.keeps_links)
        progress.spend("links", started)
        self._add(repair.made, progress)
        self._drop(repair.dropped, progress)
        progress.above = repair.above
        if not self.uses_backups:
            progress.shadow.clear()

    def _welcome(self, slot: int, topics: Codes, progress: Progress) -> Iterable[int]:
        """A node has these topics now: what there is to note, and among whom links of it are looked for."""
        return ()

    def _take_losses(self, plan: Plan, progress: Progress) -> Loss:
        """Take what is lost out of the state, and gather what the repair needs to know of it."""
        state = self.state
        former: list[Codes] = []
        helpers: list[Codes] = []
        lost: list[Codes] = []
        links: list[Pairs] = []
        dropped: dict[int, Codes] = {}
        for slot in plan.leaving:
            topics, neighbours = state.topics_of.of(slot), state.neighbours.of(slot)
            lost.append(topics)
            former.append(neighbours)
            helpers.append(state.backups.of(slot))
            links.append(np.stack((np.full(neighbours.size, slot, np.int32), neighbours), axis=1))
            state.unsubscribe(slot, topics)
        for slot, labels in plan.losing:
            topics = np.array(sorted(state.topics.slot_of[label] for label in labels), np.int32)
            dropped[slot] = topics
            lost.append(topics)
            former.append(self._who_want(state.neighbours.of(slot), topics))
            helpers.append(self._who_want(state.backups.of(slot), topics))
            state.unsubscribe(slot, topics)
        gone = _unique_links(links)
        progress.ledger.drop(state.link_labels(gone))
        state.unlink(gone)
        around = [_without(_joined(slots), plan.leaving) for slots in (former, helpers)]
        return Loss(plan.leaving, dropped, around[0], around[1], _joined(lost))

    def _repair_losses(self, loss: Loss, progress: Progress) -> None:
        """Add links until every lost topic is connected."""
        raise NotImplementedError

    def _find_links(self, scope: Scope, max_degree: int) -> tuple[Pairs, Codes]:
        """The links that connect the lost topics again, in the order chosen, and the shadow set (Algs. 4 and 7)."""
        enough = enough_links(self.state) if self.budget else None
        return reconnect(self.state, scope, DegreeRule(self.rho, max_degree, enough))

    def _spared_degree(self) -> int:
        """Nodes of so many links are spared by a repair: the largest degree, or with rebalancing already enough."""
        return enough_links(self.state) if self.budget else self.state.max_degree

    def _settle_losses(self, loss: Loss, plan: Plan, progress: Progress) -> None:
        """Forget the nodes that left, and topics that no node wants."""
        for slot in loss.leaving:
            self.state.remove_node(slot)
        self.state.forget_topics(loss.topics)

    def _gain(self, slot: int, topics: Codes, progress: Progress) -> None:
        """Add links until the node is connected in each of these topics."""
        raise NotImplementedError

    def _add(self, links: Pairs, progress: Progress) -> None:
        if links.shape[0]:
            self.state.link(links)
            progress.touched.update(links.ravel().tolist())
            progress.ledger.make(self.state.link_labels(links))

    def _drop(self, links: Pairs, progress: Progress) -> None:
        if links.shape[0]:
            progress.ledger.drop(self.state.link_labels(links))
            self.state.unlink(links)

    def _who_want(self, nodes: Codes, topics: Codes) -> Codes:
        rows = self.state.topics_of
        wanting: Codes = population.who_want(rows.spans, rows.pool, self.state.bits, nodes, topics)
        return wanting

    def _drop_useless(self, slot: int, progress: Progress) -> None:
        neighbours = self.state.neighbours.of(slot)
        useful = self._who_want(neighbours, self.state.topics_of.of(slot))
        useless = np.setdiff1d(neighbours, useful).astype(np.int32)
        self._drop(np.stack((np.full(useless.size, slot, np.int32), useless), axis=1), progress)

    def _report(self, progress: Progress) -> Change:
        names, seconds = self.state.nodes, progress.seconds
        return Change(
            progress.ledger.made(),
            progress.ledger.dropped(),
            tuple(names.label(slot) for slot in names.in_order(progress.shadow)),
            seconds["prepare"],
            seconds["links"],
            seconds["backups"],
            seconds["rebalance"],
            progress.rebuilt,
            progress.above,
        )


class Naive(Maintainer):
    """NaiveDynAlg (Chen, Jacobsen, Vitenberg, Algs. 3 and 4), which is OMen's LowODA-Inc: the greedy engine on top of
    the links there are, with all nodes as candidates.

    Guarantee: topic-connected; average and maximum degree as Lemma 2 bounds them. LowODA-Inc offers the engine all
    pairs on a join too, of which only those with the newcomer contribute, so the two are the same link for link.
    Cost: a join reads the members of the newcomer's topics, a leave runs the engine on all subscribers of the topics
    that split.
    """

    def _repair_losses(self, loss: Loss, progress: Progress) -> None:
        started = time.thread_time()
        links, _ = self._find_links(Scope(loss.former, loss.topics, None), self._spared_degree())
        progress.spend("links", started)
        self._add(links, progress)

    def _gain(self, slot: int, topics: Codes, progress: Progress) -> None:
        started = time.thread_time()
        links = connect_newcomer(self.state, slot, topics, None, DegreeRule(self.rho, self._spared_degree()))
        progress.spend("links", started)
        self._add(links, progress)


class Rebuilding(Maintainer):
    """LowODA-Re (OMen, 6.1): Low-ODA from scratch after every event, whatever that does to the links there are.

    Guarantee: that of Low-ODA each time. Cost: Low-ODA's, and a third (join) to over a half (leave) of
    all links changed with each event; the papers report a tenth.
    """

    keeps_links = False

    def _handle(self, plan: Plan, progress: Progress) -> None:
        state = self.state
        if plan.leaving or plan.losing:
            self._settle_losses(self._take_losses(plan, progress), plan, progress)
        for label, topics in plan.joining:
            state.subscribe(state.add_node(label), topics)
        for slot, topics in plan.gaining:
            state.subscribe(slot, topics)
        interests = state.interests()
        started = time.thread_time()
        fresh = design_low_oda(interests, self.rho)
        progress.spend("links", started)
        slots = state.nodes.sorted_slots()
        present = state.overlay()
        before = set(zip(present.u.tolist(), present.v.tolist(), strict=True))
        after = set(zip(fresh.u.tolist(), fresh.v.tolist(), strict=True))
        self._drop(as_pairs(slots, before - after), progress)
        self._add(as_pairs(slots, after - before), progress)


def _as_tuple(topics: Iterable[Label]) -> tuple[Label, ...]:
    if isinstance(topics, str):
        raise InvalidInput(f"topics must be a list of topics, not the text {topics!r}")
    return tuple(topics)


def _joined(parts: list[Codes]) -> Codes:
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


def _without(slots: Codes, leaving: list[int]) -> Codes:
    if not leaving or (len(leaving) == 1 and leaving[0] not in slots):
        return slots
    staying: Codes = slots[~np.isin(slots, leaving)]
    return staying


def _unique_links(parts: list[Pairs]) -> Pairs:
    if not parts:
        return NO_LINKS
    if len(parts) == 1:
        return parts[0]
    links = np.concatenate(parts)
    links.sort(axis=1)
    unique: Pairs = np.ascontiguousarray(np.unique(links, axis=0))
    return unique

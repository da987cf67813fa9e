"""Whatever happens to it, in whatever order, a maintained overlay stays topic-connected and its state stays sound."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from omen.churn import Crash, Event, Join, Leave, Resubscribe
from omen.interests import Interests
from omen.maintain import resume_maintainer, start_maintainer
from omen.maintain.maintainers import Maintainer
from omen.maintain.state import State
from omen.quality import check_overlay

TOPICS = ["ant", "bee", "cat", "dog", "eel", "fox"]
NODES = [f"n{i}" for i in range(14)]

# Skewed on purpose: the first topic is nearly everybody's, the last ones come and go.
topic_lists = st.lists(st.sampled_from(TOPICS[:1] * 4 + TOPICS[:3] + TOPICS), max_size=5).map(
    lambda t: tuple(sorted(set(t)))
)

shadow_options = st.fixed_dictionaries(
    {
        "lambda": st.integers(0, 3),
        "backups": st.sampled_from(["pd-weight", "pd-cover", "greedy-weight", "greedy-cover"]),
        "components": st.sampled_from(["exact", "halo", "halo-near", "literal"]),
        "degree_of": st.sampled_from(["s", "overlay"]),
        "rebalance": st.sampled_from([0, 0, 4]),
        "seed": st.integers(0, 3),
    }
)
systems = st.one_of(
    st.tuples(st.just("shadow"), shadow_options),
    st.tuples(st.sampled_from(["naive", "lowoda-inc", "lowoda-re"]), st.just({})),
)


class Churn(RuleBasedStateMachine):
    """The model is a dict of topic sets; everything else is checked against it and the judge."""

    maintainer: Maintainer
    model: dict[str, set[str]]

    @initialize(system=systems, start=st.dictionaries(st.sampled_from(NODES), topic_lists, max_size=10))
    def begin(self, system: tuple[str, dict[str, Any]], start: dict[str, tuple[str, ...]]) -> None:
        self.system, self.options = system
        self.model = {node: set(topics) for node, topics in start.items()}
        pairs = [(node, topic) for node, topics in start.items() for topic in topics]
        self.maintainer = start_maintainer(self.system, Interests.from_pairs(pairs, list(start)), **self.options)

    def absent(self) -> list[str]:
        return [node for node in NODES if node not in self.model]

    @precondition(lambda self: self.absent())
    @rule(data=st.data(), topics=topic_lists)
    def join(self, data: st.DataObject, topics: tuple[str, ...]) -> None:
        node = data.draw(st.sampled_from(self.absent()))
        self.follow([Join(0.0, node, topics)])

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.follow([Leave(0.0, data.draw(st.sampled_from(sorted(self.model))))])

    @precondition(lambda self: self.model)
    @rule(data=st.data(), topics=topic_lists)
    def resubscribe(self, data: st.DataObject, topics: tuple[str, ...]) -> None:
        self.follow([Resubscribe(0.0, data.draw(st.sampled_from(sorted(self.model))), topics)])

    @rule(data=st.data())
    def batch(self, data: st.DataObject) -> None:
        """Events at once, each possible after those before it; a node may go and come back, or come and go."""
        present = set(self.model)
        events: list[Event] = []
        for _ in range(data.draw(st.integers(0, 5))):
            node = data.draw(st.sampled_from(NODES))
            if node not in present:
                events.append(Join(0.0, node, data.draw(topic_lists)))
                present.add(node)
            elif data.draw(st.booleans()):
                events.append(data.draw(st.sampled_from([Leave, Crash]))(0.0, node))
                present.discard(node)
            else:
                events.append(Resubscribe(0.0, node, data.draw(topic_lists)))
        self.follow(events)

    @rule(budget=st.integers(0, 6))
    def rebalance(self, budget: int) -> None:
        before = self.maintainer.overlay()
        change = self.maintainer.rebalance(budget)
        assert change.links_changed <= budget
        halfway = set(before.links()) | set(change.added)
        assert set(self.maintainer.overlay().links()) == halfway - set(change.removed)
        assert self.maintainer.link_count <= before.link_count or self.maintainer.max_degree <= before.degrees.max()

    @rule()
    def resume(self) -> None:
        """A maintainer that was stopped and resumed goes on as the one that was not."""
        other = resume_maintainer(self.system, self.maintainer.snapshot(), **self.options)
        if self.model:
            first = min(self.model)
            change = other.leave(first)
            same = self.maintainer.leave(first)
            assert (change.added, set(change.removed), change.shadow) == (same.added, set(same.removed), same.shadow)
            del self.model[first]
        self.maintainer = other

    def follow(self, events: list[Event]) -> None:
        before = set(self.maintainer.overlay().links())
        change = self.maintainer.apply(events)
        assert not set(change.added) & set(change.removed)
        assert set(self.maintainer.overlay().links()) == (before - set(change.removed)) | set(change.added)
        for event in events:
            if isinstance(event, (Join, Resubscribe)):
                self.model[str(event.node)] = {str(topic) for topic in event.topics or ()}
            else:
                del self.model[str(event.node)]

    @invariant()
    def every_topic_is_connected(self) -> None:
        if hasattr(self, "maintainer"):
            assert check_overlay(self.maintainer.interests(), self.maintainer.overlay()).holds

    @invariant()
    def the_state_is_one_built_from_scratch(self) -> None:
        if hasattr(self, "maintainer"):
            pairs = [(node, topic) for node, topics in self.model.items() for topic in topics]
            expected = Interests.from_pairs(pairs, list(self.model))
            assert self.maintainer.interests().pairs() == expected.pairs()
            assert self.maintainer.interests().nodes.tolist() == sorted(self.model)
            assert_sound(self.maintainer.state)

    @invariant()
    def backups_cover_and_primaries_are_their_inverse(self) -> None:
        if hasattr(self, "maintainer") and self.system == "shadow":
            assert_backups_hold(self.maintainer, self.model, self.options["lambda"])


def assert_sound(state: State) -> None:
    """Everything the state keeps besides interests, links and backups follows from them; scratch is as it should be."""
    fresh = State(state.interests(), state.overlay())
    assert (state.max_degree, state.link_count) == (fresh.max_degree, fresh.link_count)
    counts = np.trim_zeros(state.degree_counts, "b").tolist()
    assert counts == np.trim_zeros(fresh.degree_counts, "b").tolist()
    for label, slot in state.nodes.slot_of.items():
        other = fresh.nodes.slot_of[label]
        assert names(state, state.neighbours.of(slot)) == names(fresh, fresh.neighbours.of(other))
    for label, slot in state.topics.slot_of.items():
        other = fresh.topics.slot_of[label]
        assert names(state, state.members.of(slot)) == names(fresh, fresh.members.of(other))
    wanted = sum(int(word).bit_count() for word in state.bits.ravel())
    assert wanted == sum(state.topics_of.length(slot) for slot in state.nodes.slot_of.values())
    assert (state.places == -1).all() and (state.topic_places == -1).all() and (state.counts == 0).all()


def names(state: State, slots: Any) -> list[Any]:
    return sorted(state.nodes.label(slot) for slot in slots.tolist())


def assert_backups_hold(maintainer: Maintainer, model: dict[str, set[str]], covers: int) -> None:
    state = maintainer.state
    backups = {node: set(names(state, state.backups.of(slot))) for node, slot in state.nodes.slot_of.items()}
    primaries = {node: set(names(state, state.primaries.of(slot))) for node, slot in state.nodes.slot_of.items()}
    assert primaries == {node: {other for other in backups if node in backups[other]} for node in backups}
    for node, topics in model.items():
        assert node not in backups[node]
        assert all(model[backup] & topics for backup in backups[node])
        for topic in topics:
            others = {other for other in model if other != node and topic in model[other]}
            assert len(others & backups[node]) >= min(covers, len(others))


TestChurn = Churn.TestCase
TestChurn.settings = settings(
    max_examples=60, stateful_step_count=18, deadline=None, suppress_health_check=list(HealthCheck)
)

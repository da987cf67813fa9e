from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from omen import design_overlay
from omen.churn import Crash, Join, Leave, Resubscribe
from omen.errors import InvalidInput
from omen.interests import Interests
from omen.maintain import MAINTAINERS, resume_maintainer, start_maintainer
from omen.maintain.maintainers import Maintainer
from omen.overlay import Overlay
from omen.quality import check_overlay
from reference.dynamic import Dynamic
from reference.greedy import all_pairs, construct_low_edges


def interests_at(nodes: int = 60, topics: int = 12, seed: int = 1) -> Interests:
    rng = np.random.default_rng(seed)
    pairs = [(v, int(t)) for v in range(nodes) for t in rng.choice(topics, int(rng.integers(2, 7)), replace=False)]
    return Interests.from_pairs(pairs, range(nodes))


def holds(maintainer: Maintainer) -> bool:
    return check_overlay(maintainer.interests(), maintainer.overlay()).holds


@pytest.mark.parametrize("name", MAINTAINERS)
def test_every_maintainer_keeps_every_topic_connected(name: str) -> None:
    maintainer = start_maintainer(name, interests_at())
    for step in range(20):
        maintainer.leave(step)
        assert holds(maintainer)
        maintainer.join(100 + step, [step % 12, (5 * step + 1) % 12])
        maintainer.resubscribe(30 + step, [step % 12, 99])
        assert holds(maintainer)


@pytest.mark.parametrize("name", MAINTAINERS)
@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: m.leave(999), "999 leaves but is not in the overlay"),
        (lambda m: m.join(3, [1]), "3 joins but is in the overlay already"),
        (lambda m: m.join(999), "not in the workload"),
        (lambda m: m.resubscribe(999, [1]), "999 resubscribes but is not"),
        (lambda m: m.join("ann", [1]), "nodes here are whole numbers"),
        (lambda m: m.join(999, ["tea"]), "topics here are whole numbers"),
        (lambda m: m.join(999, "tea"), "must be a list"),
        (lambda m: m.apply([Leave(0, 1), Join(0, 70, (1,)), Crash(0, 1)]), "event 2: node 1 leaves"),
        (lambda m: m.rebalance(-1), "at least 0"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    name: str, act: Callable[[Maintainer], object], message: str
) -> None:
    maintainer = start_maintainer(name, interests_at(20))
    before = maintainer.snapshot()
    with pytest.raises(InvalidInput, match=message):
        act(maintainer)
    after = maintainer.snapshot()
    assert after.interests == before.interests and after.overlay == before.overlay
    assert after.backup.tolist() == before.backup.tolist() and after.builds == before.builds


def test_an_empty_population_takes_labels_of_one_kind_only() -> None:
    maintainer = start_maintainer("shadow", Interests.from_pairs([]))
    with pytest.raises(InvalidInput, match="all whole numbers or all text"):
        maintainer.apply([Join(0, 1, ("a",)), Join(0, "x", ("a",))])
    with pytest.raises(InvalidInput, match="all whole numbers or all text"):
        maintainer.join("x", ["a", 2])
    maintainer.join("x", ["a"])
    maintainer.leave("x")
    maintainer.join(5, [2])
    assert maintainer.interests().pairs() == [(5, 2)]


def test_a_broken_overlay_is_refused_by_the_name_of_a_split_topic() -> None:
    interests = Interests.from_pairs([(1, "tea"), (2, "tea")])
    with pytest.raises(InvalidInput, match="'tea' is in 2 pieces"):
        start_maintainer("shadow", interests, Overlay.from_links([1, 2], []))


def test_names_and_options_that_do_not_exist_are_refused_with_a_hint() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'shadow'"):
        start_maintainer("shadows", interests_at(5))
    with pytest.raises(InvalidInput, match="shadow has no option 'lamda'"):
        start_maintainer("shadow", interests_at(5), lamda=3)
    with pytest.raises(InvalidInput, match="one of pd-weight"):
        start_maintainer("shadow", interests_at(5), backups="best")


def test_the_declarations_are_read_without_loading_numpy_or_a_kernel() -> None:
    code = "import sys, omen.maintain; print('numpy' in sys.modules or 'numba' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"


def links_from_all_pairs(maintainer: Maintainer, present: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """What the greedy engine adds to these links, offered every pair of nodes: LowODA-Inc as OMen tells it."""
    interests = maintainer.interests()
    topics_of = {
        v: set(interests.topics[interests.topics_of(i)].tolist()) for i, v in enumerate(interests.nodes.tolist())
    }
    return construct_low_edges(topics_of, present, all_pairs(topics_of) - present, 3.0)


@pytest.mark.parametrize("name", ["naive", "lowoda-inc"])
def test_a_join_and_a_leave_add_the_links_that_an_engine_offered_all_pairs_adds(name: str) -> None:
    maintainer = start_maintainer(name, interests_at(25))
    repaired = 0
    for step in range(10):
        before = {link for link in maintainer.overlay().links() if step not in link}
        added = list(maintainer.leave(step).added)
        assert added == links_from_all_pairs(maintainer, before)
        repaired += len(added)
        before = set(maintainer.overlay().links())
        topics = {step % 12, (3 * step + 2) % 12, (7 * step + 5) % 12}
        assert list(maintainer.join(100 + step, topics).added) == links_from_all_pairs(maintainer, before)
    assert repaired


def test_lowoda_re_is_low_oda_each_time() -> None:
    maintainer = start_maintainer("lowoda-re", interests_at())
    for step in range(8):
        change = maintainer.leave(step)
        assert maintainer.overlay() == design_overlay(maintainer.interests(), "low-oda")
        assert change.removed


def test_linked_nodes_lost_together_leave_no_topic_split_at_lambda_0() -> None:
    """The paper's independent repairs split topics here in 39-90% of cases."""
    for seed in range(15):
        maintainer = start_maintainer("shadow", interests_at(40, seed=seed), lambda_=0)
        overlay = maintainer.overlay()
        chain = [
            overlay.links()[seed][0],
            overlay.links()[seed][1],
            *overlay.neighbours_of(int(overlay.u[seed]))[:2].tolist(),
        ]
        maintainer.apply([Crash(0, node) for node in dict.fromkeys(chain)])
        assert holds(maintainer)


@pytest.mark.parametrize("components", ["halo", "halo-near", "literal"])
def test_coarser_knowledge_never_splits_a_topic_and_never_needs_fewer_links(components: str) -> None:
    exact = start_maintainer("shadow", interests_at(120, 15))
    other = start_maintainer("shadow", interests_at(120, 15), components=components)
    for step in range(60):
        exact.leave(step)
        other.leave(step)
        assert holds(other)
    assert other.link_count >= exact.link_count


def test_a_batch_is_summed_up_node_by_node() -> None:
    maintainer = start_maintainer("shadow", interests_at(30))
    stayed = maintainer.apply([Join(0, 90, (1, 2)), Leave(0, 90), Resubscribe(0, 4, (1, 2)), Resubscribe(0, 4, (3,))])
    assert 90 not in maintainer and holds(maintainer)
    assert all(90 not in link for link in stayed.added)
    maintainer.apply([Crash(0, 5), Join(0, 5, (7,)), Leave(0, 6), Join(0, 91, (7,))])
    assert 5 in maintainer and 6 not in maintainer and holds(maintainer)
    code = maintainer.interests().nodes.tolist().index(5)
    assert maintainer.interests().topics_of(code).tolist() == [7]


def test_a_node_that_drops_a_topic_drops_the_links_that_served_it_alone() -> None:
    interests = Interests.from_pairs([("a", "x"), ("b", "x"), ("b", "y"), ("c", "y")])
    maintainer = start_maintainer("shadow", interests)
    change = maintainer.resubscribe("b", ["y"])
    assert change.removed == (("a", "b"),) and change.added == ()
    assert maintainer.resubscribe("b", ["x", "y"]).added == (("a", "b"),)
    assert maintainer.resubscribe("b", ["y", "x"]).links_changed == 0


def test_topics_left_out_are_those_of_the_workload() -> None:
    maintainer = start_maintainer(
        "naive", Interests.from_pairs([(1, 5)]), workload=Interests.from_pairs([(1, 5), (2, 5)])
    )
    assert maintainer.join(2).added == ((1, 2),)


def test_a_resumed_maintainer_goes_on_as_the_first_would_have() -> None:
    first = start_maintainer("shadow", interests_at(), seed=4, rebalance=3)
    for step in range(10):
        first.leave(step)
        first.join(100 + step, [step % 12, (5 * step + 1) % 12])
    second = resume_maintainer("shadow", first.snapshot(), seed=4, rebalance=3)
    for step in range(10, 20):
        one, other = first.leave(step), second.leave(step)
        assert (one.added, sorted(one.removed), one.shadow) == (other.added, sorted(other.removed), other.shadow)
        one, other = first.join(100 + step, [step % 12]), second.join(100 + step, [step % 12])
        assert (one.added, sorted(one.removed)) == (other.added, sorted(other.removed))
    assert first.snapshot().backup.tolist() == second.snapshot().backup.tolist()


def test_every_seed_draws_other_backups_and_the_same_seed_the_same() -> None:
    drawn = [start_maintainer("shadow", interests_at(), seed=seed).snapshot().backup.tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_rebalancing_takes_out_every_redundant_link_and_respects_its_budget() -> None:
    interests = interests_at(40)
    overlay = start_maintainer("naive", interests).overlay()
    spare = [(u, v) for u in range(0, 40, 7) for v in range(u + 1, 40, 9) if (u, v) not in overlay.links()]
    maintainer = start_maintainer("naive", interests, Overlay.from_links(range(40), overlay.links() + spare))
    before = maintainer.link_count
    assert maintainer.rebalance(3).links_changed <= 3
    while maintainer.rebalance(50).links_changed:
        assert holds(maintainer)
    assert maintainer.link_count <= before - len(spare)
    oracle = Dynamic.start({v: set(interests.topics_of(v).tolist()) for v in range(40)}, set(), covers=None)
    assert not redundant_links(oracle, set(maintainer.overlay().links()))


def redundant_links(oracle: Dynamic, links: set[tuple[int, int]]) -> list[tuple[int, int]]:
    from reference.greedy import topic_components

    topics_of = {v: node.topics for v, node in oracle.nodes.items()}
    return [
        link
        for link in links
        if all(
            topic_components(topics_of, links - {link})[t][link[0]]
            == topic_components(topics_of, links - {link})[t][link[1]]
            for t in topics_of[link[0]] & topics_of[link[1]]
        )
    ]


def test_rebalancing_with_each_repair_keeps_degrees_lower_than_leaving_it() -> None:
    with_it = start_maintainer("shadow", interests_at(150, 20), rebalance=5)
    without = start_maintainer("shadow", interests_at(150, 20))
    changed = 0
    for step in range(100):
        topics = [step % 20, (5 * step + 1) % 20, (3 * step + 7) % 20, (11 * step + 2) % 20]
        for maintainer in (with_it, without):
            maintainer.leave(step)
            change = maintainer.join(1000 + step, topics)
            assert holds(maintainer)
            changed += change.links_changed if maintainer is with_it else -change.links_changed
    assert with_it.average_degree < without.average_degree
    assert changed <= 5 * 200

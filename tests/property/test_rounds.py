"""Designs in rounds, whatever the workload: topic-connected, within caps, and the same for any number of workers."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from omen.design import ALGORITHMS
from omen.design.rounds import Rounds, accept_links, cap_nodes, design_in_rounds
from omen.design.schedule import Step
from omen.quality import check_overlay
from reference.instances import as_interests, random_interests, tiny_topics

RHOS = st.sampled_from([0.0, 1.0, 3.0, math.inf])
SCHEDULES = st.sampled_from(
    ["auto", "m1", "r9", "m3c2,m2c3,r2c4", "r2", "m2c1,m1c2", "m3u4,m2u3,r2k5,jk5,m2u2", "jc2,j"]
)
WORKLOADS = {skew: random_interests(300, 60, 2, 9, skew, seed=5) for skew in (0.0, 1.5)}


@settings(max_examples=120, deadline=None)
@given(tiny_topics(), RHOS, SCHEDULES, st.integers(2, 8), st.integers(0, 3), st.integers(0, 4))
def test_every_topic_is_connected(instance, rho, schedule, part_nodes, seed, most_links):
    interests = as_interests(*instance)
    done = design_in_rounds(interests, Rounds(rho, part_nodes, seed, 1, most_links), schedule)
    assert check_overlay(interests, done.overlay).topic_connected
    assert sum(facts.new_links for facts in (*done.rounds, *done.last)) == done.overlay.link_count


@settings(max_examples=40, deadline=None)
@given(RHOS, SCHEDULES, st.sampled_from(sorted(WORKLOADS)), st.integers(0, 1000))
def test_workers_do_not_change_the_overlay(rho, schedule, skew, seed):
    of_workers = [
        design_in_rounds(WORKLOADS[skew], Rounds(rho, 40, seed, workers), schedule).overlay for workers in (1, 2, 7)
    ]
    assert of_workers[0] == of_workers[1] == of_workers[2]


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 40), RHOS, SCHEDULES, st.integers(2, 8))
def test_a_topic_of_all_nodes_keeps_the_least_cap_there_is(nodes, rho, schedule, part_nodes):
    """A path needs two links of a node and no more, so a cap of 2 can be kept, and is."""
    interests = as_interests({node: {0} for node in range(nodes)}, 1)
    done = design_in_rounds(interests, Rounds(rho, part_nodes, most_links=2), schedule)
    assert check_overlay(interests, done.overlay).topic_connected
    assert done.overlay.degrees.max() <= 2


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(6, 11)), max_size=30), st.integers(0, 4), st.integers(0, 99))
def test_accepted_links_leave_no_node_without_room(pairs, most, seed):
    links = np.array(pairs, np.int32).reshape(-1, 2)
    room = np.full(12, most, np.int32)
    accepted = accept_links(links, room, np.uint64(seed))
    ends = np.bincount(accepted.ravel(), minlength=12)
    assert (ends <= most).all()
    assert {tuple(link) for link in accepted.tolist()} <= set(pairs)
    if links.size and (np.bincount(np.array(sorted(set(pairs))).ravel(), minlength=12) <= most).all():
        assert {tuple(link) for link in accepted.tolist()} == set(pairs)


@settings(max_examples=80, deadline=None)
@given(tiny_topics(), st.integers(0, 9))
def test_gm_in_one_part_has_as_many_links_as_gm(instance, seed):
    """Rounds without caps are the beginning of GM; where no link removes two components, the number left is fixed."""
    interests = as_interests(*instance)
    exact = ALGORITHMS["gm"].build(interests)
    assert design_in_rounds(interests, Rounds(0.0, 64, seed), "m5,m3,m2").overlay.link_count == exact.link_count


@settings(max_examples=60, deadline=None)
@given(tiny_topics(), st.integers(0, 9))
def test_what_fits_one_part_is_the_exact_overlay(instance, seed):
    interests = as_interests(*instance)
    for name, rho in (("gm", 0.0), ("low-oda", 2.0), ("minmax-oda", math.inf)):
        exact = ALGORITHMS[name].build(interests, **({"rho": rho} if name == "low-oda" else {}))
        for part_nodes in (0, 64):
            assert design_in_rounds(interests, Rounds(rho, part_nodes, seed)).overlay == exact


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 20), st.lists(st.integers(0, 9), min_size=5, max_size=5), st.integers(0, 12))
def test_nodes_that_keep_room_can_take_a_link_in_every_topic_they_are_alone_in(cap, alone, most_links):
    caps = cap_nodes(Step(2, cap + 1, keeps=True), np.array(alone, np.int32), most_links)
    assert caps is not None
    assert all(most + one <= cap + 1 for most, one in zip(caps.tolist(), alone, strict=True))
    assert all(most <= (most_links or cap + 1) for most in caps.tolist())

"""Small overlays of all algorithms, worked out by hand."""

from __future__ import annotations

from itertools import combinations

from omen.interests import Interests
from omen.systems import design_overlay

HUBS = Interests.from_pairs(
    [
        *((node, "wide") for node in "abcdef"),
        *((node, topic) for node in "gh" for topic in ("deep 1", "deep 2", "deep 3", "deep 4")),
        ("a", "wide 2"),
        ("g", "wide 2"),
    ]
)


def test_cd_oda_starts_at_most_neighbours() -> None:
    # a has the five others of "wide", and g.
    assert design_overlay(HUBS, "cd-oda").links() == [*(("a", node) for node in "bcdefg"), ("g", "h")]


def test_cd_oda_ii_starts_at_the_densest() -> None:
    # h has density 4 (four topics with g alone), g 5/2, a 1; the star of h leaves g and a "wide 2".
    assert design_overlay(HUBS, "cd-oda-ii").links() == [*(("a", node) for node in "bcdefg"), ("g", "h")]
    path = Interests.from_pairs([("p", 1), ("q", 1), ("q", 2), ("r", 2), ("q", 3), ("r", 3)])
    assert design_overlay(path, "cd-oda-ii").links() == [("p", "q"), ("q", "r")]


def test_cd_oda_ii_tells_densities_apart_that_differ_by_little() -> None:
    # The two who share a second topic have density 1001/1000, the others 1.
    large = 1001
    pairs = [(node, "everyone") for node in range(large)]
    pairs += [(large - 2, "two"), (large - 1, "two")]
    links = design_overlay(Interests.from_pairs(pairs), "cd-oda-ii").links()
    assert links == [(node, large - 2) for node in range(large - 2)] + [(large - 2, large - 1)]


def test_gm2_ties_everyone_to_the_two_lowest_in_a_single_topic() -> None:
    interests = Interests.from_pairs([(node, "tea") for node in range(6)])
    overlay = design_overlay(interests, "gm2")
    assert overlay.links() == sorted([*((0, node) for node in range(1, 6)), *((1, node) for node in range(2, 6))])


def test_gm2_links_two_subscribers_once_and_a_triangle_thrice() -> None:
    for size in (1, 2, 3):
        interests = Interests.from_pairs([(node, topic) for node in range(size) for topic in range(3)])
        assert design_overlay(interests, "gm2").links() == list(combinations(range(size), 2))


def test_harary_pt_with_k_1_is_a_path_for_each_topic() -> None:
    interests = Interests.from_pairs([(node, "tea") for node in (5, 1, 9, 3)])
    assert design_overlay(interests, "harary-pt", k=1).links() == [(1, 3), (3, 5), (5, 9)]


def test_harary_pt_chords_start_at_the_first_of_the_order() -> None:
    interests = Interests.from_pairs([(node, "tea") for node in range(7)])
    ring = [(node, node + 1) for node in range(6)] + [(0, 6)]
    assert design_overlay(interests, "harary-pt", k=3).links() == sorted([*ring, (0, 3), (1, 4), (2, 5), (3, 6)])


def test_ring_pt_equals_harary_pt_of_2() -> None:
    interests = Interests.from_pairs([(node, topic) for topic in range(5) for node in range(topic, 20, topic + 1)])
    assert design_overlay(interests, "ring-pt") == design_overlay(interests, "harary-pt", k=2)


def test_low_oda_of_infinity_is_minmax_oda() -> None:
    assert design_overlay(HUBS, "low-oda", rho=float("inf")) == design_overlay(HUBS, "minmax-oda")

"""The rule of live nodes within caps, zones and bans: its edges. Tests in tests/property hold it to the literal one."""

from __future__ import annotations

from omen.kernels.small_ruled import NO_LIMIT, LinkLimits, choose_links_within


def plan(topics_of: list[list[int]], rho: float, limits: LinkLimits, centre: int = -1) -> list[tuple[int, int]]:
    labels = [[node] * len(row) for node, row in enumerate(topics_of)]
    return choose_links_within(topics_of, labels, [0] * len(topics_of), rho, limits, centre)


def test_nothing_split_needs_no_link() -> None:
    assert plan([], 3.0, LinkLimits([], [])) == []
    assert plan([[1], [2]], 3.0, LinkLimits([0, 0], ["", ""])) == []


def test_a_cap_is_exceeded_by_one_where_that_will_do() -> None:
    limits = LinkLimits([1, 1, 1], [""] * 3)
    found = plan([[1]] * 3, 3.0, limits)
    assert len(found) == 2 and limits.excess_of(found) == 1


def test_a_node_far_beyond_its_cap_is_spared() -> None:
    limits = LinkLimits([-4, 0, 0], [""] * 3)
    assert plan([[1, 2, 3], [1, 2, 3], [1]], 0.0, limits)[0] == (1, 2), "it exceeds by least, though it joins less"


def test_links_within_a_zone_come_first_up_to_sigma() -> None:
    topics_of, zones = [[1, 2, 3], [1], [1, 2, 3]], ["n", "n", "s"]
    free = [NO_LIMIT] * 3
    assert plan(topics_of, 0.0, LinkLimits(free, zones, sigma=2.0))[0] == (0, 2)
    assert plan(topics_of, 0.0, LinkLimits(free, zones, sigma=3.0))[0] == (0, 1)


def test_bans_hold_for_the_partners_of_a_centre_too() -> None:
    limits = LinkLimits([NO_LIMIT] * 3, [""] * 3, frozenset({(0, 2)}))
    assert plan([[1]] * 3, 3.0, limits, centre=2) == [(1, 2)]
    assert plan([[1]] * 3, 3.0, limits.without({(1, 2)}), centre=2) == []

"""P01-P25, on few and small workloads. At the paper's own sizes: `omen reproduce`, docs/claims.md.

What only shows at thousands of nodes, within five percent, no test holds: those are skipped.
"""

# ruff: noqa: N802 - claims are called what the table calls them

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from . import spidercast

Compare = Callable[[ModuleType, str], None]

large = pytest.mark.skip(reason="its size is for `omen reproduce spidercast --scale full`")


def test_P01_no_topic_is_split_under_zipf_2_up_to_4000_nodes(compare: Compare) -> None:
    compare(spidercast, "P01")


def test_P02_split_topics_under_zipf_2_at_6000_nodes(compare: Compare) -> None:
    compare(spidercast, "P02")


def test_P03_split_topics_under_zipf_2_at_8000_and_10000_nodes(compare: Compare) -> None:
    compare(spidercast, "P03")


def test_P04_one_random_cover_leaves_no_topic_split_under_zipf_2(compare: Compare) -> None:
    compare(spidercast, "P04")


def test_P22_split_topics_of_4_0_coverage_under_zipf_2(compare: Compare) -> None:
    compare(spidercast, "P22")


def test_P05_average_degree_of_3_0_coverage_under_zipf_2(compare: Compare) -> None:
    compare(spidercast, "P05")


def test_P06_average_degree_of_3_1_coverage_under_zipf_2(compare: Compare) -> None:
    compare(spidercast, "P06")


def test_P07_no_topic_is_split_under_the_other_distributions(compare: Compare) -> None:
    compare(spidercast, "P07")


def test_P08_average_degree_is_at_most_twelve(compare: Compare) -> None:
    compare(spidercast, "P08")


def test_P09a_topic_diameter_under_uniform(compare: Compare) -> None:
    compare(spidercast, "P09a")


def test_P09b_topic_diameter_under_rss(compare: Compare) -> None:
    compare(spidercast, "P09b")


def test_P09c_topic_diameter_under_zipf_1(compare: Compare) -> None:
    compare(spidercast, "P09c")


def test_P09d_topic_diameter_under_nyse(compare: Compare) -> None:
    compare(spidercast, "P09d")


def test_P10_average_degree_is_lowest_under_nyse_highest_under_uniform_and_falls_with_nodes(compare: Compare) -> None:
    compare(spidercast, "P10")


def test_P11a_maximum_degree_with_100_topics(compare: Compare) -> None:
    compare(spidercast, "P11a")


def test_P11b_maximum_degree_with_200_topics(compare: Compare) -> None:
    compare(spidercast, "P11b")


def test_P12_average_degree_rises_with_topics_and_the_topic_diameter_falls(compare: Compare) -> None:
    compare(spidercast, "P12")


def test_P13_average_degree_rises_with_interest_sizes_up_to_20_then_falls(compare: Compare) -> None:
    compare(spidercast, "P13")


def test_P14_partial_views_leave_no_topic_split(compare: Compare) -> None:
    compare(spidercast, "P14")


def test_P15_churn_leaves_no_topic_split_in_any_snapshot(compare: Compare) -> None:
    compare(spidercast, "P15")


def test_P16_control_messages_per_join_or_leave_with_1000_nodes(compare: Compare) -> None:
    compare(spidercast, "P16")


def test_P17_control_messages_per_join_or_leave_with_2000_nodes(compare: Compare) -> None:
    compare(spidercast, "P17")


def test_P24a_average_degree_under_churn_with_1000_nodes(compare: Compare) -> None:
    compare(spidercast, "P24a")


def test_P24b_average_degree_under_churn_with_2000_nodes(compare: Compare) -> None:
    compare(spidercast, "P24b")


def test_P25_the_order_of_topic_diameters_is_the_reverse_of_that_of_degrees(compare: Compare) -> None:
    compare(spidercast, "P25")


def test_P18a_average_degree_of_3_0_coverage_with_1000_nodes(compare: Compare) -> None:
    compare(spidercast, "P18a")


@large
def test_P18b_average_degree_of_3_0_coverage_with_2000_nodes(compare: Compare) -> None:
    compare(spidercast, "P18b")


@large
def test_P18c_average_degree_of_3_0_coverage_with_4000_nodes(compare: Compare) -> None:
    compare(spidercast, "P18c")


@large
def test_P18d_average_degree_of_3_0_coverage_with_6000_nodes(compare: Compare) -> None:
    compare(spidercast, "P18d")


@large
def test_P18e_average_degree_of_3_0_coverage_with_8000_nodes(compare: Compare) -> None:
    compare(spidercast, "P18e")


@large
def test_P18f_average_degree_of_3_0_coverage_with_10000_nodes(compare: Compare) -> None:
    compare(spidercast, "P18f")


def test_P19a_average_degree_of_random_10_with_1000_nodes(compare: Compare) -> None:
    compare(spidercast, "P19a")


@large
def test_P19b_average_degree_of_random_10_with_2000_nodes(compare: Compare) -> None:
    compare(spidercast, "P19b")


@large
def test_P19c_average_degree_of_random_10_with_4000_nodes(compare: Compare) -> None:
    compare(spidercast, "P19c")


@large
def test_P19d_average_degree_of_random_10_with_6000_nodes(compare: Compare) -> None:
    compare(spidercast, "P19d")


@large
def test_P19e_average_degree_of_random_10_with_8000_nodes(compare: Compare) -> None:
    compare(spidercast, "P19e")


@large
def test_P19f_average_degree_of_random_10_with_10000_nodes(compare: Compare) -> None:
    compare(spidercast, "P19f")


def test_P20_pieces_of_topics_with_spidercast_and_its_rivals(compare: Compare) -> None:
    compare(spidercast, "P20")


def test_P21a_least_that_ring_pt_has_above_spidercasts_average_degree(compare: Compare) -> None:
    compare(spidercast, "P21a")


def test_P21b_most_that_ring_pt_has_above_spidercasts_average_degree(compare: Compare) -> None:
    compare(spidercast, "P21b")


def test_P23_average_degree_of_ring_pt_does_not_change_with_nodes(compare: Compare) -> None:
    compare(spidercast, "P23")


def test_every_claim_has_a_test_of_its_own() -> None:
    named = {name.split("_")[1] for name in globals() if name.startswith("test_P")}
    assert named == set(spidercast.MEASURES)

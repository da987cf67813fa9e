"""K01-K23, at sizes that take seconds. At the paper's own: `omen reproduce`, docs/claims.md."""

# ruff: noqa: N802 - claims are called what the table calls them

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from . import ktco

Compare = Callable[[ModuleType, str], None]


def test_K01_average_degree_of_gm2_to_that_of_gm_over_nodes(compare: Compare) -> None:
    compare(ktco, "K01")


def test_K02_average_degree_of_gm2_to_that_of_gm_over_topics(compare: Compare) -> None:
    compare(ktco, "K02")


def test_K03_cycle_pt_needs_about_two_links_a_subscription(compare: Compare) -> None:
    compare(ktco, "K03")


def test_K04_cycle_pt_needs_about_five_times_the_links_of_gm2(compare: Compare) -> None:
    compare(ktco, "K04")


def test_K05_cycle_pt_exceeds_gm2_by_forty_links_a_node(compare: Compare) -> None:
    compare(ktco, "K05")


def test_K06_harary_pt_reaches_k_12_with_fewer_links_than_cycle_pt_under_expo(compare: Compare) -> None:
    compare(ktco, "K06")


def test_K07_harary_pt_reaches_k_7_with_fewer_links_than_cycle_pt_under_zipf(compare: Compare) -> None:
    compare(ktco, "K07")


def test_K08_harary_pt_reaches_k_5_with_fewer_links_than_cycle_pt_under_unif(compare: Compare) -> None:
    compare(ktco, "K08")


def test_K09_average_degree_of_harary_pt_10_on_100_topics(compare: Compare) -> None:
    compare(ktco, "K09")


def test_K10_average_degree_of_harary_pt_10_on_1000_topics(compare: Compare) -> None:
    compare(ktco, "K10")


def test_K11_average_degree_of_harary_pt_12_with_100_subscriptions(compare: Compare) -> None:
    compare(ktco, "K11")


def test_K12_average_degree_of_cycle_pt_with_100_subscriptions(compare: Compare) -> None:
    compare(ktco, "K12")


def test_K13_gm2_brings_the_highest_topic_diameter_to_0_4_of_gm_under_unif(compare: Compare) -> None:
    compare(ktco, "K13")


def test_K14_gm2_halves_the_mean_topic_diameter_of_gm_under_unif(compare: Compare) -> None:
    compare(ktco, "K14")


def test_K15_highest_topic_diameter_gm_minus_gm2_under_unif(compare: Compare) -> None:
    compare(ktco, "K15")


def test_K16_mean_topic_diameter_gm_minus_gm2_under_unif(compare: Compare) -> None:
    compare(ktco, "K16")


def test_K17_gm2_more_than_halves_the_highest_topic_diameter_of_gm(compare: Compare) -> None:
    compare(ktco, "K17")


def test_K18_gm2_halves_the_mean_topic_diameter_of_gm(compare: Compare) -> None:
    compare(ktco, "K18")


def test_K19_highest_topic_diameter_gm_minus_gm2_under_expo(compare: Compare) -> None:
    compare(ktco, "K19")


def test_K20_highest_topic_diameter_gm_minus_gm2_under_zipf(compare: Compare) -> None:
    compare(ktco, "K20")


def test_K21_harary_pt_2_never_needs_more_links_than_cycle_pt(compare: Compare) -> None:
    compare(ktco, "K21")


def test_K22_links_of_harary_pt_6_to_those_of_cycle_pt_under_skewed_popularity(compare: Compare) -> None:
    compare(ktco, "K22")


def test_K23_average_degree_of_harary_pt_peaks_in_the_middle_of_subscription_sizes(compare: Compare) -> None:
    compare(ktco, "K23")

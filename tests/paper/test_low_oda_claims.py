"""L01-L09, at sizes that take seconds. At the paper's own: `omen reproduce`, docs/claims.md."""

# ruff: noqa: N802 - claims are called what the table calls them

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from . import low_oda

Compare = Callable[[ModuleType, str], None]


def test_L01_maximum_degree_of_low_oda_is_that_of_minmax_oda_and_far_below_gm(compare: Compare) -> None:
    compare(low_oda, "L01")


def test_L02_average_degree_of_low_oda_lies_between_gm_and_minmax_oda(compare: Compare) -> None:
    compare(low_oda, "L02")


def test_L03_maximum_degree_falls_up_to_k_3_and_then_stays_level(compare: Compare) -> None:
    compare(low_oda, "L03")


def test_L04_average_degree_rises_with_k(compare: Compare) -> None:
    compare(low_oda, "L04")


def test_L05_cd_oda_links_to_gm_links(compare: Compare) -> None:
    compare(low_oda, "L05")


def test_L06_cd_oda_ii_links_to_gm_links(compare: Compare) -> None:
    compare(low_oda, "L06")


def test_L07_cd_oda_ii_saves_a_fifth_of_the_degree_of_cd_oda(compare: Compare) -> None:
    compare(low_oda, "L07")


def test_L08_cd_oda_ii_needs_about_the_degree_of_cd_oda_i(compare: Compare) -> None:
    compare(low_oda, "L08")


def test_L09_no_topic_of_a_hub_overlay_is_wider_than_two(compare: Compare) -> None:
    compare(low_oda, "L09")

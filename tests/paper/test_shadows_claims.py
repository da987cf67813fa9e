"""S01-S28 at the paper's own size, one workload. More, and all variants: `omen reproduce`, docs/claims.md.

S16-S19 are ratios of times: no test holds them, `omen reproduce` and `python -m bench mend` measure them.
"""

# ruff: noqa: N802 - claims are called what the table calls them

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from . import shadows

Compare = Callable[[ModuleType, str], None]


def test_S01_backup_sets_are_a_small_share_of_all_nodes(compare: Compare) -> None:
    compare(shadows, "S01")


def test_S02_greedy_backup_sets_are_smaller(compare: Compare) -> None:
    compare(shadows, "S02")


def test_S03_greedy_backups_leave_many_nodes_with_few_primaries(compare: Compare) -> None:
    compare(shadows, "S03")


def test_S04_lowest_primary_degree_of_primal_dual_backups(compare: Compare) -> None:
    compare(shadows, "S04")


def test_S05_highest_primary_degree_of_primal_dual_backups(compare: Compare) -> None:
    compare(shadows, "S05")


def test_S06_maximum_degree_after_churn_with_greedy_backups(compare: Compare) -> None:
    compare(shadows, "S06")


def test_S07_primal_dual_backups_end_with_a_lower_maximum_degree_than_greedy_ones(compare: Compare) -> None:
    compare(shadows, "S07")


def test_S08_maximum_degree_after_churn_with_one_cover(compare: Compare) -> None:
    compare(shadows, "S08")


def test_S09_maximum_degree_after_churn_with_two_covers(compare: Compare) -> None:
    compare(shadows, "S09")


def test_S10_maximum_degree_after_churn_with_three_covers(compare: Compare) -> None:
    compare(shadows, "S10")


def test_S11_maximum_degree_after_churn_with_four_covers(compare: Compare) -> None:
    compare(shadows, "S11")


def test_S12_maximum_degree_stays_near_that_of_low_oda_rebuilt(compare: Compare) -> None:
    compare(shadows, "S12")


def test_S13_average_degree_stays_near_that_of_low_oda_rebuilt(compare: Compare) -> None:
    compare(shadows, "S13")


def test_S14_maximum_degree_after_the_first_round(compare: Compare) -> None:
    compare(shadows, "S14")


def test_S15_maximum_degree_after_the_last_round(compare: Compare) -> None:
    compare(shadows, "S15")


def test_S20_mean_share_of_nodes_in_the_shadow_set(compare: Compare) -> None:
    compare(shadows, "S20")


def test_S21_largest_share_of_nodes_in_the_shadow_set(compare: Compare) -> None:
    compare(shadows, "S21")


def test_S22_share_of_links_that_rebuilding_changes_on_a_join(compare: Compare) -> None:
    compare(shadows, "S22")


def test_S23_share_of_links_that_rebuilding_changes_on_a_leave(compare: Compare) -> None:
    compare(shadows, "S23")


def test_S24_share_of_links_that_shadow_changes_on_a_join(compare: Compare) -> None:
    compare(shadows, "S24")


def test_S25_share_of_links_that_shadow_changes_on_a_leave(compare: Compare) -> None:
    compare(shadows, "S25")


def test_S26_links_that_rebuilding_changes(compare: Compare) -> None:
    compare(shadows, "S26")


def test_S27_links_that_shadow_changes_on_a_join(compare: Compare) -> None:
    compare(shadows, "S27")


def test_S28_links_that_shadow_changes_on_a_leave(compare: Compare) -> None:
    compare(shadows, "S28")

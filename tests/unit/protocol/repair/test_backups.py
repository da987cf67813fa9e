"""Backup sets by the four rules of the papers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omen.protocol.repair.backups import RULES, build_backups

interests = st.dictionaries(st.integers(1, 30), st.frozensets(st.integers(0, 7), min_size=1), max_size=12)


@pytest.mark.parametrize("rule", RULES)
@given(topics=st.frozensets(st.integers(0, 7), min_size=1), candidates=interests, coverage=st.integers(0, 4))
def test_backups_cover_each_topic_as_often_as_asked_or_with_all_there_are(
    rule: str, topics: frozenset[int], candidates: dict[int, frozenset[int]], coverage: int
) -> None:
    backups = build_backups(topics, candidates, {}, coverage, rule, random.Random(1))
    assert len(set(backups)) == len(backups)
    assert all(candidates[node] & topics for node in backups), "individual commitment"
    for topic in topics:
        all_there_are = sum(topic in theirs for theirs in candidates.values())
        assert sum(topic in candidates[node] for node in backups) >= min(coverage, all_there_are)


@pytest.mark.parametrize("rule", ["pd-weight", "greedy-weight"])
def test_rules_by_weight_prefer_nodes_with_little_to_do(rule: str) -> None:
    candidates = {node: frozenset({1}) for node in (1, 2, 3)}
    assert build_backups({1}, candidates, {1: 9, 2: 1, 3: 5}, 1, rule, random.Random(1)) == [2]


@pytest.mark.parametrize("rule", ["pd-cover", "greedy-cover"])
def test_rules_by_cover_prefer_nodes_that_cover_most(rule: str) -> None:
    candidates = {1: frozenset({1}), 2: frozenset({1, 2, 3}), 3: frozenset({2, 3})}
    assert build_backups({1, 2, 3}, candidates, {2: 99}, 1, rule, random.Random(1)) == [2]

"""Backup sets by the rule (omen Alg. 4)."""

from __future__ import annotations

import random

import pytest

from omen.protocol.config import Config
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.repair.backups import build_backups
from omen.protocol.repair.views import Views
from unit.protocol.contexts import describe, make_context

ME, FOLLOWED = 100, 90
TOPICS = (1, 2, 3, 4)


def make_views(rule: str) -> tuple[Views, PeerTable, Config]:
    context = make_context(ME, coverage=1, backups=rule)
    views = Views(context)
    context.peer_table.learn(describe(FOLLOWED, TOPICS))
    views.follow([FOLLOWED], [])
    views.select_view()
    return views, context.peer_table, context.config


@pytest.mark.parametrize("rule", ["pd-weight", "pd-cover", "greedy-weight", "greedy-cover"])
def test_a_set_covered_by_the_first_that_came_is_chosen_anew_by_the_rule(rule: str) -> None:
    """Four nodes with a topic each come before one that has all four; what is kept is what the rule makes of all."""
    views, table, config = make_views(rule)
    for node, topics in ((1, (1,)), (2, (2,)), (3, (3,)), (4, TOPICS)):
        table.learn(describe(node, topics, degree=10 if node < 4 else 1))
        views.note_news([node])
    assert not views.is_ready(FOLLOWED)
    views.select_view()
    candidates = {node: table.topics_of(node) for node in (1, 2, 3, 4)}
    weights = {1: 10, 2: 10, 3: 10, 4: 1}
    ruled = build_backups(frozenset(TOPICS), candidates, weights, 1, config.backups, random.Random(1))
    assert views.is_ready(FOLLOWED)
    assert set(views.shadows[FOLLOWED].backups) == set(ruled)


def test_greedy_keeps_one_that_has_all_where_four_came_before_it() -> None:
    views, table, _ = make_views("greedy-cover")
    for node, topics in ((1, (1,)), (2, (2,)), (3, (3,)), (4, TOPICS)):
        table.learn(describe(node, topics))
        views.note_news([node])
    views.select_view()
    assert views.shadows[FOLLOWED].backups == [4]

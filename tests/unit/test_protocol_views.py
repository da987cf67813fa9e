"""Backup sets by the rule, and the order of events (omen Algs. 4 and 5)."""

from __future__ import annotations

import random

import pytest

from omen.protocol.config import Config
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.messages.overlay import Descriptor, Digest, EventId, Ref
from omen.protocol.repair.backups import build_backups
from omen.protocol.repair.event_queue import EventQueue
from omen.protocol.repair.views import Views

ME, FOLLOWED = 100, 90
TOPICS = (1, 2, 3, 4)


def describe(node: int, topics: tuple[int, ...], degree: int = 0) -> Descriptor:
    neighbours = tuple(Ref(1000 + number, 1, "") for number in range(degree))
    return Descriptor(Digest(Ref(node, 1, f"n{node}"), 1, 1), topics, neighbours)


def make_views(rule: str) -> tuple[Views, PeerTable, Config]:
    book = PeerTable(describe(ME, ()), 1_000_000)
    config = Config(coverage=1, backups=rule)
    views = Views(book, config, random.Random(1))
    book.learn(describe(FOLLOWED, TOPICS))
    views.follow([FOLLOWED], [])
    views.select_view()
    return views, book, config


@pytest.mark.parametrize("rule", ["pd-weight", "pd-cover", "greedy-weight", "greedy-cover"])
def test_a_set_covered_by_whoever_came_is_chosen_anew_by_the_rule(rule: str) -> None:
    """Four nodes with a topic each come before one that has all four; what is kept is what the rule makes of all."""
    views, book, config = make_views(rule)
    for node, topics in ((1, (1,)), (2, (2,)), (3, (3,)), (4, TOPICS)):
        book.learn(describe(node, topics, degree=10 if node < 4 else 1))
        views.note_news([node])
    assert not views.is_ready(FOLLOWED)
    views.select_view()
    candidates = {node: book.topics_of(node) for node in (1, 2, 3, 4)}
    weights = {1: 10, 2: 10, 3: 10, 4: 1}
    ruled = build_backups(frozenset(TOPICS), candidates, weights, 1, config.backups, random.Random(1))
    assert views.is_ready(FOLLOWED)
    assert set(views.shadows[FOLLOWED].backups) == set(ruled)


def test_greedy_keeps_one_that_has_all_where_four_came_before_it() -> None:
    views, book, _ = make_views("greedy-cover")
    for node, topics in ((1, (1,)), (2, (2,)), (3, (3,)), (4, TOPICS)):
        book.learn(describe(node, topics))
        views.note_news([node])
    views.select_view()
    assert views.shadows[FOLLOWED].backups == [4]


def test_what_is_taken_over_comes_before_what_was_heard_of_later() -> None:
    docket = EventQueue()
    old, new, newest = (EventId(node, 1, "leave") for node in (7, 3, 5))
    for event in (old, new, newest):
        docket.case(event)
    docket.exe_q += [newest, new]
    docket.exe_q.append(old)  # its coordinator is gone, and it falls to this node
    assert [docket.take() for _ in range(3)] == [old, new, newest]

"""A sender spends what it has saved up, and no more; senders do not pay for each other."""

from __future__ import annotations

from omen.protocol.budgets import SENDERS_AT_MOST, SenderBudget
from omen.protocol.events import SECOND


def test_a_sender_may_spend_what_it_saved_and_then_what_comes_in() -> None:
    budget = SenderBudget(per_second=10, at_once=20)
    assert sum(budget.take(1, 0) for _ in range(100)) == 20
    assert sum(budget.take(1, SECOND) for _ in range(100)) == 10
    assert sum(budget.take(1, 100 * SECOND) for _ in range(100)) == 20


def test_what_is_too_dear_costs_nothing() -> None:
    budget = SenderBudget(per_second=10, at_once=20)
    assert not budget.take(1, 0, cost=21)
    assert budget.take(1, 0, cost=20)


def test_senders_have_a_budget_each() -> None:
    budget = SenderBudget(per_second=1, at_once=1)
    assert budget.take(1, 0)
    assert not budget.take(1, 0)
    assert budget.take(2, 0)


def test_what_is_remembered_of_senders_is_bounded() -> None:
    budget = SenderBudget(per_second=1, at_once=2)
    for sender in range(2 * SENDERS_AT_MOST):
        assert budget.take(sender, 0)
    assert len(budget) <= SENDERS_AT_MOST

"""What one peer may have a node do for others: a budget per sender, refilled as time passes.

A message that makes its receiver speak to third nodes is paid for by the peer it came from, for which node it may be.
So the cost of a member to the others grows with the time it is there, and not with what it writes. Everything paid for
here is asked again by honest nodes when it is dropped.
"""

from __future__ import annotations

from omen.protocol.events import SECOND, NodeId, Time

SENDERS_AT_MOST = 4096


class SenderBudget:
    """A token bucket for each sender: `per_second` tokens, and `at_once` where it was silent for long enough."""

    def __init__(self, per_second: int, at_once: int) -> None:
        self._pause = SECOND // per_second
        self._room = at_once * self._pause
        self._empty_until: dict[NodeId, Time] = {}

    def __len__(self) -> int:
        return len(self._empty_until)

    def take(self, sender: NodeId, now: Time, cost: int = 1) -> bool:
        """Pay for something; whether the sender still could. Nothing is taken where it could not.

        Kept as the time at which the bucket would be full again: one number for each sender.
        """
        full_at = max(self._empty_until.get(sender, now), now) + cost * self._pause
        if full_at - now > self._room:
            return False
        if sender not in self._empty_until and len(self._empty_until) >= SENDERS_AT_MOST:
            self._forget_full(now)
        self._empty_until[sender] = full_at
        return True

    def _forget_full(self, now: Time) -> None:
        """Those whose bucket is full are as if never seen; should all owe something, those that owe least are let
        off.
        """
        owing = sorted((full_at, sender) for sender, full_at in self._empty_until.items() if full_at > now)
        self._empty_until = {sender: full_at for full_at, sender in owing[-SENDERS_AT_MOST // 2 :]}

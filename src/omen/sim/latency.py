"""How long things take: models of latency, drawn from the world's generator."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from omen.protocol.events import NodeId, Time

Latency = Callable[[random.Random, NodeId, NodeId], Time]


def constant(delay: Time) -> Latency:
    """Always the same."""
    return lambda _random, _sender, _receiver: delay


def uniform(least: Time, most: Time) -> Latency:
    """Anything between, equally likely."""
    return lambda generator, _sender, _receiver: generator.randint(least, most)


def log_normal(median: Time, sigma: float) -> Latency:
    """Mostly near the median, now and then much longer."""
    return lambda generator, _sender, _receiver: int(median * generator.lognormvariate(0.0, sigma))


def by_link(delays: Mapping[tuple[NodeId, NodeId], Time], otherwise: Latency) -> Latency:
    """Given for some pairs (either way round), another model for the rest."""

    def delay(generator: random.Random, sender: NodeId, receiver: NodeId) -> Time:
        fixed = delays.get((sender, receiver), delays.get((receiver, sender)))
        return otherwise(generator, sender, receiver) if fixed is None else fixed

    return delay

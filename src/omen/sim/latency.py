"""How long things take: models of latency, drawn from the world's generator.

Objects and no closures, so that a world can be saved.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from omen.protocol.events import NodeId, Time

Latency = Callable[[random.Random, NodeId, NodeId], Time]


@dataclass(frozen=True, slots=True)
class _Constant:
    delay: Time

    def __call__(self, generator: random.Random, sender: NodeId, receiver: NodeId) -> Time:
        return self.delay


@dataclass(frozen=True, slots=True)
class _Uniform:
    least: Time
    most: Time

    def __call__(self, generator: random.Random, sender: NodeId, receiver: NodeId) -> Time:
        return self.least + int(generator.random() * (self.most - self.least + 1))


@dataclass(frozen=True, slots=True)
class _LogNormal:
    median: Time
    sigma: float

    def __call__(self, generator: random.Random, sender: NodeId, receiver: NodeId) -> Time:
        return int(self.median * generator.lognormvariate(0.0, self.sigma))


@dataclass(frozen=True, slots=True)
class _ByLink:
    delays: Mapping[tuple[NodeId, NodeId], Time]
    otherwise: Latency

    def __call__(self, generator: random.Random, sender: NodeId, receiver: NodeId) -> Time:
        fixed = self.delays.get((sender, receiver), self.delays.get((receiver, sender)))
        return self.otherwise(generator, sender, receiver) if fixed is None else fixed


def constant(delay: Time) -> Latency:
    """Always the same."""
    return _Constant(delay)


def uniform(least: Time, most: Time) -> Latency:
    """Anything between, equally likely."""
    return _Uniform(least, most)


def log_normal(median: Time, sigma: float) -> Latency:
    """Mostly near the median, now and then much longer."""
    return _LogNormal(median, sigma)


def by_link(delays: Mapping[tuple[NodeId, NodeId], Time], otherwise: Latency) -> Latency:
    """Given for some pairs (either way round), another model for the rest."""
    return _ByLink(delays, otherwise)

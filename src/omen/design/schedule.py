"""What each round of a design may take: given as a text, or chosen as the rounds go.

Both the rounds of one machine and those of Spark ask here. What is chosen depends on counts alone, so that both choose
the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from omen.errors import InvalidInput

FALL = 0.8  # of the least contribution from round to round
FALL_GM = 0.85
LAST_LEAST = 2  # what removes one component costs the same wherever it is chosen: that is the last stage
FIRST_SHARE = 50  # the first round is for what one link in 50 of the sample contributes
PAYS = 250  # a round must save one link in so many
MOST_AT_LAST = 8
BETTER = 1.3  # how much more than the least contribution links contribute on average
MARGIN = 1.25
MARGIN_MINMAX = 1.3
PART_NODES = 16_384
PART_NODES_GM = 65_536
ROUNDS = ("gm", "low-oda", "minmax-oda")

_STEP = re.compile(r"([mr])([1-9]\d*)(?:c([1-9]\d*))?")


@dataclass(frozen=True, slots=True)
class Step:
    """One round: links contribute at least `least`, and take no node beyond the cap; None: no cap.

    `alike`: nodes that share topics meet in a part (MinHash); otherwise parts are drawn at random.
    """

    least: int
    cap: int | None = None
    alike: bool = True

    def __str__(self) -> str:
        cap = "" if self.cap is None else f"c{self.cap}"
        return f"{'m' if self.alike else 'r'}{self.least}{cap}"


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """What a round came to: counts of the whole design so far, the same wherever it ran."""

    step: Step
    new_links: int
    links: int
    removed: int  # topic components that the round's links removed
    left: int  # components still to be removed
    max_degree: int


@dataclass(frozen=True, slots=True)
class Profile:
    """What a schedule knows of a workload before the first round.

    `components`: to be removed in all. The rest is of the complete design of a sample: `contributions` of its links,
    descending, and its maximum degree.
    """

    nodes: int
    components: int
    sample_nodes: int
    contributions: tuple[int, ...]
    max_degree: int

    @property
    def spread(self) -> float:
        """How many times the average degree the maximum is."""
        return self.max_degree * self.sample_nodes / (2 * max(len(self.contributions), 1))


class Schedule(Protocol):
    """Says what the next round may take, None when the last stage is due."""

    def next_step(self, rounds: Sequence[RoundFacts]) -> Step | None: ...


@dataclass(frozen=True, slots=True)
class Given:
    """The steps a user wrote."""

    steps: tuple[Step, ...]

    def next_step(self, rounds: Sequence[RoundFacts]) -> Step | None:
        return self.steps[len(rounds)] if len(rounds) < len(self.steps) else None


@dataclass(frozen=True, slots=True)
class Auto:
    """Steps chosen from the profile of the workload and from what the rounds before came to.

    The least contribution falls from what the best links of the sample contribute to 2, by a share at a time. At 2,
    where most links are found, rounds go on while one saves enough links: a component that is left to the last stage
    costs a link, a link of a round removes two or more.

    The cap is to the average degree what the maximum is in the sample, and somewhat more: the average with which the
    design would end if all that is left were removed at the present least contribution. It rises as that falls.
    """

    profile: Profile
    rho: float

    def next_step(self, rounds: Sequence[RoundFacts]) -> Step | None:
        least = self._next_least(rounds)
        return None if least is None else Step(least, self._cap(least, rounds))

    def _next_least(self, rounds: Sequence[RoundFacts]) -> int | None:
        if not rounds:
            return self._first_least()
        before = rounds[-1]
        least = before.step.least
        if least > LAST_LEAST:
            return min(least - 1, math.ceil(least * (FALL_GM if self.rho < 1 else FALL)))
        same = sum(facts.step.least == least for facts in rounds)
        pays = (before.removed - before.new_links) * PAYS >= before.links
        return least if pays and same < MOST_AT_LAST else None

    def _first_least(self) -> int:
        known = self.profile.contributions
        return max(LAST_LEAST, known[len(known) // FIRST_SHARE]) if known else LAST_LEAST

    def _cap(self, least: int, rounds: Sequence[RoundFacts]) -> int | None:
        if self.rho < 1:
            return None
        links, left = (rounds[-1].links, rounds[-1].left) if rounds else (0, self.profile.components)
        expected = 2 * (links + left / (least * BETTER)) / self.profile.nodes
        margin = MARGIN_MINMAX if math.isinf(self.rho) else MARGIN
        return max(2, math.ceil(margin * self.profile.spread * expected))


def rho_of(algorithm: str, options: Mapping[str, Any]) -> float:
    """What the greedy engine is told of the degrees, or InvalidInput where the algorithm is not made in rounds."""
    if algorithm not in ROUNDS:
        raise InvalidInput(f"{algorithm} is not built in rounds: {', '.join(ROUNDS)} are")
    return {"gm": 0.0, "minmax-oda": math.inf}.get(algorithm) or float(options.get("rho", 0.0))


def read_seed(value: object) -> int:
    """A seed, from a number or from text."""
    text = str(value)
    if not text.isdecimal() or int(text) >= 2**63:
        raise InvalidInput(f"option seed must be a whole number from 0 to {2**63 - 1}, not {value!r}")
    return int(text)


def default_part_nodes(algorithm: str) -> int:
    """GM gathers links at few nodes, which larger parts find better; and it is the fastest."""
    return PART_NODES_GM if algorithm == "gm" else PART_NODES


def parse_schedule(text: str) -> Given:
    """From steps such as m4c6,m3c12,r2: m (MinHash) or r (random), the least contribution, c and a cap."""
    found = [_STEP.fullmatch(word) for word in text.split(",")]
    steps = tuple(Step(int(match[2]), int(match[3]) if match[3] else None, match[1] == "m") for match in found if match)
    if len(steps) != len(found):
        raise InvalidInput(f"--rounds must be auto or steps such as m4c6,m3c12,r2, not {text!r}")
    return Given(steps)

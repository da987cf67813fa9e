"""What each round of a design may take: given as a text, or chosen as the rounds go.

Both the rounds of one machine and those of Spark ask here. What is chosen depends on counts alone, so that both choose
the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from omen.errors import InvalidInput

FALL = 0.67  # of the least contribution from one level to the next
FALL_GM = 0.7
LAST_LEAST = 2  # what removes one component costs the same wherever it is chosen: that is the last stage
FIRST_SHARE = 1000  # GM: the first round is for what one link in so many of the sample contributes
PAYS = 250  # for another round at the last level, one must have saved a link in so many
PAYS_ABOVE = 80  # the same at a level above it
ROOM = 0.85  # of what the nodes that are alone in most topics will need beyond the maximum degree, others may take
FAR = 4  # times the maximum degree, what nodes need is so far beyond it that it would rise too slowly
MOST_AT_LEVEL = 4
MOST_AT_LAST = 10
JOINS = 10  # joining goes on while a sub-round removes one component in so many
MOST_RAISES = 3  # rounds for the nodes at the maximum, when all others are joined
RHO_MINMAX = 4.0  # stands for infinity where MinMax-ODA is made in several parts
PART_NODES = 16_384, 131_072
PART_NODES_GM = 327_680, 327_680
MEET = 1000  # other subscribers of its topic that a subscriber should have in its part, on average
MEET_LATE = 16_000  # the same at the last level: most of them are of one component, and passed over
ROUNDS = ("gm", "low-oda", "minmax-oda")

_STEP = re.compile(r"(?:([mr])([1-9]\d*)(?:u([1-9]\d*))?|j)(?:([ck])([1-9]\d*))?")


@dataclass(frozen=True, slots=True)
class Step:
    """One round: links contribute at least `least`, and take no node beyond the cap; None: no cap.

    `raising`: what a link of a node that has the maximum degree of all must contribute. `alike`: nodes that share
    topics meet in a part (MinHash); otherwise parts are drawn at random. `joins`: no parts; pieces of topics are joined
    one by one, as in the last stage, but by nodes below the cap alone. `keeps`: a node keeps room below the cap for the
    topics in which it is alone, since it will have to take a link in each.
    """

    least: int
    cap: int | None = None
    alike: bool = True
    raising: int = 1
    joins: bool = False
    keeps: bool = False

    def __str__(self) -> str:
        cap = "" if self.cap is None else f"{'k' if self.keeps else 'c'}{self.cap}"
        raising = f"u{self.raising}" if self.raising > 1 else ""
        return f"j{cap}" if self.joins else f"{'m' if self.alike else 'r'}{self.least}{raising}{cap}"


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """What a round came to: counts of the whole design so far, the same wherever it ran."""

    step: Step
    new_links: int
    links: int
    removed: int  # topic components that the round's links removed
    left: int  # components still to be removed
    max_degree: int
    needed: int  # the highest sum of a node's degree and of how many topics it is alone in


@dataclass(frozen=True, slots=True)
class Profile:
    """What a schedule knows of a workload before the first round.

    `contributions`: of the links of the complete design of a sample, descending.
    """

    nodes: int
    contributions: tuple[int, ...]


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

    What fits one part is designed there, exactly. Otherwise the rounds follow Low-ODA, which takes links of nodes below
    the maximum degree as long as no other link contributes more than rho times as much. When they contribute `least`,
    the others contribute at most rho times `least`. So the least contribution falls from that of the best link over rho
    to 2, level by level, with as many rounds at each as pay. Then nodes take what room those leave that are alone in
    many topics, pieces are joined one by one, and at last those nodes take links that serve several of their topics.
    """

    profile: Profile
    rho: float
    part_nodes: int

    def next_step(self, rounds: Sequence[RoundFacts]) -> Step | None:
        if self.profile.nodes <= self.part_nodes:
            return None if rounds else Step(1)
        if not rounds:
            return self._step_at(self._first_least(), 0)
        before = rounds[-1]
        same = sum(str(facts.step)[1:] == str(before.step)[1:] for facts in rounds)
        if before.step.joins:
            again = before.removed * JOINS >= before.left + before.removed
            return before.step if again else Step(LAST_LEAST, raising=LAST_LEAST)
        if any(facts.step.joins for facts in rounds):
            return before.step if before.new_links and same < MOST_RAISES else None
        return self._step_below(before, same)

    def _step_below(self, before: RoundFacts, same: int) -> Step | None:
        """Before pieces are joined: levels, and then what nodes may take that keep room."""
        least = before.step.least
        below = min(least - 1, math.ceil(least * (FALL_GM if self.rho < 1 else FALL)))
        one_in = PAYS if least == LAST_LEAST else PAYS_ABOVE
        pays = before.new_links * one_in >= below * (before.links + before.left // 2)
        far = self.rho >= 1 and before.max_degree * FAR < before.needed
        if far and least == LAST_LEAST and before.step.cap is None:
            return Step(LAST_LEAST, (before.max_degree + before.needed + 1) // 2)
        if pays and same < (MOST_AT_LAST if least == LAST_LEAST else MOST_AT_LEVEL):
            return replace(before.step, alike=self._alike(least, same))
        if least > LAST_LEAST:
            return self._step_at(below, 0)
        if self.rho < 1:
            return None
        if before.step.keeps:
            return replace(before.step, least=1, alike=True, joins=True)
        cap = before.max_degree + math.ceil(ROOM * (before.needed - before.max_degree))
        return Step(LAST_LEAST, cap, keeps=True)

    def _step_at(self, least: int, same: int) -> Step:
        return Step(least, alike=self._alike(least, same), raising=self._raising(least))

    def _alike(self, least: int, same: int) -> bool:
        """At the last level every other round is of parts at random: pairs that share two topics are anywhere."""
        return least > LAST_LEAST or same % 2 == 0

    def _raising(self, least: int) -> int:
        rho = RHO_MINMAX if math.isinf(self.rho) else self.rho
        return 1 if rho < 1 else math.floor(rho * (least - 1)) + 1

    def _first_least(self) -> int:
        known = self.profile.contributions
        if not known:
            return LAST_LEAST
        return max(LAST_LEAST, known[len(known) // FIRST_SHARE] if self.rho < 1 else self._level_below(known[0]))

    def _level_below(self, best: int) -> int:
        """The lowest level at which links that contribute as much as the best may raise the maximum degree."""
        least = best
        while least > LAST_LEAST and self._raising(least) > best:
            least -= 1
        return least


def rho_of(algorithm: str, options: Mapping[str, Any]) -> float:
    """What the greedy engine is told of the degrees, or InvalidInput where the algorithm is not made in rounds."""
    if algorithm not in ROUNDS:
        raise InvalidInput(f"{algorithm} is not built in rounds: {', '.join(ROUNDS)} are")
    fixed = {"gm": 0.0, "minmax-oda": math.inf}
    return fixed[algorithm] if algorithm in fixed else float(options.get("rho", 0.0))


def read_seed(value: object) -> int:
    """A seed, from a number or from text."""
    text = str(value)
    if not text.isdecimal() or int(text) >= 2**63:
        raise InvalidInput(f"option seed must be a whole number from 0 to {2**63 - 1}, not {value!r}")
    return int(text)


def choose_part_nodes(rho: float, nodes: int, subscriptions: int, squares: int, meet: int = MEET) -> int:
    """How many nodes a part has where nobody says. `squares`: the sum of the squared numbers of subscribers of topics.

    The larger a part the better, as long as topics have few subscribers in it: a row of the engine goes through all of
    them. GM gathers links at few nodes, which larger parts find better; and it is the fastest.
    """
    least, most = PART_NODES_GM if rho < 1 else PART_NODES
    size = min(most, max(least, nodes * meet * subscriptions // max(squares, 1)))
    return max(2, -(-nodes // max(1, -(-nodes // size))))


def parse_schedule(text: str) -> Given:
    """From steps such as m4u10c6,r2,jc12: m (MinHash) or r (random) and the least contribution, u and that of links of
    nodes at the maximum degree; or j (join one by one); c and a cap, or k and one to keep room below.
    """
    found = [_STEP.fullmatch(word) for word in text.split(",")]
    steps = tuple(_read_step(match) for match in found if match)
    if len(steps) != len(found):
        raise InvalidInput(f"--rounds must be auto or steps such as m4c6,m3u7,r2,jc12, not {text!r}")
    return Given(steps)


def _read_step(match: re.Match[str]) -> Step:
    kind, least, raising, limit, cap = match.groups()
    most, keeps = int(cap) if cap else None, limit == "k"
    if kind is None:
        return Step(1, most, joins=True, keeps=keeps)
    return Step(int(least), most, kind == "m", int(raising or 1), keeps=keeps)

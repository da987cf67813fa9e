"""The two choices of a synthetic workload: how popular topics are, and how many topics a node wants.

Both are written on the command line and in workload.json as short words, such as `zipf:2` and `powerlaw:10:90`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput

Floats = npt.NDArray[np.float64]

_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WHOLE_NUMBER = re.compile(r"\d+", re.ASCII)
_LARGEST_PARAMETER = 1000.0
_LARGEST_SIZE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Popularity:
    """How likely each topic is drawn. Topic 0 is the most popular one.

    `uniform`: all alike. `zipf`: p(t) ~ (t + 1)^-parameter. `expo` with a parameter: p(t) ~ exp(-parameter t); without
    one the NYSE distribution of SpiderCast, the exponential whose most popular 10% of the topics hold 0.55 of the
    probability.
    """

    kind: str
    parameter: float | None = None

    WORDS: ClassVar[str] = "uniform, zipf:ALPHA, expo or expo:RATE"

    def __post_init__(self) -> None:
        wanted = {"uniform": (False,), "zipf": (True,), "expo": (False, True)}.get(self.kind)
        if wanted is None or (self.parameter is not None) not in wanted:
            raise InvalidInput(f"popularity {self.kind!r} is not one of {self.WORDS}")
        if self.parameter is not None and not 0 <= self.parameter <= _LARGEST_PARAMETER:
            raise InvalidInput(
                f"popularity {self.kind}: its number must lie in 0..{_LARGEST_PARAMETER:g}, not {self.parameter}"
            )

    @classmethod
    def parse(cls, text: str) -> Popularity:
        """From one of the words.

        >>> Popularity.parse("zipf:2")
        Popularity(kind='zipf', parameter=2.0)
        """
        kind, *parameters = text.split(":")
        if kind not in ("uniform", "zipf", "expo") or len(parameters) > (kind != "uniform"):
            raise InvalidInput(f"popularity {text!r} is not one of {cls.WORDS}")
        if kind == "zipf" and not parameters:
            raise InvalidInput("popularity 'zipf' needs its exponent, as in zipf:2")
        return cls(kind, _number(parameters[0], f"popularity {text!r}") if parameters else None)

    def __str__(self) -> str:
        return self.kind if self.parameter is None else f"{self.kind}:{_shown(self.parameter)}"

    def log_weights(self, topics: int) -> Floats:
        """The logarithm of p(t), up to a constant: 0 for the most popular topic."""
        ranks = np.arange(topics, dtype=np.float64)
        if self.kind == "uniform":
            return np.zeros(topics, dtype=np.float64)
        if self.parameter is None:
            return -nyse_rate(topics) * ranks
        return -self.parameter * (np.log1p(ranks) if self.kind == "zipf" else ranks)

    def probabilities(self, topics: int) -> Floats:
        """p(t) of each topic; they add up to 1."""
        weights = np.exp(self.log_weights(topics))
        return np.asarray(weights / weights.sum(), dtype=np.float64)


def nyse_rate(topics: int) -> float:
    """The rate r for which exp(-r t) gives the first tenth of the topics 0.55 of the probability (SpiderCast, 4.1).

    With c = r * topics the share is (1 - exp(-c / 10)) / (1 - exp(-c)), exactly so for any multiple of ten topics.
    """
    low, high = 1.0, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        if math.expm1(-middle / 10) / math.expm1(-middle) < 0.55:
            low = middle
        else:
            high = middle
    return high / topics


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many topics a node wants.

    `fixed`: always the same number. `uniform` in [smallest, largest]. `powerlaw`: p(s) ~ s^-exponent in that range.
    """

    kind: str
    smallest: int
    largest: int
    exponent: float = 2.0

    WORDS: ClassVar[str] = "K, uniform:A:B or powerlaw:A:B[:EXPONENT]"

    def __post_init__(self) -> None:
        if self.kind not in ("fixed", "uniform", "powerlaw"):
            raise InvalidInput(f"sizes {self.kind!r} are not one of {self.WORDS}")
        if not 0 <= self.smallest <= self.largest <= _LARGEST_SIZE:
            raise InvalidInput(
                f"sizes {self.smallest} to {self.largest}: the smallest must not be above the largest, nor the largest"
                f" above {_LARGEST_SIZE}"
            )
        if self.kind == "fixed" and self.smallest != self.largest:
            raise InvalidInput(f"fixed sizes cannot range from {self.smallest} to {self.largest}")
        if self.kind == "powerlaw" and self.smallest < 1:
            raise InvalidInput("sizes powerlaw: the smallest size must be at least 1")
        if not 0 <= self.exponent <= _LARGEST_PARAMETER:
            raise InvalidInput(f"sizes powerlaw: the exponent must lie in 0..{_LARGEST_PARAMETER:g}")

    @classmethod
    def parse(cls, text: str) -> Sizes:
        """From one of the words.

        >>> Sizes.parse("powerlaw:10:90")
        Sizes(kind='powerlaw', smallest=10, largest=90, exponent=2.0)
        """
        kind, *bounds = text.split(":")
        what = f"sizes {text!r}"
        if kind == "uniform" and len(bounds) == 2:
            return cls(kind, _whole_number(bounds[0], what), _whole_number(bounds[1], what))
        if kind == "powerlaw" and len(bounds) in (2, 3):
            exponent = _number(bounds[2], what) if len(bounds) == 3 else 2.0
            return cls(kind, _whole_number(bounds[0], what), _whole_number(bounds[1], what), exponent)
        if kind in ("uniform", "powerlaw") or bounds or not _WHOLE_NUMBER.fullmatch(kind):
            raise InvalidInput(f"{what} are not one of {cls.WORDS}")
        return cls("fixed", _whole_number(kind, what), _whole_number(kind, what))

    def __str__(self) -> str:
        match self.kind:
            case "fixed":
                return str(self.smallest)
            case "uniform":
                return f"uniform:{self.smallest}:{self.largest}"
        exponent = "" if self.exponent == 2.0 else f":{_shown(self.exponent)}"
        return f"powerlaw:{self.smallest}:{self.largest}{exponent}"

    def cdf(self) -> Floats:
        """The probability of at most smallest + i topics, for each i."""
        sizes = np.arange(self.smallest, self.largest + 1, dtype=np.float64)
        logs = -self.exponent * np.log(sizes / self.smallest) if self.kind == "powerlaw" else np.zeros_like(sizes)
        sums = np.cumsum(np.exp(logs))
        return np.asarray(sums / sums[-1], dtype=np.float64)


def _number(text: str, what: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise InvalidInput(f"{what}: {text!r} is not a number")
    return float(text)


def _whole_number(text: str, what: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text) or len(text) > 10:
        raise InvalidInput(f"{what}: {text!r} is not a whole number up to {_LARGEST_SIZE}")
    return int(text)


def _shown(number: float) -> str:
    return repr(float(number)).removesuffix(".0")

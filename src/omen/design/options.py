"""What an algorithm is, to a caller who knows its name, and what it may be told.

Light on purpose: the command line reads the declarations without loading numpy or a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, SupportsFloat

from omen.errors import InvalidInput

if TYPE_CHECKING:
    from omen.overlay import Overlay

Value = int | float


@dataclass(frozen=True)
class Option:
    """One setting of an algorithm: a whole number (type int) or a number (type float), in [minimum, maximum]."""

    name: str
    type: type[int] | type[float]
    default: Value
    minimum: Value
    maximum: Value
    help: str

    @property
    def range(self) -> str:
        """What is allowed, in words."""
        kind = "a whole number" if self.type is int else "a number"
        if self.maximum == math.inf:
            return f"{kind}, at least {self.minimum}, or inf"
        return f"{kind} from {self.minimum} to {self.maximum}"

    def read(self, value: object) -> Value:
        """The value, from a number or from text, or InvalidInput that says what would be right."""
        number = _number(value, self.type)
        if number is None or not self.minimum <= number <= self.maximum:
            raise InvalidInput(f"option {self.name} must be {self.range}, not {value!r}")
        return number


@dataclass(frozen=True)
class Algorithm:
    """An entry of the dict of algorithms. `build(interests, **options)` makes the overlay.

    `connectivity` is the k for which every overlay it builds is k-topic-connected, 0 if it promises nothing; or a
    function from the resolved options to that k.
    """

    name: str
    build: Callable[..., Overlay]
    options: tuple[Option, ...]
    connectivity: int | Callable[[Mapping[str, Value]], int]
    summary: str
    paper: str

    def promise(self, options: Mapping[str, Any] | None = None) -> int:
        """The k promised with these options, those left out at their defaults."""
        if callable(self.connectivity):
            return self.connectivity(resolve_options(self, options or {}))
        return self.connectivity


def resolve_options(algorithm: Algorithm, given: Mapping[str, Any]) -> dict[str, Value]:
    """Every option of the algorithm with its value: as given, checked, or the default."""
    known = {option.name: option for option in algorithm.options}
    for name in given:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InvalidInput(f"{algorithm.name} has no option {name!r}: {takes}{suggest(name, known)}")
    return {name: option.read(given.get(name, option.default)) for name, option in known.items()}


def suggest(word: str, known: Iterable[str]) -> str:
    """The tail of an error message that names what was probably meant; empty if nothing is near."""
    near = get_close_matches(word.lower().replace("_", "-"), list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def _number(value: object, kind: type[int] | type[float]) -> Value | None:
    """The value as a number of this kind, None where it is not one. Integers stay exact; nan is no number."""
    if isinstance(value, bool) or not isinstance(value, (str, SupportsFloat)):
        return None
    try:
        number: Value = kind(value)  # type: ignore[arg-type]  # whatever int() and float() take
    except (ValueError, TypeError, OverflowError):
        return None
    if not isinstance(value, str) and number != value:
        return None
    return number

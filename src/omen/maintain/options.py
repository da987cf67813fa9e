"""What maintainers may be told. Light on purpose: the command line reads it without loading numpy or a kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omen.design.options import Option, suggest
from omen.errors import InvalidInput


@dataclass(frozen=True)
class Choice:
    """One setting that is one of a few words."""

    name: str
    choices: tuple[str, ...]
    default: str
    help: str

    @property
    def range(self) -> str:
        """What is allowed, in words."""
        return "one of " + ", ".join(self.choices)

    def read(self, value: object) -> str:
        """The value, or InvalidInput that says what would be right."""
        if value not in self.choices:
            raise InvalidInput(f"option {self.name} must be {self.range}, not {value!r}")
        return str(value)


Setting = Option | Choice

RHO = Option("rho", float, 3.0, 1.0, math.inf, "how much better a link must be to raise the maximum degree")
LAMBDA = Option("lambda", int, 3, 0, 1000, "how many disjoint covers of its topics a node has as backups")
BACKUPS = Choice(
    "backups", ("pd-weight", "pd-cover", "greedy-weight", "greedy-cover"), "pd-weight", "how backups are chosen"
)
COMPONENTS = Choice(
    "components",
    ("exact", "halo", "halo-near", "literal"),
    "exact",
    "pieces of a topic after a leave: of the whole overlay, as seen from the shadow set and its neighbours (near:"
    " without backups in pieces that hold no former neighbour), or within the shadow set alone",
)
DEGREE_OF = Choice(
    "degree_of",
    ("s", "overlay"),
    "s",
    "whose maximum degree a repair spares: of the shadow set (s) or of the whole overlay",
)
SEED = Option("seed", int, 0, 0, 2**63 - 1, "seed of the topics drawn for backups")
K = Option("k", int, 1, 1, 2, "topic-connectivity to keep: with 2, no loss of a single node cuts a topic")
REBALANCE = Option("rebalance", int, 0, 0, 1_000_000, "links that may change with each repair to bring degrees down")


def resolve(system: str, known: tuple[Setting, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option with its value: as given, checked, or the default. `lambda_` (Python's spelling) is `lambda`."""
    settings = {setting.name: setting for setting in known}
    values = {name.rstrip("_").replace("-", "_"): value for name, value in given.items()}
    for name in values:
        if name not in settings:
            raise InvalidInput(
                f"{system} has no option {name!r}: it takes {', '.join(settings)}{suggest(name, settings)}"
            )
    return {name: setting.read(values.get(name, setting.default)) for name, setting in settings.items()}

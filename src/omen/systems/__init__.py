"""All algorithms and systems by name, whatever room they live in, and what runs them.

system.py                the dict of systems behind one interface: maintainers, OMen, SpiderCast
simulated.py             OMen in the simulator (omen, section 6); worlds.py saves such a world
simulated_spidercast.py  SpiderCast in the simulator
spidercast.py            SpiderCast and its rivals run to quiescence, as algorithms
designing.py             an overlay designed against the clock, and its summary
replay.py                a system driven through a trace and judged; a row per event
summary.py               what a replay came to
checkpoint.py            how far a replay is, kept over a kill; saving.py writes a maintainer's state
repair.py                one batch of events repaired: `omen mend`

Light on purpose: the command line reads both dicts without loading numpy or a kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omen import design
from omen.design import Algorithm, resolve_options, suggest
from omen.errors import InvalidInput
from omen.systems import spidercast
from omen.systems.system import SYSTEMS, SystemKind, find_system, resolve_settings

if TYPE_CHECKING:
    from omen.interests import Interests
    from omen.overlay import Overlay

__all__ = ["ALGORITHMS", "SYSTEMS", "SystemKind", "design_overlay", "find_algorithm", "find_system", "resolve_settings"]

ALGORITHMS: dict[str, Algorithm] = design.ALGORITHMS | spidercast.ALGORITHMS
"""All algorithms by name: their options with types, defaults and ranges, and the connectivity they promise."""


def find_algorithm(name: str) -> Algorithm:
    """The algorithm of this name, or InvalidInput that names the nearest one."""
    if name not in ALGORITHMS:
        raise InvalidInput(
            f"there is no algorithm {name!r}{suggest(str(name), ALGORITHMS)} (there are {', '.join(ALGORITHMS)})"
        )
    return ALGORITHMS[name]


def design_overlay(interests: Interests, algorithm: str = "low-oda", **options: Any) -> Overlay:
    """Design an overlay from scratch.

    `algorithm` is a key of `ALGORITHMS`, which says what options it takes; those left out have their defaults.

    >>> from omen.interests import Interests
    >>> interests = Interests.from_pairs([("ann", "tea"), ("bob", "tea"), ("bob", "jazz"), ("cid", "jazz")])
    >>> design_overlay(interests, "low-oda", rho=3).links()
    [('ann', 'bob'), ('bob', 'cid')]
    """
    chosen = find_algorithm(algorithm)
    return chosen.build(interests, **resolve_options(chosen, options))

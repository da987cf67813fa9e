"""All systems that keep an overlay alive under churn, by name, behind one interface: `replay` drives any of them.

Light on purpose: the command line reads the declarations without loading numpy or a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from omen import maintain
from omen.design.options import Option, suggest
from omen.errors import InvalidInput
from omen.maintain import options as maintain_options
from omen.maintain.options import Setting, resolve
from omen.systems import spidercast as spider_options

if TYPE_CHECKING:
    from omen.churn import Event
    from omen.fleet.repairing import AboveCap, Within
    from omen.interests import Interests, Label
    from omen.maintain.change import Change
    from omen.maintain.maintainers import Maintainer
    from omen.overlay import Overlay


@dataclass(frozen=True)
class Outcome:
    """What became of an event. None: this system has no such number, or it stands with a later event of the same
    instant.

    `repair_s` is processor time of the repair algorithm itself, `handled_s` the time from the event to the end of its
    handling in a simulated system. `links_removed` holds the links a leaving node took with it. `above`: the nodes that
    have more links than the rules of a fleet allow.
    """

    event: Event
    node: Label
    repair_s: float | None = None
    handled_s: float | None = None
    links_added: int | None = None
    links_removed: int | None = None
    shadow_size: int | None = None
    messages: int | None = None
    bytes: int | None = None
    max_degree: int | None = None
    average_degree: float | None = None
    above: tuple[AboveCap, ...] | None = None


class System(Protocol):
    """Something that keeps an overlay topic-connected while things happen to its nodes."""

    def apply(self, events: Sequence[Event]) -> list[Outcome]:
        """Handle the events of one instant, in order; an outcome each. InvalidInput leaves everything as it was."""

    def snapshot(self) -> tuple[Interests, Overlay]:
        """Who is present and wants what, and the links among them."""

    def save(self) -> bytes:
        """All that `restore` of the same kind needs to go on exactly as this system would."""


@dataclass(frozen=True)
class Surroundings:
    """What a system is told besides the nodes present: the workload, where nodes that join without a list have their
    topics from, and the rules of a fleet, if there are any.
    """

    workload: Interests
    within: Within | None = None


@dataclass(frozen=True)
class SystemKind:
    """An entry of the dict of systems.

    `build(interests, overlay, surroundings, options)` starts one with the interests of the nodes present.
    `restore(data, surroundings, options)` goes on from what was saved. Options are resolved ones; `settle(given,
    resolved)` has the last word on them, where one depends on another.
    """

    name: str
    build: Callable[[Interests, Overlay | None, Surroundings, Mapping[str, Any]], System]
    restore: Callable[[bytes, Surroundings, Mapping[str, Any]], System]
    options: tuple[Setting, ...]
    summary: str
    paper: str
    settle: Callable[[Mapping[str, Any], dict[str, Any]], dict[str, Any]] | None = None


class MaintainedSystem:
    """A maintainer: events of one instant are one batch, whose numbers stand with the last of them."""

    def __init__(self, maintainer: Maintainer) -> None:
        self.maintainer = maintainer

    def apply(self, events: Sequence[Event]) -> list[Outcome]:
        change = self.maintainer.apply(events)
        degrees = (self.maintainer.max_degree, self.maintainer.average_degree)
        return [
            *(Outcome(event, event.node, max_degree=degrees[0], average_degree=degrees[1]) for event in events[:-1]),
            *(self._whole(event, change, degrees) for event in events[-1:]),
        ]

    def _whole(self, event: Event, change: Change, degrees: tuple[int, float]) -> Outcome:
        return Outcome(
            event,
            event.node,
            repair_s=change.repair_s,
            links_added=len(change.added),
            links_removed=len(change.removed),
            shadow_size=len(change.shadow) if self.maintainer.uses_backups else None,
            max_degree=degrees[0],
            average_degree=degrees[1],
            above=None if self.maintainer.within is None else change.above,
        )

    def snapshot(self) -> tuple[Interests, Overlay]:
        return self.maintainer.interests(), self.maintainer.overlay()

    def save(self) -> bytes:
        from omen.systems.saving import encode_snapshot

        return encode_snapshot(self.maintainer.snapshot())


def _build(
    name: str, interests: Interests, overlay: Overlay | None, around: Surroundings, options: Mapping[str, Any]
) -> System:
    return MaintainedSystem(
        maintain.start_maintainer(name, interests, overlay, workload=around.workload, within=around.within, **options)
    )


def _restore(name: str, data: bytes, around: Surroundings, options: Mapping[str, Any]) -> System:
    from omen.systems.saving import decode_snapshot

    return MaintainedSystem(
        maintain.resume_maintainer(
            name, decode_snapshot(data), workload=around.workload, within=around.within, **options
        )
    )


def _restore_omen(data: bytes, around: Surroundings, options: Mapping[str, Any]) -> System:
    from omen.systems.simulated import restore_omen

    return restore_omen(data)


def _build_omen(
    global_view: bool, interests: Interests, overlay: Overlay | None, around: Surroundings, options: Mapping[str, Any]
) -> System:
    from omen.systems.simulated import build_omen

    return build_omen(interests, overlay, around, options, global_view)


GAP_ROUNDS = Option("gap_rounds", int, 1, 0, 1_000_000, "gossip rounds that a gap of the trace is cut to")
SEED = replace(maintain_options.SEED, help="what everything random in the simulated world is drawn from")
COMPONENTS = replace(
    maintain_options.COMPONENTS,
    choices=("halo", "literal"),
    default="halo",
    help="pieces of a topic after a leave: as seen from S and those up to halo-hops around it, or within S alone",
)

OMEN = SystemKind(
    "omen",
    partial(_build_omen, False),
    _restore_omen,
    (
        maintain_options.RHO,
        replace(maintain_options.LAMBDA, default=5),
        maintain_options.BACKUPS,
        COMPONENTS,
        Option("mend_rho", float, 10.0, 1.0, math.inf, "rho where a loss is repaired; --rho is for newcomers"),
        Option("halo_hops", int, 2, 1, 16, "how far around S a halo reaches: its neighbours, their neighbours, ..."),
        Option("removals", int, 5, 0, 1000, "links inside S that may be taken down with a repair, where not needed"),
        SEED,
        Option("resilience", int, 3, 1, 64, "L: concurrent losses survived, predecessors and successors kept"),
        GAP_ROUNDS,
        replace(maintain_options.K, help="2: the nodes see to it that no loss of a single node cuts a topic"),
    ),
    "the nodes repair by themselves, in the simulator",
    "Chen, Vitenberg, Jacobsen 2016",
)

OMEN_G = replace(
    OMEN,
    name="omen-g",
    build=partial(_build_omen, True),
    summary="the same with a global view at each node, for comparing",
)


def _build_spidercast(
    interests: Interests, overlay: Overlay | None, around: Surroundings, options: Mapping[str, Any]
) -> System:
    from omen.systems.simulated_spidercast import build_spidercast

    if around.within is not None:
        raise InvalidInput("spidercast knows no rules of a fleet: give another --system, or a workload without rules")
    return build_spidercast(interests, overlay, around.workload, options)


def _restore_spidercast(data: bytes, around: Surroundings, options: Mapping[str, Any]) -> System:
    from omen.systems.simulated_spidercast import restore_spidercast

    return restore_spidercast(data)


SPIDERCAST = SystemKind(
    "spidercast",
    _build_spidercast,
    _restore_spidercast,
    (
        spider_options.KG,
        replace(spider_options.KR, default=1, help=f"{spider_options.KR.help}; 0 with adaptive"),
        spider_options.ADAPTIVE,
        spider_options.VIEW,
        maintain_options.RHO,
        SEED,
        replace(GAP_ROUNDS, help="seconds that a gap of the trace is cut to"),
    ),
    "the nodes cover their topics by themselves, in the simulator; promises nothing",
    "Chockler, Melamed, Tock, Vitenberg 2007",
    spider_options.settle_options,
)

SYSTEMS: dict[str, SystemKind] = {
    kind.name: SystemKind(
        kind.name, partial(_build, kind.name), partial(_restore, kind.name), kind.options, kind.summary, kind.paper
    )
    for kind in maintain.MAINTAINERS.values()
} | {OMEN.name: OMEN, OMEN_G.name: OMEN_G, SPIDERCAST.name: SPIDERCAST}
"""All systems by name, those that repair centrally and those whose nodes do, with their options."""


def find_system(name: str) -> SystemKind:
    """The system of this name, or InvalidInput that names the nearest one."""
    if name not in SYSTEMS:
        raise InvalidInput(f"there is no system {name!r}{suggest(str(name), SYSTEMS)} (there are {', '.join(SYSTEMS)})")
    return SYSTEMS[name]


def resolve_settings(kind: SystemKind, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option of the system with its value: as given, checked, or the default."""
    options = resolve(kind.name, kind.options, given)
    return options if kind.settle is None else kind.settle(given, options)

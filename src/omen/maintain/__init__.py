"""Overlays kept alive centrally under churn: a plain dict of maintainers.

    maintainers.py  what all share; naive repair (shadows, Algs. 3-4), rebuilding (omen, Table 3)
    starting.py     the overlay that a maintainer starts from
    shadow.py       repair among former neighbours and backups (shadows, Algs. 6-12)
    backups.py      backup sets, built and rebuilt; primaries are their inverse
    rebalance.py    swaps that bring degrees down again; not from the papers
    plan.py         a batch of events, checked before anything changes
    change.py       the links made and dropped, and what it took
    state.py        nodes, interests, links and backups in arrays that grow; rows.py and names.py hold them
    ruled.py        repairs within the rules of a fleet
    engine.py       the greedy engine on the part of a state that an event concerns
    choosing.py     the same engine on plain lists, for protocol nodes
    options.py      what maintainers may be told

    maintainer = start_maintainer("shadow", interests, overlay, lambda_=3)
    change = maintainer.leave("ann")            # also join(node, topics), resubscribe(node, topics)
    change = maintainer.apply([Leave(0, "bob"), Crash(0, "cid"), Join(0, "dan", ("tea",))])   # handled together
    change = maintainer.rebalance(max_changes=5)
    maintainer.overlay(), maintainer.interests(), maintainer.max_degree, maintainer.average_degree

Every call checks what it is given first: InvalidInput leaves everything as it was. Afterwards every topic is connected.
`maintainer.snapshot()` holds all that `resume_maintainer` needs to go on exactly as the first would have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omen.design.options import suggest
from omen.errors import InvalidInput
from omen.maintain.options import BACKUPS, COMPONENTS, DEGREE_OF, LAMBDA, REBALANCE, RHO, SEED, K, Setting, resolve

if TYPE_CHECKING:
    from omen.fleet.repairing import Within
    from omen.interests import Interests
    from omen.maintain.maintainers import Maintainer
    from omen.maintain.state import Snapshot, State
    from omen.overlay import Overlay


@dataclass(frozen=True)
class MaintainerKind:
    """An entry of the dict of maintainers; `make(state, options, workload, within)` puts one in charge of a state."""

    name: str
    make: Callable[[State, dict[str, Any], Interests, Within | None], Maintainer]
    options: tuple[Setting, ...]
    summary: str
    paper: str


def _make_rebuilding(state: State, options: dict[str, Any], workload: Interests, within: Within | None) -> Maintainer:
    from omen.maintain.maintainers import Rebuilding

    return Rebuilding(state, options, workload, within)


def _make_naive(state: State, options: dict[str, Any], workload: Interests, within: Within | None) -> Maintainer:
    from omen.maintain.maintainers import Naive

    return Naive(state, options, workload, within)


def _make_shadow(state: State, options: dict[str, Any], workload: Interests, within: Within | None) -> Maintainer:
    from omen.maintain.shadow import Shadow

    return Shadow(state, options, workload, within)


MAINTAINERS: dict[str, MaintainerKind] = {
    system.name: system
    for system in (
        MaintainerKind("lowoda-re", _make_rebuilding, (RHO,), "Low-ODA from scratch each time", "omen, Table 3"),
        MaintainerKind(
            "lowoda-inc", _make_naive, (RHO, REBALANCE, K), "Low-ODA on top of the links there are", "omen, Table 3"
        ),
        MaintainerKind(
            "naive", _make_naive, (RHO, REBALANCE, K), "the same as lowoda-inc, by its first name", "shadows, Algs. 3-4"
        ),
        MaintainerKind(
            "shadow",
            _make_shadow,
            (RHO, LAMBDA, BACKUPS, COMPONENTS, DEGREE_OF, SEED, REBALANCE, K),
            "repairs among former neighbours and backups only",
            "shadows, Algs. 6-12",
        ),
    )
}


def start_maintainer(
    name: str,
    interests: Interests,
    overlay: Overlay | None = None,
    *,
    workload: Interests | None = None,
    within: Within | None = None,
    **options: Any,
) -> Maintainer:
    """Put a maintainer in charge of an overlay, which must be topic-connected; left out, it is Low-ODA's.

    `interests` are those of the nodes present. `workload` is where nodes that come without a list have their topics
    from; left out, it is `interests`. `within`: rules of a fleet that repairs keep. Caps are then exceeded only where a
    topic would be split, `Change.above` says where, and a topic that forbidden pairs cut apart stays split.
    """
    from omen.maintain.starting import initial_state

    system = _system(name)
    values = resolve(name, system.options, options)
    state = initial_state(interests, overlay, values["rho"], int(values.get("k", 1)), within)
    maintainer = system.make(state, values, workload or interests, within)
    maintainer.prepare()
    return maintainer


def resume_maintainer(
    name: str,
    snapshot: Snapshot,
    *,
    workload: Interests | None = None,
    within: Within | None = None,
    **options: Any,
) -> Maintainer:
    """Go on from a snapshot, with the same system and options, as if nothing had happened in between.

    With k = 2 it must be of such a maintainer: what is only connected would stay so, and be called 2-connected. (Under
    rules that leave no way a topic may be cut; a snapshot is then taken as it is.)
    """
    from omen.maintain.starting import require_two_connected
    from omen.maintain.state import State

    system = _system(name)
    values = resolve(name, system.options, options)
    if int(values.get("k", 1)) > 1 and within is None:
        require_two_connected(snapshot.interests, snapshot.overlay)
    return system.make(State.restored(snapshot), values, workload or snapshot.interests, within)


def _system(name: str) -> MaintainerKind:
    if name not in MAINTAINERS:
        raise InvalidInput(
            f"no maintainer is called {name!r}: there are {', '.join(MAINTAINERS)}{suggest(name, MAINTAINERS)}"
        )
    return MAINTAINERS[name]

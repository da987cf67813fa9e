"""Replay a trace on a workload with any system, judge what comes out, and keep a row for each event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Literal
from warnings import warn

import numpy as np
import numpy.typing as npt

from omen.churn import Event, Join, Resubscribe, Trace
from omen.errors import InvalidInput
from omen.fleet.repairing import Within
from omen.interests import Interests, Label, plain
from omen.maintain import MAINTAINERS
from omen.overlay import Overlay
from omen.quality import check_overlay, topic_components
from omen.systems.checkpoint import Checkpoint, Exceeded, Found, fingerprint
from omen.systems.system import Outcome, Surroundings, System, find_system, resolve_settings

Verify = Literal["every", "end", "off"]
VERIFY: tuple[Verify, ...] = ("every", "end", "off")

MEASURES = ("repair_s", "handled_s", "avg_degree")
COUNTS = ("edges_added", "edges_removed", "max_degree", "shadow_size", "messages", "bytes")
ABOVE = "links_above_max"  # where there are rules: links beyond what nodes may have, all nodes together
NO_COUNT = -1


class Records:
    """The measurements of each event, in columns made at the start: a replay needs no more memory as it goes on.

    nan and `NO_COUNT` stand for what was not measured.
    """

    def __init__(self, size: int, ruled: bool = False) -> None:
        self.columns: dict[str, npt.NDArray[Any]] = {name: np.full(size, np.nan) for name in MEASURES}
        self.columns |= {name: np.full(size, NO_COUNT, np.int64) for name in (*COUNTS, *([ABOVE] if ruled else []))}

    def put(self, position: int, outcome: Outcome) -> None:
        values = {
            "repair_s": outcome.repair_s,
            "handled_s": outcome.handled_s,
            "avg_degree": outcome.average_degree,
            "edges_added": outcome.links_added,
            "edges_removed": outcome.links_removed,
            "max_degree": outcome.max_degree,
            "shadow_size": outcome.shadow_size,
            "messages": outcome.messages,
            "bytes": outcome.bytes,
        }
        if outcome.above is not None:
            values[ABOVE] = sum(one.links - one.max_links for one in outcome.above)
        for name, value in values.items():
            if value is not None:
                self.columns[name][position] = value

    def save(self, position: int) -> dict[str, bytes]:
        return {name: column[:position].tobytes() for name, column in self.columns.items()}

    def load(self, saved: Mapping[str, bytes]) -> None:
        for name, data in saved.items():
            values = np.frombuffer(data, self.columns[name].dtype)
            self.columns[name][: values.size] = values


@dataclass(frozen=True)
class Replayed:
    """What a replay came to. `positions[i]` is the place in the trace of the event of row i; skipped ones have no row.

    `splits` holds (position, topics split) of each instant after which the judge found topics split; `judged` counts
    how often it was asked. `exceeded`: the nodes that were above their caps under the rules of a fleet, in label order.
    """

    system: str
    options: dict[str, Any]
    events: tuple[Event, ...]
    positions: tuple[int, ...]
    columns: dict[str, npt.NDArray[Any]]
    interests: Interests
    overlay: Overlay
    skipped: dict[str, int]
    judged: int
    splits: tuple[tuple[int, int], ...]
    resumed_at: int = 0
    within: Within | None = None
    exceeded: tuple[Exceeded, ...] = ()

    @property
    def topic_connected(self) -> bool | None:
        """As judged, each time; None where the judge was not asked."""
        return not self.splits if self.judged else None

    @property
    def broken(self) -> tuple[tuple[int, int], ...]:
        """The former name of `splits`."""
        warn("Replayed.broken is now Replayed.splits", DeprecationWarning, stacklevel=2)
        return self.splits


@dataclass(frozen=True)
class Supervision:
    """How a replay is looked after while it runs.

    An impossible event is an error before anything is done, with `where` telling where position i of the trace stands;
    with `skip_impossible` it is skipped and counted. `progress` hears how many events are done. `look` is shown the
    system too, the first time before any event. `checkpoint` is where a replay that was killed goes on from. `within`:
    the rules of a fleet, which repairs keep.
    """

    skip_impossible: bool = False
    where: Callable[[int], str] | None = None
    progress: Callable[[int], None] | None = None
    look: Callable[[System, int], None] | None = None
    checkpoint: Checkpoint | None = None
    within: Within | None = None


UNSUPERVISED = Supervision()


@dataclass(frozen=True)
class Impossible:
    """An event that cannot happen, and why."""

    position: int
    event: Event
    reason: str
    detail: str


@dataclass
class _Run:
    """A replay under way: events from `position` on are still to come. `k`: the connectivity it is judged by."""

    system: System
    records: Records
    position: int = 0
    found: Found = field(default_factory=Found)
    k: int = 1


def find_impossible(workload: Interests, trace: Trace) -> list[Impossible]:
    """The events that cannot happen, each judged as if those found before had not been in the trace."""
    known = set(workload.nodes.tolist())
    present = known - trace.absent_at_start()
    found: list[Impossible] = []
    for position, event in enumerate(trace):
        problem = _problem(event, present, known)
        if problem:
            found.append(Impossible(position, event, *problem))
        elif isinstance(event, Join):
            present.add(event.node)
        elif not isinstance(event, Resubscribe):
            present.discard(event.node)
    return found


def _problem(event: Event, present: set[Label], known: set[Label]) -> tuple[str, str] | None:
    word = type(event).__name__.lower()
    acts = {"join": "joins", "leave": "leaves", "crash": "crashes", "resubscribe": "resubscribes"}[word]
    if isinstance(event, Join):
        if event.node in present:
            return "join of a node that is present", f"node {event.node!r} joins but is present already"
    elif event.node not in present:
        why = "is not present" if event.node in known else "is unknown or gone"
        return f"{word} of a node that is not present", f"node {event.node!r} {acts} but {why}"
    if isinstance(event, (Join, Resubscribe)) and event.topics is None and event.node not in known:
        return (
            f"{word} without topics of a node that is not in the workload",
            f"node {event.node!r} {acts} without topics, and the workload has none for it",
        )
    return None


def replay(
    workload: Interests,
    trace: Trace,
    system: str = "shadow",
    overlay: Overlay | None = None,
    *,
    verify: Verify = "end",
    supervision: Supervision = UNSUPERVISED,
    **options: Any,
) -> Replayed:
    """Drive a system through a trace.

    Nodes whose first event is a join start absent, all others of the workload present. The system starts from
    `overlay`, links of absent nodes left out, or from Low-ODA's. Events of one instant are handled together. `options`
    are those of the system.
    """
    supervision, options = _former_keywords(supervision, options)
    kind = find_system(system)
    settings = resolve_settings(kind, options)
    if verify not in VERIFY:
        raise InvalidInput(f"verify must be one of {', '.join(VERIFY)}, not {verify!r}")
    impossible = find_impossible(workload, trace)
    if impossible and not supervision.skip_impossible:
        first = impossible[0]
        place = supervision.where(first.position) if supervision.where else f"event {first.position}"
        raise InvalidInput(f"{place}: {first.detail}")
    left_out = {one.position for one in impossible}
    positions = tuple(position for position in range(len(trace)) if position not in left_out)
    events = tuple(trace.events[position] for position in positions)
    checkpoint = supervision.checkpoint
    within = supervision.within
    around = Surroundings(workload, within)
    mark = fingerprint(around, trace, overlay, kind.name, settings, verify) if checkpoint else ""
    run = _resume(checkpoint, mark, kind.name, around, settings, len(events)) or _Run(
        _start(kind.name, around, trace, overlay, settings), Records(len(events), within is not None)
    )
    resumed_at = run.position
    if supervision.look:
        supervision.look(run.system, run.position)
    if kind.name in MAINTAINERS:  # nodes that keep k = 2 by themselves do so some seconds after an event
        run.k = int(settings.get("k", 1))
    _drive(run, events, positions, verify, supervision, mark)
    interests, links = run.system.snapshot()
    return Replayed(
        kind.name,
        settings,
        events,
        positions,
        run.records.columns,
        interests,
        links,
        _count([one.reason for one in impossible]),
        run.found.judged,
        tuple(run.found.splits),
        resumed_at,
        within,
        tuple(run.found.exceeded[node] for node in sorted(run.found.exceeded)),
    )


def _former_keywords(supervision: Supervision, options: dict[str, Any]) -> tuple[Supervision, dict[str, Any]]:
    """What `supervision` holds used to be keywords of `replay`; they still are, for one release."""
    former = {name: options[name] for name in vars(UNSUPERVISED) if name in options}
    if not former:
        return supervision, options
    warn(
        f"replay takes {', '.join(former)} in supervision=Supervision(...) now: omen.systems.replay.Supervision",
        DeprecationWarning,
        stacklevel=3,
    )
    return replace(supervision, **former), {name: value for name, value in options.items() if name not in former}


def _drive(
    run: _Run, events: Sequence[Event], positions: Sequence[int], verify: Verify, supervision: Supervision, mark: str
) -> None:
    """Instant by instant, judged and noted down on the way."""
    checkpoint = supervision.checkpoint
    for batch in _instants(events, run.position):
        for outcome in run.system.apply(batch):
            run.records.put(run.position, outcome)
            _note_exceeded(run.found.exceeded, outcome, positions[run.position])
            run.position += 1
        if verify == "every":
            _judge(run, positions)
        if supervision.progress:
            supervision.progress(run.position)
        if supervision.look:
            supervision.look(run.system, run.position)
        if checkpoint and checkpoint.due and run.position < len(events):
            columns = run.records.save(run.position)
            checkpoint.save(mark, run.position, columns, run.found, run.system.save)
    if verify == "end" or (verify == "every" and not events):
        _judge(run, positions)


def _note_exceeded(exceeded: dict[Label, Exceeded], outcome: Outcome, position: int) -> None:
    for node, links, cap in outcome.above or ():
        had = exceeded.get(node, Exceeded(node, cap, 0, position, 0))
        exceeded[node] = had._replace(most=max(had.most, links), events=had.events + 1)


def _start(
    system: str, around: Surroundings, trace: Trace, overlay: Overlay | None, settings: Mapping[str, Any]
) -> System:
    workload = around.workload
    absent = trace.absent_at_start()
    present = np.array([label not in absent for label in workload.nodes.tolist()], dtype=bool)
    interests = workload if present.all() else only_nodes(workload, present)
    links = overlay if overlay is None or present.all() else only_links(overlay, present)
    if links is not None and (topic_components(interests, links) > 1).any():
        split = int(np.argmax(topic_components(interests, links)))
        gone = int((~present).sum())
        without = f" without the {gone} nodes that start absent" if gone else ""
        raise InvalidInput(
            f"the overlay does not connect topic {plain(interests.topics, split)!r}{without}: a replay starts from a"
            " topic-connected overlay; leave --overlay out to start from Low-ODA's"
        )
    return find_system(system).build(interests, links, around, settings)


def _resume(
    checkpoint: Checkpoint | None, mark: str, system: str, around: Surroundings, settings: Mapping[str, Any], size: int
) -> _Run | None:
    saved = checkpoint.load(mark) if checkpoint else None
    if saved is None:
        return None
    records = Records(size, around.within is not None)
    records.load(saved.columns)
    found = Found(saved.judged, list(saved.splits), {one.node: one for one in saved.exceeded})
    return _Run(find_system(system).restore(saved.system, around, settings), records, saved.position, found)


def _instants(events: Sequence[Event], first: int) -> Iterator[list[Event]]:
    """Events from there on, those of equal time together."""
    for _, batch in groupby(events[first:], key=lambda event: event.time_s):
        yield list(batch)


def _failing(run: _Run) -> int:
    """How many topics are not k-connected."""
    return len(check_overlay(*run.system.snapshot(), k=run.k).failing)


def _judge(run: _Run, positions: Sequence[int]) -> None:
    run.found.judged += 1
    split = int((topic_components(*run.system.snapshot()) > 1).sum()) if run.k == 1 else _failing(run)
    if split:
        run.found.splits.append((positions[run.position - 1] if run.position else -1, split))


def only_nodes(interests: Interests, keep: npt.NDArray[np.bool_]) -> Interests:
    """The interests of some of the nodes."""
    codes = np.cumsum(keep) - 1
    nodes, topics = interests.pair_codes
    wanted = keep[nodes]
    return Interests.from_codes(interests.nodes[keep], interests.topics, codes[nodes[wanted]], topics[wanted])


def only_links(overlay: Overlay, keep: npt.NDArray[np.bool_]) -> Overlay:
    """The links among some of the nodes."""
    codes = np.cumsum(keep) - 1
    among = keep[overlay.u] & keep[overlay.v]
    return Overlay.from_codes(overlay.nodes[keep], codes[overlay.u[among]], codes[overlay.v[among]])


def _count(reasons: Sequence[str]) -> dict[str, int]:
    return {reason: reasons.count(reason) for reason in sorted(set(reasons))}

"""Scenarios: the nodes, their links, what happens when, and what is expected of it. Written as TOML."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal
from warnings import warn

import msgspec

from omen.errors import InvalidInput
from omen.protocol.config import Config, Dissemination, Remedies
from omen.protocol.events import MILLISECOND, SECOND, NodeId, RepairStage, Time
from omen.protocol.repair.backups import RULES
from omen.sim.latency import Latency, by_link, constant, log_normal, uniform
from omen.sim.monitors import Bounds
from omen.sim.world import Network

STAGES = tuple(RepairStage)
DRAWN_STAGES = tuple(stage for stage in RepairStage if stage is not RepairStage.CHECKING)
"""The stages of every repair of a loss. Worlds are drawn with these, so that a seed means the same world as before."""
ACTIONS = (
    "crash",
    "leave",
    "join",
    "resubscribe",
    "pause",
    "resume",
    "suspect",
    "partition",
    "mute",
    "heal",
    "scramble",
    "meet",
)
COORDINATOR = "coordinator"
ROLES = ("rendezvous", "leader", "cut")
"""At which node a crash may be aimed, with `topic`: where its pieces are reported, a leader of one, its cut node."""

PERIODS = {
    "gossip_ms": "gossip_period",
    "heartbeat_ms": "heartbeat_period",
    "suspicion_ms": "suspicion_time",
    "audit_ms": "audit_period",
    "connectivity_ms": "connectivity_period",
}

RENAMED = {
    "config": {"mend_rho": "repair_rho"},
    "bounds": {"whole_s": "connected_s"},
    "expect": {"whole": "connected", "broken": "split"},
}
"""What keys of each table were called in version 0.1.0, and what they are called since."""

Name = str
Names = tuple[Name, ...]
Pair = tuple[Name, Name]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table in a scenario file; a word it does not know is refused."""


class NodeSpec(Table, frozen=True):
    topics: Names = ()
    place: int | None = None


class Drawn(Table, frozen=True):
    """A population drawn like `omen workload synth` does; without `sizes`, each wants one to six topics."""

    nodes: int
    topics: int
    popularity: str = "uniform"
    sizes: str | None = None


class OverlaySpec(Table, frozen=True):
    """The links at the start: these, or those an algorithm of `omen.design` designs."""

    algorithm: str = "low-oda"
    links: tuple[Pair, ...] | None = None


class LogNormal(Table, frozen=True):
    median: float
    sigma: float


Delay = float | tuple[float, float] | LogNormal


class LinkDelay(Table, frozen=True):
    between: Pair
    latency_ms: float


class NetworkSpec(Table, frozen=True):
    """`refusal_ms`: when peers with a failure detector that were connected to a process that has ended try again, and
    are refused; without it, or in that share of `silent_crashes`, nothing is heard of it any more.
    """

    latency_ms: Delay = 1.0
    detection_ms: Delay = 50.0
    loss: float = 0.0
    duplication: float = 0.0
    drift: float = 0.0
    refusal_ms: Delay | None = None
    silent_crashes: float = 0.0
    links: tuple[LinkDelay, ...] = ()


class RemedySpec(Table, frozen=True):
    linked_losses_as_one: bool = True
    redo_unconfirmed: bool = True
    former_neighbours_report: bool = True
    links_agreed_by_both: bool = True
    holes_end: bool = True


class ConfigSpec(Table, frozen=True):
    """The settings of every node; those not named have the defaults of `omen.protocol.config`."""

    resilience: int | None = None
    coverage: int | None = None
    backups: str | None = None
    rho: float | None = None
    repair_rho: float | None = None
    halo_hops: int | None = None
    ready_rounds: int | None = None
    sample_size: int | None = None
    attempts: int | None = None
    redundant_removals: int | None = None
    gossip_ms: float | None = None
    grace_ms: float | None = None
    answer_timeout_ms: float | None = None
    standby_timeout_ms: float | None = None
    tombstone_life_ms: float | None = None
    detector: bool | None = None
    heartbeat_ms: float | None = None
    suspicion_ms: float | None = None
    indirect_probes: int | None = None
    audit: bool | None = None
    audit_ms: float | None = None
    label_refresh: int | None = None
    connectivity: int | None = None
    connectivity_ms: float | None = None
    connectivity_recheck_ms: float | None = None
    max_links: int | None = None
    lost_retry_ms: float | None = None
    lost_memory_ms: float | None = None
    remedies: RemedySpec = RemedySpec()


class EventSpec(Table, frozen=True):
    """One thing that happens: `at` a time, or `on` a stage of the repair `of` a node, or where there is an [order]
    before a `step`. Exactly one action.

    Times count from the start of the event's burst; a burst starts when the one before it has settled.
    """

    burst: int = 0
    at: float | None = None
    step: int | None = None
    on: str | None = None
    of: Name | None = None
    after_ms: float = 0.0
    crash: Name | None = None
    leave: Name | None = None
    join: Name | None = None
    resubscribe: Name | None = None
    topics: Names | None = None
    place: int | None = None
    through: Name | None = None
    alone: bool | None = None
    pause: Name | None = None
    resume: Name | None = None
    suspect: Name | None = None
    by: Name | None = None
    topic: str | None = None
    partition: tuple[Names, ...] | None = None
    mute: tuple[Pair, ...] | None = None
    heal: bool | None = None
    scramble: float | None = None
    meet: Pair | None = None

    @property
    def action(self) -> str:
        return next(action for action in ACTIONS if getattr(self, action) is not None)


class RepairExpectation(Table, frozen=True):
    """How the repair after an event of a node went."""

    of: Name
    coordinator: Name | None = None
    shadow: Names | None = None
    links: tuple[Pair, ...] | None = None


class ViewExpectation(Table, frozen=True):
    """The view `at` one node `of` another: its coverage factor (omen 4.2, equation 3), its backups."""

    at: Name
    of: Name
    coverage: int | None = None
    backups: Names | None = None
    ready: bool | None = None


class Expectation(Table, frozen=True):
    by: float
    connected: bool | None = None
    split: Names | None = None
    repair: RepairExpectation | None = None
    view: ViewExpectation | None = None
    links: tuple[Pair, ...] | None = None


class BoundsSpec(Table, frozen=True):
    connected_s: float | None = None
    handled_s: float | None = None
    one_sided_s: float | None = None
    dispensable_s: float | None = None
    idle_s: float | None = None


class SlowLink(Table, frozen=True):
    between: Pair
    bytes_per_s: float


class LoadSpec(Table, frozen=True):
    """Publications all the time, for `seconds`: so many per second, of so many bytes (least, most), in bursts or not.

    `publishers`: who publishes, on the first topics; where one has crashed, the next that is there. `waits`: they heed
    backpressure. `links`: those with less than `bytes_per_s`. What waits for a link beyond `queue_bytes` makes it a
    slow consumer. The windows of all nodes keep publications for `window_s` and within `window_bytes`.
    """

    rate: float
    seconds: float
    payload: tuple[int, int] = (100, 100)
    burst: int = 1
    publishers: Names = ()
    bytes_per_s: float = 100e6
    links: tuple[SlowLink, ...] = ()
    queue_bytes: int = 8 << 20
    waits: bool = False
    window_s: float | None = None
    window_bytes: int | None = None


class OrderSpec(Table, frozen=True):
    """The order of a world without latency (see `explore_world`): before which steps the next input is delayed (or,
    a message, lost): (step, "delay" or "lose").
    """

    choices: tuple[tuple[int, Literal["delay", "lose"]], ...] = ()


class Scenario(Table, frozen=True):
    """`until_s`: when it ends; without it, when everything has settled after the last event."""

    name: str = ""
    about: str = ""
    until_s: float | None = None
    nodes: dict[Name, NodeSpec] = {}
    drawn: Drawn | None = None
    overlay: OverlaySpec = OverlaySpec()
    config: ConfigSpec = ConfigSpec()
    network: NetworkSpec = NetworkSpec()
    bounds: BoundsSpec = BoundsSpec()
    load: LoadSpec | None = None
    order: OrderSpec | None = None
    events: tuple[EventSpec, ...] = ()
    expect: tuple[Expectation, ...] = ()

    def without(self, *remedies: str) -> Scenario:
        """The same with some remedies switched off, to see what they are for."""
        off = msgspec.structs.replace(self.config.remedies, **dict.fromkeys(remedies, False))
        return msgspec.structs.replace(self, config=msgspec.structs.replace(self.config, remedies=off))

    def protocol_config(self) -> Config:
        given = {name: value for name, value in msgspec.structs.asdict(self.config).items() if value is not None}
        given.pop("lost_memory_ms", None)  # of version 0.1.0: lost peers are tried for ever since
        given["remedies"] = Remedies(**msgspec.structs.asdict(self.config.remedies))
        for name in [name for name in given if name.endswith("_ms")]:
            target = PERIODS.get(name, name.removesuffix("_ms"))
            given[target] = to_time(given.pop(name), MILLISECOND)
        return Config(**given, dissemination=self._dissemination())

    def _dissemination(self) -> Dissemination:
        given: dict[str, int] = {}
        if self.load is not None and self.load.window_s is not None:
            given["window_age"] = to_time(self.load.window_s, SECOND)
        if self.load is not None and self.load.window_bytes is not None:
            given["total_window_bytes"] = self.load.window_bytes
        return Dissemination(**given)

    def network_model(self, places: dict[Name, NodeId]) -> Network:
        spec = self.network
        latency = _latency(spec.latency_ms)
        if spec.links:
            delays = {
                (places[link.between[0]], places[link.between[1]]): to_time(link.latency_ms, MILLISECOND)
                for link in spec.links
            }
            latency = by_link(delays, latency)
        detection = None if self.config.detector else _latency(spec.detection_ms)
        refusal = _latency(spec.refusal_ms) if self.config.detector and spec.refusal_ms is not None else None
        return Network(
            latency,
            spec.loss,
            spec.duplication,
            detection,
            refusal=refusal,
            silent_crashes=spec.silent_crashes,
            drift=spec.drift,
        )

    def monitor_bounds(self) -> Bounds:
        given = msgspec.structs.asdict(self.bounds)
        return Bounds(
            **{
                name.removesuffix("_s"): to_time(value, SECOND)
                for name, value in given.items()
                if isinstance(value, float)
            }
        )


def to_time(amount: float, unit: Time) -> Time:
    return round(amount * unit)


def _latency(delay: Delay) -> Latency:
    if isinstance(delay, LogNormal):
        return log_normal(to_time(delay.median, MILLISECOND), delay.sigma)
    if isinstance(delay, tuple):
        return uniform(to_time(delay[0], MILLISECOND), to_time(delay[1], MILLISECOND))
    return constant(to_time(delay, MILLISECOND))


def read_scenario(path: str | Path) -> Scenario:
    """The scenario in a file; raises InvalidInput that says what in it is not as it should be."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from error
    return parse_scenario(text, str(path))


def parse_scenario(text: str | bytes, where: str = "scenario") -> Scenario:
    try:
        raw = msgspec.toml.decode(text)
        _rename(raw, where)
        scenario = msgspec.convert(raw, Scenario)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{where}: {_in_toml_words(str(error))}") from error
    complaint = _complaint(scenario)
    if complaint:
        raise InvalidInput(f"{where}: {complaint}")
    return scenario


def _rename(raw: dict[str, Any], where: str) -> None:
    """Keys of version 0.1.0 become those of now."""
    for table, names in RENAMED.items():
        found = raw.get(table)
        for entry in found if isinstance(found, list) else [found]:
            if isinstance(entry, dict):
                for old in sorted(names.keys() & entry.keys()):
                    if names[old] in entry:
                        raise InvalidInput(f"{where}: {old} of {table} is the former name of {names[old]}: give one")
                    warn(f"{where}: {old} of {table} is now {names[old]}", DeprecationWarning, stacklevel=3)
                    entry[names[old]] = entry.pop(old)


def _in_toml_words(message: str) -> str:
    for ours, toml in (
        ("Object", "table"),
        ("`object`", "a table"),
        ("`$.", "`"),
        ("`$`", "the top"),
        ("`array`", "an array"),
    ):
        message = message.replace(ours, toml)
    return message


def _complaint(scenario: Scenario) -> str | None:
    """What makes no sense although every word is known."""
    if scenario.until_s is not None and any(event.burst for event in scenario.events):
        return "a scenario with bursts ends when the last has settled: leave `until_s` out"
    if bool(scenario.nodes) == (scenario.drawn is not None):
        return "give either [nodes] or [drawn]"
    if scenario.config.backups is not None and scenario.config.backups not in RULES:
        return f"config.backups is {scenario.config.backups!r}: must be one of {', '.join(RULES)}"
    for name, least in (("resilience", 1), ("coverage", 0), ("halo_hops", 0), ("attempts", 1), ("sample_size", 1)):
        value = getattr(scenario.config, name)
        if value is not None and value < least:
            return f"config.{name} is {value}: must be {least} or more"
    for share in ("loss", "duplication", "drift", "silent_crashes"):
        if not 0 <= getattr(scenario.network, share) < 1:
            return f"network.{share} is {getattr(scenario.network, share)}: must be at least 0 and less than 1"
    known = _known_names(scenario)
    for position, event in enumerate(scenario.events, start=1):
        complaint = _event_complaint(event, known) or _order_complaint(scenario, event)
        if complaint:
            return f"event {position}: {complaint}"
    for name in _names_used(scenario):
        if name not in known:
            return f"there is no node {name!r}"
    return None


def _order_complaint(scenario: Scenario, event: EventSpec) -> str | None:
    if (event.step is not None) != (scenario.order is not None):
        return "`step` and an [order] belong together"
    return None


def _event_complaint(event: EventSpec, known: set[Name]) -> str | None:
    given = [action for action in ACTIONS if getattr(event, action) is not None]
    if len(given) != 1:
        return f"give exactly one of {', '.join(ACTIONS)}" + (f", not {' and '.join(given)}" if given else "")
    if sum(when is not None for when in (event.at, event.on, event.step)) != 1:
        return "give either `at`, in seconds, or `on`, a stage of a repair"
    if event.on is not None and (event.on not in STAGES or event.of is None):
        return f"`on` must be one of {', '.join(STAGES)}, with the node concerned in `of`"
    if event.at is not None and event.at < 0:
        return f"`at` is {event.at}: must be 0 or more"
    if given[0] in ("join", "resubscribe") and event.topics is None:
        return f"`{given[0]}` needs `topics`"
    if given[0] == "suspect" and event.by is None:
        return "`suspect` needs `by`, the node that is to declare it failed"
    if event.crash in ROLES and event.topic is None:
        return f'`crash = "{event.crash}"` needs `topic`'
    if given[0] == "scramble" and not 0 <= (event.scramble or 0) <= 1:
        return f"`scramble` is {event.scramble}: must be a share from 0 to 1"
    if event.alone and event.through is not None:
        return "a node that begins `alone` joins `through` none"
    groups: tuple[Any, ...] = (*(event.partition or ()), *(event.mute or ()), event.meet or ())
    fields = ("crash", "leave", "resubscribe", "pause", "resume", "suspect", "by", "through", "of")
    named = [getattr(event, field) for field in fields if event.topic is None or field != "crash"]
    for name in (*named, *(name for group in groups for name in group)):
        if name is not None and name not in known and not (name == COORDINATOR and event.on is not None):
            return f"there is no node {name!r}"
    return None


def _known_names(scenario: Scenario) -> set[Name]:
    drawn = scenario.drawn
    return {
        *scenario.nodes,
        *(drawn_names(drawn) if drawn is not None else ()),
        *(event.join for event in scenario.events if event.join is not None),
    }


def drawn_names(drawn: Drawn) -> list[Name]:
    """What drawn nodes are called: n1, n2 and so on."""
    return [f"n{number}" for number in range(1, drawn.nodes + 1)]


def _names_used(scenario: Scenario) -> list[Name]:
    """The names in overlay, network, load and expectations."""
    load = scenario.load
    pairs = [*(scenario.overlay.links or ()), *(link.between for link in scenario.network.links)]
    pairs += [link.between for link in load.links] if load is not None else []
    names = [*(name for pair in pairs for name in pair), *(load.publishers if load is not None else ())]
    for expectation in scenario.expect:
        names += [name for pair in expectation.links or () for name in pair]
        if expectation.repair is not None:
            repair = expectation.repair
            names += [repair.of, *(repair.shadow or ()), *(name for pair in repair.links or () for name in pair)]
            names += [repair.coordinator] if repair.coordinator is not None else []
        if expectation.view is not None:
            names += [expectation.view.at, expectation.view.of, *(expectation.view.backups or ())]
    return names

"""Scenarios: the nodes, their links, what happens when, and what is expected of it. `reading` reads them from TOML."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from omen.protocol.config import Config, Dissemination, Remedies
from omen.protocol.events import MILLISECOND, SECOND, NodeId, RepairStage, Time
from omen.sim.latency import Latency, by_link, constant, log_normal, uniform
from omen.sim.watch import Bounds
from omen.sim.world import Network

STAGES = tuple(RepairStage)
DRAWN_STAGES = tuple(stage for stage in RepairStage if stage is not RepairStage.CHECKING)
"""The stages of every repair of a loss. Worlds are drawn with these, so that a seed means the same world as before."""


class Action(StrEnum):
    """What can happen in a scenario: one of these is a key of each event."""

    CRASH = "crash"
    LEAVE = "leave"
    JOIN = "join"
    RESUBSCRIBE = "resubscribe"
    PAUSE = "pause"
    RESUME = "resume"
    SUSPECT = "suspect"
    PARTITION = "partition"
    MUTE = "mute"
    HEAL = "heal"
    SCRAMBLE = "scramble"
    MEET = "meet"


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
    offence_limit: int | None = None
    offence_memory_ms: float | None = None
    ban_time_ms: float | None = None
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
    def action(self) -> Action:
        return next(action for action in Action if getattr(self, action) is not None)


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


def drawn_names(drawn: Drawn) -> list[Name]:
    """What drawn nodes are called: n1, n2 and so on."""
    return [f"n{number}" for number in range(1, drawn.nodes + 1)]

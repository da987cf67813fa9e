"""The settings of a node: what a configuration file may say, and the defaults for a network of real machines."""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from omen.errors import InvalidInput
from omen.net.names import check_name, is_every_address, split_address, topic_key
from omen.net.security.config import DEFAULT_CLUSTER, Rule, Security, check_exposure
from omen.protocol.config import Config, Dissemination
from omen.protocol.events import MILLISECOND, SECOND, NodeId
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import FORBIDDEN_AT_MOST, ZONE_LENGTH_AT_MOST
from omen.protocol.messages.publications import HEADER_BYTES

LOOPBACK = "127.0.0.1"
LARGEST_FRAME = 1 << 30
ENGINE = ("lazy", "soon", "eager")
LOG_LEVELS = ("debug", "info", "warning", "error")
SHORTEST_S, LONGEST_S = 0.001, 100_000_000
POSITIVE = frozenset(
    [
        "resilience",
        "connectivity",
        "sample_size",
        "shuffle_size",
        "attempts",
        "ready_rounds",
        "label_refresh",
        "total_window_bytes",
        "largest_payload",
        "reorder_bytes",
        "credits",
        "batch_count",
        "batch_bytes",
        "streams",
        "payload_bytes",
        "frame_bytes",
        "queue_bytes",
        "urgent_queue_bytes",
        "write_buffer_bytes",
        "inbox_messages",
        "inbox_bytes",
        "dials_at_once",
        "outgoing",
    ]
)
"""Settings that must be at least 1."""
FORMER_NAMES = {
    "protocol.mend_rho": "repair_rho",
    "protocol.dissemination.windows_bytes": "total_window_bytes",
}
"""Settings as version 0.1.0 called them: accepted for one release, with a warning."""
REMOVED = frozenset(
    [
        "protocol.lost_memory",
        *(f"protocol.dissemination.{name}" for name in ("window_count", "window_bytes", "gap_attempts")),
    ]
)
"""Settings of version 0.1.0 that there are no more: skipped for one release, with a warning."""
Settings = TypeVar("Settings")

LIVE = Config(
    gossip_period=500 * MILLISECOND,
    ready_rounds=4,
    grace=100 * MILLISECOND,
    answer_timeout=500 * MILLISECOND,
    attempts=5,
    standby_timeout=6 * SECOND,
    detector=True,
    suspicion_time=2 * SECOND,
    audit=True,
    dissemination=Dissemination(retell_period=SECOND, graft_delay=SECOND, pull_retry=500 * MILLISECOND),
)
"""The protocol's own defaults suit a simulated network; these stand a machine that is busy with something else.

A busy node hands publications on late. Were they pulled as early as in a simulation, they would come twice and cut
branches of the tree that are merely slow.
"""


@dataclass(frozen=True)
class Limits:
    """What a node spends at most, and how long it waits."""

    payload_bytes: int = 1 << 20
    """The largest publication. It and `frame_bytes` must be the same in all nodes of a cluster."""
    frame_bytes: int = 8 << 20
    """The largest frame taken from a peer; a peer that sends a larger one is refused."""
    queue_bytes: int = 8 << 20
    """Publications waiting for one peer; beyond it they are dropped, and sent again when the peer reads again."""
    urgent_queue_bytes: int = 32 << 20
    """The overlay's own messages waiting for one peer; beyond it the connection is given up."""
    write_buffer_bytes: int = 256 << 10
    """Handed to the operating system ahead of time."""
    inbox_messages: int = 100_000
    """Messages that the application has not taken yet; beyond it the next are reported as a gap."""
    inbox_bytes: int = 64 << 20
    frames_per_s: float = 50_000.0
    """Taken from one peer; one that sends more is read from later. 0: any number."""
    messages_per_s: float = 5_000.0
    """The same for the overlay's own messages, which cost more than publications."""
    connections: int = 1024
    """That peers may have made to this node; more are refused."""
    connections_per_address: int = 256
    half_open: int = 512
    """Of them those whose handshake has not ended; beyond it the oldest is closed."""
    half_open_per_address: int = 128
    dials_per_asker_s: float = 16.0
    """New connections that the messages of one peer may lead to, and eight times as many at once. 0: any number."""
    dials_at_once: int = 128
    """Connections that are being made at a time."""
    outgoing: int = 256
    """Connections that were made to say something and that the core does not want; beyond it nothing more is said to
    nodes without a connection."""
    hello_timeout_s: float = 10.0
    """A connection whose handshake has not ended by then is closed."""
    frame_timeout_s: float = 30.0
    """A frame that has begun must be complete by then."""
    stall_timeout_s: float = 60.0
    """The connection to a peer that reads nothing for so long is closed."""
    connect_timeout_s: float = 5.0
    idle_s: float = 30.0
    """A connection that the core does not want is closed after this."""
    lost_after_s: float = 0.3
    """A wanted connection that broke and cannot be made again for so long raises a suspicion."""
    give_up_after_s: float = 60.0
    """After so long a broken connection is made again only when there is something to send."""
    publish_patience_s: float = 2.0
    """How long `publish` waits for a node that can take no more, however many hops away."""
    backpressure_timeout_s: float = 1.0
    """A link that has not caught up after this is a slow consumer: skipped, and repaired from the window later."""
    join_timeout_s: float = 30.0
    """A node that has found no member by then ends. 0: it goes on trying."""
    leave_timeout_s: float = 10.0
    """A node asked to stop ends after this at the latest, whether its neighbours are linked around it or not."""


@dataclass(frozen=True)
class NodeConfig:
    """One node of a live cluster.

    >>> NodeConfig(name="ann", topics=("tea", "jazz")).listen
    '127.0.0.1:0'
    """

    name: str = ""
    """Unique in the cluster; a node that comes back under its name is the same node in its next incarnation.

    Empty: made up. A * in it: that part is, as for one of many that share a certificate.
    """
    cluster: str = DEFAULT_CLUSTER
    """Nodes of different clusters refuse each other, and clusters of one name that meet become one."""
    listen: str = f"{LOOPBACK}:0"
    """Where other nodes connect to. Port 0: any free one."""
    advertise: str = ""
    """The address peers are told, where it differs from `listen`."""
    refusal_is_failure: bool = False
    """Whether a connection refused at `advertise` means that this process has ended, where it differs from `listen`.

    Where they are the same it does: peers that were connected then declare the node failed at once."""
    join: tuple[str, ...] = ()
    """Seeds, the members to join through; a name may have several addresses. None: the first of a new cluster."""
    join_file: str = ""
    """A file of more seeds, a HOST:PORT on each line, read again when it changes."""
    topics: tuple[str, ...] = ()
    """Subscribed to from the beginning."""
    http: str = ""
    """Where the live page (/), /metrics, /livez, /readyz, /healthz and /topology are served. Empty: nowhere."""
    http_token: str = ""
    """A file with a token: who shows it there sees the settings and the last log lines too. Empty: nobody does."""
    mqtt: str = ""
    """Where MQTT clients connect to. Empty: nowhere."""
    mqtts: str = ""
    """The same over TLS, with the certificate of `security`."""
    mqtt_ws: str = ""
    """The same over WebSocket, for pages in browsers."""
    mqtt_ws_origins: tuple[str, ...] = ()
    """Pages that may connect there without a password, beside those of this machine: https://HOST. *: any."""
    mqtt_ack: str = "nodes"
    """PUBACK and PUBREC say that these hold a message: `nodes`, L other nodes; `tree`, the neighbours in its topic."""
    mqtt_users: str = ""
    """A file with the users of MQTT (`omen keys user`). Empty: no passwords, which is refused beyond loopback."""
    mqtt_authority: str = ""
    """A file of certificate authorities: at `mqtts`, clients with a certificate of theirs need no password."""
    mqtt_anonymous: bool = False
    """Whether clients without a user name may connect from beyond this machine."""
    state: str = ""
    """A folder for what must outlive the process: its last incarnation. Empty: the clock gives incarnations."""
    record: str = ""
    """A file to record all inputs of the node in, for `omen node --replay`. Empty: none."""
    engine: str = "lazy"
    """When compiled code is loaded: `lazy`, for a large repair; `soon`, after the start; `eager`, before it joins."""
    log: str = "text"
    """How the log is written: `text` or `json`, one line per event."""
    log_level: str = "info"
    """The least level that is written: `debug`, `info`, `warning` or `error`."""
    protocol: Config = LIVE
    limits: Limits = field(default_factory=Limits)
    security: Security = field(default_factory=Security)
    access: tuple[Rule, ...] = ()
    """Which nodes may publish and subscribe, topic by topic. Empty: all may do everything."""

    @property
    def has_front_door(self) -> bool:
        """Whether MQTT clients can connect to this node."""
        return bool(self.mqtt or self.mqtts or self.mqtt_ws)

    def __post_init__(self) -> None:
        if not self.name or "*" in self.name:
            made_up = f"{os.getpid()}-{os.urandom(4).hex()}"
            object.__setattr__(self, "name", (self.name or "node-*").replace("*", made_up))
        check_name(self.name)
        for what in ("listen", "advertise", "http", "mqtt", "mqtts", "mqtt_ws"):
            address = getattr(self, what)
            if address or what == "listen":
                split_address(address, what)
        for address in self.join:
            split_address(address, "join")
        for topic in self.topics:
            topic_key(topic)
        host, _ = split_address(self.listen)
        if is_every_address(host) and not self.advertise:
            raise InvalidInput(f"listen {self.listen!r} is every address of this machine: say which one in `advertise`")
        if self.advertise:
            _check_advertised(self.advertise)
        check_exposure(self.listen, self.security, self.access, self.cluster)
        if not 1 <= self.protocol.connectivity <= 2:
            raise InvalidInput(f"protocol.connectivity is {self.protocol.connectivity}: must be 1 or 2")
        _check_link_rules(self.name, self.protocol)
        limits, largest = self.limits, min(self.limits.payload_bytes, self.protocol.dissemination.largest_payload)
        if limits.frame_bytes < largest + HEADER_BYTES:
            what = f"less than the largest publication ({largest} bytes) and its head of {HEADER_BYTES}"
            raise InvalidInput(f"limits.frame_bytes {limits.frame_bytes}: {what}")
        for what, value, choices in (
            ("engine", self.engine, ENGINE),
            ("mqtt_ack", self.mqtt_ack, ("nodes", "tree")),
            ("log", self.log, ("text", "json")),
            ("log_level", self.log_level, LOG_LEVELS),
        ):
            if value not in choices:
                raise InvalidInput(f"{what} {value!r}: must be one of {', '.join(choices)}")


def _places(names: list[str]) -> tuple[NodeId, ...]:
    """Where nodes of these names stand: a core knows no names."""
    return tuple(sorted({place_of(check_name(name)) for name in names}))


def _check_link_rules(name: str, protocol: Config) -> None:
    if len(protocol.zone) > ZONE_LENGTH_AT_MOST or not protocol.zone.isprintable():
        raise InvalidInput(
            f"protocol.zone {protocol.zone[:40]!r}: must be printable, {ZONE_LENGTH_AT_MOST} letters at most"
        )
    if place_of(name) in protocol.forbid:
        raise InvalidInput(f"protocol.forbid names {name!r}: that is this node itself")
    if len(protocol.forbid) > FORBIDDEN_AT_MOST:
        raise InvalidInput(f"protocol.forbid names {len(protocol.forbid)} nodes: {FORBIDDEN_AT_MOST} at most")
    if not protocol.sigma >= 1:
        raise InvalidInput(f"protocol.sigma is {protocol.sigma:g}: must be a number, 1 or more")


def _check_advertised(address: str) -> None:
    host, port = split_address(address)
    if is_every_address(host):
        raise InvalidInput(f"advertise {address!r} is every address, and no peer can connect to it: say one they reach")
    if not port:
        raise InvalidInput(f"advertise {address!r}: no peer can connect to port 0: say the one they reach")


FILES = ("join_file", "http_token", "mqtt_users", "mqtt_authority")
"""Settings that name files; in a settings file, from where that stands."""


def read_node_config(path: str | Path) -> NodeConfig:
    """The settings in a TOML file; what it does not say has its default."""
    try:
        with Path(path).open("rb") as file:
            values = tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path}: not TOML: {error}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: not text: {error}") from error
    try:
        config = fill(NodeConfig(name="unnamed"), values) if "name" in values else fill(NodeConfig(), values)
        if config.limits.frame_bytes > LARGEST_FRAME:
            raise InvalidInput(f"limits.frame_bytes: {LARGEST_FRAME} at most")
        folder = Path(path).parent
        files: dict[str, Any] = {name: str(folder / value) for name in FILES if (value := getattr(config, name))}
        return replace(config, **files, security=config.security.relative_to(folder))
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def fill(settings: Settings, values: Mapping[str, Any], where: str = "") -> Settings:
    """These settings with some values replaced, as a file gives them: times in seconds, lists for tuples."""
    if not is_dataclass(settings):
        raise TypeError(settings)
    known = {declared.name: declared for declared in fields(settings)}
    replaced: dict[str, Any] = {}
    for given, value in values.items():
        if f"{where}{given}" in REMOVED:
            warnings.warn(f"the setting {where}{given} has no effect any more", DeprecationWarning, stacklevel=2)
            continue
        name = _present_name(where, given, values)
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
            raise InvalidInput(f"unknown setting {where}{name}{hint}")
        replaced[name] = _fit(f"{where}{name}", getattr(settings, name), value, str(known[name].type) == "Time")
    return replace(settings, **replaced)  # type: ignore[type-var]


def _present_name(where: str, given: str, values: Mapping[str, Any]) -> str:
    """The name of a setting; a former name is warned of."""
    name = FORMER_NAMES.get(f"{where}{given}")
    if name is None:
        return given
    if name in values:
        raise InvalidInput(f"{where}{given} is the former name of {where}{name}: say one of them")
    message = f"the setting {where}{given} is deprecated and will go: use {where}{name}"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return name


def _fit(name: str, default: Any, value: Any, is_time: bool) -> Any:
    """A value from a file in the form of its default."""
    if is_dataclass(default):
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{name}: must be a table of settings")
        return fill(default, value, f"{name}.")
    if name == "access":
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise InvalidInput("access: must be a list of rules, each begun with [[access]]")
        return tuple(fill(Rule(topics=("unnamed",)), item, "access.") for item in value)
    if isinstance(default, tuple):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InvalidInput(f"{name}: must be a list of texts")
        return _places(value) if name == "protocol.forbid" else tuple(value)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_time:
        if not number or not SHORTEST_S <= value <= LONGEST_S:
            raise InvalidInput(f"{name}: must be a number of seconds from {SHORTEST_S} to {LONGEST_S}, not {value!r}")
        return int(value * SECOND)
    if isinstance(default, bool):
        fits, wanted = isinstance(value, bool), "true or false"
    elif isinstance(default, int):
        least = int(name.rpartition(".")[2] in POSITIVE)
        fits, wanted = number and isinstance(value, int) and value >= least, f"a whole number, {least} or more"
    elif isinstance(default, float):
        fits, wanted = number and 0 <= value < float("inf"), "a number, 0 or more"
    else:
        fits, wanted = isinstance(value, str), "a text"
    if not fits:
        raise InvalidInput(f"{name}: must be {wanted}, not {value!r}")
    return float(value) if isinstance(default, float) else value

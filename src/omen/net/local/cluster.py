"""A cluster of local processes: made by forking one parent that has everything loaded, found again by a folder."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.errors import CannotWrite, InvalidInput
from omen.net.local.cuts import CUTS
from omen.net.local.forking import fork_node, plan_presets, preload
from omen.net.observe.http_client import ask
from omen.net.security.key_files import make_cluster_keys, security_from
from omen.net.settings import NodeConfig
from omen.net.state import is_running, path_of, read_states

if TYPE_CHECKING:
    from omen.overlay import Overlay

PLAN = "cluster.plan"
NODES = "nodes"
LOGS = "logs"
SHOWN = 10  # names of nodes in a complaint
KEYS = "keys"
CLIENT, CLIENT_FILE = "client-*", "client.toml"
CLIENT_SETTINGS = """\
# For `omen pub` and `omen sub`: omen sub TOPIC --join HOST:PORT --config client.toml
name = "client-*"
cluster = {cluster}
[security]
authorities = ["keys/ca.pem"]
certificate = "keys/client-any.pem"
key = "keys/client-any.key"
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a cluster is made of: kept in its folder, so that a node that was killed can come back as it was.

    `tls`: its nodes show each other certificates, made for it and kept in its folder too.
    """

    topics: dict[str, list[str]]
    cluster: str
    log: str
    tls: bool = False


def node_configs(folder: Path, plan: Plan, base: NodeConfig) -> list[NodeConfig]:
    """The settings of each node of a plan."""
    return [
        replace(
            base,
            name=name,
            cluster=plan.cluster,
            topics=tuple(topics),
            http=base.http or "127.0.0.1:0",
            state=str(folder / NODES),
            log=plan.log,
            security=security_from(folder / KEYS, name) if plan.tls else base.security,
        )
        for name, topics in plan.topics.items()
    ]


def bring_up(folder: str | Path, plan: Plan, overlay: Overlay | None) -> list[str]:
    """Fork all nodes of a plan, on the designed overlay or (none given) each joining through those before it.

    Returns their names. The parent keeps no hold on them: the folder says who they are.
    """
    root = Path(folder)
    if living := [state["name"] for state in read_states(root / NODES) if is_running(state)]:
        raise InvalidInput(f"{root}: a cluster of {len(living)} nodes runs from there; `omen cluster down` ends it")
    for state in read_states(root / NODES):
        path_of(root / NODES, state["name"]).unlink(missing_ok=True)
    try:
        (root / NODES).mkdir(parents=True, exist_ok=True)
        (root / LOGS).mkdir(exist_ok=True)
        (root / CUTS).unlink(missing_ok=True)
        (root / PLAN).write_text(json.dumps(asdict(plan)))
    except OSError as error:
        raise CannotWrite(f"{root}: cannot keep a cluster's state there: {error.strerror}") from error
    if plan.tls:
        make_cluster_keys(root / KEYS, plan.cluster, [*plan.topics, CLIENT])
        (root / CLIENT_FILE).write_text(CLIENT_SETTINGS.format(cluster=json.dumps(plan.cluster)))
    preload()
    configs = node_configs(root, plan, NodeConfig(name="unnamed"))
    if overlay is not None:
        origins = plan_presets(overlay, configs)
        for config, origin in zip(configs, origins, strict=True):
            fork_node(config, origin, root / LOGS / f"{config.name}.log", origins)
    else:
        _grow(root, configs)
    return [config.name for config in configs]


def _grow(root: Path, configs: Sequence[NodeConfig]) -> None:
    """The first begins alone; all others join through it."""
    first = configs[0]
    fork_node(first, None, root / LOGS / f"{first.name}.log")
    address = wait_for_state(root, first.name, 30.0)["address"]
    for config in configs[1:]:
        fork_node(replace(config, join=(address,)), None, root / LOGS / f"{config.name}.log")


def wait_for_state(root: Path, name: str, patience_s: float) -> dict[str, Any]:
    """The state of a node, once it has written one."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        for state in read_states(root / NODES):
            if state["name"] == name and is_running(state):
                return state
        time.sleep(0.02)
    raise InvalidInput(f"node {name!r} did not come up within {patience_s:g} s; see {root / LOGS / name}.log")


def read_plan(folder: str | Path) -> Plan:
    """What the cluster in a folder is made of."""
    path = Path(folder) / PLAN
    try:
        values = json.loads(path.read_text())
        return Plan(values["topics"], values["cluster"], values["log"], values.get("tls", False))
    except FileNotFoundError as error:
        raise InvalidInput(f"{folder}: no cluster was brought up from there (`omen cluster up` does)") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path}: not the plan of a cluster: {error}") from error


def start_again(folder: str | Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """Start nodes that have ended again, through any that run; their states. None is started if one cannot be."""
    root = Path(folder)
    plan = read_plan(root)
    known = list(plan.topics)
    living = [state for state in read_states(root / NODES) if is_running(state)]
    for name in names:
        if name not in plan.topics:
            there = ", ".join(known[:SHOWN]) + (", ..." if len(known) > SHOWN else "")
            raise InvalidInput(f"{root}: no node {name!r} in this cluster; there are {there}")
        if any(state["name"] == name for state in living):
            raise InvalidInput(f"node {name!r} is running")
    configs = {config.name: config for config in node_configs(root, plan, NodeConfig(name="unnamed"))}
    join = tuple(state["address"] for state in living[:3])
    started = []
    for name in dict.fromkeys(names):
        fork_node(replace(configs[name], join=join), None, root / LOGS / f"{name}.log")
        started.append(wait_for_state(root, name, 30.0))
        join = join or (started[0]["address"],)
    return started


def signal_nodes(folder: str | Path, names: Sequence[str], number: signal.Signals) -> list[str]:
    """Send a signal to running nodes (all where none are named); the names of those that got it."""
    states = read_states(Path(folder) / NODES)
    known = {state["name"] for state in states}
    if unknown := [name for name in names if name not in known]:
        raise InvalidInput(f"{folder}: no node {unknown[0]!r} there")
    told = []
    for state in states:
        if (not names or state["name"] in names) and is_running(state):
            os.kill(state["pid"], number)
            told.append(state["name"])
    return told


def take_down(folder: str | Path, patience_s: float = 10.0) -> list[str]:
    """End all nodes at once: no node is left that would need a repair."""
    told = signal_nodes(folder, (), signal.SIGQUIT)
    signal_nodes(folder, (), signal.SIGCONT)
    deadline = time.monotonic() + patience_s
    states = read_states(Path(folder) / NODES)
    while any(is_running(state) for state in states) and time.monotonic() < deadline:
        time.sleep(0.05)
    for state in states:
        if is_running(state):
            os.kill(state["pid"], signal.SIGKILL)
        path_of(Path(folder) / NODES, state["name"]).unlink(missing_ok=True)
    return told


def survey(folder: str | Path, addresses: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """What every node says of itself; of those that do not answer, what their folder says."""
    if addresses:
        states = [{"name": address, "http": address, "address": None} for address in addresses]
    else:
        states = read_states(Path(folder) / NODES) or read_states(folder)
        if not states:
            raise InvalidInput(f"{folder}: no node has left its state there; --at asks a page address instead")
    answers = ask([state["http"] for state in states if state["http"]], "/topology")
    told = dict(zip([state["name"] for state in states if state["http"]], answers, strict=True))
    nodes = []
    for state in states:
        answer = told.get(state["name"])
        if answer is None:
            gone = addresses is None and not is_running(state)
            answer = {**state, "status": ("left" if state.get("left") else "gone") if gone else "silent"}
        nodes.append(answer)
    return nodes


def wait_until_healthy(folder: str | Path, names: Sequence[str], patience_s: float = 60.0) -> int:
    """Wait for nodes to be part of the cluster; how many are."""
    deadline = time.monotonic() + patience_s
    wanted = set(names)
    while True:
        states = [state for state in read_states(Path(folder) / NODES) if state["name"] in wanted]
        answers = ask([state["http"] for state in states], "/healthz")
        well = len([answer for answer in answers if answer is not None and answer["status"] == "ok"])
        if well == len(wanted) or time.monotonic() > deadline:
            return well
        time.sleep(0.1)

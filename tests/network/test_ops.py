"""What is in `ops/` for Prometheus and Grafana, held to promtool and to a Prometheus that scrapes a cluster."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from omen.net.broker import Broker
from omen.net.observe.front_door import FrontDoorFacts
from omen.net.observe.http_server import answer
from omen.net.settings import LIVE, NodeConfig

OPS = Path(__file__).parents[2] / "ops"
DASHBOARD = json.loads((OPS / "grafana" / "omen.json").read_text())
QUICK = replace(LIVE, gossip_period=100_000, ready_rounds=1)
PATIENCE_S = 40.0


def tool(name: str) -> str:
    """A program of Debian's package `prometheus`; without it the test skips."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name}: apt-get install prometheus")
    return found


def check(*words: str, given: str | None = None) -> str:
    done = subprocess.run([tool("promtool"), *words], input=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def queries() -> list[str]:
    """What the panels of the dashboard ask for, every variable filled in."""
    found = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    return [query.replace("$instance", ".*").replace("$__rate_interval", "1m") for query in found]


def test_rules_and_settings_are_what_prometheus_reads_and_fire_when_they_should() -> None:
    assert "SUCCESS" in check("check", "config", str(OPS / "prometheus" / "prometheus.yml"))
    assert "SUCCESS" in check("test", "rules", str(OPS / "prometheus" / "alerts_test.yml"))


def test_every_metric_asked_for_in_rules_and_dashboard_is_one_that_nodes_have() -> None:
    async def page() -> str:
        async with Broker(NodeConfig(name="ann")) as ann:
            ann.front_door = FrontDoorFacts
            return answer(ann, "GET", "/metrics")[2]

    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", asyncio.run(page()), re.MULTILINE))
    parts = ("_bucket", "_sum", "_count")
    known = {*kinds, *(name + part for name, kind in kinds.items() if kind == "histogram" for part in parts)}
    rules = (OPS / "prometheus" / "alerts.yml").read_text()
    asked = set(
        re.findall(r"\b((?:omen|process)_[a-z_]+)\b", "\n".join([*queries(), *re.findall(r"expr: (.*)", rules)]))
    )
    assert len(asked) > 40 and asked <= known, asked - known


def test_panels_have_titles_ids_and_places_of_their_own() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    taken = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(taken)) == len(taken) and all(x < 24 for x, _ in taken)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def prometheus(folder: Path, targets: list[str]) -> Iterator[str]:
    """A Prometheus that scrapes these twice per second by the rules of `ops/`; its address."""
    settings = {
        "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
        "rule_files": [str(OPS / "prometheus" / "alerts.yml")],
        "scrape_configs": [{"job_name": "omen", "static_configs": [{"targets": targets}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(settings))  # JSON is YAML too
    address = f"127.0.0.1:{free_port()}"
    command = [tool("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=log, stderr=log)
    try:
        yield address
    finally:
        process.kill()
        process.wait()


async def ask(address: str, path: str) -> Any:
    """The data of an answer; None while there is none."""

    def read() -> Any:
        try:
            with urlopen(f"http://{address}{path}", timeout=10) as answered:
                return json.load(answered)["data"]
        except HTTPError as refused:
            if refused.code == HTTPStatus.SERVICE_UNAVAILABLE:
                return None
            raise AssertionError(f"{path}: {refused.read().decode()}") from refused
        except OSError:
            return None

    return await asyncio.to_thread(read)


async def query(address: str, expression: str) -> list[Any]:
    found = await ask(address, f"/api/v1/query?query={quote(expression)}")
    return [] if found is None else list(found["result"])


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():
            await asyncio.sleep(0.2)


def test_a_real_prometheus_scrapes_a_cluster_and_answers_every_panel_and_rule(tmp_path: Path) -> None:
    async def test() -> None:
        async with AsyncExitStack() as running:
            brokers: list[Broker] = []
            for name in ("ann", "bob", "cat"):
                join = tuple(broker.address for broker in brokers)
                config = NodeConfig(name=name, topics=("tea",), join=join, http="127.0.0.1:0", protocol=QUICK)
                brokers.append(await running.enter_async_context(Broker(config)))
            for _ in range(20):
                await brokers[0].publish("tea", b"green")
            address = running.enter_context(prometheus(tmp_path, [broker.http_address for broker in brokers]))

            async def joined() -> bool:
                found = await query(address, "sum(omen_node_joined)")
                return bool(found) and found[0]["value"][1] == "3"

            await until(joined)
            assert await query(address, "sum(omen_deliveries_total) == 60")
            assert len(await query(address, "omen_build_info{version!=''} * on (instance) up")) == 3
            for expression in queries():
                await query(address, expression)  # `ask` fails where Prometheus cannot make sense of it
            (group,) = (await ask(address, "/api/v1/rules"))["groups"]
            assert {rule["health"] for rule in group["rules"]} == {"ok"}, group
            assert not await query(address, "ALERTS{alertname!='OmenBackupSetsNotReady'}")
            await brokers[2].stop()
            await until(lambda: query(address, 'ALERTS{alertname="OmenNodeDown", alertstate="pending"}'))

    asyncio.run(test())


def test_a_node_tells_its_service_manager_that_it_is_ready_alive_and_stopping(tmp_path: Path) -> None:
    """As systemd would run it: `Type=notify` with a watchdog, SIGHUP to reload, SIGTERM to stop."""
    settings = tmp_path / "n1.toml"
    settings.write_text("name = 'n1'\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(tmp_path / "notify"))
        channel.settimeout(PATIENCE_S)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"}
        command = [sys.executable, "-m", "omen.cli", "node", "--config", str(settings), "--json"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as node:
            try:
                assert channel.recv(4096) == b"READY=1\nSTATUS=n1 has joined"
                assert [channel.recv(4096) for _ in range(3)] == [b"WATCHDOG=1"] * 3
                node.send_signal(signal.SIGHUP)
                _skip_to(channel, b"RELOADING=1")
                _skip_to(channel, b"READY=1")
                node.send_signal(signal.SIGTERM)
                _skip_to(channel, b"STOPPING=1")
                assert node.wait(PATIENCE_S) == 0
            finally:
                node.kill()


def _skip_to(channel: socket.socket, start: bytes) -> None:
    while not channel.recv(4096).startswith(start):
        pass

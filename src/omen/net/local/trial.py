"""A live cluster put to the test: nodes publish, some are killed, and what arrived is counted."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.net.broker import Broker, Origin
from omen.net.event_loop import run
from omen.net.inbox import Message
from omen.net.local.cluster import NODES, Plan, node_configs, survey, wait_until_healthy
from omen.net.local.forking import fork, plan_presets, preload
from omen.net.observe.logs import write_log
from omen.net.settings import NodeConfig

if TYPE_CHECKING:
    from omen.overlay import Overlay

PATIENCE_S = 120.0
QUIET_S = 2.0


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it. `due`: copies of publications of survivors, at the surviving subscribers."""

    nodes: int
    killed: list[str]
    repair_s: float
    repairs: int
    published: int
    due: int
    delivered: int
    lost: int
    duplicated: int
    links_before: float
    links_after: float


class Participant:
    """One process. SIGUSR1: publish; SIGUSR2: no more; SIGQUIT: write down what came, and end."""

    def __init__(self, broker: Broker, rate: float, report: Path) -> None:
        self._broker = broker
        self._pause_s = 1 / rate
        self._report = report
        self._published: dict[str, int] = {}
        self._received: dict[str, dict[str, list[int]]] = {}

    async def live(self) -> None:
        loop = asyncio.get_running_loop()
        begin, quiet, over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        for number, event in ((signal.SIGUSR1, begin), (signal.SIGUSR2, quiet), (signal.SIGQUIT, over)):
            loop.add_signal_handler(number, event.set)
        listening = asyncio.ensure_future(self._listen())
        publishing = asyncio.ensure_future(self._publish(begin, quiet))
        await over.wait()
        listening.cancel()
        publishing.cancel()
        facts = {"published": self._published, "received": self._received, "topics": self._broker.topics}
        self._report.write_text(json.dumps({"node": str(self._broker.node), **facts}))

    async def _listen(self) -> None:
        async for item in self._broker.messages():
            if isinstance(item, Message):
                streams = self._received.setdefault(item.topic, {})
                streams.setdefault(str(item.node), []).append(item.sequence)

    async def _publish(self, begin: asyncio.Event, quiet: asyncio.Event) -> None:
        await begin.wait()
        chosen = random.Random(self._broker.node)
        while not quiet.is_set():
            topic = chosen.choice(self._broker.topics)
            self._published[topic] = await self._broker.publish(topic, f"news of {topic}".encode())
            await asyncio.sleep(self._pause_s)


def _participate(config: NodeConfig, origin: Origin, rate: float, report: Path) -> None:
    write_log(config.log)

    async def live() -> None:
        broker = Broker(config, origin)
        await broker.start()
        await Participant(broker, rate, report).live()
        await broker.abandon()

    run(live())


@dataclass(frozen=True, slots=True)
class Audience:
    """`tell` hears what happens. `stay` is called when all is repaired: nodes publish until it returns."""

    tell: Callable[[str], None]
    stay: Callable[[], None]


def run_trial(
    folder: Path, topics: dict[str, list[str]], overlay: Overlay, kill: int, rate: float, audience: Audience
) -> Trial:
    """Start a node for each name on a designed overlay, publish, kill some at once, let them repair, count.

    `rate`: publications per second, all nodes together.
    """
    (folder / NODES).mkdir(parents=True, exist_ok=True)
    for former in folder.glob("*.report"):
        former.unlink()
    preload()
    configs = node_configs(folder, Plan(topics, f"trial-{os.getpid()}", "text"), NodeConfig(name="unnamed"))
    origins = plan_presets(overlay, configs)
    pids: dict[str, int] = {}
    try:
        for config, origin in zip(configs, origins, strict=True):
            be = partial(_participate, config, origin, rate / len(configs), folder / f"{config.name}.report")
            pids[config.name] = fork(be, folder / f"{config.name}.log", origin, origins)
        wait_until_healthy(folder, list(pids), PATIENCE_S)
        audience.tell(f"{len(pids)} nodes are up, each a process, over TCP")
        return _put_to_the_test(folder, pids, kill, rate, audience)
    finally:
        for pid in pids.values():
            _end(pid)


def _put_to_the_test(folder: Path, pids: dict[str, int], kill: int, rate: float, audience: Audience) -> Trial:
    before, tell = _look(folder, pids), audience.tell
    victims = _choose_victims(before, kill)
    watched = next(node["http"] for name, node in before.items() if name not in victims)
    tell(f"the live page of a node that stays: http://{watched}/")
    _signal(pids, signal.SIGUSR1)
    tell(f"all publish, {rate:.0f} publications per second")
    time.sleep(3.0)
    nodes = len(pids)
    for name in victims:
        os.kill(pids[name], signal.SIGKILL)
        os.waitpid(pids.pop(name), 0)
    tell(f"killed {', '.join(victims)} at once, without a word")
    repair_s = _wait_until_repaired(folder, pids, victims)
    tell(f"repaired {repair_s:.1f} s after")
    time.sleep(2.0)
    audience.stay()
    _signal(pids, signal.SIGUSR2)
    _wait_until_quiet(folder, pids)
    after = _look(folder, pids)
    _signal(pids, signal.SIGQUIT)
    survivors = sorted(pids)
    for name in survivors:
        os.waitpid(pids.pop(name), 0)
    reports = [json.loads((folder / f"{name}.report").read_text()) for name in survivors]
    published, due, delivered, lost, duplicated = _count(reports)
    repairs = sum(node["repairs"] for node in after.values())
    links = [sum(len(node["links"]) for node in seen.values()) / len(seen) for seen in (before, after)]
    return Trial(nodes, victims, repair_s, repairs, published, due, delivered, lost, duplicated, *links)


def _signal(pids: dict[str, int], number: signal.Signals) -> None:
    for pid in pids.values():
        os.kill(pid, number)


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def _look(folder: Path, pids: dict[str, int]) -> dict[str, dict[str, Any]]:
    """What running nodes say of themselves."""
    return {node["name"]: node for node in survey(folder) if node["name"] in pids and "links" in node}


def _choose_victims(seen: dict[str, dict[str, Any]], count: int) -> list[str]:
    """The hardest case: the node with the most links, and its successors on the ring, which would repair its loss."""
    busiest = max(sorted(seen), key=lambda name: len(seen[name]["links"]))
    return [busiest, *(name for name in seen[busiest]["successors"] if name in seen)][:count]


def _wait_until_repaired(folder: Path, pids: dict[str, int], victims: Sequence[str]) -> float:
    begun = time.monotonic()
    while time.monotonic() - begun < PATIENCE_S:
        seen = _look(folder, pids)
        known = {
            name for node in seen.values() for name in (*node["links"], *node["successors"], *node["predecessors"])
        }
        if len(seen) == len(pids) and known.isdisjoint(victims) and not any(node["busy"] for node in seen.values()):
            break
        time.sleep(0.1)
    return time.monotonic() - begun


def _wait_until_quiet(folder: Path, pids: dict[str, int]) -> None:
    begun = since = time.monotonic()
    before = -1
    while time.monotonic() - begun < PATIENCE_S and time.monotonic() - since < QUIET_S:
        delivered = sum(node["delivered"] for node in _look(folder, pids).values())
        if delivered != before:
            before, since = delivered, time.monotonic()
        time.sleep(0.2)


def _count(reports: Sequence[dict[str, Any]]) -> tuple[int, int, int, int, int]:
    """Published, due, delivered, lost, duplicated: all publications of survivors, at every surviving subscriber."""
    published = due = delivered = lost = duplicated = 0
    for publisher in reports:
        published += sum(publisher["published"].values())
        for subscriber in reports:
            for topic, last in publisher["published"].items():
                if topic not in subscriber["topics"]:
                    continue
                sequences = subscriber["received"].get(topic, {}).get(publisher["node"], [])
                due += last
                delivered += len(sequences)
                lost += last - len(set(sequences) & set(range(1, last + 1)))
                duplicated += len(sequences) - len(set(sequences))
    return published, due, delivered, lost, duplicated

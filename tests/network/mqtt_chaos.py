"""MQTT clients with sessions at a cluster whose nodes are killed again and again: is anything lost, or there twice?

    python -m tests.network.mqtt_chaos --nodes 12 --clients 300 --seconds 120 --kills 3

Each node is a process. Every client has a session, subscribes to a topic of its own, to a topic of its group and to a
wildcard, every third also to a shared subscription; it publishes with QoS 1 and 2, and connects to any other node when
its own is gone. Ten more have wills: they are lost with their node or of themselves, or say goodbye. Counted: messages
that were acknowledged to their publisher (PUBACK, PUBREC), and wills of lost clients, that did not come to a client
subscribed to them (lost); messages with QoS 2 that came twice to one client, or to two members of a share (duplicated);
wills of clients that said goodbye (unwanted); topics whose retained message is older at a node than the last that was
acknowledged; connections that did not find their session. `--restart`: at the end all nodes are killed and started
again, and every client must find its session and what was published last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.network.mqtt_clients import Client, Mortal, retained_at

GROUPS, SHARES = 10, 4
SETTLE_S = 20.0


class Node:
    """One process of the cluster, under the same name and ports whenever it is started."""

    def __init__(self, number: int, folder: Path, ports: list[int]) -> None:
        self.port = ports[2 * number + 1]
        self._config = folder / f"n{number}.toml"
        seeds = [f"127.0.0.1:{ports[2 * other]}" for other in range(min(3, len(ports) // 2)) if other != number]
        self._config.write_text(
            f'name = "n{number}"\nlisten = "127.0.0.1:{ports[2 * number]}"\nmqtt = "127.0.0.1:{self.port}"\n'
            f'join = {json.dumps(seeds)}\nstate = "{folder / "state"}"\n[limits]\njoin_timeout_s = 0\n'
        )
        self._log = (folder / f"n{number}.log").open("ab")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "omen.cli", "node", "--config", str(self._config)]
        self.process = subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


class Cluster:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.draw = random.Random(options.seed)
        self.options = options
        ports = _free_ports(2 * options.nodes)
        self.nodes = [Node(number, folder, ports) for number in range(options.nodes)]
        self.clients = [
            Client(f"c{number}", self._patterns(number), self._ports, self.draw) for number in range(options.clients)
        ]
        self.mortals = [
            Mortal(f"m{number}", f"group/{number % GROUPS}", self._ports, self.draw) for number in range(options.wills)
        ]
        self.retained_wrong = 0
        self.killed = 0

    def _ports(self) -> list[int]:
        return [node.port for node in self.nodes if node.process is not None]

    def _patterns(self, number: int) -> list[str]:
        group = number % GROUPS
        patterns = [f"own/{number}", f"group/{group}", f"wild/{group}/+"]
        return [*patterns, f"$share/s/{_shared(group)}"] if self.options.shares and _is_member(number) else patterns

    async def run(self) -> dict[str, Any]:
        for node in self.nodes:
            node.start()
            await asyncio.sleep(0.3)
        await asyncio.sleep(8)
        tasks = [asyncio.ensure_future(client.run()) for client in self.clients]
        while not all(client.is_ready for client in self.clients):
            await asyncio.sleep(0.5)
        dying = [asyncio.ensure_future(mortal.run()) for mortal in self.mortals]
        publishing = asyncio.ensure_future(self._publish())
        await asyncio.sleep(5)
        self.counted_from = time.time()
        end = time.time() + self.options.seconds
        while time.time() < end:
            await self._kill_some()
        for task in (publishing, *dying):
            task.cancel()
        if self.options.restart:
            await self._restart_all()
        await asyncio.sleep(SETTLE_S)
        await self._wait_for_all()
        await self._check_retained()
        for task in tasks:
            if task.done():
                task.result()  # a client that has ended would count as one that lacks nothing
            task.cancel()
        return self.verdict()

    async def _publish(self) -> None:
        pause = 1 / self.options.rate
        kinds = ["own", "group", "wild", "kept", *(["shared"] if self.options.shares else [])]
        while True:
            client = self.draw.choice(self.clients)
            other = self.draw.randrange(len(self.clients))
            kind, qos, group = self.draw.choice(kinds), self.draw.choice((1, 2)), other % GROUPS
            if kind == "kept":  # of one publisher each, so that it is known which was the last
                self.clients[group % len(self.clients)].publish(f"kept/{group}", qos, retain=True)
            else:
                topics = {"own": f"own/{other}", "group": f"group/{group}", "wild": f"wild/{group}/x"}
                client.publish(topics.get(kind, _shared(group)), qos)
            await asyncio.sleep(pause)

    async def _kill_some(self) -> None:
        chosen = self.draw.sample(self.nodes, self.draw.randint(1, self.options.kills))
        for node in chosen:
            node.kill()
        self.killed += len(chosen)
        await asyncio.sleep(self.options.down)
        for node in chosen:
            node.start()
        await asyncio.sleep(self.options.pause)

    async def _restart_all(self) -> None:
        await asyncio.sleep(self.options.quiet)
        for node in self.nodes:
            node.kill()
        await asyncio.sleep(2)
        for node in self.nodes:
            node.start()
        await asyncio.sleep(10)

    def _due(self) -> Iterator[tuple[list[Client], bytes]]:
        """What was acknowledged, and of which clients each one must have it; of a share any one."""
        by_topic: dict[str, list[Client]] = {}
        for number, client in enumerate(self.clients):
            for topic in (f"own/{number}", f"group/{number % GROUPS}", f"wild/{number % GROUPS}/x"):
                by_topic.setdefault(topic, []).append(client)
        for publisher in (*self.clients, *self.mortals):
            for payload, (topic, _, at) in publisher.acknowledged.items():
                if at < self.counted_from:
                    continue
                if topic.startswith("shared/"):
                    yield self._members(topic), payload
                else:
                    yield from (([client], payload) for client in by_topic.get(topic, ()))

    def _members(self, topic: str) -> list[Client]:
        return [client for client in self.clients if f"$share/s/{topic}" in client.patterns]

    async def _wait_for_all(self) -> None:
        end = time.time() + 60
        while time.time() < end and any(_lacks(clients, payload) for clients, payload in self._due()):
            await asyncio.sleep(2)

    async def _check_retained(self) -> None:
        """At every node the last that was sent of those acknowledged, or a later one, or one with QoS 1 that was sent
        again, and acknowledged, after it.
        """
        last: dict[str, tuple[int, float]] = {}
        for publisher in self.clients:
            for payload, (topic, _, at) in publisher.acknowledged.items():
                if topic.startswith("kept/"):
                    last[topic] = max(last.get(topic, (0, 0.0)), (int(payload.split()[1]), at))
        known = {payload: told for one in self.clients for payload, told in one.acknowledged.items()}
        for port in self._ports():
            found = await retained_at(port, "kept/+")
            for topic, (serial, at) in last.items():
                payload = found.get(topic, b"x 0 0")
                _, qos, later = known.get(payload, ("", 0, 0.0))
                self.retained_wrong += int(payload.split()[1]) < serial and not (qos == 1 and later > at)

    def verdict(self) -> dict[str, Any]:
        due = list(self._due())
        shared = {payload for clients, payload in due if len(clients) > 1}
        lost = [(clients[0], payload) for clients, payload in due if _lacks(clients, payload)]
        twice = [(client, payload) for client in self.clients for payload, n in client.got.items() if n > 1]
        members = Counter(payload for client in self.clients for payload in client.got if payload in shared)
        twice += [(self.clients[0], payload) for payload, n in members.items() if n > 1]
        forbidden = {payload for mortal in self.mortals for payload in mortal.forbidden}
        unwanted = [(client, one) for client in self.clients for one in client.got if one in forbidden]
        for what, found in (("lost", lost), ("twice", twice), ("unwanted", unwanted)):
            self._tell(what, found)
        return {
            "nodes": len(self.nodes),
            "clients": len(self.clients),
            "seconds": self.options.seconds,
            "killed": self.killed,
            "acknowledged": sum(len(client.acknowledged) for client in self.clients),
            "due": len(due),
            "lost_qos_1": _count(lost, "1"),
            "lost_qos_2": _count(lost, "2"),
            "duplicated_qos_1": _count(twice, "1"),
            "duplicated_qos_2": _count(twice, "2"),
            "shared": len(shared),
            "shared_lost": sum(payload in shared for _, payload in lost),
            "shared_twice": sum(payload in shared for _, payload in twice),
            "wills": sum(len(mortal.acknowledged) for mortal in self.mortals),
            "wills_lost": sum(payload.startswith(b"m") for _, payload in lost),
            "wills_unwanted": len(unwanted),
            "retained_wrong": self.retained_wrong,
            "connections": sum(client.connections for client in self.clients),
            "sessions_not_found": sum(client.sessions_lost for client in self.clients),
        }

    def _tell(self, what: str, found: list[tuple[Client, bytes]]) -> None:
        """How each came about, on the standard error: what every client saw of the message."""
        for client, payload in found[: self.options.tell]:
            print(f"{what}: {payload.decode()} at {client.name}", file=sys.stderr)
            told = [line for one in (*self.clients, *self.mortals) for line in one.history.get(payload, ())]
            near = [line for line in told if payload.decode().split()[0] in line or client.name in line]
            for line in sorted(near if len(told) > 20 else told):
                print(f"  {line}", file=sys.stderr)

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()


def _shared(group: int) -> str:
    return f"shared/{group % SHARES}"


def _is_member(number: int) -> bool:
    return number % 3 == 0


def _lacks(clients: list[Client], payload: bytes) -> bool:
    return not any(client.got[payload] for client in clients)


def _count(found: list[tuple[Client, bytes]], qos: str) -> int:
    return sum(payload.split()[2].decode() == qos for _, payload in found)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


FATAL = ("lost_qos_1", "lost_qos_2", "duplicated_qos_2", "wills_unwanted", "retained_wrong", "sessions_not_found")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--clients", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--rate", type=float, default=30, help="messages per second in all")
    parser.add_argument("--kills", type=int, default=1, help="nodes killed at once, at most")
    parser.add_argument("--down", type=float, default=3, help="seconds until they are started again")
    parser.add_argument("--pause", type=float, default=12, help="seconds until the next are killed")
    parser.add_argument("--wills", type=int, default=10, help="clients that have a will, and are lost or say goodbye")
    parser.add_argument("--shares", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--restart", action="store_true")
    parser.add_argument("--quiet", type=float, default=3, help="seconds without a publication before the restart")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tell", type=int, default=20, help="how many of each finding to tell the story of")
    parser.add_argument("--keep", type=Path, help="a folder for settings and logs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        cluster = Cluster(options, folder)
        try:
            found = asyncio.run(cluster.run())
        finally:
            cluster.stop()
    print(json.dumps(found))
    return 1 if any(found[what] for what in FATAL) else 0


if __name__ == "__main__":
    sys.exit(main())

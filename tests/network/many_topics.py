"""Nodes with very many topics each form one overlay, at default limits, and publications cross it.

    python -m tests.network.many_topics [--nodes 50] [--topics 20000] [--of 50000] [--processes 5] [--minutes 7]

Each node draws its topics from `--of`. They join one after the other, some brokers in each process. Exit code 0: within
the time all have joined, every topic is connected by links that are up at both ends, no connection was refused, and a
publication on each of a few topics reached all its subscribers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from omen.net.broker import Broker
from omen.net.inbox import Message
from omen.net.settings import NodeConfig

ROOT = Path(__file__).parents[2]
TRIED = 20


def topics_of(number: int, count: int, pool: int) -> list[int]:
    return sorted(random.Random(number).sample(range(pool), count))


class Worker:
    """Some of the brokers, told what to do by lines."""

    def __init__(self, count: int, pool: int) -> None:
        self._count, self._pool = count, pool
        self.brokers: dict[int, Broker] = {}
        self.heard: dict[int, set[str]] = {}

    async def start(self, number: int, join: str) -> dict[str, Any]:
        topics = tuple(f"t{topic}" for topic in topics_of(number, self._count, self._pool))
        broker = Broker(NodeConfig(name=f"n{number}", topics=topics, join=(join,) if join else ()))
        begun = time.monotonic()
        await broker.start()
        self.brokers[number] = broker
        self.heard[number] = set()
        asyncio.get_running_loop().create_task(self._listen(number, broker))
        return {"address": broker.address, "seconds": time.monotonic() - begun}

    async def _listen(self, number: int, broker: Broker) -> None:
        async for item in broker.messages():
            if isinstance(item, Message):
                self.heard[number].add(item.topic)

    async def publish(self, number: int, topics: list[int]) -> dict[str, Any]:
        for topic in topics:
            await self.brokers[number].publish(f"t{topic}", b"heard?")
        return {}

    def show(self) -> dict[str, Any]:
        nodes = {}
        for number, broker in self.brokers.items():
            status = broker.status()
            nodes[number] = {
                "links": [broker.driver.peers.label_of(node) for node in status.neighbours()],  # type: ignore[union-attr]
                "joined": broker.is_joined and not status.waiting,
                "busy": status.busy,
                "refused": dict(broker.admission.refused),
                "heard": sorted(self.heard[number]),
                "incarnation": status.ref.incarnation,
            }
        return {"nodes": nodes, "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            told = json.loads(line)
            if told["do"] == "start":
                answer = await self.start(told["number"], told["join"])
            elif told["do"] == "publish":
                answer = await self.publish(told["number"], told["topics"])
            else:
                answer = self.show()
            print(json.dumps(answer), flush=True)


class Process:
    """A worker as its parent sees it."""

    def __init__(self, count: int, pool: int) -> None:
        command = [sys.executable, "-m", "tests.network.many_topics", "--worker", str(count), str(pool)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, text=True, cwd=ROOT
        )

    def tell(self, **command: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


def split_topics(nodes: dict[int, dict[str, Any]], topics: dict[int, list[int]]) -> int:
    """How many topics are in several pieces, over links that both ends have."""
    pairs = {(number, int(other[1:])) for number, node in nodes.items() for other in node["links"]}
    links = [(one, other) for one, other in pairs if one < other and (other, one) in pairs]
    piece: dict[tuple[int, int], tuple[int, int]] = {}

    def find(place: tuple[int, int]) -> tuple[int, int]:
        while (above := piece.get(place, place)) != place:
            piece[place] = piece.get(above, above)
            place = above
        return place

    sets = {number: set(each) for number, each in topics.items()}
    for one, other in links:
        for topic in sets[one] & sets[other]:
            piece[find((topic, one))] = find((topic, other))
    roots: dict[int, set[tuple[int, int]]] = {}
    for number, each in topics.items():
        for topic in each:
            roots.setdefault(topic, set()).add(find((topic, number)))
    return sum(len(found) > 1 for found in roots.values())


def run_all(nodes: int, count: int, pool: int, processes: int, minutes: float) -> dict[str, Any]:
    workers = [Process(count, pool) for _ in range(processes)]
    deadline = time.monotonic() + 60 * minutes
    topics = {number: topics_of(number, count, pool) for number in range(nodes)}
    begun, join, joins = time.monotonic(), "", []
    try:
        for number in range(nodes):
            if time.monotonic() > deadline:
                break
            answer = workers[number % processes].tell(do="start", number=number, join=join)
            join = join or answer["address"]
            joins.append(answer["seconds"])
            print(f"n{number} has joined after {answer['seconds']:.1f} s", file=sys.stderr, flush=True)
        topics = {number: topics[number] for number in range(len(joins))}
        shown: dict[int, dict[str, Any]] = {}
        split = -1
        while time.monotonic() < deadline + 60:
            answers = [worker.tell(do="show") for worker in workers]
            shown = {int(number): node for answer in answers for number, node in answer["nodes"].items()}
            split = split_topics(shown, topics)
            if not split and all(node["joined"] and not node["busy"] for node in shown.values()):
                break
            time.sleep(3.0)
        formed_s = time.monotonic() - begun
        tried = topics[0][:: max(1, count // TRIED)][:TRIED]
        workers[0].tell(do="publish", number=0, topics=tried)
        due = {(number, topic) for number, each in topics.items() if number for topic in set(each) & set(tried)}
        until = time.monotonic() + 30
        missing = due
        while missing and time.monotonic() < until:
            time.sleep(1.0)
            answers = [worker.tell(do="show") for worker in workers]
            shown = {int(number): node for answer in answers for number, node in answer["nodes"].items()}
            missing = {(number, topic) for number, topic in due if f"t{topic}" not in shown[number]["heard"]}
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
    refused: dict[str, int] = {}
    for node in shown.values():
        for reason, times in node["refused"].items():
            refused[reason] = refused.get(reason, 0) + times
    degrees = [len(node["links"]) for node in shown.values()]
    return {
        "nodes": len(joins),
        "topics_each": count,
        "of": pool,
        "formed_s": round(formed_s, 1),
        "longest_join_s": round(max(joins), 1),
        "split_topics": split,
        "busy": sum(node["busy"] for node in shown.values()),
        "links": sum(degrees) // 2,
        "most_links": max(degrees, default=0),
        "refused": refused,
        "due": len(due),
        "missing": len(missing),
        "memory_mb": [round(answer["memory_mb"]) for answer in answers],
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--topics", type=int, default=20_000)
    parser.add_argument("--of", type=int, default=50_000)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=7.0)
    parser.add_argument("--worker", nargs=2, type=int, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.worker:
        asyncio.run(Worker(*told.worker).serve())
        return 0
    found = run_all(told.nodes, told.topics, told.of, told.processes, told.minutes)
    print(json.dumps(found))
    whole = found["nodes"] == told.nodes and not found["split_topics"] and not found["missing"]
    return 0 if whole and not found["refused"] else 1


if __name__ == "__main__":
    sys.exit(main())

"""What certificates and signatures cost a live overlay: the same publications with and without them, by turns.

python -m bench.net_tls [--payload 100] [--turns 5]: added to bench/results/net.json. Three brokers in one process, so
that all that is spent, at both ends of each link, is the processor time of this process: whatever else the machine does
has little part in it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import RESULTS, machine_facts
from omen.net.broker import Broker
from omen.net.event_loop import run
from omen.net.inbox import Message
from omen.net.security.config import Security
from omen.net.security.key_files import make_authority, make_cluster_keys, make_node, security_from
from omen.net.settings import NodeConfig

NODES = ("ann", "bob", "cid")
PUBLICATIONS = {100: 40_000, 10_000: 8_000}
AT_ONCE = 500  # published before everybody is waited for, so that no queue overflows
WARM = 1_000


async def _hear(broker: Broker, count: int) -> None:
    async for item in broker.messages():
        assert isinstance(item, Message)
        count -= 1
        if not count:
            return


async def _publish(brokers: list[Broker], payload: bytes, count: int) -> None:
    first, *others = brokers
    for _ in range(0, count, AT_ONCE):
        hearing = [asyncio.ensure_future(_hear(broker, AT_ONCE)) for broker in others]
        for _ in range(AT_ONCE):
            await first.publish("t", payload)
        await asyncio.gather(*hearing)


def spend(security: dict[str, Security], payload: int, count: int) -> tuple[float, float]:
    """Deliveries per processor-second, and per second."""

    async def measure() -> tuple[float, float]:
        brokers: list[Broker] = []
        for name in NODES:
            join = tuple(broker.address for broker in brokers[:1])
            topics = ("t",) if brokers else ()
            brokers.append(Broker(NodeConfig(name=name, topics=topics, join=join, security=security[name])))
            await brokers[-1].start()
        await brokers[0].carry("t")
        await _publish(brokers, bytes(payload), WARM)
        spent, begun = time.process_time(), time.perf_counter()
        await _publish(brokers, bytes(payload), count)
        spent, took = time.process_time() - spent, time.perf_counter() - begun
        for broker in brokers:
            await broker.abandon()
        return 2 * count / spent, 2 * count / took

    return run(measure())


def _signing(folder: Path, name: str) -> Security:
    """Every publication is signed, and verified by each node it reaches."""
    return replace(security_from(folder, name), sign=True, verify="require")


def compare(payload: int, turns: int) -> dict[str, Any]:
    """Medians over turns; each turn measures all."""
    count = PUBLICATIONS.get(payload, 10_000)
    found: dict[str, list[tuple[float, float]]] = {"plain": [], "tls": [], "signed": [], "ed25519": []}
    with tempfile.TemporaryDirectory() as folder:
        make_cluster_keys(Path(folder), "omen", NODES)
        other = Path(folder) / "ed25519"
        authority = make_authority(other, "omen", 30)
        for name in NODES:
            make_node(other, authority, "omen", name, 30, "ed25519")
        ways = {
            "plain": dict.fromkeys(NODES, Security()),
            "tls": {name: security_from(Path(folder), name) for name in NODES},
            "signed": {name: _signing(Path(folder), name) for name in NODES},
            "ed25519": {name: _signing(other, name) for name in NODES},
        }
        for _ in range(turns):
            for way, security in ways.items():
                found[way].append(spend(security, payload, count))
    facts: dict[str, Any] = {"payload": payload, "publications": count, "turns": turns}
    for way, results in found.items():
        facts[f"{way}_per_processor_s"] = median(spent for spent, _ in results)
        facts[f"{way}_per_s"] = median(took for _, took in results)
    return facts | {"load_average": machine_facts()["load_average"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payload", action="append", type=int)
    parser.add_argument("--turns", type=int, default=5)
    told = parser.parse_args()
    path = RESULTS / "net.json"
    for payload in told.payload or (100, 10_000):
        found = compare(payload, told.turns)
        print(json.dumps(found), flush=True)
        kept = json.loads(path.read_text())
        others = [row for row in kept.get("tls", []) if row["payload"] != payload]
        kept["tls"] = sorted([*others, found], key=lambda row: row["payload"])
        path.write_text(json.dumps(kept, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A cluster in a process that can import neither numba nor numpy: it starts, loses a node, repairs, and delivers."""

from __future__ import annotations

import subprocess
import sys

CLUSTER = """
import asyncio, sys
sys.modules.update(dict.fromkeys(("numba", "numpy", "llvmlite")))  # None: importing it raises
from dataclasses import replace
from omen.net.broker import Broker
from omen.net.settings import LIVE, NodeConfig

QUICK = replace(LIVE, gossip_period=100_000, ready_rounds=2, suspicion_time=500_000)
TOPICS = tuple(f"t{number}" for number in range(100))

async def main():
    async with asyncio.timeout(60):
        nodes = [Broker(NodeConfig(name="n0", topics=TOPICS, protocol=QUICK))]
        await nodes[0].start()
        for name in ("n1", "n2", "n3", "n4"):
            nodes.append(Broker(NodeConfig(name=name, topics=TOPICS[::2], join=(nodes[0].address,), protocol=QUICK)))
            await nodes[-1].start()
        lost = nodes.pop(2)
        await lost.abandon()
        while any(lost.node in node.status().links or node.status().busy for node in nodes):
            await asyncio.sleep(0.05)
        await nodes[0].publish("t50", b"there")
        async for message in nodes[-1].messages():
            print(message.payload.decode(), sum(node.driver.engine_times.count for node in nodes) > 0)
            print(sum(node.driver.counters.core_errors for node in nodes))
            break
        for node in nodes:
            await node.stop()

asyncio.run(main())
"""


def test_a_node_repairs_without_compiled_code() -> None:
    found = subprocess.run([sys.executable, "-c", CLUSTER], capture_output=True, text=True, timeout=90, check=False)
    assert found.stdout.split() == ["there", "True", "0"], found.stderr

"""Three honest nodes in a process of their own, with honest traffic between them, for others to attack.

    python -m tests.network.besieged FOLDER open|secret|tls

Commands come as JSON lines: `mark` (what has happened since the last one, once all that was published has arrived),
`payload` (of this size from now on), `mutate` (hand one node mutated frames as if a peer had sent them), `end`.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from omen.net.broker import Broker
from omen.net.event_loop import run
from omen.net.inbox import Message
from omen.net.observe.logs import write_log
from omen.net.security.config import Rule, Security
from omen.net.security.hello import Hello
from omen.net.security.key_files import make_cluster_keys, make_secret, security_from
from omen.net.settings import LIVE, Limits, NodeConfig
from omen.net.transport import peers
from omen.protocol.membership.ring import place_of

from .fuzz import mutate, sample_frames

ROOT = Path(__file__).parents[2]
HONEST = ("ann", "bob", "cid")
TOPIC = "tea"
MEMBERS = (*HONEST, "eve-*", "liar")
TIGHT = Limits(
    payload_bytes=1 << 19,
    frame_bytes=1 << 20,
    queue_bytes=2 << 20,
    urgent_queue_bytes=4 << 20,
    frames_per_s=20_000,
    messages_per_s=200,
    connections=200,
    connections_per_address=100,
    half_open=64,
    half_open_per_address=32,
    hello_timeout_s=3.0,
    frame_timeout_s=2.0,
    stall_timeout_s=2.0,
)
RULES = (Rule((TOPIC,), ("ann", "bob", "cid", "eve-*"), ("ann", "bob", "cid", "eve-*")), Rule(("*",), ("*",), ("*",)))
RATES = {"ann": 150.0, "bob": 50.0}
DRAIN_S = 20.0


def make_keys(folder: Path, mode: str) -> None:
    if mode == "secret":
        make_secret(folder / "secret")
    elif mode == "tls":
        make_cluster_keys(folder, "omen", MEMBERS)


def security_of(folder: Path, mode: str, name: str) -> Security:
    if mode == "secret":
        return Security(secrets=(str(folder / "secret"),))
    return security_from(folder, name) if mode == "tls" else Security()


class Traffic:
    """What honest nodes say and hear: who lacks what, how late it came."""

    def __init__(self, brokers: list[Broker]) -> None:
        self.brokers = brokers
        self.published: Counter[str] = Counter()
        self.heard: dict[str, dict[tuple[int, int], list[int]]] = {broker.name: defaultdict(list) for broker in brokers}
        self.late_ms: list[float] = []
        self.said: dict[tuple[int, int], int] = {}
        self.payload = 100

    async def publish(self, broker: Broker, rate: float) -> None:
        while True:
            await asyncio.sleep(1 / rate)
            sequence = await broker.publish(TOPIC, time.monotonic_ns().to_bytes(8, "big") + bytes(self.payload - 8))
            self.said[broker.node, broker.status().ref.incarnation] = sequence
            self.published[broker.name] += 1

    async def listen(self, broker: Broker) -> None:
        honest = {place_of(name) for name in HONEST}
        async for item in broker.messages():
            if isinstance(item, Message) and item.node in honest:
                self.heard[broker.name][item.node, item.incarnation].append(item.sequence)
                late = time.monotonic_ns() - int.from_bytes(item.payload[:8], "big")
                if item.node != broker.node:
                    self.late_ms.append(late / 1e6)

    def disorder(self) -> int:
        """Deliveries that came twice or too late."""
        return sum(
            later <= earlier
            for heard in self.heard.values()
            for sequences in heard.values()
            for earlier, later in pairwise(sequences)
        )

    async def mark(self) -> dict[str, Any]:
        deadline = time.monotonic() + DRAIN_S
        before = dict(self.said)
        while time.monotonic() < deadline:
            if all(len(heard[stream]) >= last for heard in self.heard.values() for stream, last in before.items()):
                break
            await asyncio.sleep(0.02)
        lacking = sum(
            len(set(range(1, last + 1)) - set(heard[stream]))
            for heard in self.heard.values()
            for stream, last in before.items()
        )
        late = sorted(self.late_ms)
        self.late_ms = []
        refused: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for broker in self.brokers:
            assert broker.driver is not None
            status, admission = broker.status(), broker.admission
            refused.update(admission.refused)
            counts.update(admission.access.denied)
            for part in (admission.counters, broker.driver.counters):
                counts.update(msgspec.structs.asdict(part))
            counts.update({f"dropped {reason}": count for reason, count in status.refused.items()})
            counts["impossible"] += status.dissemination.refused
        memory = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        return {
            "up": all(broker.is_joined for broker in self.brokers),
            "published": sum(self.published.values()),
            "lacking": lacking,
            "disorder": self.disorder(),
            "deliveries": len(late),
            "p50_ms": late[len(late) // 2] if late else 0.0,
            "p99_ms": late[int(len(late) * 0.99)] if late else 0.0,
            "memory_mb": memory / 1e6,
            "refused": refused,
            "counts": counts,
            "open": sum(len(broker.admission.inbound) for broker in self.brokers),
        }


class Stranger:
    """In place of a connection: a peer whose frames are handed over one by one, refused or not."""

    def __init__(self) -> None:
        self.refusals: Counter[str] = Counter()
        self.go_by("eve-0")

    def go_by(self, name: str) -> None:
        self.peer = Hello("omen", place_of(name), name, 1, "127.0.0.66:1", 1, 1)

    def refuse(self, refusal: Any) -> None:
        self.refusals[refusal.reason] += 1


async def hand_over(broker: Broker, count: int, seed: int) -> dict[str, Any]:
    """Mutated frames of every kind, each interpreted by itself while the traffic goes on."""
    draw = random.Random(seed)
    samples = list(sample_frames(draw, 10))
    stranger: Any = Stranger()
    assert broker.driver is not None
    failures = broker.driver.counters.core_errors
    for number in range(count):
        frame = mutate(draw.choice(samples), draw) or b"\x00"
        if number % 8 == 0:  # another one before this one is dropped
            stranger.go_by(f"eve-{number}")
        broker.driver.on_peer_frames(stranger.peer.node, [frame], stranger)
        if number % 20 == 0:
            await asyncio.sleep(0)
    failed = broker.driver.counters.core_errors - failures
    return {"refusals": stranger.refusals, "failures": failed, "dropped": broker.status().refused}


async def live(folder: Path, mode: str) -> None:
    peers.SWEEP_S = 0.25
    windows = replace(LIVE.dissemination, total_window_bytes=2 << 20)  # what windows hold is no cost of an attack
    quick = replace(LIVE, gossip_period=100_000, ready_rounds=2, dissemination=windows)
    rules = RULES if mode == "tls" else ()
    brokers: list[Broker] = []
    for name in HONEST:
        join = tuple(broker.address for broker in brokers[:1])
        security = security_of(folder, mode, name)
        config = NodeConfig(name=name, topics=(TOPIC,), join=join, protocol=quick, limits=TIGHT, security=security)
        brokers.append(Broker(replace(config, access=rules)))
        await brokers[-1].start()
    traffic = Traffic(brokers)
    jobs = [traffic.publish(broker, RATES[broker.name]) for broker in brokers if broker.name in RATES]
    jobs += [traffic.listen(broker) for broker in brokers]
    tasks = [asyncio.ensure_future(job) for job in jobs]
    print(json.dumps({broker.name: broker.address for broker in brokers}), flush=True)
    loop = asyncio.get_running_loop()
    while True:
        line = await loop.run_in_executor(None, sys.stdin.readline)
        command = json.loads(line or '{"do": "end"}')
        if command["do"] == "end":
            break
        if command["do"] == "mutate":
            answer = await hand_over(brokers[0], command["count"], command["seed"])
        elif command["do"] == "payload":
            traffic.payload, answer = command["size"], {}
        else:
            answer = await traffic.mark()
        print(json.dumps(answer), flush=True)
    for task in tasks:
        task.cancel()
    for broker in brokers:
        await broker.abandon()


@dataclass
class Siege:
    """The attackers' side. `address_of`: where the honest nodes listen."""

    mode: str
    folder: Path
    address_of: dict[str, str]
    process: subprocess.Popen[str]

    def tell(self, **command: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def mark(self) -> dict[str, Any]:
        return self.tell(do="mark")


@contextmanager
def besieged(folder: Path, mode: str) -> Iterator[Siege]:
    """Honest nodes to attack."""
    make_keys(folder, mode)
    command = [sys.executable, "-m", "tests.network.besieged", str(folder), mode]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT
        )
    try:
        assert process.stdout is not None
        yield Siege(mode, folder, json.loads(process.stdout.readline()), process)
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    write_log("text")
    run(live(Path(sys.argv[1]), sys.argv[2]))

"""Nine nodes, each a process of its own, under a minute of each attack by one member, and a minute after it.

    python -m tests.network.sieges [--attack NAME ...] [--seconds 60] [--after 60] [--nodes 9] [--source DIR]

`--source`: the sources that the nodes run by, for instance those of a former version. Must hold: no honest publication
is lost; of all that was said during the attack, whenever it came, the 99th percentile is at most doubled, or 50 ms; no
node's resident memory is ever 64 MB above what it was; what it keeps of others is back within a tenth a
minute later; the attack took place. Exit code 1: it does not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omen.net.names import split_address, topic_key
from omen.net.security.hello import write_hello
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import EventId, EventKind
from omen.protocol.messages.overlay import (
    Descriptor,
    Descriptors,
    Digest,
    DigestOffer,
    IndirectPing,
    LossReport,
    PathProbe,
    Ping,
    Ref,
    RingWalk,
    Status,
)
from omen.protocol.messages.publications import Announce, StreamMark, make_publication, stream_key

from .attackers import Attacker, hello_of

ROOT = Path(__file__).parents[2]
NODES = 9
SETTLE_S, BEFORE_S, AFTER_S = 5.0, 15.0, 60.0
HIGHEST = 1 << 48
GROWTH_BYTES, P99_MS = 64 << 20, 50.0
TEA = topic_key("tea")
SILENT_PORT = 39_177
"""Where connections are taken, at all of 127.0.0.0/8, and nothing is said."""


@dataclass
class Target:
    """A node to attack, and the process it lives in."""

    name: str
    address: str
    http: str
    process: subprocess.Popen[str]

    def mark(self, command: str = "mark") -> dict[str, Any]:
        """What has happened since the last mark; or have it speak from now on."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


class Member:
    """One that has all keys. Where it is dropped it comes again under another name, as often as it is let in."""

    def __init__(self, target: Target, what: str) -> None:
        self._target, self._what = target, what
        self._attacker: Attacker | None = None
        self.me = Ref(0, 0, "")
        self.names = 0
        self.sent = 0

    async def connect(self) -> None:
        if self._attacker is not None:
            self._attacker.close()
        self.names += 1
        name = f"{self._what}{self.names}"
        self._attacker = attacker = await Attacker.dial(self._target.address, f"127.0.7.{1 + self.names % 250}")
        if await asyncio.wait_for(attacker.greet(hello_of(name)), 5.0) is None:
            raise ConnectionError("refused")
        self.me = Ref(place_of(name), attacker.incarnation, "127.0.0.66:1")
        with suppress(TimeoutError, asyncio.IncompleteReadError, ValueError):
            await asyncio.wait_for(attacker.become_neighbour(name, TEA), 5.0)
        attacker.reader = asyncio.StreamReader()  # what it is told from now on goes nowhere
        attacker.writer.transport.set_protocol(_Deaf())
        attacker.sent = b""

    async def say(self, *frames: Any) -> None:
        """Messages, or frames as bytes; what the node does not read yet is waited for."""
        attacker = self._attacker
        if attacker is None or attacker.writer.transport.is_closing():
            await asyncio.sleep(0.2)
            await self.connect()
            return
        for frame in frames:
            attacker.send_frame(frame) if isinstance(frame, bytes) else attacker.say(frame)
        self.sent += len(attacker.sent)
        attacker.sent = b""
        while attacker.writer.transport.get_write_buffer_size() > 1 << 20:
            await asyncio.sleep(0.05)
            if attacker.writer.transport.is_closing():
                return

    def close(self) -> None:
        if self._attacker is not None:
            self._attacker.close()


class _Deaf(asyncio.Protocol):
    """Takes what comes, and forgets it."""


Attack = Callable[[Member, int], Awaitable[None]]
"""What a member says in one tenth of a second; which one is told."""


async def storm(member: Member, tick: int) -> None:
    """400 probes of paths at once, with as many hops as there is room for."""
    if tick % 10 == 0:
        await member.say(*(PathProbe(1, 2, 1000 * tick + nonce, HIGHEST, (TEA,)) for nonce in range(400)))


async def descriptors(member: Member, tick: int) -> None:
    """2.4 MB per second of descriptors of nodes that are not there."""
    for number in range(5):
        ref = Ref(place_of(f"made up {tick} {number}"), 1, "127.0.0.66:1")
        topics = tuple(range(tick * 100_000 + number * 5_000, tick * 100_000 + (number + 1) * 5_000))
        await member.say(Descriptors((Descriptor(Digest(ref, 1, 1), topics, ()),)))


async def changing(member: Member, tick: int) -> None:
    """5,000 topics, one of them another twice per second."""
    if tick % 5 == 0:
        topics = (TEA, *range(tick, tick + 5_000))
        await member.say(Descriptors((Descriptor(Digest(member.me, 10 + tick, 10 + tick), topics, ()),)))


async def dials(member: Member, tick: int) -> None:
    """Probes and digests that lead to nodes which take a connection and say nothing: 900 per second."""
    for number in range(30):
        each = tick * 30 + number
        there = Ref(place_of(f"x{each}"), 1, f"127.66.{each // 250 % 250}.{1 + each % 250}:{SILENT_PORT}")
        mine = Digest(member.me, 1, 1)
        await member.say(
            Ping(1, there), IndirectPing(1, member.me, there), DigestOffer((mine, Digest(there, 1, 1)), (), True)
        )


async def nonsense(member: Member, tick: int) -> None:
    """Frames that are no message, and messages in the name of others."""
    await member.say(Status(Digest(Ref(place_of("n4"), HIGHEST % 7, ""), 1, 1), (), ()))
    await member.say(os.urandom(60))


async def streams(member: Member, tick: int) -> None:
    """Announcements of streams that are none, and publications of publishers that are none."""
    marks = tuple(StreamMark(place_of(f"p{tick}-{each}"), 1, 1, 1, 1 << 40, -1, 0) for each in range(4))
    await member.say(Announce(((TEA, marks),), compare=False))
    for each in range(5):
        key = stream_key(TEA, place_of(f"q{tick}-{each}"), 1)
        await member.say(make_publication(key, 7 + each, bytes(100), opening=False).frame)


async def errands(member: Member, tick: int) -> None:
    """1,000 messages per second that others would have to pass on, with as many hops as there is room for."""
    for number in range(50):
        event = EventId(place_of(f"gone{tick}-{number}"), 1, EventKind.JOIN)
        loss = EventId(place_of(f"gone{tick}-{number}"), 1, EventKind.LEAVE)
        walk = RingWalk(event, member.me, (TEA,), (), (), HIGHEST, tick * 100 + number + 1)
        await member.say(walk, LossReport(loss, member.me, (TEA,)))


ATTACKS: dict[str, Attack] = {
    attack.__name__: attack  # type: ignore[attr-defined]
    for attack in (storm, descriptors, changing, dials, nonsense, streams, errands)
}


async def hellos(targets: list[Target], until: float) -> int:
    """Hellos of another cluster, and silent connections, to nodes and to their pages."""
    silent: list[Attacker] = []
    count = 0
    while time.monotonic() < until:
        for target in targets:
            count += 1
            with suppress(OSError, TimeoutError):
                attacker = await Attacker.dial(target.address, f"127.0.9.{1 + count % 4}")
                attacker.send(write_hello(hello_of(f"eve-{count}", cluster="elsewhere")))
                silent.append(attacker)
                host, port = split_address(target.http)
                reader, writer = await asyncio.open_connection(host, port)
                silent.append(Attacker(reader, writer))
        while len(silent) > 400:
            silent.pop(0).close()
        await asyncio.sleep(0.05)
    for attacker in silent:
        attacker.close()
    return count * 60


async def _keep_silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(20.0)
    writer.close()


async def besiege(targets: list[Target], what: str, seconds: float) -> int:
    """Bytes that were sent. One member is a neighbour of three nodes."""
    until = time.monotonic() + seconds
    if what == "hellos":
        return await hellos(targets, until)
    silent = await asyncio.start_server(_keep_silent, "0.0.0.0", SILENT_PORT, backlog=1000)
    members = [Member(target, f"eve-{what}-{target.name}-") for target in targets[::3]]
    tick = 0
    while time.monotonic() < until:
        begun = time.monotonic()
        for member in members:
            with suppress(OSError, TimeoutError):
                await ATTACKS[what](member, tick)
        tick += 1
        await asyncio.sleep(max(0.0, 0.1 - (time.monotonic() - begun)))
    for member in members:
        member.close()
    silent.close()
    return sum(member.sent for member in members)


@contextmanager
def cluster(source: Path, nodes: int) -> Iterator[list[Target]]:
    targets: list[Target] = []
    environment = {**os.environ, "PYTHONPATH": str(source)}
    script = str(Path(__file__).with_name("sieged_node.py"))
    try:
        for number in range(nodes):
            command = [sys.executable, script, f"n{number}", *(target.address for target in targets[:1])]
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment,
            )
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            targets.append(Target(f"n{number}", told["address"], told["http"], process))
        yield targets
    finally:
        for target in targets:
            target.process.kill()
            target.process.wait()


def percentile(marks: list[dict[str, Any]], begin: float = 0.0, end: float = float("inf")) -> float:
    """Of what was said in this time, and heard by these marks."""
    late = sorted(late for mark in marks for said, late in mark["late_ms"] if begin <= said <= end)
    return late[int(len(late) * 0.99)] if late else 0.0


def lost(marks: list[dict[str, Any]], former: list[dict[str, Any]]) -> int:
    """What was said before the last mark but one, by nodes that are there still, and not heard by all."""
    said = {stream: last for mark in former for stream, last in mark["said"].items()}
    return sum(max(0, last - mark["heard"].get(stream, (0, 0))[0]) for mark in marks for stream, last in said.items())


def try_one(source: Path, what: str, nodes: int, seconds: float, after_s: float) -> dict[str, Any]:
    """One attack on fresh nodes."""

    def mark(targets: list[Target]) -> list[dict[str, Any]]:
        return [target.mark() for target in targets]

    with cluster(source, nodes) as targets:
        time.sleep(SETTLE_S)
        for target in targets:
            target.mark("speak")
        time.sleep(BEFORE_S)
        mark(targets)
        time.sleep(BEFORE_S)
        before = mark(targets)
        begin = time.monotonic()
        sent = asyncio.run(besiege(targets, what, seconds))
        end = time.monotonic()
        during = mark(targets)
        time.sleep(after_s)
        after = mark(targets)
        alive = sum(target.process.poll() is None for target in targets)
        time.sleep(2.0)
        last = mark(targets)
    caches = [
        (late["caches"] - early["caches"]) / early["caches"]
        for early, late in zip(before, after, strict=True)
        if early["caches"]
    ]
    grown = [now["memory"] - then["resident"] for now, then in zip(during, before, strict=True)]
    found = {
        "attack": what,
        "sent_mb": sent / 1e6,
        "alive": alive,
        "lost": lost(last, after),
        "gaps": sum(each["gaps"] for each in last),
        "rejoined": sum(now["incarnation"] != then["incarnation"] for now, then in zip(last, before, strict=True)),
        "p99_before_ms": percentile(before),
        "p99_during_ms": percentile(during + after + last, begin, end),
        "memory_idle_mb": max(each["resident"] for each in before) / 1e6,
        "memory_growth_mb": max(grown) / 1e6,
        "memory_after_mb": max(each["resident"] for each in after) / 1e6,
        "processor_during": sum(each["processor_s"] for each in during) / seconds,
        "processor_after": sum(each["processor_s"] for each in after) / after_s,
        "descriptors": max(each["descriptors"] for each in during),
        "caches_grown": max(caches, default=None),
        "load": os.getloadavg()[0],
    }
    found["held"] = (
        alive == nodes
        and sent > 0
        and found["lost"] == 0
        and found["p99_during_ms"] <= max(2 * found["p99_before_ms"], P99_MS)
        and max(grown) <= GROWTH_BYTES
        and max(caches, default=0.0) <= 0.1
    )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attack", action="append", choices=(*ATTACKS, "hellos"))
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--after", type=float, default=AFTER_S)
    parser.add_argument("--source", type=Path, default=ROOT / "src")
    parser.add_argument("--report", type=Path)
    told = parser.parse_args()
    results = []
    for what in told.attack or (*ATTACKS, "hellos"):
        results.append(try_one(told.source, what, told.nodes, told.seconds, told.after))
        print(json.dumps(results[-1]), flush=True)
        if told.report is not None:
            told.report.write_text("".join(json.dumps(result) + "\n" for result in results))
    return 0 if all(result["held"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())

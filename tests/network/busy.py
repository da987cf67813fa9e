"""Busy topics over real processes: a kill, a join, a restart, a burst under load; is everything delivered or told?

    python -m network.busy --case kill --rate 1000 --payload 100 --times 10
    python -m network.busy --limit rate

Each node is a process of its own. What counts is what applications were given: sequences, gaps, and when.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from omen.net.broker import Broker
from omen.net.inbox import Message
from omen.net.settings import NodeConfig

TOPIC = "busy"
ENDLESS = 1 << 40
CASES = ("kill", "join", "restart", "burst", "publisher")


@dataclass
class Stream:
    """What one application was given of one stream."""

    first: int = 0
    last: int = 0
    delivered: int = 0
    told: int = 0
    silent: int = 0
    disordered: int = 0
    longest_s: float = 0.0
    late_s: float = 0.0
    at: float = 0.0

    def take(self, first: int, last: int, is_gap: bool, now: float) -> None:
        if not self.first:
            self.first, self.last, self.at = first, first - 1, now
        if first <= self.last:
            self.disordered += 1
            return
        self.silent += first - self.last - 1
        self.last = last
        self.longest_s = max(self.longest_s, now - self.at)
        self.at = now
        if is_gap:
            self.told += last - first + 1
        else:
            self.delivered += 1


@dataclass
class Report:
    name: str
    published: int = 0
    streams: dict[str, Stream] = field(default_factory=dict)
    late_ms: list[float] = field(default_factory=list)
    stalled: int = 0
    window_bytes: int = 0
    waited_s: float = 0.0


class Member:
    """Obeys lines that come over a pipe: rate, stop, report, leave."""

    def __init__(self, broker: Broker, pipe: Connection) -> None:
        self.broker = broker
        self.report = Report(broker.name)
        self._pipe = pipe
        self._publishing: asyncio.Task[None] | None = None

    async def live(self) -> None:
        listening = asyncio.ensure_future(self._listen())
        loop = asyncio.get_running_loop()
        self._pipe.send(self.broker.address)
        while True:
            order = await loop.run_in_executor(None, self._pipe.recv)
            if order[0] == "rate":
                self._publishing = asyncio.ensure_future(self._publish(*order[1:]))
            elif order[0] == "stop":
                if self._publishing is not None:
                    self._publishing.cancel()
                    await asyncio.gather(self._publishing, return_exceptions=True)
                self._pipe.send(self.report.published)
            elif order[0] == "report":
                self.report.stalled = len(self.broker.stalled)
                self.report.window_bytes = self.broker.status().dissemination.bytes
                self._pipe.send(asdict(self.report))
            elif order[0] == "leave":
                break
        listening.cancel()
        await self.broker.abandon()

    async def _listen(self) -> None:
        report, streams = self.report, self.report.streams
        async for item in self.broker.messages():
            now = time.time()
            key = f"{item.node}/{item.incarnation}"
            stream = streams.get(key)
            if stream is None:
                stream = streams[key] = Stream()
            if isinstance(item, Message):
                stream.take(item.sequence, item.sequence, False, now)
                if item.sequence % 20 == 0:
                    report.late_ms.append((now - int.from_bytes(item.payload[:8], "big") / 1e6) * 1e3)
            else:
                stream.take(item.first, item.last, True, now)

    async def _publish(self, rate: float, size: int, count: int) -> None:
        """So many per second, `count` in all; rate 0: as fast as possible."""
        begun, done = time.monotonic(), 0
        rest = bytes(max(0, size - 8))
        while done < count:
            due = count if not rate else min(count, int((time.monotonic() - begun) * rate) + 1)
            while done < due:
                before = time.monotonic()
                await self.broker.publish(TOPIC, int(time.time() * 1e6).to_bytes(8, "big") + rest)
                self.report.waited_s = max(self.report.waited_s, time.monotonic() - before)
                done += 1
                self.report.published += 1
            await asyncio.sleep(0.001)


def be_member(name: str, join: tuple[str, ...], pipe: Connection, settings: dict[str, Any]) -> None:
    async def live() -> None:
        broker = Broker(NodeConfig(name=name, join=join, topics=(TOPIC,), engine="eager", **settings))
        await broker.start()
        await Member(broker, pipe).live()

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(live())


class Fleet:
    """Processes by name."""

    def __init__(self, **settings: Any) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._settings = settings
        self.processes: dict[str, Any] = {}
        self.pipes: dict[str, Connection] = {}
        self.addresses: dict[str, str] = {}

    def start(self, *names: str) -> None:
        """The first alone, the others through whoever is there."""
        for name in names:
            join = tuple(list(self.addresses.values())[:2])
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=be_member, args=(name, join, theirs, self._settings), daemon=True)
            process.start()
            self.processes[name], self.pipes[name] = process, ours
            if not join:
                self.addresses[name] = ours.recv()
        for name in names:
            if name not in self.addresses:
                self.addresses[name] = self.pipes[name].recv()

    def tell(self, name: str, *order: Any) -> None:
        self.pipes[name].send(order)

    def ask(self, name: str, *order: Any) -> Any:
        self.pipes[name].send(order)
        return self.pipes[name].recv()

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        del self.pipes[name]
        self.addresses.pop(name, None)

    def close(self) -> None:
        for name in list(self.processes):
            self.kill(name)


@dataclass
class Verdict:
    """What came of a case. `lost`: neither delivered nor told; `told`: in gaps; `longest_s`: the longest silence."""

    case: str
    rate: float
    payload: int
    published: int = 0
    delivered: int = 0
    lost: int = 0
    told: int = 0
    silent: int = 0
    disordered: int = 0
    stalled: int = 0
    longest_s: float = 0.0
    late_p99_ms: float = 0.0
    edge_s: float = 0.0
    waited_s: float = 0.0
    window_mb: float = 0.0

    @property
    def is_kept(self) -> bool:
        return not (self.lost or self.silent or self.disordered or self.stalled)


def run_case(case: str, rate: float, payload: int, seconds: float = 6.0, count: int | None = None) -> Verdict:
    """One publisher, n1; something happens a third of the way; then everything must be delivered or told."""
    fleet = Fleet()
    names = ["n1", "n2", "n3", "n4", "n5"] if case != "join" else ["n1", "n2"]
    if case == "burst":
        names.append("n6")
    total = count or ENDLESS
    verdict = Verdict(case, rate, payload)
    try:
        fleet.start(*names)
        time.sleep(2.0)
        publishers = ["n1"] if case != "publisher" else ["n1", "n2"]
        for name in publishers:
            fleet.tell(name, "rate", rate / len(publishers), payload, total // len(publishers))
        time.sleep(seconds / 3 if rate else 0.1)
        joined = []
        if case in ("kill", "restart"):
            fleet.kill("n3")
        if case == "publisher":
            fleet.kill("n2")
        if case in ("join", "restart"):
            fleet.start("n3")
            joined.append("n3")
        if total == ENDLESS:
            time.sleep(seconds * 2 / 3)
            total = fleet.ask("n1", "stop")
        _settle(fleet, verdict, total)
        _judge(fleet, verdict, joined)
    finally:
        fleet.close()
    return verdict


def _settle(fleet: Fleet, verdict: Verdict, total: int, patience_s: float = 60.0) -> None:
    """Until the publisher is done and everybody is where it is, or patience is over."""
    begun = time.monotonic()
    done_at = None
    while time.monotonic() - begun < patience_s:
        source = fleet.ask("n1", "report")
        verdict.published = source["published"]
        if source["published"] >= total:
            done_at = done_at or time.monotonic()
            key = next(iter(key for key, stream in source["streams"].items() if stream["last"] == source["published"]))
            lasts = [fleet.ask(name, "report")["streams"].get(key, {"last": 0})["last"] for name in fleet.processes]
            if min(lasts) >= source["published"]:
                break
            if time.monotonic() - done_at > 15:
                break
        time.sleep(0.1)
    verdict.edge_s = round(time.monotonic() - (done_at or begun), 2)


def _judge(fleet: Fleet, verdict: Verdict, joined: Sequence[str]) -> None:
    time.sleep(0.3)
    source = fleet.ask("n1", "report")
    key = next(iter(key for key, stream in source["streams"].items() if stream["last"] == source["published"]))
    verdict.waited_s = round(source["waited_s"], 2)
    late: list[float] = []
    for name in fleet.processes:
        report = fleet.ask(name, "report")
        stream = Stream(**report["streams"].get(key, {}))
        verdict.delivered += stream.delivered
        verdict.told += stream.told
        first = stream.first if name in joined else 1
        verdict.lost += source["published"] - first + 1 - stream.delivered - stream.told
        verdict.silent += sum(other["silent"] for other in report["streams"].values())
        verdict.disordered += sum(other["disordered"] for other in report["streams"].values())
        verdict.stalled += report["stalled"]
        verdict.longest_s = round(max(verdict.longest_s, stream.longest_s), 2)
        verdict.window_mb = round(max(verdict.window_mb, report["window_bytes"] / 1e6), 1)
        late += report["late_ms"]
    verdict.late_p99_ms = round(sorted(late)[int(len(late) * 0.99)], 1) if late else 0.0


def find_limit(what: str, case: str = "kill") -> None:
    """Raise the rate, or the bytes per second, until something is missing or the stream does not keep up."""
    level = 1000.0 if what == "rate" else 1e6
    while True:
        rate, payload = (level, 100) if what == "rate" else (level / 10_000, 10_000)
        verdict = run_case(case, rate, payload)
        print(json.dumps(asdict(verdict)), flush=True)
        if not verdict.is_kept or verdict.told or verdict.edge_s > 2:
            print(f"limit: {what} between {level / 1.5:g} and {level:g} per second")
            return
        level *= 1.5


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m network.busy", description=__doc__.partition("\n")[0])
    parser.add_argument("--case", choices=CASES, default="kill")
    parser.add_argument("--rate", type=float, default=1000.0, help="publications per second; 0: as fast as possible")
    parser.add_argument("--payload", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--count", type=int, help="publications in all (rate x seconds)")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--limit", choices=("rate", "bytes"), help="raise it until the promise does not hold")
    arguments = parser.parse_args(argv)
    if arguments.limit:
        find_limit(arguments.limit, arguments.case)
        return 0
    kept = True
    for _ in range(arguments.times):
        verdict = run_case(arguments.case, arguments.rate, arguments.payload, arguments.seconds, arguments.count)
        kept = kept and verdict.is_kept
        print(json.dumps(asdict(verdict)), flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())

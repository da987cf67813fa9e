"""Busy topics over real processes: a kill, a join, a restart, a burst under load; is everything delivered or told?

    python -m network.busy --case kill --rate 1000 --payload 100 --times 10
    python -m network.busy --case join --rate 20 --topics 30
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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from omen.net.broker import Broker
from omen.net.inbox import Gap, Message
from omen.net.settings import NodeConfig

SECONDS = 6.0
EDGE_S = 0.25
"""Who is given something younger than this is at the live edge."""
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
    """`me`: node and incarnation; `published`: on each topic; `ended`: when the last on each topic was.

    `edge_s`: after how long it was at the live edge.
    """

    name: str
    me: str = ""
    began: float = 0.0
    published: dict[str, int] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    edge_s: float = -1.0
    late_ms: list[float] = field(default_factory=list)
    stalled: int = 0
    window_bytes: int = 0
    window_limit: int = 0
    memory: int = 0
    memory_limit: int = 0
    waited_s: float = 0.0
    jumps: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)


def memory_peak() -> int:
    """The most bytes that this process ever had in memory."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


class Member:
    """Obeys lines that come over a pipe: rate, stop, report, leave."""

    def __init__(self, broker: Broker, pipe: Connection) -> None:
        self.broker = broker
        self._idle = memory_peak()
        self.report = Report(broker.name, f"{broker.node}/{broker.status().ref.incarnation}", time.time())
        self._pipe = pipe
        self._publishing: asyncio.Task[None] | None = None

    async def live(self) -> None:
        listening = asyncio.gather(self._listen(), self._keep_weighing())
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
                self._pipe.send(sum(self.report.published.values()))
            elif order[0] == "report":
                self.report.stalled = len(self.broker.stalled)
                self._weigh()
                self._pipe.send(asdict(self.report))
            elif order[0] == "leave":
                break
        listening.cancel()
        await self.broker.abandon()

    async def _keep_weighing(self) -> None:
        while True:
            self._weigh()
            await asyncio.sleep(0.5)

    def _weigh(self) -> None:
        """Windows within their limit; memory within that of the idle node, the windows, the inbox and the queues.

        Of a link a queue waits, and as much may be in the buffer of its transport, on its way out.
        """
        report, config, status = self.report, self.broker.config, self.broker.status()
        report.window_bytes = max(report.window_bytes, status.dissemination.bytes)
        report.window_limit = config.protocol.dissemination.total_window_bytes
        report.memory = memory_peak()
        queues = 2 * config.limits.queue_bytes * max(1, len(status.neighbours()))
        limit = self._idle + report.window_limit + config.limits.inbox_bytes + queues
        report.memory_limit = max(report.memory_limit, limit)

    async def _listen(self) -> None:
        report, streams = self.report, self.report.streams
        async for item in self.broker.messages():
            now = time.time()
            key = f"{item.topic}/{item.node}/{item.incarnation}"
            stream = streams.get(key)
            if stream is None:
                stream = streams[key] = Stream()
            elif stream.last + 1 != (item.sequence if isinstance(item, Message) else item.first):
                self._note_jump(key, stream, item)
            if isinstance(item, Message):
                stream.take(item.sequence, item.sequence, False, now)
                if item.sequence % 20 == 0 or report.edge_s < 0:
                    late_s = now - int.from_bytes(item.payload[:8], "big") / 1e6
                    report.late_ms.append(late_s * 1e3)
                    if report.edge_s < 0 and late_s < EDGE_S:
                        report.edge_s = now - report.began
            else:
                self._note_gap(key, stream, item)
                stream.take(item.first, item.last, True, now)

    def _note_gap(self, key: str, stream: Stream, gap: Gap) -> None:
        if len(self.report.gaps) < 5:
            here = f"{time.strftime('%T')} {self.report.name}, here for {time.time() - self.report.began:.1f} s"
            what = f"{gap.first} to {gap.last} of {key}, {gap.reason}, had {stream.first} to {stream.last}"
            self.report.gaps.append(f"{here}: {what}")

    def _note_jump(self, key: str, stream: Stream, item: Message | Gap) -> None:
        if len(self.report.jumps) < 5:
            what = f"{time.strftime('%T')} {self.report.name}: {key} after {stream.last}, since {stream.first}: {item}"
            self.report.jumps.append(what[:300])

    async def _publish(self, rate: float, size: int, count: int, topics: Sequence[str]) -> None:
        """So many per second, `count` in all, on these topics in turn; rate 0: as fast as possible."""
        begun, done = time.monotonic(), 0
        published = self.report.published
        rest = bytes(max(0, size - 8))
        while done < count:
            due = count if not rate else min(count, int((time.monotonic() - begun) * rate) + 1)
            while done < due:
                before, topic = time.monotonic(), topics[done % len(topics)]
                await self.broker.publish(topic, int(time.time() * 1e6).to_bytes(8, "big") + rest)
                self.report.waited_s = max(self.report.waited_s, time.monotonic() - before)
                done += 1
                published[topic] = published.get(topic, 0) + 1
                self.report.ended[topic] = time.time()
            await asyncio.sleep(0.001)


def be_member(name: str, join: tuple[str, ...], pipe: Connection, settings: dict[str, Any]) -> None:
    async def live() -> None:
        broker = Broker(NodeConfig(name=name, join=join, engine="eager", **settings))
        await broker.start()
        await Member(broker, pipe).live()

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(live())


class Fleet:
    """Processes by name. `settings`: of all; `topics`: what each subscribes to, where that is not the same."""

    def __init__(self, topics: Mapping[str, Sequence[str]] | None = None, **settings: Any) -> None:
        self._topics = topics or {}
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
            settings = self._settings | ({"topics": tuple(self._topics[name])} if name in self._topics else {})
            process = self._context.Process(target=be_member, args=(name, join, theirs, settings), daemon=True)
            process.start()
            theirs.close()  # or the end of a member that dies at its start would never be read
            self.processes[name], self.pipes[name] = process, ours
            if not join:
                self.addresses[name] = self._hear(name)
        for name in names:
            if name not in self.addresses:
                self.addresses[name] = self._hear(name)

    def _hear(self, name: str, patience_s: float = 60.0) -> Any:
        """What a member says; an error that names it if it has ended, or says nothing for so long."""
        pipe = self.pipes[name]
        if not pipe.poll(patience_s):
            raise RuntimeError(f"{name} has not answered within {patience_s:g} s")
        try:
            return pipe.recv()
        except EOFError:
            raise RuntimeError(f"{name} has ended by itself") from None

    def tell(self, name: str, *order: Any) -> None:
        self.pipes[name].send(order)

    def ask(self, name: str, *order: Any) -> Any:
        self.pipes[name].send(order)
        return self._hear(name)

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
    """What came of a case. `lost`: neither delivered nor told; `told`: in gaps; `disordered`: out of order or twice.

    `longest_s`: the longest silence in a stream. `edge_s`: after the last publication, until all applications had it;
    `joined_edge_s`: after a newcomer was linked, until it was at the live edge. `oversize`: nodes whose windows
    were beyond their limit; `swollen`: whose memory was beyond that of an idle node, windows, inbox and queues.
    `jumps`: what is silent or disordered, `gaps`: what was told, the first of each node.
    """

    case: str
    rate: float
    payload: int
    topics: int = 1
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
    joined_edge_s: float = 0.0
    waited_s: float = 0.0
    window_mb: float = 0.0
    memory_mb: float = 0.0
    oversize: int = 0
    swollen: int = 0
    jumps: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)

    @property
    def is_kept(self) -> bool:
        return not (self.lost or self.silent or self.disordered or self.stalled or self.oversize or self.swollen)


def run_case(
    case: str, rate: float, payload: int, seconds: float = SECONDS, count: int | None = None, topics: int = 1
) -> Verdict:
    """One publisher, n1; something happens a third of the way; then everything must be delivered or told."""
    named = tuple(f"busy-{number}" for number in range(topics))
    fleet = Fleet(dict.fromkeys(("n1", "n2", "n3", "n4", "n5", "n6"), named))
    names = ["n1", "n2", "n3", "n4", "n5"] if case != "join" else ["n1", "n2"]
    if case == "burst":
        names.append("n6")
    total = count or ENDLESS
    verdict = Verdict(case, rate, payload, topics)
    try:
        fleet.start(*names)
        time.sleep(2.0)
        publishers = ["n1"] if case != "publisher" else ["n1", "n2"]
        for name in publishers:
            fleet.tell(name, "rate", rate / len(publishers), payload, total // len(publishers), named)
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


def _behind(source: dict[str, Any], report: dict[str, Any]) -> int:
    """How many publications of one node another application has neither been given nor told of."""
    return sum(
        count - report["streams"].get(f"{topic}/{source['me']}", {"last": 0})["last"]
        for topic, count in source["published"].items()
    )


def _settle(fleet: Fleet, verdict: Verdict, total: int, patience_s: float = 60.0) -> None:
    """Until the publisher is done and everybody is where it is, or patience is over."""
    begun = time.monotonic()
    done_at = None
    while time.monotonic() - begun < patience_s:
        source = fleet.ask("n1", "report")
        verdict.published = sum(source["published"].values())
        if verdict.published >= total:
            done_at = done_at or time.monotonic()
            if not any(_behind(source, fleet.ask(name, "report")) for name in fleet.processes):
                break
            if time.monotonic() - done_at > 15:
                break
        time.sleep(0.1)
    verdict.edge_s = round(time.monotonic() - (done_at or begun), 2)


def _judge(fleet: Fleet, verdict: Verdict, joined: Sequence[str]) -> None:
    time.sleep(0.3)
    source = fleet.ask("n1", "report")
    verdict.waited_s = round(source["waited_s"], 2)
    late: list[float] = []
    for name in fleet.processes:
        report = fleet.ask(name, "report")
        for topic, count in source["published"].items():
            stream = Stream(**report["streams"].get(f"{topic}/{source['me']}", {}))
            verdict.delivered += stream.delivered
            verdict.told += stream.told
            if stream.first or name not in joined:
                first = stream.first if name in joined else 1
                verdict.lost += count - first + 1 - stream.delivered - stream.told
            verdict.longest_s = round(max(verdict.longest_s, stream.longest_s), 2)
        add_up(verdict, report)
        if name in joined:
            verdict.joined_edge_s = round(report["edge_s"], 2)
        else:
            late += report["late_ms"]
    verdict.late_p99_ms = round(sorted(late)[int(len(late) * 0.99)], 1) if late else 0.0


def add_up(verdict: Verdict, report: dict[str, Any]) -> None:
    """What one application says, whoever published."""
    verdict.silent += sum(other["silent"] for other in report["streams"].values())
    verdict.disordered += sum(other["disordered"] for other in report["streams"].values())
    verdict.stalled += report["stalled"]
    verdict.jumps += report["jumps"]
    verdict.gaps += report["gaps"]
    verdict.window_mb = round(max(verdict.window_mb, report["window_bytes"] / 1e6), 1)
    verdict.memory_mb = round(max(verdict.memory_mb, report["memory"] / 1e6), 1)
    verdict.oversize += report["window_bytes"] > report["window_limit"]
    verdict.swollen += report["memory"] > report["memory_limit"]


def find_limit(what: str, level: float, case: str = "kill") -> None:
    """Raise the rate, or the bytes per second, until something is missing or publishing does not keep up; then beyond.

    Twice and ten times what held last, everything missing must be told.
    """
    while True:
        verdict = _try(what, level, case)
        keeps_up = verdict.edge_s < 2 and verdict.published > 0.9 * verdict.rate * SECONDS
        if not verdict.is_kept or verdict.told or not keeps_up:
            break
        level *= 1.5
    held = level / 1.5
    print(f"limit: {what} {held:g} per second; at {level:g} no more", flush=True)
    for factor in (2, 10):
        print(f"{factor} times that: {'kept' if _try(what, factor * held, case).is_kept else 'NOT KEPT'}", flush=True)


def _try(what: str, level: float, case: str) -> Verdict:
    """`rate`: on one topic; `topics`: over thirty; `bytes`: of 10 KB each."""
    rate, payload = (level / 10_000, 10_000) if what == "bytes" else (level, 100)
    verdict = run_case(case, rate, payload, topics=30 if what == "topics" else 1)
    print(json.dumps(asdict(verdict)), flush=True)
    return verdict


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m network.busy", description=__doc__.partition("\n")[0])
    parser.add_argument("--case", choices=CASES, default="kill")
    parser.add_argument("--rate", type=float, default=1000.0, help="publications per second; 0: as fast as possible")
    parser.add_argument("--payload", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--count", type=int, help="publications in all (rate x seconds)")
    parser.add_argument("--topics", type=int, default=1, help="topics that are published on in turn")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument(
        "--limit", choices=("rate", "topics", "bytes"), help="raise it until the promise does not hold, from --rate on"
    )
    arguments = parser.parse_args(argv)
    if arguments.limit:
        find_limit(arguments.limit, arguments.rate, arguments.case)
        return 0
    kept = True
    for _ in range(arguments.times):
        told = arguments.rate, arguments.payload, arguments.seconds, arguments.count, arguments.topics
        verdict = run_case(arguments.case, *told)
        kept = kept and verdict.is_kept
        print(json.dumps(asdict(verdict)), flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())

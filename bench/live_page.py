"""The live page under load: frames per second with many nodes in a browser, bytes per second that gathering takes.

python -m bench.live_page frames [--nodes 500] [--seconds 20]: a made-up stream of so many nodes, with links that change
and a topic chosen, in headless Chromium at 1280 x 720 with software rendering.
python -m bench.live_page leaks [--nodes 100] [--seconds 3600]: the same for long; the memory of tab and server, twelve
times on the way.
python -m bench.live_page real-leaks [--nodes 8] [--seconds 3600]: the page of a real node; the others publish twice per
second, and one after the other crashes and starts again, one every 35 seconds.
python -m bench.live_page bytes [--nodes 100] [--rate 100] [--seconds 30]: real nodes in one process, at rest and while
they publish.
Each prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.browser.chromium import Browser, find_chromium

from bench.measure import machine_facts
from omen.net.broker import Broker
from omen.net.observe.serving import Reply, Request, Server, Stream
from omen.net.settings import Limits, NodeConfig
from omen.net.watching.feed import Feed
from omen.net.watching.messages import Entry, Event, NodeDigest
from omen.net.watching.page import page_reply, write_event

TURN_S = 0.25
PARTS = 12
PATIENCE_S = 600.0
"""For an answer of the browser: what else runs may leave it no processor for minutes."""
DEGREE, TOPICS_EACH, CHANGED = 6, 5, 4
TURNS_PER_CRASH = 60
DRAWN = "+document.getElementById('graph').dataset.frames"
FRAMES = """
new Promise((done) => {
  let frames = 0;
  const begun = performance.now(), count = () => {
    frames += 1;
    if (performance.now() - begun < SECONDS * 1000) { requestAnimationFrame(count); }
    else { done(frames / (performance.now() - begun) * 1000); }
  };
  requestAnimationFrame(count);
})
"""


class MadeUp:
    """Nodes that never were: links that come and go, rates, a failure now and then."""

    def __init__(self, nodes: int) -> None:
        self._chosen = random.Random(7)
        self._topics = list(range(1, max(2, nodes // 10)))
        self._names = {topic: f"topic {topic}" for topic in self._topics}
        self._links: dict[int, set[int]] = {node: set() for node in range(1, nodes + 1)}
        self._numbers = dict.fromkeys(self._links, 0)
        self._count = 0
        for node in self._links:
            while len(self._links[node]) < DEGREE // 2:
                self._link(node, self._chosen.choice(list(self._links)))

    def _link(self, one: int, other: int) -> None:
        if one != other:
            self._links[one].add(other)
            self._links[other].add(one)

    def _entry(self, node: int, changed: NodeDigest, *events: Event) -> Entry:
        self._numbers[node] += 1
        return Entry(node, 1, self._numbers[node], changed, events)

    def begin(self) -> list[Entry]:
        return [
            self._entry(
                node,
                NodeDigest(
                    name=f"n{node}",
                    state="ok",
                    links=tuple(links),
                    topics=tuple(self._chosen.sample(self._topics, min(TOPICS_EACH, len(self._topics)))),
                    carried=(),
                    names=self._names,
                    out=1.0,
                    into=5.0,
                ),
            )
            for node, links in self._links.items()
        ]

    def turn(self) -> list[Entry]:
        """Some links change, a fifth of the nodes has other rates, a node suspects another."""
        nodes, found = list(self._links), []
        for _ in range(CHANGED):
            one, other = self._chosen.sample(nodes, 2)
            if self._links[one]:
                gone = self._chosen.choice(sorted(self._links[one]))
                self._links[one].discard(gone)
                self._links[gone].discard(one)
                found += [self._entry(gone, NodeDigest(links=tuple(self._links[gone])))]
            self._link(one, other)
            found += [self._entry(node, NodeDigest(links=tuple(self._links[node]))) for node in (one, other)]
        for node in self._chosen.sample(nodes, len(nodes) // 5):
            found.append(self._entry(node, NodeDigest(out=self._chosen.random(), into=5 * self._chosen.random())))
        self._count += 1
        event = Event(self._count, int(time.time() * 1e3), "peer_suspected", self._chosen.choice(nodes), 1)
        return [*found, self._entry(nodes[0], NodeDigest(), event)]


async def end_tasks() -> None:
    """Whatever else this loop does, as `asyncio.run` ends it."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class MadeUpServer:
    """Serves the page with a stream of made-up nodes, in a thread. `asked`: what its buttons asked for."""

    def __init__(self, nodes: int, has_controls: bool = False) -> None:
        self._about = {"cluster": "made up", "controls": has_controls}
        self.asked: list[dict[str, str]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        self._nodes = nodes
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._over = asyncio.Event()

    def __enter__(self) -> MadeUpServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        feed, made_up = Feed(1, lambda _, told: told), MadeUp(self._nodes)
        server = await Server(lambda request: self._answer(feed, request)).start(self._listener)
        entries = made_up.begin()
        while not self._over.is_set():
            for entry in entries:
                feed.take(entry, self._loop.time())
            feed.turn(self._loop.time())
            await asyncio.sleep(TURN_S)
            entries = made_up.turn()
        feed.end()
        server.close()
        await end_tasks()

    async def _answer(self, feed: Feed, request: Request) -> Reply | Stream:
        if request.path == "/":
            return page_reply()
        if request.path == "/control":
            self.asked.append(json.loads(request.body))
            return Reply(HTTPStatus.OK, "text/plain", b"asked for\n")
        return Stream("text/event-stream", self._events(feed, request.query.get("last", "")))

    async def _events(self, feed: Feed, last: str) -> AsyncIterator[bytes]:
        while not feed.is_ended:
            last, found = feed.since(last, self._about)
            if found:
                yield b"".join(write_event(*one) for one in found)
            await feed.wait(1.0)


def _open(address: str, profile: str) -> Browser:
    program = find_chromium()
    if program is None:
        raise SystemExit("no Chromium is installed")
    browser = Browser(program, Path(profile), PATIENCE_S)
    browser.show_as(1280, 720, "light")
    browser.open_address(address)
    while not browser.evaluate("document.querySelectorAll('#topics button').length"):
        time.sleep(0.1)
    browser.click("#topics button")
    return browser


def measure_frames(nodes: int, seconds: float) -> dict[str, Any]:
    """Frames per second, those of them that draw the graph anew, and what a frame costs the busiest process."""
    with MadeUpServer(nodes) as server, tempfile.TemporaryDirectory() as profile:
        browser = _open(server.address, profile)
        while f"{nodes} nodes" not in browser.evaluate("document.getElementById('nodes-said').textContent"):
            time.sleep(0.1)
        drawn, spent = browser.evaluate(DRAWN), browser.processor_times()
        frames = browser.evaluate(FRAMES.replace("SECONDS", str(seconds)))
        drawn = browser.evaluate(DRAWN) - drawn
        busiest = max(now - spent.get(process, 0.0) for process, now in browser.processor_times().items())
        errors = list(browser.errors)
        browser.close()
    return {
        "nodes": nodes,
        "frames_per_s": round(frames, 1),
        "drawn_per_s": round(drawn / seconds, 1),
        "processor_ms_per_frame": round(1e3 * busiest / (frames * seconds), 1),
        "errors": errors,
    }


def resident(process: int) -> int:
    """Memory of a process that is not shared with others, nor the text of a file."""
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:")))


def sample_memory(browser: Browser, node: int, seconds: float) -> list[dict[str, int]]:
    """Of the tab and of the node that serves its page, at thirteen times from the beginning to the end."""
    browser.forget_requests()
    begun, found = time.monotonic(), []
    for part in range(PARTS + 1):
        while (left := begun + seconds * part / PARTS - time.monotonic()) > 0:
            time.sleep(min(left, 5.0))
            browser.evaluate("0")  # takes what the browser has told meanwhile, so that it does not pile up
        tab = browser.memory()
        at = {"at_s": round(time.monotonic() - begun), "renderer_bytes": max(map(resident, browser.renderers()))}
        found.append({**at, **{f"tab_{what}": value for what, value in tab.items()}, "node_bytes": resident(node)})
        print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found


def measure_leaks(nodes: int, seconds: float) -> dict[str, Any]:
    """Growth that ends when the histories are full (12 minutes at the node, 25 in the page) is none that leaks."""
    with MadeUpServer(nodes) as server, tempfile.TemporaryDirectory() as profile:
        browser = _open(server.address, profile)
        found = sample_memory(browser, os.getpid(), seconds)
        errors = list(browser.errors)
        browser.close()
    return {"nodes": nodes, "seconds": seconds, "memory": found, "errors": errors}


class RealNodes:
    """Nodes in a thread that publish, and of which one after the other crashes and starts again."""

    def __init__(self, count: int, join: str) -> None:
        self._count, self._join = count, join
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._readers: dict[int, asyncio.Task[None]] = {}
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),), daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(30)

    async def _start(self, number: int) -> Broker:
        topics = tuple(f"t{topic % TOPICS_EACH}" for topic in (number, number + 1))
        patient = Limits(join_timeout_s=0)
        broker = Broker(NodeConfig(name=f"n{number}", topics=topics, join=(self._join,), limits=patient))
        await broker.start()
        self._readers[number] = asyncio.create_task(self._read(broker))
        return broker

    async def _read(self, broker: Broker) -> None:
        async for _ in broker.messages():
            pass

    async def _run(self) -> None:
        brokers = [await self._start(number) for number in range(self._count)]
        turn = 0
        while not self._over.is_set():
            turn += 1
            for broker in brokers:
                await broker.publish(broker.topics[0], bytes(100))
            if turn % TURNS_PER_CRASH == 0:
                number = turn // TURNS_PER_CRASH % self._count
                await brokers[number].abandon()
                await asyncio.sleep(5)
                brokers[number] = await self._start(number)
            await asyncio.sleep(0.5)
        for broker in brokers:
            await broker.abandon()
        await end_tasks()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def measure_real_leaks(nodes: int, seconds: float) -> dict[str, Any]:
    """A node as a process of its own, which others join; its page is open."""
    listen, http = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "node.toml")
        settings.write_text(f'name = "page"\nlisten = "{listen}"\nhttp = "{http}"\ntopics = ["t0", "t1"]\n')
        node = subprocess.Popen(
            [sys.executable, "-m", "omen.cli", "node", "--config", str(settings), "--log-level", "error"],
            stdout=subprocess.DEVNULL,
        )
        try:
            while node.poll() is None and not _listens(http):
                time.sleep(0.1)
            with RealNodes(nodes - 1, listen):
                browser = _open(f"http://{http}/", f"{folder}/profile")
                found = sample_memory(browser, node.pid, seconds)
                shown = browser.evaluate("document.querySelectorAll('#nodes tr').length")
                errors = list(browser.errors)
                browser.close()
        finally:
            node.terminate()
            node.wait(PATIENCE_S)
    return {"nodes": nodes, "shown": shown, "seconds": seconds, "memory": found, "errors": errors}


def _listens(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


async def _measure_bytes(nodes: int, rate: float, seconds: float) -> dict[str, Any]:
    chosen, brokers = random.Random(7), []
    patient = Limits(join_timeout_s=0)
    topics = [f"t{number}" for number in range(max(2, nodes // 4))]
    for number in range(nodes):
        join = (brokers[0].address,) if brokers else ()
        broker = Broker(
            NodeConfig(name=f"n{number}", topics=tuple(chosen.sample(topics, 2)), join=join, limits=patient)
        )
        await broker.start()
        brokers.append(broker)
    feed = brokers[-1].gathering.open()
    await asyncio.sleep(15)
    told_of = [json.loads(text).get("nodes", {}) for _, _, text in feed.since("", {})[1]]
    found: dict[str, Any] = {"nodes": nodes, "shown": len({index for one in told_of for index in one})}
    for what, wanted in (("at_rest", 0.0), ("publishing", rate)):
        sent, last = sum(one.gathering.sent_bytes for one in brokers), feed.since("", {})[0]
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if wanted:
                broker = chosen.choice(brokers)
                await broker.publish(chosen.choice(broker.topics), bytes(100))
            await asyncio.sleep(1 / wanted if wanted else 0.1)
        told = sum(len(text) for _, _, text in feed.since(last, {})[1])
        sent = sum(one.gathering.sent_bytes for one in brokers) - sent
        found[what] = {
            "to_page_bytes_per_s": round(told / seconds),
            "sent_bytes_per_node_and_s": round(sent / seconds / nodes),
        }
    for broker in brokers:
        await broker.abandon()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("frames", "leaks", "real-leaks", "bytes"))
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--seconds", type=float)
    told = parser.parse_args()
    if told.what == "frames":
        found = measure_frames(told.nodes or 500, told.seconds or 20.0)
    elif told.what == "leaks":
        found = measure_leaks(told.nodes or 100, told.seconds or 3600.0)
    elif told.what == "real-leaks":
        found = measure_real_leaks(told.nodes or 8, told.seconds or 3600.0)
    else:
        found = asyncio.run(_measure_bytes(told.nodes or 100, told.rate, told.seconds or 30.0))
    print(json.dumps({"what": told.what, **found, "machine": machine_facts()}))


if __name__ == "__main__":
    main()

"""Twelve Mosquitto brokers, bridged by what `omen export` wrote: everything arrives, once, also after one is killed."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from commands import run, run_json
from omen.interests import Interests
from omen.tables import read_workload, write_workload

MOSQUITTO = shutil.which("mosquitto") or ("/usr/sbin/mosquitto" if Path("/usr/sbin/mosquitto").exists() else None)

pytestmark = pytest.mark.skipif(MOSQUITTO is None, reason="mosquitto is not installed")
mqtt = pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed")

BROKERS = [f"b{number:02}" for number in range(12)]
TOPICS = {name: [f"t/{(number * step + step) % 7}" for step in (1, 2, 4)] for number, name in enumerate(BROKERS)}
PATIENCE_S = 30.0
SETTLED_S = 1.0

Seen = Counter[tuple[str, str]]  # broker and payload


class Fleet:
    """The brokers as processes, each with a subscriber whose session persists."""

    def __init__(self, folder: Path, topics: dict[str, list[str]]) -> None:
        self.folder = folder
        self.topics = topics
        self.ports = dict(zip(topics, free_ports(len(topics)), strict=True))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.subscribers: dict[str, Any] = {}
        self.seen: Seen = Counter()
        self._lock = Lock()
        rows = "".join(f"{name},127.0.0.1:{port}\n" for name, port in self.ports.items())
        (folder / "addresses.csv").write_text(f"node,address\n{rows}")

    def start(self, name: str) -> None:
        home = self.folder / name
        home.mkdir(exist_ok=True)
        (home / "broker.conf").write_text(
            f"listener {self.ports[name]} 127.0.0.1\nallow_anonymous true\nuser root\n"
            f"persistence true\npersistence_location {home}/\nmax_queued_messages 0\nmax_inflight_messages 0\n"
            "autosave_interval 1\n"
            f"log_dest file {home}/log\nlog_type all\n"
        )
        bridges = (self.folder / "bridges" / f"{name}.conf").read_text()
        (home / "all.conf").write_text((home / "broker.conf").read_text() + bridges)
        command = [str(MOSQUITTO), "-c", str(home / "all.conf")]
        self.processes[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: answers(self.ports[name]), f"{name} listens")

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        process = self.processes.pop(name)
        process.send_signal(how)
        process.wait(10)

    def subscribe(self, name: str) -> None:
        """A client that keeps its session, and counts what comes."""

        def on_connect(client: Any, *_: Any) -> None:
            client.subscribe([(topic, 2) for topic in self.topics[name]])

        def on_message(_: Any, __: Any, message: Any) -> None:
            with self._lock:
                self.seen[name, message.payload.decode()] += 1

        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, f"sub-{name}", clean_session=False)
        client.on_connect, client.on_message = on_connect, on_message
        client.reconnect_delay_set(1, 1)
        client.connect("127.0.0.1", self.ports[name])
        client.loop_start()
        self.subscribers[name] = client

    def publish(self, name: str, payloads: dict[str, str]) -> None:
        """By payload the topic; all are accepted when this returns."""
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, f"pub-{name}-{time.monotonic_ns()}")
        client.connect("127.0.0.1", self.ports[name])
        client.loop_start()
        for sent in [client.publish(topic, payload, qos=2) for payload, topic in payloads.items()]:
            sent.wait_for_publish(PATIENCE_S)
            assert sent.is_published()
        client.disconnect()
        client.loop_stop()

    def publish_everywhere(
        self, what: str, at: list[str], alive: list[str], topics: set[str] | None = None
    ) -> set[tuple[str, str]]:
        """One message on each topic of each of these brokers, or on some topics: who has to get what."""
        wanted = set()
        for name in at:
            chosen = [topic for topic in self.topics[name] if topics is None or topic in topics]
            payloads = {f"{what} {name} {topic}": topic for topic in chosen}
            self.publish(name, payloads)
            wanted |= {(to, text) for text, topic in payloads.items() for to in alive if topic in self.topics[to]}
        return wanted

    def expect(self, wanted: set[tuple[str, str]]) -> None:
        """All of it arrives, and nothing of it twice."""
        wait_until(lambda: wanted <= set(self.seen), lambda: f"{sorted(wanted - set(self.seen))[:5]} arrive")
        time.sleep(SETTLED_S)
        assert {key: count for key, count in self.seen.items() if key in wanted and count != 1} == {}

    def wait_for_bridges(self, what: str, alive: list[str]) -> None:
        """Until a message of every broker has reached all that want it: bridges connect one by one."""
        missing = {(name, topic) for name in alive for topic in self.topics[name]}
        for attempt in range(60):
            for name in alive:
                probes = {f"{what} {attempt} {name} {t}": t for t in self.topics[name] if (name, t) in missing}
                if probes:
                    self.publish(name, probes)
            time.sleep(0.5)
            for name, topic in sorted(missing):
                texts = [f"{what} {tried} {name} {topic}" for tried in range(attempt + 1)]
                if any(all(self.seen[to, text] for to in alive if topic in self.topics[to]) for text in texts):
                    missing.discard((name, topic))
            if not missing:
                return
        raise AssertionError(f"no bridge carries {sorted(missing)[:5]}")

    def stop(self) -> None:
        for client in self.subscribers.values():
            client.loop_stop()
        for name in list(self.processes):
            self.end(name, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(done: Callable[[], bool], what: str | Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what if isinstance(what, str) else what()}"
        time.sleep(0.05)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path, TOPICS)
    yield made
    made.stop()


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path, {"a": ["all"], "b": ["all", "two"], "c": ["all", "two"]})
    yield made
    made.stop()


def export(fleet: Fleet, capsys: pytest.CaptureFixture[str], links: str) -> list[str]:
    """The brokers whose file changed."""
    (fleet.folder / "o.csv").write_text(f"u,v\n{links}")
    told = run_json(
        capsys,
        *("export --format mosquitto --addresses", fleet.folder / "addresses.csv", "--out", fleet.folder / "bridges"),
        *("--workload", fleet.folder / "w", "--overlay", fleet.folder / "o.csv"),
    )
    changed: list[str] = told["changed"]
    return changed


def write_interests(fleet: Fleet) -> None:
    pairs = [(name, topic) for name, topics in fleet.topics.items() for topic in topics]
    write_workload(fleet.folder / "w", Interests.from_pairs(pairs), {})


def test_a_topic_that_leaves_a_bridge_does_not_cross_it_any_more(three: Fleet, capsys):
    """The session of the bridge persists at the other end, and with it what it was subscribed to."""
    write_interests(three)
    assert sorted(export(three, capsys, "a,b\nb,c\n")) == list(three.topics)
    for name in three.topics:
        three.start(name)
        three.subscribe(name)
    names = list(three.topics)
    three.wait_for_bridges("probe", names)
    changed = export(three, capsys, "a,b\na,c\nb,c\n")
    assert "c" not in changed
    for name in changed:
        three.end(name)
    for name in changed:
        three.start(name)
    three.wait_for_bridges("again", names)
    three.expect(three.publish_everywhere("after", names, names))


def test_everything_arrives_once_also_after_a_broker_was_killed(fleet: Fleet, capsys):
    folder = fleet.folder
    write_interests(fleet)
    overlay = folder / "o.parquet"
    assert run("design --algorithm low-oda --workload", folder / "w", "--out", overlay) == 0
    export = ("export --format mosquitto --addresses", folder / "addresses.csv", "--out", folder / "bridges")
    capsys.readouterr()
    told = run_json(capsys, *export, "--workload", folder / "w", "--overlay", overlay)
    assert sorted(told["changed"]) == BROKERS
    for name in BROKERS:
        fleet.start(name)
        fleet.subscribe(name)
    fleet.wait_for_bridges("probe", BROKERS)
    fleet.expect(fleet.publish_everywhere("first", BROKERS, BROKERS))

    # killed: what is accepted until the repair reaches all that are not beyond the broker that is lost
    before = trees_of(folder / "bridges")
    victim = max(BROKERS, key=lambda name: (told_degree(folder / "bridges", name), name))
    fleet.end(victim, signal.SIGKILL)
    alive = [name for name in BROKERS if name != victim]
    meanwhile = fleet.publish_everywhere("meanwhile", alive, alive)
    near = {key for key in meanwhile if is_near(before, *key, victim)}
    assert 0 < len(near) < len(meanwhile)
    fleet.expect(near)

    # repaired, exported again, the brokers whose file changed restarted
    assert (
        run("mend --apply --workload", folder / "w", "--overlay", overlay, "--leave", victim, "--out", folder / "w2")
        == 0
    )
    capsys.readouterr()
    (folder / "addresses.csv").write_text(
        "node,address\n" + "".join(f"{name},127.0.0.1:{fleet.ports[name]}\n" for name in alive)
    )
    told = run_json(capsys, *export, "--workload", folder / "w2", "--overlay", folder / "w2")
    assert told["removed"] == [f"{victim}.conf"]
    changed = told["changed"]
    assert 0 < len(changed) < len(alive)
    for name in changed:
        fleet.end(name)

    # what is accepted while they restart waits for them, on topics whose way stays as it is
    after = trees_of(folder / "bridges")
    steady = {topic for topic in after if after[topic] == before.get(topic)}
    assert 0 < len(steady) < len(after)
    waiting = fleet.publish_everywhere("waiting", [name for name in alive if name not in changed], alive, steady)
    for name in changed:
        fleet.start(name)
    assert read_workload(folder / "w2").interests.node_count == len(alive)
    fleet.wait_for_bridges("again", alive)
    fleet.expect(fleet.publish_everywhere("second", alive, alive) | waiting)

    # what is accepted while a broker is down waits for it in the sessions of its bridges, also when it was killed
    away = max(alive, key=lambda name: (told_degree(folder / "bridges", name), name))
    time.sleep(2 * SETTLED_S)  # sessions are saved every second
    fleet.end(away, signal.SIGKILL)
    wanted = fleet.publish_everywhere("third", [name for name in alive if name != away], alive)
    fleet.start(away)
    fleet.expect(wanted)
    assert {key: count for key, count in fleet.seen.items() if key in meanwhile and count > 1} == {}


def trees_of(folder: Path) -> dict[str, set[frozenset[str]]]:
    """The links that each topic goes along, by the files of bridges."""
    trees: dict[str, set[frozenset[str]]] = {}
    for path in folder.glob("*.conf"):
        for line in path.read_text().splitlines():
            words = line.split()
            if line.startswith("connection "):
                ends = frozenset(words[1].split("_"))
            elif line.startswith("topic ") and words[2] == "both":
                trees.setdefault(words[1], set()).add(ends)
    return trees


def is_near(trees: dict[str, set[frozenset[str]]], to: str, text: str, victim: str) -> bool:
    """Whether a message has a way that does not lead through the broker that is lost."""
    _, at, topic = text.split()
    reached = {at}
    while (
        more := {end for link in trees.get(topic, set()) if victim not in link and link & reached for end in link}
        - reached
    ):
        reached |= more
    return to in reached


def told_degree(folder: Path, name: str) -> int:
    """How many bridges a broker has, at either end."""
    texts = {path.stem: path.read_text() for path in folder.glob("*.conf")}
    mine = texts[name].count("\nconnection ")
    return mine + sum(text.count(f"_{name}\naddress") for other, text in texts.items() if other != name)

"""The commands for live nodes, as processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from omen.cli.main import main
from omen.net.observe.http_client import ask
from omen.net.settings import Limits, NodeConfig, read_node_config
from omen.net.state import read_states
from omen.protocol.config import Config, Dissemination

PATIENCE_S = 90
NOT_FOR_LIVE = {"remedies", "global_view"}
OMEN = [sys.executable, "-m", "omen.cli"]


@pytest.fixture
def seed_node(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A node as `omen node` runs it, and its address."""
    settings = tmp_path / "node.toml"
    settings.write_text(
        'name = "seed"\ntopics = ["tea"]\nhttp = "127.0.0.1:0"\nstate = "state"\nlog = "json"\nengine = "eager"\n'
    )
    process = subprocess.Popen(
        [*OMEN, "node", "--config", str(settings), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())["address"]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*OMEN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_lines_of_a_pipe_are_published_as_they_come(seed_node: tuple[subprocess.Popen[str], str]) -> None:
    _, address = seed_node
    listener = start("sub", "tea", "--join", address, "--name", "reader", "--count", "3", "--replay")
    speaker = subprocess.Popen(
        [*OMEN, "pub", "tea", "-", "--join", address], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert speaker.stdin is not None and listener.stdout is not None
    try:
        for line in ("green", "black"):  # the pipe stays open: each is read before the next is written
            speaker.stdin.write(line + "\n")
            speaker.stdin.flush()
            assert listener.stdout.readline().strip() == line
        speaker.stdin.write("white")
        _, errors = speaker.communicate(timeout=PATIENCE_S)
        assert speaker.returncode == 0, errors
        assert listener.communicate(timeout=PATIENCE_S)[0] == "white\n"
    finally:
        for process in (speaker, listener):
            process.kill()
            process.wait()


def test_what_is_published_by_one_command_is_printed_by_another(
    seed_node: tuple[subprocess.Popen[str], str],
) -> None:
    _, address = seed_node
    listener = start("sub", "tea", "--join", address, "--name", "reader", "--count", "2", "--replay", "--json")
    published = start("pub", "tea", "green", "--join", address, "--json")
    out, err = published.communicate(timeout=PATIENCE_S)
    assert published.returncode == 0, err
    assert json.loads(out) == {"topic": "tea", "published": 1, "wanted": True, "held": True}
    again = start("pub", "tea", "black", "--join", address)
    assert again.wait(PATIENCE_S) == 0
    again.communicate()
    out, err = listener.communicate(timeout=PATIENCE_S)
    assert listener.returncode == 0, err
    assert {json.loads(line)["payload"] for line in out.splitlines()} == {"green", "black"}


def test_publishing_what_no_other_node_wants_is_told(seed_node: tuple[subprocess.Popen[str], str]) -> None:
    _, address = seed_node
    lonely = start("pub", "no such topic", "hello", "--join", address)
    out, err = lonely.communicate(timeout=PATIENCE_S)
    assert lonely.returncode == 1
    assert (out, err) == ("", "no other node in the cluster wants 'no such topic': the publication reached none\n")


def test_a_node_leaves_in_good_order_on_sigterm_and_logs_json(seed_node: tuple[subprocess.Popen[str], str]) -> None:
    process, _ = seed_node
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["event"] for line in lines] == ["node_started", "node_leaving", "node_left"]
    assert all(line["node"] == "seed" for line in lines)


def test_publishing_that_is_ended_by_a_signal_leaves_in_good_order(
    seed_node: tuple[subprocess.Popen[str], str], tmp_path: Path
) -> None:
    seed, address = seed_node
    lines = tmp_path / "lines"
    lines.write_text("green\n" * 1_000_000)
    with lines.open() as source:
        publishing = subprocess.Popen(
            [*OMEN, "pub", "tea", "-", "--join", address], stdin=source, stderr=subprocess.PIPE, text=True
        )
    (state,) = read_states(tmp_path / "state")
    assert wait_for(lambda: ask([state["http"]], "/topology")[0]["delivered"] > 0)  # type: ignore[index]
    publishing.send_signal(signal.SIGTERM)
    _, err = publishing.communicate(timeout=PATIENCE_S)
    assert (publishing.returncode, err) == (130, "")
    assert wait_for(lambda: not ask([state["http"]], "/topology")[0]["links"])  # type: ignore[index]
    seed.send_signal(signal.SIGTERM)
    _, err = seed.communicate(timeout=PATIENCE_S)
    assert "peer_unreachable" not in {json.loads(line)["event"] for line in err.splitlines()}


def test_a_file_that_is_no_recording_is_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for content, reason in (("name = 'n1'", "it does not begin with a whole piece"), ("", "it does not begin")):
        (tmp_path / "node.toml").write_text(content)
        assert main(["node", "--replay", str(tmp_path / "node.toml")]) == 2
        assert f"not a recording of a node: {reason}" in capsys.readouterr().err


def test_joining_where_no_member_answers_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pub", "tea", "green", "--join", "nowhere"]) == 2
    assert "must be HOST:PORT" in capsys.readouterr().err


def test_the_example_settings_explain_every_setting_and_hold_the_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["node", "--example"]) == 0
    text = capsys.readouterr().out
    path = tmp_path / "node.toml"
    path.write_text(text)
    assert read_node_config(path) == NodeConfig(name="n1")
    for settings in (NodeConfig, Config, Dissemination, Limits):
        for name in settings.__dataclass_fields__.keys() - NOT_FOR_LIVE:
            assert re.search(rf"^(\[|\[protocol\.)?{name}\b", text, re.MULTILINE), name


def test_a_cluster_is_brought_up_killed_brought_back_and_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        up = subprocess.run(
            [*OMEN, "cluster", "up", "--nodes", "6", "--json"], capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert up.returncode == 0, up.stderr
        assert json.loads(up.stdout)["healthy"] == 6
        for state in read_states(tmp_path / "omen-cluster" / "nodes"):
            loaded = Path(f"/proc/{state['pid']}/maps").read_text()
            assert "numpy" in loaded and not re.search("arrow|pyspark|matplotlib|pandas", loaded)
        assert main(["status"]) == 0
        table = capsys.readouterr().out
        assert re.search(r"^n5 +ok ", table, re.MULTILINE)
        pages = [
            state["http"] for state in read_states(tmp_path / "omen-cluster" / "nodes") if state["name"] in "n1 n2"
        ]
        assert main(["status", "--at", pages[0], "--at", pages[1]]) == 0
        assert re.findall(r"^(n\d) +ok ", capsys.readouterr().out, re.MULTILINE) == ["n1", "n2"]
        assert main(["cluster", "up", "--nodes", "6"]) == 2
        assert "a cluster of 6 nodes runs from there" in capsys.readouterr().err
        assert main(["cluster", "kill", "n3"]) == 0
        assert wait_for(lambda: _status_of("n3", capsys) == "gone")
        assert main(["cluster", "start", "n3", "n9"]) == 2
        assert capsys.readouterr().err.endswith("no node 'n9' in this cluster; there are n0, n1, n2, n3, n4, n5\n")
        assert _status_of("n3", capsys) == "gone"
        back = subprocess.run([*OMEN, "cluster", "start", "n3"], capture_output=True, text=True, timeout=PATIENCE_S)
        assert back.returncode == 0, back.stderr
        assert back.stdout.startswith("n3 is back at ")
        assert _status_of("n3", capsys) == "ok"
    finally:
        assert main(["cluster", "down", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["ended"]) == 6


def _status_of(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    main(["status", "--json"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    return str(next(node["status"] for node in found["status"] if node["name"] == name))


def wait_for(condition: object, patience_s: float = PATIENCE_S) -> bool:
    assert callable(condition)
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


def test_a_node_loads_neither_spark_nor_arrow_nor_plotting_and_compiled_code_only_for_repairs() -> None:
    script = """
import sys
from omen.net.broker import Broker
from omen.net.event_loop import run
from omen.net.settings import NodeConfig
async def live():
    async with Broker(NodeConfig(topics=tuple(f"t{n}" for n in range(100)), http="127.0.0.1:0")) as broker:
        for n in range(100):
            await broker.publish(f"t{n}", bytes(100))
run(live())
heavy = {"pyspark", "pyarrow", "matplotlib", "pandas", "networkx", "numba", "numpy"}
print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout == "[]\n", done.stderr


def test_a_node_is_up_within_two_seconds_of_processor_time(tmp_path: Path) -> None:
    settings = tmp_path / "node.toml"
    settings.write_text('topics = ["tea"]\nhttp = "127.0.0.1:0"\n')
    with subprocess.Popen([*OMEN, "node", "--config", str(settings), "--json"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"address" in process.stdout.readline()
        process.send_signal(signal.SIGQUIT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert usage.ru_utime + usage.ru_stime < 2.0


def test_a_node_with_100_topics_that_has_repaired_holds_at_most_220_megabytes() -> None:
    script = """
import asyncio
from pathlib import Path
from omen.net.broker import Broker
from omen.net.event_loop import run
from omen.net.settings import NodeConfig
topics = tuple(f"t{n}" for n in range(100))
async def live():
    async with Broker(NodeConfig(topics=topics, engine="eager")) as ann:
        async with Broker(NodeConfig(topics=topics, join=(ann.address,))) as bob:
            for n in range(5000):
                await ann.publish(topics[n % 100], bytes(100))
            while bob.delivered < 5000:
                await asyncio.sleep(0.05)
        print(next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line))
run(live())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S)
    assert int(done.stdout.split()[1]) / 1024 <= 220, done.stdout + done.stderr


def test_a_node_with_100_full_windows_holds_at_most_260_megabytes() -> None:
    script = """
from pathlib import Path
from omen.net.broker import Broker
from omen.net.event_loop import run
from omen.net.settings import NodeConfig
topics = tuple(f"t{n}" for n in range(100))
async def live():
    async with Broker(NodeConfig(engine="eager")) as ann:
        for n in range(10_500):
            await ann.publish(topics[n % 100], bytes(10_000))
        print(next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line))
run(live())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S)
    assert int(done.stdout.split()[1]) / 1024 <= 260, done.stdout + done.stderr


def test_helping_with_live_commands_needs_no_loop() -> None:
    script = (
        "import sys, omen.cli.main as m; m.make_parser(); print('asyncio' in sys.modules, 'msgspec' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout == "False False\n", done.stderr + os.linesep

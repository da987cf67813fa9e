"""The page of `omen cluster up`: its buttons, and who may press them; `omen watch`."""

from __future__ import annotations

import http.client
import json
import operator
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omen.net.local.cluster import LOGS, NODES
from omen.net.local.control import PAGE, end_page, read_page_state
from omen.net.observe.http_client import ask as ask_pages
from omen.net.state import is_running, read_states

PATIENCE_S = 90.0
OMEN = (sys.executable, "-m", "omen.cli")
START = """
import json, sys
from omen.net.local.cluster import Plan, bring_up, wait_until_healthy
from omen.net.local.control import start_page
folder, names = sys.argv[1], [f"n{number}" for number in range(4)]
bring_up(folder, Plan({name: ["tea", "jazz"] for name in names}, "tried", "text"), None)
assert wait_until_healthy(folder, names) == 4
print(start_page(folder))
"""


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def ask(state: dict[str, Any], wanted: Any, token: str | None, host: str = "") -> tuple[int, str]:
    connection = http.client.HTTPConnection(state["http"], timeout=30)
    headers = {"Host": host or state["http"]} | ({"Authorization": f"Bearer {token}"} if token is not None else {})
    connection.request("POST", "/control", json.dumps(wanted), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def pids(folder: Path) -> dict[str, dict[str, Any]]:
    return {state["name"]: state for state in read_states(folder / NODES)}


def bring_up(folder: Path) -> tuple[dict[str, Any], str]:
    """Four nodes and their page; its state, and the address that was printed."""
    made = subprocess.run(
        [sys.executable, "-c", START, str(folder)], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert made.returncode == 0, made.stderr
    return read_page_state(folder), made.stdout


def topology(folder: Path, name: str) -> dict[str, Any]:
    (told,) = ask_pages([pids(folder)[name]["http"]], "/topology")
    assert told is not None
    return told


def connections(folder: Path, *names: str) -> list[int]:
    return [topology(folder, name)["connections"] for name in names]


def ring_of(folder: Path, name: str) -> set[str]:
    told = topology(folder, name)
    return {*told["predecessors"], *told["successors"]}


def test_buttons_do_what_they_say_for_those_with_the_token_alone(tmp_path: Path) -> None:
    try:
        state, printed = bring_up(tmp_path)
        token, kill = state["token"], {"action": "kill", "node": "n2"}
        assert printed == f"http://{state['http']}/#token={token}\n"
        assert (tmp_path / PAGE).stat().st_mode & 0o077 == 0
        asked = subprocess.run([*OMEN, "status", "--at", printed.strip()], capture_output=True, text=True, timeout=30)
        assert (asked.returncode, asked.stdout.splitlines()[1].split()[:2]) == (0, ["page", "ok"]), asked.stderr
        for wrong in (None, "", "x" * len(token)):
            assert ask(state, kill, wrong)[0] == 401
        assert ask(state, kill, token, "evil.example")[0] == 403
        assert is_running(pids(tmp_path)["n2"])
        assert ask(state, kill, token) == (200, "n2 killed\n")
        until(lambda: not is_running(pids(tmp_path)["n2"]))
        assert ask(state, {"action": "freeze", "node": "n1"}, token) == (200, "n1 frozen\n")
        frozen = Path(f"/proc/{pids(tmp_path)['n1']['pid']}/stat")
        until(lambda: frozen.read_text().rpartition(")")[2].split()[0] == "T")
        assert ask(state, {"action": "thaw", "node": "n1"}, token) == (200, "n1 goes on\n")
        assert ask(state, {"action": "publish", "topic": "tea", "text": "hello"}, token) == (200, "published on tea\n")
        assert ask(state, {"action": "start", "node": "n2"}, token)[0] == 200
        until(lambda: is_running(pids(tmp_path)["n2"]))
        for wanted in ({"action": "start", "node": "n9"}, {"action": "kill", "node": "n9"}, {"action": "dance"}):
            assert ask(state, wanted, token)[0] == 409
        assert ask(state, ["kill"], token)[0] == 400
    finally:
        subprocess.run([*OMEN, "cluster", "down", "--state", str(tmp_path)], check=True, timeout=PATIENCE_S)
    assert not is_running(state)
    assert not (tmp_path / PAGE).exists()
    end_page(tmp_path)


def test_a_cut_link_and_a_cut_node_are_out_of_reach_until_they_heal(tmp_path: Path) -> None:
    try:
        state, _ = bring_up(tmp_path)
        token, others = state["token"], ("n0", "n1", "n2")
        cut = {"action": "cut", "node": "n1", "other": "n2", "seconds": 300}
        for wrong in ({"other": "n9"}, {"node": "n9"}, {"other": "n1"}, {"seconds": 0}, {"seconds": "nan"}):
            assert ask(state, {**cut, **wrong}, token)[0] == 409
        assert ask(state, cut, None)[0] == 401
        assert ask(state, {**cut, "seconds": "soon"}, token)[0] == 400
        before = connections(tmp_path, "n1", "n2")
        assert ask(state, cut, token) == (200, "n1 is cut from n2 for 300 s\n")
        until(lambda: all(map(operator.lt, connections(tmp_path, "n1", "n2"), before)))
        until(lambda: "peer_suspected peer=n2" in (tmp_path / LOGS / "n1.log").read_text())
        apart = connections(tmp_path, "n1", "n2")
        assert "n2" in ring_of(tmp_path, "n1"), "others vouch for it"
        assert ask(state, {"action": "heal", "node": "n2"}, token) == (200, "n2 is reached again\n")
        until(lambda: all(map(operator.gt, connections(tmp_path, "n1", "n2"), apart)))
        assert ask(state, {"action": "heal", "node": "n2"}, token) == (200, "n2 was not cut\n")

        assert ask(state, {**cut, "node": "n3", "other": ""}, token) == (200, "n3 is cut from all others for 300 s\n")
        until(lambda: connections(tmp_path, "n3") == [0])
        until(lambda: all("n3" not in ring_of(tmp_path, name) for name in others))
        assert ask(state, {"action": "publish", "topic": "tea", "text": "hello"}, token)[0] == 200
        until(lambda: all(topology(tmp_path, name)["delivered"] == 1 for name in others))
        assert topology(tmp_path, "n3")["delivered"] == 0
        assert ask(state, {"action": "heal", "node": "n3"}, token) == (200, "n3 is reached again\n")
        until(lambda: all("n3" in ring_of(tmp_path, name) for name in others))
        until(lambda: topology(tmp_path, "n3")["delivered"] == 1)
    finally:
        subprocess.run([*OMEN, "cluster", "down", "--state", str(tmp_path)], check=True, timeout=PATIENCE_S)


def test_a_cluster_can_be_watched_by_a_node_that_joins_it(tmp_path: Path) -> None:
    settings = tmp_path / "n.toml"
    settings.write_text(f'name = "n1"\ntopics = ["tea"]\nstate = {json.dumps(str(tmp_path))}\n')
    node = subprocess.Popen([*OMEN, "node", "--config", str(settings), "--json"], stdout=subprocess.PIPE, text=True)
    watch = None
    try:
        assert node.stdout is not None
        address = json.loads(node.stdout.readline())["address"]
        watch = subprocess.Popen([*OMEN, "watch", "--join", address, "--json"], stdout=subprocess.PIPE, text=True)
        assert watch.stdout is not None
        page = json.loads(watch.stdout.readline())["page"]
        connection = http.client.HTTPConnection(page.removeprefix("http://").rstrip("/"), timeout=30)
        connection.request("GET", "/events")
        answer, read = connection.getresponse(), b""
        while b'"n1"' not in read:
            read += answer.read1(1 << 16)
        connection.close()
    finally:
        for process in (watch, node):
            if process is not None:
                process.send_signal(signal.SIGTERM)
                process.wait(30)
    assert watch.returncode == 0

"""The page of a cluster that was brought up to be tried: the live page, and buttons that kill, freeze, cut, publish.

It is a process of its own: a node without topics that joins the cluster, so that it is there whichever node is killed.
Who may press the buttons shows a token, which stands in the address that `omen cluster up` prints, behind a #: browsers
send that to nobody.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from omen.errors import InvalidInput, OmenError
from omen.net.broker import Broker
from omen.net.local.cluster import CLIENT, KEYS, LOGS, NODES, Plan, read_plan, signal_nodes
from omen.net.local.cuts import ALL, CHANGED, Cut, ignore_cuts, obey_cuts, read_cuts, write_cuts
from omen.net.local.forking import fork
from omen.net.names import join_address
from omen.net.observe.http_server import answer_program
from omen.net.observe.logs import write_log
from omen.net.observe.serving import TEXT, Reply, Request, Server, Stream
from omen.net.running import run_beside
from omen.net.security.key_files import security_from
from omen.net.settings import NodeConfig
from omen.net.state import begun_at, is_running, read_states
from omen.net.transport.accepting import listen_on
from omen.net.watching.page import LivePage, has_token, refuse

PAGE = "page.json"
PATIENCE_S = 30.0
LONGEST_TEXT = 1_000
LONGEST_CUT_S = 3600
SIGNALS = {"kill": signal.SIGKILL, "freeze": signal.SIGSTOP, "thaw": signal.SIGCONT}
DONE = {"kill": "killed", "freeze": "frozen", "thaw": "goes on"}


class Control:
    """Does what the buttons ask for."""

    def __init__(self, folder: Path, broker: Broker, token: str) -> None:
        self._folder = folder
        self._broker = broker
        self._token = token

    async def answer(self, request: Request) -> Reply:
        """One request of a button."""
        if request.method != "POST":
            return refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only POST")
        if not has_token(request, self._token):
            return refuse(HTTPStatus.UNAUTHORIZED, "this needs the token in the address that `omen cluster up` printed")
        try:
            wanted = json.loads(request.body)
            text = await self._do({str(name): str(value) for name, value in dict(wanted).items()})
        except (ValueError, TypeError):
            return refuse(HTTPStatus.BAD_REQUEST, "what is asked for cannot be read")
        except OmenError as error:
            return refuse(HTTPStatus.CONFLICT, str(error))
        return Reply(HTTPStatus.OK, TEXT, f"{text}\n".encode())

    async def _do(self, wanted: dict[str, str]) -> str:
        action, node = wanted.get("action", ""), wanted.get("node", "")
        if action in SIGNALS:
            told = signal_nodes(self._folder, [node], SIGNALS[action])
            return f"{node} {DONE[action]}" if told else f"{node} does not run"
        if action == "start":
            return await self._start(node)
        if action == "cut":
            return self._cut(node, wanted.get("other", ALL), float(wanted.get("seconds", "")))
        if action == "heal":
            return f"{node} is reached again" if self._heal(node) else f"{node} was not cut"
        if action == "publish":
            topic, text = wanted.get("topic", ""), wanted.get("text", "")[:LONGEST_TEXT]
            await self._broker.publish(topic, text.encode())
            return f"published on {topic}"
        raise InvalidInput(f"{action!r} is none of {', '.join((*SIGNALS, 'start', 'cut', 'heal', 'publish'))}")

    def _cut(self, node: str, other: str, seconds: float) -> str:
        """Cut a node from another, or (`ALL`) from all others, this page's among them."""
        known = read_plan(self._folder).topics
        for name in (node, *(() if other == ALL else (other,))):
            if name not in known:
                raise InvalidInput(f"no node {name!r} in this cluster")
        if node == other:
            raise InvalidInput(f"{node!r} cannot be cut from itself")
        if not 0 < seconds <= LONGEST_CUT_S:
            raise InvalidInput(f"a cut lasts for at most {LONGEST_CUT_S} s, not {seconds:g}")
        self._set_cuts([*read_cuts(self._folder), Cut(node, other, time.time() + seconds)])
        return f"{node} is cut from {'all others' if other == ALL else other} for {seconds:g} s"

    def _heal(self, node: str) -> int:
        """End all cuts of a node; how many there were."""
        cuts = read_cuts(self._folder)
        left = [one for one in cuts if not one.concerns(node)]
        self._set_cuts(left)
        return len(cuts) - len(left)

    def _set_cuts(self, cuts: Sequence[Cut]) -> None:
        """Only nodes that were brought up with the cluster know what the signal means; it would end others."""
        write_cuts(self._folder, cuts)
        planned = read_plan(self._folder).topics
        if names := [state["name"] for state in read_states(self._folder / NODES) if state["name"] in planned]:
            signal_nodes(self._folder, names, CHANGED)
        os.kill(os.getpid(), CHANGED)

    async def _start(self, node: str) -> str:
        """By a process of its own: a node that is forked from this one would keep its sockets open."""
        if node not in read_plan(self._folder).topics:
            raise InvalidInput(f"no node {node!r} in this cluster")
        command = (sys.executable, "-m", "omen.cli", "cluster", "start", node, "--state", str(self._folder))
        quiet = asyncio.subprocess.DEVNULL
        started = await asyncio.create_subprocess_exec(
            *command, stdin=quiet, stdout=quiet, stderr=asyncio.subprocess.PIPE
        )
        self._told = asyncio.ensure_future(started.communicate())
        return f"{node} is being started"


async def _serve(folder: Path, token: str, broker: Broker) -> None:
    broker.gathering.set_role("page")
    obey_cuts(folder, folder / NODES, broker)
    listener = listen_on("127.0.0.1:0")
    control, page = Control(folder, broker, token), LivePage(broker, is_loopback=True, about={"controls": True})

    async def handle(request: Request) -> Reply | Stream:
        reply = page.answer(request)
        if reply is not None:
            return reply
        if not page.is_for_here(request):
            return refuse(HTTPStatus.FORBIDDEN, "ask for this page by address, or as localhost")
        if request.path == "/control":
            return await control.answer(request)
        return answer_program(broker, request)

    server = await Server(handle).start(listener)
    write_page_state(folder, {"http": join_address(*listener.getsockname()[:2]), "token": token})
    try:
        await asyncio.Event().wait()
    finally:
        server.close()


def write_page_state(folder: Path, values: dict[str, Any]) -> None:
    """Where the page is, for its owner alone: its token is in it."""
    path, aside = folder / PAGE, folder / f".{PAGE}.{os.getpid()}"
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({"pid": os.getpid(), "begun": begun_at(os.getpid()), **values}, file)
    aside.replace(path)


def read_page_state(folder: Path) -> dict[str, Any]:
    """Of the page of a cluster that runs; empty where there is none."""
    try:
        state = json.loads((folder / PAGE).read_text())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) and is_running(state) else {}


def _config_of(folder: Path, plan: Plan, join: tuple[str, ...]) -> NodeConfig:
    if plan.tls:
        security = security_from(folder / KEYS, CLIENT)
        return NodeConfig(name="client-page", cluster=plan.cluster, join=join, security=security)
    return NodeConfig(name="page", cluster=plan.cluster, join=join)


def start_page(folder: str | Path) -> str:
    """Serve the page of the cluster in a folder, by a process of its own; its address, with the token."""
    root = Path(folder).resolve()
    (root / PAGE).unlink(missing_ok=True)
    join = tuple(state["address"] for state in read_states(root / NODES) if is_running(state))[:3]
    config = _config_of(root, read_plan(root), join)
    token = secrets.token_urlsafe(24)

    def be_page() -> None:
        write_log("text")
        ignore_cuts()
        run_beside(config, partial(_serve, root, token))

    fork(be_page, root / LOGS / "page.log")
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if state := read_page_state(root):
            return address_of(state)
        time.sleep(0.02)
    raise InvalidInput(f"the page of the cluster did not come up within {PATIENCE_S:g} s; see {root / LOGS}/page.log")


def address_of(state: dict[str, Any]) -> str:
    """What a browser is to open."""
    return f"http://{state['http']}/#token={state['token']}"


def end_page(folder: str | Path, patience_s: float = 5.0) -> None:
    """End the page of a cluster, where there is one."""
    root = Path(folder)
    state = read_page_state(root)
    if state:
        with suppress(ProcessLookupError):
            os.kill(state["pid"], signal.SIGQUIT)
        deadline = time.monotonic() + patience_s
        while is_running(state) and time.monotonic() < deadline:
            time.sleep(0.02)
        if is_running(state):
            with suppress(ProcessLookupError):
                os.kill(state["pid"], signal.SIGKILL)
    (root / PAGE).unlink(missing_ok=True)

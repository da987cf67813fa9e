"""mqtt.js, the client of JavaScript: over TCP in Node, over WebSocket in a real browser."""

from __future__ import annotations

import asyncio
import functools
import http.server
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import Browser, find_chromium
from tests.network.brokers import go
from tests.network.test_mqtt import client, doors, take

INSTALL_S = 60

TALK = """
const client = mqtt.connect(ADDRESS, {protocolVersion: VERSION, clientId: 'js' + VERSION, reconnectPeriod: 0});
const done = new Promise((resolve, reject) => {
  client.on('error', reject);
  client.on('message', (topic, payload) => { client.end(); resolve(topic + ' ' + payload.toString()); });
  client.on('connect', () => client.subscribe('to/js', {qos: 2}, () => client.publish('from/js', 'ready', {qos: 2})));
});
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with mqtt.js, from npm."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("js")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), "mqtt@5"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_S)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("mqtt.js could not be installed: no registry of npm can be reached")
    return folder


async def _talk(ann: Any, speak: Any) -> str:
    """Wait until the script has subscribed, say something, and return what it got."""
    await ann.subscribe("from/js", qos=1)
    speaking = asyncio.ensure_future(speak)
    assert (await take(ann, 1))[0][1] == b"ready"
    await ann.publish("to/js", "hello", qos=2)
    heard: str = await speaking
    return heard.strip()


@pytest.mark.parametrize("version", [4, 5])
def test_mqtt_js_over_tcp(library: Path, version: int) -> None:
    async def run(port: str) -> str:
        head = f"const mqtt = require('mqtt'), ADDRESS = 'mqtt://127.0.0.1:{port}', VERSION = {version};"
        node = await asyncio.create_subprocess_exec(
            "node", "-e", head + TALK + "done.then(console.log);", cwd=library, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await node.communicate()
        return out.decode()

    async def talk() -> None:
        async with doors(2) as (one, other), client(other, "ann") as ann:
            assert await _talk(ann, run(one.addresses[0].rpartition(":")[2])) == "to/js hello"

    go(talk())


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("Chromium is not installed")
    found = Browser(program, tmp_path / "profile")
    yield found
    found.close()


def test_mqtt_js_over_websocket_in_a_browser(library: Path, browser: Browser) -> None:
    pages = library / "node_modules" / "mqtt" / "dist"
    (pages / "page.html").write_text("<!doctype html><title>MQTT</title><script src='mqtt.min.js'></script>")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(pages))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def speak(address: str) -> str:
        browser.open_address(f"http://127.0.0.1:{server.server_address[1]}/page.html")
        script = f"(() => {{ const ADDRESS = '{address}', VERSION = 5; {TALK} return done; }})()"
        return str(browser.evaluate(script))

    async def talk() -> None:
        async with doors(2, mqtt_ws="127.0.0.1:0") as (one, other), client(other, "ann") as ann:
            assert await _talk(ann, asyncio.to_thread(speak, one.addresses[1])) == "to/js hello"

    try:
        go(talk())
    finally:
        server.shutdown()

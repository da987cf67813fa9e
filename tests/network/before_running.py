"""What a version makes of full disks, pauses, signals and changed settings: cases of running, for `before.py`."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

from .before_joining import keys_in
from .lab import Found, Lab, linked, told, wait


def full_disk(lab: Lab) -> Found:
    """A node records to a disk that is full."""
    first = lab.start("n1")
    first.seconds_until_up()
    node = lab.start("n2", join=[first.address], record="/dev/full")
    up = node.seconds_until_up()
    time.sleep(3.0)
    errors = node.said().count("Traceback")
    return up is not None and errors <= 1 and linked([first, node]), f"up after {told(up)}, {errors} tracebacks"


def frozen_node(lab: Lab) -> Found:
    """A node stands still for 12 s: what do the others say?"""
    first, second = lab.pair()
    before = len(first.said().splitlines())
    second.process.send_signal(signal.SIGSTOP)
    time.sleep(12.0)
    second.process.send_signal(signal.SIGCONT)
    time.sleep(3.0)
    lines = first.said().splitlines()[before:]
    return any("n2" in line for line in lines), f"{sum('n2' in line for line in lines)} lines name it"


def health_pages(lab: Lab) -> Found:
    """Whether it lives and whether it is ready, apart."""
    node = lab.start("n1")
    node.seconds_until_up()
    codes = [node.page(path)[0] for path in ("/livez", "/readyz")]
    return codes == [200, 200], f"/livez {codes[0]}, /readyz {codes[1]}"


def reload_topics(lab: Lab) -> Found:
    """Topics in the settings change, and SIGHUP comes."""
    node = lab.start("n1")
    node.seconds_until_up()
    node.file.write_text(node.file.read_text().replace('["tea"]', '["tea", "jazz"]'))
    node.process.send_signal(signal.SIGHUP)
    took = wait(lambda: len(node.topology().get("topics", ())) == 2, 5.0)
    return took is not None, f"taken over after {told(took)}"


def metrics_names(lab: Lab) -> Found:
    """Metrics that every Prometheus client has, and units in names."""
    node = lab.start("n1")
    node.seconds_until_up()
    page = node.page("/metrics")[1]
    wanted = ("omen_build_info", "process_resident_memory_bytes", "omen_delivery_latency_seconds")
    missing = [name for name in wanted if name not in page]
    return not missing, f"without {', '.join(missing)}" if missing else "all there"


def first_start(lab: Lab) -> Found:
    """A first start, with nothing compiled."""
    source = Path(lab.environment["PYTHONPATH"])
    fresh = lab.folder / "fresh"
    shutil.copytree(source, fresh, ignore=shutil.ignore_patterns("__pycache__"))
    lab.environment |= {"PYTHONPATH": str(fresh), "NUMBA_CACHE_DIR": str(lab.folder / "cache")}
    first = lab.start("n1")
    first.seconds_until_up(120.0)
    took = lab.start("n2", join=[first.address]).seconds_until_up(120.0)
    lab.environment |= {"PYTHONPATH": str(source)}
    del lab.environment["NUMBA_CACHE_DIR"]
    return took is not None and took < 5.0, f"up after {told(took)}"


def unread_log(lab: Lab) -> Found:
    """The pipe for its log and its output is full, and stays so."""
    inward, outward = os.pipe()
    fcntl.fcntl(outward, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(outward, False)
    with suppress(BlockingIOError):
        while True:
            os.write(outward, b"." * 64)
    os.set_blocking(outward, True)
    try:
        node = lab.start("n1", output=outward)
        took = node.seconds_until_up(15.0)
        node.process.send_signal(signal.SIGTERM)
        ended = node.seconds_until_ended(15.0)
    finally:
        os.close(inward)
        os.close(outward)
    return took is not None and ended is not None, f"up after {told(took)}, ended after {told(ended)}"


STOPPING = """
import asyncio, socket, sys
from pathlib import Path
from omen.net.broker import Broker
from omen.net.settings import NodeConfig

async def main():
    state = Path("state")
    broker = Broker(NodeConfig(name="n1", topics=("tea",), state=str(state) if IS_GONE else ""))
    await broker.start()
    other = Broker(NodeConfig(name="n2", topics=("tea",), join=(broker.address,)))
    await other.start()
    host, port = broker.address.rsplit(":", 1)
    if IS_GONE:
        for file in state.iterdir():
            file.unlink()
        state.rmdir()
        state.write_text("in the way")
    stopping = asyncio.ensure_future(broker.stop())
    await asyncio.sleep(0)
    if not IS_GONE:
        stopping.cancel()
    await asyncio.wait((stopping,), timeout=20)
    outcome = "cancelled" if stopping.cancelled() else repr(stopping.exception())
    await asyncio.sleep(0.2)
    try:
        await asyncio.wait_for(broker.stop(), 20)
    except Exception as error:
        outcome += " again: " + repr(error)
    await asyncio.sleep(0.2)
    try:
        socket.create_connection((host, int(port)), 1).close()
        print("open", outcome)
    except OSError:
        print("released", outcome)
    await other.stop()

asyncio.run(main())
"""


def cancelled_stop(lab: Lab) -> Found:
    """`stop()` is cancelled, and called again."""
    words = lab.run(STOPPING.replace("IS_GONE", "False"))
    return words.startswith("released cancelled") and "again" not in words, words


def no_state_folder(lab: Lab) -> Found:
    """The folder for its state is gone when a node stops."""
    words = lab.run(STOPPING.replace("IS_GONE", "True"))
    return words == "released None", words


def second_signal(lab: Lab) -> Found:
    """SIGQUIT ends a node whose leaving waits for a neighbour that stands still: is there a line about it?"""
    first, node = lab.pair()
    first.process.send_signal(signal.SIGSTOP)
    node.process.send_signal(signal.SIGTERM)
    time.sleep(1.0)
    before = len(node.said().splitlines())
    node.process.send_signal(signal.SIGQUIT)
    node.seconds_until_ended()
    lines = len(node.said().splitlines()) - before
    return lines > 0, f"{lines} lines"


def dates_in_logs(lab: Lab) -> Found:
    """A line of the log tells the day."""
    node = lab.start("n1")
    node.seconds_until_up()
    lines = [line for line in node.said().splitlines() if " info " in line]
    return any(re.match(r"\d{4}-\d\d-\d\dT", line) for line in lines), repr(lines[0][:40]) if lines else "no line"


def reload_bad_keys(lab: Lab) -> Found:
    """SIGHUP after the certificate was replaced by one that has expired: can others still join?"""
    from omen.net.security.key_files import authority_in, make_authority, make_node

    keys = lab.folder / "keys"
    make_authority(keys, "omen", 30)
    for name in ("n1", "n2"):
        make_node(keys, authority_in(keys), "omen", name, 30)
    first = lab.start("n1", security=keys_in(keys, "n1") | {"watch_s": 3600.0})
    first.seconds_until_up()
    make_node(lab.folder / "late", authority_in(keys), "omen", "n1", 0)
    for end in ("pem", "key"):
        (lab.folder / "late" / f"n1.{end}").replace(keys / f"n1.{end}")
    first.process.send_signal(signal.SIGHUP)
    time.sleep(2.0)
    second = lab.start("n2", join=[first.address], security=keys_in(keys, "n2"))
    took = second.seconds_until_up()
    said = "key_renewal_failed" in first.said()
    return (
        took is not None and said,
        f"another is up after {told(took)}, the failure is {'told' if said else 'not told'}",
    )


def service_manager(lab: Lab) -> Found:
    """A service manager is told that a node is ready."""
    path = lab.folder / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(path))
        channel.settimeout(5.0)
        lab.environment |= {"NOTIFY_SOCKET": str(path)}
        lab.start("n1").seconds_until_up()
        del lab.environment["NOTIFY_SOCKET"]
        try:
            words = channel.recv(4096).decode().replace("\n", " ")
        except TimeoutError:
            words = "nothing"
    return "READY=1" in words, words


def uvloop_certificates(lab: Lab) -> Found:
    """Two nodes with certificates on uvloop."""
    from omen.net.security.key_files import make_cluster_keys

    keys = lab.folder / "keys"
    make_cluster_keys(keys, "omen", ["n1", "n2"], 30)
    lab.environment |= {"OMEN_EVENT_LOOP": "uvloop"}
    first = lab.start("n1", security=keys_in(keys, "n1"))
    first.seconds_until_up()
    second = lab.start("n2", join=[first.address], security=keys_in(keys, "n2"))
    took = second.seconds_until_up()
    del lab.environment["OMEN_EVENT_LOOP"]
    return took is not None and wait(lambda: linked([first, second]), 10.0) is not None, f"up after {told(took)}"


def repaired_memory(lab: Lab) -> Found:
    """What a node with 100 topics takes after it has repaired a loss."""
    topics = [f"t{number}" for number in range(100)]
    first = lab.start("n1", topics=topics)
    first.seconds_until_up()
    others = [lab.start(f"n{number}", topics=topics, join=[first.address]) for number in (2, 3, 4)]
    for node in others:
        node.seconds_until_up()
    time.sleep(5.0)
    others.pop().process.kill()
    time.sleep(20.0)
    status = Path(f"/proc/{first.process.pid}/status").read_text()
    resident = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]
    return resident < 60.0, f"{resident:.0f} MB"

"""A log that nobody reads, or that cannot be written: nobody waits for it, and what is missing is counted."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from omen.net.observe.log_writer import LineWriter

PATIENCE_S = 20.0
FILLED = b"." * 31 + b"\n"
LINE = b"x" * 99 + b"\n"


class Pipe:
    """A pipe of which both ends are ours, with room for little."""

    def __init__(self) -> None:
        self.inward, self.outward = os.pipe()
        fcntl.fcntl(self.outward, fcntl.F_SETPIPE_SZ, 4096)

    def fill(self) -> None:
        """So that the next write waits for a reader."""
        os.set_blocking(self.outward, False)
        with suppress(BlockingIOError):
            while True:
                os.write(self.outward, FILLED)
        os.set_blocking(self.outward, True)

    def read(self, until: bytes) -> list[bytes]:
        """Lines, up to one that has this in it."""
        text = b""
        while until not in text or not text.endswith(b"\n"):
            text += os.read(self.inward, 1 << 16)
        return [line for line in text.splitlines(keepends=True) if line != FILLED]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    for descriptor in (made.inward, made.outward):
        with suppress(OSError):
            os.close(descriptor)


def told(count: int) -> bytes:
    return f"dropped {count}\n".encode()


def fill(writer: LineWriter, lines: int) -> None:
    """In a thread of its own: a writer that waits would hold up the test for ever."""
    filling = threading.Thread(target=lambda: [writer.put(LINE) for _ in range(lines)], daemon=True)
    filling.start()
    filling.join(PATIENCE_S)
    assert not filling.is_alive(), "it waits for a reader"


def wait_for_drops(writer: LineWriter, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while writer.dropped < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_pipe_that_nobody_reads_stops_nobody_and_tells_afterwards_what_is_missing(pipe: Pipe) -> None:
    pipe.fill()
    writer = LineWriter(pipe.outward, told, room_bytes=10_000)
    fill(writer, 5000)
    dropped = writer.dropped
    assert dropped > 4000 and writer.is_behind
    *kept, last = pipe.read(b"dropped")
    assert kept == [LINE] * (5000 - dropped) and last == told(dropped)
    writer.put(b"and on\n")
    assert pipe.read(b"and on") == [b"and on\n"]
    assert not writer.is_behind and writer.dropped == dropped


def test_the_count_stands_where_the_lines_would_have(pipe: Pipe) -> None:
    pipe.fill()
    writer = LineWriter(pipe.outward, told, room_bytes=10_000)
    fill(writer, 5000)
    dropped, before = writer.dropped, os.read(pipe.inward, 4096)
    while writer.is_behind:
        writer.put(b"l\n")
    assert before and writer.dropped >= dropped
    lines = pipe.read(b"l\n")
    assert lines.index(b"l\n") == lines.index(told(writer.dropped)) + 1


def test_at_its_end_a_process_waits_a_moment_and_not_twice(pipe: Pipe) -> None:
    writer = LineWriter(pipe.outward, told)
    fill(writer, 2000)
    assert not writer.flush(0.05)
    begun = time.monotonic()
    assert not writer.flush(PATIENCE_S) and time.monotonic() - begun < PATIENCE_S / 2
    writer.put(b"the end\n")
    assert pipe.read(b"the end")[-1] == b"the end\n"
    assert writer.flush(PATIENCE_S)


def test_a_pipe_whose_reader_has_left_and_a_full_disk_are_counted(pipe: Pipe) -> None:
    os.close(pipe.inward)
    gone = LineWriter(pipe.outward, told)
    fill(gone, 5)
    wait_for_drops(gone, 5)
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as disk:
            full = LineWriter(disk.fileno(), told)
            fill(full, 7)
            wait_for_drops(full, 7)
            assert full.is_behind and full.dropped == 7


def test_a_descriptor_that_does_not_wait_is_waited_for_by_the_thread(pipe: Pipe) -> None:
    os.set_blocking(pipe.outward, False)
    writer = LineWriter(pipe.outward, told)
    fill(writer, 2000)
    writer.put(b"the end\n")
    assert pipe.read(b"the end") == [LINE] * 2000 + [b"the end\n"]
    assert not writer.dropped


def test_a_process_that_was_forked_writes_its_own_lines(pipe: Pipe) -> None:
    writer = LineWriter(pipe.outward, told)
    writer.put(b"parent\n")
    assert pipe.read(b"parent")
    child = os.fork()
    if child == 0:
        writer.put(b"child\n")
        os._exit(0 if writer.flush(PATIENCE_S) else 1)
    assert pipe.read(b"child") == [b"child\n"] and os.waitpid(child, 0)[1] == 0

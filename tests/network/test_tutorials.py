"""The walks in docs/tutorials lead where they say."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from documented import ROOT

CHAT = ROOT / "examples" / "chat.py"
PATIENCE_S = 30.0


class Person:
    """A terminal: what is typed goes in, what is printed comes out."""

    def __init__(self, name: str, *more: str) -> None:
        self.name = name
        command = [sys.executable, str(CHAT), name, *more]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._printed: queue.Queue[str] = queue.Queue()
        self.seen: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._printed.put(line.rstrip("\n"))

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait_for(self, line: str) -> str:
        """Until a line that begins so was printed."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := next((seen for seen in self.seen if seen.startswith(line)), None)):
            self.seen.append(self._printed.get(timeout=max(0.0, deadline - time.monotonic())))
        return found

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def people(*names: str) -> Iterator[list[Person]]:
    first, *others = names
    room = [Person(first)]
    try:
        seed = re.search(r"[0-9.]+:[0-9]+", room[0].wait_for("-- "))
        assert seed is not None
        room += [Person(name, "--join", seed[0]) for name in others]
        for person in room[1:]:
            person.wait_for("-- ")
        yield room
    finally:
        for person in room:
            person.end()


def test_four_of_a_chat_miss_no_word_when_the_fifth_is_killed() -> None:
    with people("ann", "bob", "cid", "dan", "eve") as room:
        for person in room:
            person.say(f"here is {person.name}")
        for person in room:
            for other in room:
                if other is not person:
                    person.wait_for(f"{other.name}: here is {other.name}")
        ann, *others = room
        for number in range(20):
            others[number % 4].say(f"line {number}")
            if number == 5:
                os.kill(ann.process.pid, signal.SIGKILL)
            time.sleep(0.02)
        for person in others:
            for number in range(20):
                if others[number % 4] is not person:
                    person.wait_for(f"{others[number % 4].name}: line {number}")
            assert not [line for line in person.seen if "missing" in line]


def test_who_leaves_a_chat_with_an_empty_line_leaves_in_good_order() -> None:
    with people("ann", "bob") as (ann, bob):
        bob.say("good night")
        bob.say("")
        assert bob.process.wait(PATIENCE_S) == 0
        ann.wait_for("bob: good night")

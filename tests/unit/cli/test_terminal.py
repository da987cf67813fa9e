"""What a person at a terminal sees, and that a pipe gets plain text and loads nothing for it."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl

import pytest

SET_COLOURS = re.compile(r"\x1b\[[0-9;]*3[0-7]")
STYLES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
TABLE = """
from omen.cli.output import print_facts, print_table
print_facts([("nodes", 1200), ("topic-connected", True)])
print_table(("links of [red]", "average per node", "most"), [("gm [b]", 3.55, 31), ("low-oda", 12345, None)], "  ")
"""
PLAIN = """\
nodes            1,200
topic-connected  yes
  links of [red]  average per node  most
  gm [b]                      3.55    31
  low-oda                   12,345     -
"""
WORK = """
import sys, time
from omen.cli.output import say
from omen.cli.progress import counting, working
with working("designing", patience=0.0):
    time.sleep(0.3)
    say("WARNING: a remark [x]")
    time.sleep(0.2)
with counting("replaying", 1000, patience=0.0) as tell:
    for done in (0, 400):
        time.sleep(0.3)
        tell(done)
    time.sleep(0.2)
print("done")
"""
HELP = """
from contextlib import suppress
from omen.cli.main import main
with suppress(SystemExit):
    main(["design", "--help"])
"""
LOADED = "import sys; print(sorted(name for name in sys.modules if name.split('.')[0] in ('rich', 'pygments')))"


def at_a_terminal(*command: str, width: int = 80, **environment: str) -> tuple[int, str]:
    """Exit code and all that a command writes to a terminal of this width."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**known, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    return process.wait(), seen.decode().replace("\r\n", "\n")


def words_of(text: str) -> list[str]:
    return STYLES.sub("", text).replace("─", " ").replace("╶", " ").replace("╴", " ").split()


def test_tables_and_facts_are_drawn_with_all_that_the_plain_ones_say() -> None:
    code, seen = at_a_terminal("-c", TABLE)
    assert code == 0
    assert "\x1b[1mnodes          \x1b[0m  1,200\n" in seen
    assert "───" in seen and "\x1b[1m" in seen.split("1,200")[1]
    assert words_of(seen) == PLAIN.split()


def test_a_pipe_gets_plain_text() -> None:
    done = subprocess.run([sys.executable, "-c", TABLE], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (PLAIN, "")


def test_a_narrow_terminal_breaks_headers_between_words_and_cuts_nothing_off() -> None:
    _, seen = at_a_terminal("-c", TABLE, width=36)
    assert sorted(words_of(seen)) == sorted(PLAIN.split())
    assert max(len(line) for line in STYLES.sub("", seen).splitlines()) <= 36
    _, seen = at_a_terminal("-c", TABLE, width=12)
    assert sorted(words_of(seen)) == sorted(PLAIN.split())
    assert "12,345" in seen


@pytest.mark.parametrize(
    ("environment", "has_colour"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_errors_are_one_line_in_red_unless_colours_are_not_wanted(
    environment: dict[str, str], has_colour: bool
) -> None:
    check = ("-m", "omen.cli", "check")
    code, seen = at_a_terminal(*check, "--workload", "no/such [red]", "--overlay", "o", **environment)
    assert code == 2
    assert STYLES.sub("", seen).startswith("omen: no/such [red]: no such file")
    assert len(STYLES.sub("", seen).splitlines()) == 1
    assert bool(SET_COLOURS.search(seen)) is has_colour
    code, seen = at_a_terminal(*check, "--frobnicate", **environment)
    assert code == 2
    assert STYLES.sub("", seen).startswith("omen check: ")
    assert bool(SET_COLOURS.search(seen)) is has_colour


def test_progress_is_a_line_that_goes_and_remarks_stand_above_it() -> None:
    code, seen = at_a_terminal("-c", WORK)
    assert code == 0
    assert "designing" in seen and "0:00:00" in seen
    assert "400/1000" in seen and "━" in seen and " left" in seen
    assert "WARNING: a remark [x]\n" in STYLES.sub("", seen)
    assert seen.rstrip().endswith("done")
    last = seen[seen.rindex("400/1000") :]
    assert "\x1b[2K" in last, "the bar is wiped off"


def test_neither_a_pipe_nor_help_loads_what_draws() -> None:
    assert at_a_terminal("-c", HELP + LOADED)[1].endswith("[]\n")
    done = subprocess.run([sys.executable, "-c", TABLE + WORK + LOADED], capture_output=True, text=True, check=True)
    assert done.stdout == f"{PLAIN}done\n[]\n"
    assert done.stderr == "WARNING: a remark [x]\n"

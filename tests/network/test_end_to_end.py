"""Nothing is lost: real processes on loopback, killed, frozen, joined and changed while they publish."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .verdict import judge, read_log

ROOT = Path(__file__).parents[2]


LEAST_RATE = 50.0  # publications a second that are accepted while all of it happens
OPEN = ("--nodes", "20", "--topics", "30", "--kills", "9", "--minutes", "0.5")
TLS = ("--nodes", "12", "--topics", "30", "--kills", "5", "--minutes", "0.25", "--tls")


@pytest.mark.slow
@pytest.mark.parametrize("plan", [OPEN, TLS], ids=["open", "tls"])
def test_every_accepted_publication_reaches_every_lasting_subscriber_once_and_in_order(
    tmp_path: Path, plan: tuple[str, ...]
) -> None:
    command = [sys.executable, "-m", "tests.network.chaos", *plan]
    command += ["--rate", "90", "--stops", "1", "--replays", "4", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    rate, changes = re.findall(
        r"^publications accepted \d+, ([\d.]+) a second; topics taken up (\d+)$", done.stdout, re.M
    )[0]
    assert float(rate) >= LEAST_RATE
    assert int(changes) > 0
    told = done.stdout.splitlines()[0]
    assert "'cut nodes': " in told and "'coordinators': " in told
    assert re.search(r"joins=[1-9]", told) and re.search(r"stops=[1-9]", told) and "unrepaired=0" in told
    assert re.search(r"^lost 0$", done.stdout, re.MULTILINE)
    assert re.search(r"^duplicated 0$", done.stdout, re.MULTILINE)
    assert re.search(r"^replayed 4 recordings, \d+ inputs, different 0$", done.stdout, re.MULTILINE)


def write(folder: Path, name: str, *lines: str) -> None:
    (folder / f"{name}.log").write_text("".join(f"{line}\n" for line in lines))


def test_the_verdict_finds_what_is_lost_doubled_and_out_of_order(tmp_path: Path) -> None:
    write(tmp_path, "a", "1 I 7 1 a", "2 S tea", "10 P tea 1 1", "20 P tea 1 2", "30 P tea 1 3", "99 E")
    write(tmp_path, "b", "1 I 8 1 b", "2 S tea", "12 D tea 7 1 1", "32 D tea 7 1 3", "33 D tea 7 1 3", "99 E")
    verdict = judge(tmp_path.glob("*.log"))
    assert (verdict.publications, verdict.due) == (3, 6)
    assert (verdict.accepted, verdict.rate, verdict.changes) == (3, 150_000.0, 0)
    assert (verdict.lost, verdict.duplicated, verdict.disordered) == (4, 1, 1)
    assert not verdict.is_good


def test_the_verdict_asks_nothing_of_those_who_were_killed_or_came_later(tmp_path: Path) -> None:
    write(tmp_path, "a", "1 I 7 1 a", "10 P tea 1 1", "20 P tea 1 2", "99 E")
    write(tmp_path, "b", "1 I 8 1 b", "2 S tea", "12 D tea 7 1 1", "13 S jazz")
    write(tmp_path, "c", "1 I 9 1 c", "15 S tea", "22 D tea 7 1 2", "99 E")
    write(tmp_path, "d", "1 I 5 1 d", "2 S tea", "25 U tea", "99 E")
    verdict = judge(tmp_path.glob("*.log"))
    assert (verdict.due, verdict.lost, verdict.changes) == (1, 0, 1)
    assert verdict.is_good
    assert not read_log(tmp_path / "b.log").ended_well

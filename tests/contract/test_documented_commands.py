"""Every command and example of README, CONTRIBUTING and docs does what a reader may expect of it.

A command of `omen` is run as it stands, page by page, in a folder with what the page takes for granted, with smaller
numbers where SMALLER says so. What needs a cluster, hours or a live network is named in ELSEWHERE with the test that
does the same on a small scale, and its words are held against the real parser. What is neither fails here. Commands
that start Spark are run by tests/spark/test_documented.py.
"""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from documented import (
    LANGUAGES,
    PAGES,
    PARSERS,
    ROOT,
    Command,
    blocks,
    commands,
    every_command,
    mentioned,
    others,
    until_shell,
)
from omen.cli.main import main, make_parser

SPARK_PAGES = ("docs/evaluation.md", "docs/pipeline.md")

SMALLER = {
    "--mean-down 450 --duration 86400": "--mean-down 450 --duration 8640",
    "--seeds 0..299 --workers 2": "--seeds 0..1 --workers 2",
    "--worlds beyond --seeds 0..99": "--worlds beyond --seeds 0..0",
    "--without former_neighbours_report --stop": "--without former_neighbours_report --stop --seeds 0..0",
    "--without holes_end --stop": "--without holes_end --stop --seeds 1..1",
}
BEFORE = {"omen replay --workload r --overlay r": "omen churn random --workload r --rounds 5 --out more.parquet"}
"""What a page leaves to its reader: here, from where `more.parquet` comes."""

LIVE = "tests/network/test_commands.py"
MQTT = "tests/network/test_mqtt.py"
REPRODUCED = "tests/unit/report/test_reproduce.py"
CLUSTER = f"{LIVE}::test_a_cluster_is_brought_up_killed_brought_back_and_ended"
ELSEWHERE = {
    "omen node --config": (f"{LIVE}::test_a_node_leaves_in_good_order_on_sigterm_and_logs_json", "runs until stopped"),
    "omen node --mqtt": (f"{MQTT}::test_a_node_serves_mqtt_by_one_command", "runs until stopped"),
    "omen keys user": ("tests/unit/net/mqtt/test_users.py::test_the_command_adds_and_changes_users", "asks"),
    "omen sub prices": (f"{LIVE}::test_what_is_published_by_one_command_is_printed_by_another", "needs a node"),
    "omen pub prices": (f"{LIVE}::test_what_is_published_by_one_command_is_printed_by_another", "needs a node"),
    "omen cluster up": (CLUSTER, "six nodes there instead of twenty"),
    "omen watch": ("tests/network/test_control.py", "needs a cluster"),
    "omen status": (CLUSTER, "needs a cluster"),
    "omen cluster kill": (CLUSTER, "needs a cluster"),
    "omen cluster start": (CLUSTER, "needs a cluster"),
    "omen cluster down": (CLUSTER, "needs a cluster"),
    "omen reproduce all --scale quick": (REPRODUCED, "takes twenty minutes"),
    "omen reproduce all --scale full": (
        "tests/unit/report/test_reproduce.py",
        "takes hours, and data that is not here",
    ),
    "spark-submit": (
        "tests/spark/test_session.py::test_the_same_command_runs_under_spark_submit",
        "on a smaller table",
    ),
    "make demo": ("tests/network/test_demo.py", "its two commands are run by tests of their own"),
    "make test": ("tests", "is this"),
    "NUMBA_BOUNDSCHECK=1": ("tests", "is this, compiled anew, which takes minutes"),
    "make release": ("tests/unit/tools/test_releases.py", "builds, which takes a minute"),
    "pip install dist/": ("tests/unit/tools/test_releases.py", "is part of make release"),
    "make claims": (REPRODUCED, "needs a run at full scale"),
    ".venv/bin/python -m tests.paper.readings": ("tests/paper", "takes minutes"),
    ".venv/bin/python -m tests.network.chaos": ("tests/network/test_end_to_end.py", "takes minutes to half an hour"),
    ".venv/bin/python -m tests.network.cutting": ("tests/network/test_cut_and_heal.py", "takes a minute"),
    ".venv/bin/python -m tests.network.cycles": ("tests/network/test_cycles.py", "takes ten minutes"),
    ".venv/bin/python -m tests.network.leave_and_crash": ("tests/network/test_leave_and_crash.py", "takes ten minutes"),
    ".venv/bin/python -m tests.network.upgrading": ("tests/network/test_upgrade.py", "takes minutes"),
    ".venv/bin/python -m tests.network.everything": ("tests/network/test_end_to_end.py", "takes an hour"),
    "omen sweep examples/friends.toml": ("tests/contract/test_tutorials.py", "needs a real graph"),
    "python examples/chat.py": ("tests/network/test_tutorials.py", "runs until stopped"),
    ".venv/bin/python -m tests.network.fuzz": ("tests/simulation/test_hostile.py", "takes an hour"),
}
NO_COMMANDS = {
    "CONTRIBUTING.md": ["cli > report > pipeline"],
    "docs/architecture.md": ["cli > report > pipeline", "raw data -> "],
    "docs/operations.md": ["2026-11-16T03:"],
    "docs/reliability.md": ["publications ", "lost ", "duplicated ", "out of order "],
    "docs/tables.md": ["w/"],
    "docs/tutorials/chat.md": ["pkill "],
}
"""How lines of indented blocks begin that show something else."""


def elsewhere(command: Command) -> str | None:
    return next((start for start in ELSEWHERE if command.text.startswith(start)), None)


def parse(words: list[str]) -> argparse.Namespace:
    """What the real parser makes of a command; the test fails where it makes nothing of it."""
    try:
        return make_parser().parse_args(until_shell(words))
    except SystemExit as refused:
        raise AssertionError(f"omen {shlex.join(words)} is refused") from refused


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pages take for granted: a workload w, an overlay o.parquet, churn c, scenarios and examples."""
    folder = tmp_path_factory.mktemp("prepared")
    w, o, c = folder / "w", folder / "o.parquet", folder / "c.parquet"
    assert main(f"workload synth --nodes 30 --topics 8 --popularity zipf:1 --sizes 3 --seed 7 --out {w}".split()) == 0
    assert main(f"design --workload {w} --out {o}".split()) == 0
    assert main(f"churn random --workload {w} --rounds 12 --seed 7 --out {c}".split()) == 0
    shutil.copy(c, folder / "c")
    shutil.copytree(ROOT / "scenarios", folder / "scenarios")
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


@pytest.fixture
def desk(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, where the commands of a page are run."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def runs_here(command: Command) -> bool:
    return not (
        elsewhere(command) or command.is_usage or command.page in SPARK_PAGES or command.starts_spark
    ) and command.text.startswith("omen ")


@pytest.mark.parametrize("page", [page for page in PAGES if any(map(runs_here, commands(page)))])
def test_the_commands_of_a_page_do_what_they_say(page: str, desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in filter(runs_here, commands(page)):
        for start, first in BEFORE.items():
            if command.text.startswith(start):
                assert main(shlex.split(first)[1:]) == 0
        text = command.text
        for large, small in SMALLER.items():
            text = text.replace(large, small)
        words = shlex.split(text, comments=True)[1:]
        capsys.readouterr()
        status = main(until_shell(words))
        printed = capsys.readouterr()
        assert status in ((0, 1) if "--without" in words else (0,)), f"{command}\n{printed.err}"
        if ">" in words:
            (desk / words[words.index(">") + 1]).write_text(printed.out)
        for option in ("--out", "--keep"):
            if option in words:
                assert (desk / words[words.index(option) + 1]).exists(), command


def test_every_command_is_run_or_says_where_something_like_it_is() -> None:
    stray = [
        str(command)
        for command in every_command()
        if not (
            runs_here(command)
            or command.is_usage
            or elsewhere(command)
            or command.page in SPARK_PAGES
            or command.starts_spark
        )
    ]
    assert stray == []


def test_what_is_done_elsewhere_smaller_or_before_is_still_documented() -> None:
    texts = [command.text for command in every_command()]
    assert [one for one in (*ELSEWHERE, *BEFORE) if not any(text.startswith(one) for text in texts)] == []
    assert [large for large in SMALLER if not any(large in text for text in texts)] == []


@pytest.mark.parametrize("start", ELSEWHERE)
def test_the_tests_that_stand_for_a_command_exist(start: str) -> None:
    where, reason = ELSEWHERE[start]
    path, _, name = where.partition("::")
    assert (ROOT / path).exists()
    assert reason
    if name:
        assert f"def {name}(" in (ROOT / path).read_text()


def test_blocks_hold_commands_or_what_is_known_to_be_none() -> None:
    unknown = [
        f"{page}: {line}"
        for page in PAGES
        for line in others(page)
        if not any(line.startswith(start) for start in NO_COMMANDS.get(page, []))
    ]
    assert unknown == [], "neither a command nor known: add it to documented.PROGRAMS or to NO_COMMANDS"
    languages = {(block.page, block.language) for page in PAGES for block in blocks(page) if block.language is not None}
    assert [one for one in languages if one[1] not in LANGUAGES] == []


@pytest.mark.parametrize("command", [one for one in every_command() if not one.is_usage and one.words[0] == "omen"])
def test_every_omen_command_is_one_the_parser_takes(command: Command) -> None:
    parse(command.arguments)


def test_the_examples_of_the_help_are_commands_the_parser_takes() -> None:
    examples = 0
    for parser in PARSERS.values():
        for line in re.findall(r"^  (omen [a-z].*)$", parser.epilog or "", re.MULTILINE):
            examples += 1
            parse(shlex.split(line, comments=True)[1:])
    assert examples > 20


def parser_of(text: str) -> argparse.ArgumentParser:
    """The parser of the command that a text begins with."""
    words = text.split()[1:]
    known = max(length for length in range(len(words) + 1) if tuple(words[:length]) in PARSERS)
    assert known or words[0].startswith("-"), f"there is no command {text!r}"
    return PARSERS[tuple(words[:known])]


@pytest.mark.parametrize(("page", "text"), [(page, text) for page in PAGES for text in mentioned(page)])
def test_what_the_text_mentions_exists(page: str, text: str) -> None:
    words = text.split()
    if words[0] == "omen":
        taken = parser_of(text)._option_string_actions
        assert [word for word in words if word.startswith("--") and word not in taken] == []
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif words[0] == "pip":
        extras = re.findall(r"\[(\w+)\]", text)
        assert extras
        assert all(re.search(rf"^{extra} = \[", (ROOT / "pyproject.toml").read_text(), re.M) for extra in extras)
    else:
        assert parses_as_module(words)


def parses_as_module(words: list[str]) -> bool:
    """Whether a command of Python is a script that exists or a module whose own parser takes its words."""
    if words[1] != "-m":
        return (ROOT / words[1]).is_file()
    module = importlib.import_module({"bench": "bench.__main__", "omen.cli": "omen.cli.main"}.get(words[2], words[2]))
    return not hasattr(module, "main") or accepts(module.main, words[2:])


class Parsed(Exception):
    """The words were understood: nothing is run."""


def accepts(run: Any, words: list[str]) -> bool:
    parse_args = argparse.ArgumentParser.parse_args

    def only_parse(self: argparse.ArgumentParser, args: Any = None, namespace: Any = None) -> Any:
        parse_args(self, args, namespace)
        raise Parsed

    told = sys.argv
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(argparse.ArgumentParser, "parse_args", only_parse)
        patched.setattr(sys, "argv", words)
        try:
            run()
        except Parsed:
            return True
        except SystemExit:
            return False
        finally:
            sys.argv = told
    return False


@pytest.mark.parametrize("command", [one for one in every_command() if "python" in one.words[0]], ids=str)
def test_every_command_of_python_is_one_its_module_takes(command: Command) -> None:
    assert parses_as_module(command.words)


def test_every_target_of_the_makefile_calls_omen_as_it_can_be_called() -> None:
    makefile = (ROOT / "Makefile").read_text().replace("$(WORKERS)", "2").replace("$(if $(WATCH),--watch)", "--watch")
    called = re.findall(r"\$\(BIN\)/omen ([^;|\\\n]+)", makefile)
    assert len(called) >= 4
    for line in called:
        parse(shlex.split(line))
    for command in every_command():
        if command.words[0] == "make":
            assert re.search(rf"^{command.words[1]}:", makefile, re.MULTILINE), command

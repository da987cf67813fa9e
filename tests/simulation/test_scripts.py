"""Golden traces: each script of tests/scripts leads to the very trace that stands in it.

`pytest tests/simulation/test_scripts.py --rewrite` writes what comes out into the scripts, to be read in review.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest
from tests.simulation.scripts import BadScript, Script, parse, play, scripts

from omen.protocol.events import RepairStage
from omen.protocol.messages.base import EventKind
from omen.sim.scenario import Action, NetworkSpec

SCRIPTS = Path(__file__).parents[1] / "scripts"
NAMES = {path.stem for path in scripts(SCRIPTS)}
COMMANDS = {
    action: {
        "resubscribe": ("add", "drop"),
        "partition": ("cut",),
        "scramble": ("unlink",),
        "join": ("join", "begin"),
    }.get(action, (action,))
    for action in Action
}
"""What can happen in a scenario, by the commands that do it in a script."""
FAULTY_NETWORKS = {
    "loss": "lost-message",
    "duplication": "duplicate-message",
    "refusal_ms": "refused-connection",
    "silent_crashes": "silent-crash",
}
"""What can be wrong with a scenario's network, and the script that shows it. Clocks that drift show in no script."""
SCRIPTS_OF_EVENTS = {
    EventKind.JOIN: "event-join",
    EventKind.LEAVE: "event-leave",
    EventKind.ADD: "event-add",
    EventKind.DROP: "event-drop",
    EventKind.AUDIT: "split-found-by-audit",
}


@pytest.mark.parametrize("path", scripts(SCRIPTS), ids=lambda path: path.stem)
def test_a_script_leads_to_the_trace_in_it(path: Path, request: pytest.FixtureRequest) -> None:
    expected = path.read_text()
    found = play(expected)
    if request.config.getoption("--rewrite"):
        path.write_text(found)
        return
    lines = expected.splitlines(), found.splitlines()
    difference = "\n".join(difflib.unified_diff(*lines, "expected", "found", lineterm="", n=2))
    assert not difference, f"{path.name} (accept with --rewrite)\n{difference}"


@pytest.mark.parametrize(("number", "stage"), [*enumerate(RepairStage, 1)])
def test_every_stage_of_a_repair_has_its_script_and_one_in_which_the_coordinator_crashes(
    number: int, stage: RepairStage
) -> None:
    """A stage that is new lacks both, and fails here."""
    shown = (SCRIPTS / f"stage-{number}-{stage}.txt").read_text()
    assert f"n4 repairs the loss of n3: {stage} " in shown
    crashes = (SCRIPTS / f"coordinator-crashes-while-{stage}.txt").read_text()
    at_once = rf"^(\S+)  n4 repairs the loss of n3: {stage} .*\n(\1 .*\n)*\1  n4 crashes$"
    assert re.search(at_once, crashes, re.MULTILINE)


@pytest.mark.parametrize("kind", EventKind)
def test_every_kind_of_event_has_its_script(kind: EventKind) -> None:
    assert SCRIPTS_OF_EVENTS[kind] in NAMES


def used_commands() -> set[str]:
    blocks = [block for path in scripts(SCRIPTS) for block in parse(path.read_text())]
    return {line.split()[0] for block in blocks for line in block.commands}


@pytest.mark.parametrize("action", Action)
def test_everything_that_can_happen_in_a_scenario_happens_in_a_script(action: Action) -> None:
    assert set(COMMANDS[action]) <= used_commands()


def test_every_fault_of_a_network_has_its_script() -> None:
    faults = set(NetworkSpec.__struct_fields__) - {"latency_ms", "detection_ms", "links", "drift"}
    assert faults == set(FAULTY_NETWORKS)
    assert set(FAULTY_NETWORKS.values()) <= NAMES


def test_every_command_of_scripts_is_used() -> None:
    assert {name.removeprefix("do_") for name in vars(Script) if name.startswith("do_")} - used_commands() == {"seed"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nodes n1:{a}\n", "lack ----"),
        ("dance n1\n----\n", "no command 'dance'"),
        ("nodes bob:{a}\n----\n", "no name of a node"),
        ("nodes n1:a\n----\n", "no set of topics"),
        ("nodes n1:{a} n2:{a}\nrun 5\n----\n", "no time"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadScript, match=why):
        play(text)


def test_a_script_played_twice_is_the_same() -> None:
    text = scripts(SCRIPTS)[0].read_text()
    assert play(text) == play(play(text))

"""Golden traces: each script of tests/scripts leads to the very trace that stands in it.

`pytest tests/simulation/test_scripts.py --rewrite` writes what comes out into the scripts, to be read in review.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from tests.simulation.scripts import BadScript, play, scripts

SCRIPTS = Path(__file__).parents[1] / "scripts"


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

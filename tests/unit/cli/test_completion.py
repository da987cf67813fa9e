"""omen completion: what a shell offers after the words typed so far."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest

from commands import run


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(f"completion {shell}") == 0
    return capsys.readouterr().out


def offered_by_bash(typed: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("there is no bash")
    words = typed.split(" ")
    line = f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _omen"
    asked = "\n".join((script("bash", capsys), line, 'printf "%s\\n" "${COMPREPLY[@]}"'))
    found = subprocess.run([bash, "-c", asked], capture_output=True, text=True, check=True)
    assert found.stderr == ""
    return set(found.stdout.split())


@pytest.mark.parametrize(
    ("typed", "offered", "kept_back"),
    [
        ("omen ", {"design", "node", "workload"}, {"--algorithm"}),
        ("omen des", {"design"}, {"node"}),
        ("omen workload ", {"synth", "import", "profile"}, {"design"}),
        ("omen workload import --n", {"--node-column"}, {"--topic-column"}),
        ("omen design --engine ", {"local", "spark"}, {"--engine"}),
        ("omen completion ", {"bash", "zsh", "fish"}, {"design"}),
        ("omen design --algorithm lo", {"low-oda", "low-oda-2"}, {"gm", "--algorithm"}),
        ("omen replay --system ", {"shadow", "omen"}, {"--system"}),
    ],
)
def test_bash_offers_commands_options_and_choices(
    typed: str, offered: set[str], kept_back: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = offered_by_bash(typed, capsys)
    assert offered <= given
    assert not given & kept_back


@pytest.mark.parametrize("typed", ["omen design --workload ", "omen check --overlay o", "omen pub --join "])
def test_where_an_option_takes_any_value_bash_is_left_to_offer_files(
    typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert offered_by_bash(typed, capsys) == set()
    assert script("bash", capsys).strip().endswith("complete -o default -F _omen omen")


def test_fish_has_a_line_for_each_option(capsys: pytest.CaptureFixture[str]) -> None:
    lines = script("fish", capsys).splitlines()
    assert all(line.startswith("complete -c omen -n ") for line in lines)
    assert any("__fish_seen_subcommand_from design" in line and " -l algorithm " in line for line in lines)
    assert any("'local spark'" in line and " -l engine " in line for line in lines)
    assert any(" -l workload -r " in line for line in lines), "a value follows, and files are offered for it"


def test_zsh_takes_the_script_of_bash(capsys: pytest.CaptureFixture[str]) -> None:
    assert script("zsh", capsys).endswith(script("bash", capsys))

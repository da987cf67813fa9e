"""What the README shows is what the commands print."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from documented import commands
from omen.cli.main import main
from omen.systems import ALGORITHMS

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
TIMES = re.compile(r"\d+\.\d+ s$", re.MULTILINE)


def test_the_demo_prints_what_the_readme_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--no-live", "--out", str(tmp_path / "demo")]) == 0
    assert BLOCKS[0] in capsys.readouterr().out


def test_the_commands_of_the_readme_print_what_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(Path(__file__).parents[2] / "examples", "examples")
    session = [command for command in commands("README.md") if command.printed]
    assert len(session) == 9
    for command in session:
        assert main(command.words[1:]) == 0
        assert TIMES.sub("T", capsys.readouterr().out.strip()) == TIMES.sub("T", command.printed.strip())


def test_the_readme_lists_every_algorithm() -> None:
    listed = re.findall(r"^\| `([a-z0-9-]+)` \|", README, re.MULTILINE)
    assert listed == list(ALGORITHMS)


def test_every_link_of_the_documentation_leads_somewhere() -> None:
    root = Path(__file__).parents[2]
    broken = []
    for page in [*root.glob("*.md"), *root.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(root)}: {target}")
    assert broken == []

"""The hooks before a commit, `make lint` and CI check the same things."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_hooks_are_the_pieces_of_lint() -> None:
    found = re.search(r"^lint: ([a-z ]+?) *##", MAKEFILE, re.MULTILINE)
    assert found is not None
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"entry: make --no-print-directory (\S+)$", hooks, re.MULTILINE) == found[1].split()
    assert re.findall(r"- repo: (\S+)", hooks) == ["local"]


def test_every_command_of_make_says_what_it_is_for() -> None:
    phony = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)
    assert phony is not None
    names = phony[1].replace("\\\n", " ").split()
    assert [name for name in names if not re.search(rf"^{name}:.* ## \S", MAKEFILE, re.MULTILINE)] == []


def test_the_site_is_built_so_that_warnings_fail() -> None:
    building = re.findall(r"mkdocs build.*", MAKEFILE)
    assert len(building) == 1
    assert not re.search(r" -q| --quiet", building[0]), "a quiet build counts no warnings, so that strict means nothing"
    assert "\nstrict: true\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_the_lock_names_no_index() -> None:
    assert not re.search(r"https?:|file:|--(?:extra-)?index", (ROOT / "requirements.lock").read_text(encoding="utf-8"))

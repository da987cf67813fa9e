"""What the documentation tells its readers to run: commands in blocks, commands in the text, examples."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from omen.cli.main import make_parser

ROOT = Path(__file__).parents[1]
PAGES = tuple(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
)
PROGRAMS = ("omen", "make", "python", ".venv/bin/python", ".venv/bin/omen", "pip", "uv", "git", "spark-submit")
LANGUAGES = ("", "python", "toml")
"""Of fenced blocks; in those without one, what follows `$ ` is a command and all else what it prints."""

_ASSIGNMENT = re.compile(r"[A-Z_]+=(\$\([^)]*\)|\S+) ")
_SPAN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block, or an indented one, whose language is None."""

    page: str
    line: int
    language: str | None
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True)
class Command:
    page: str
    text: str
    printed: str = ""

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)

    @property
    def arguments(self) -> list[str]:
        """What the program is given: without its name, and without where the shell sends what it prints."""
        return until_shell(self.words[1:])

    @property
    def starts_spark(self) -> bool:
        return bool(re.search(r"^omen (churn google|workload social|.*--engine spark)", self.text))

    @property
    def is_usage(self) -> bool:
        """How a command is called rather than a call of it."""
        return self.page == "docs/cli.md"

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"


def until_shell(words: list[str]) -> list[str]:
    return words[: min((place for place, word in enumerate(words) if word in (">", "|")), default=len(words))]


def blocks(page: str) -> list[Block]:
    found: list[Block] = []
    language: str | None = None
    held: list[str] = []
    start, fenced = 0, False
    for number, line in enumerate([*(ROOT / page).read_text(encoding="utf-8").splitlines(), ""], start=1):
        if line.startswith("```"):
            if fenced:
                found.append(Block(page, start, language, tuple(held)))
            fenced, language, held, start = not fenced, line[3:], [], number + 1
        elif fenced:
            held.append(line)
        elif line.startswith("    "):
            held, start = [*held, line[4:]], start if held else number
        elif held:
            found.append(Block(page, start, None, tuple(held)))
            held = []
    return found


def is_command(line: str) -> bool:
    while assigned := _ASSIGNMENT.match(line):
        line = line[assigned.end() :]
    return line.split(" ")[0] in PROGRAMS


def commands(page: str) -> list[Command]:
    """All commands that stand in blocks, lines that go on with options joined."""
    return [command for block in blocks(page) for command in _commands_of(block)]


def _commands_of(block: Block) -> Iterator[Command]:
    if block.language:
        return
    if block.language == "" and "$ " in block.text:
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield Command(block.page, command, printed)
        return
    joined: list[str] = []
    for line in block.lines:
        if is_command(line):
            joined.append(line)
        elif joined and line.startswith("  "):
            joined[-1] += " " + line.strip()
    yield from (Command(block.page, line) for line in joined)


def others(page: str) -> list[str]:
    """Lines of indented blocks that are no command."""
    lines = [line for block in blocks(page) if block.language is None for line in block.lines]
    return [line for line in lines if not is_command(line) and not line.startswith("  ")]


def mentioned(page: str) -> list[str]:
    """Commands in the running text."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    spans = [" ".join(span.split()) for span in _SPAN.findall(text)]
    return [span for span in spans if is_command(span) and " " in span]


def every_command() -> list[Command]:
    return [command for page in PAGES for command in commands(page)]


def subparsers(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                yield from subparsers(one, (*words, name))


PARSERS = dict(subparsers(make_parser()))
"""By the words that lead there: every command of `omen`."""

"""Count duplicated code in src: python -m tools.duplicates [FOLDER]. More pairs than are allowed fail.

Two runs of at least six lines that read the same are a pair, in one file or in two. Blank lines, comments, docstrings,
imports, signatures and lines of brackets alone do not count. `[tool.omen.duplicates]` in pyproject.toml says how many
pairs are allowed; that number only ever goes down.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
WINDOW = 6
COUNTED = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING)
SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


class Line(NamedTuple):
    """A line that counts: where it stands, and its tokens with one blank between them."""

    number: int
    text: str


class Pair(NamedTuple):
    """The same lines at two places, as long as they go on being the same."""

    first: str
    first_line: int
    second: str
    second_line: int
    lines: int

    def __str__(self) -> str:
        return f"{self.first}:{self.first_line} and {self.second}:{self.second_line}: {self.lines} lines the same"


def counted_lines(source: str) -> list[Line]:
    """The lines of a module that may count as duplicated."""
    left_out = set(_lines_left_out(ast.parse(source)))
    tokens: dict[int, list[tokenize.TokenInfo]] = defaultdict(list)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SKIPPED and token.start[0] not in left_out:
            tokens[token.start[0]].append(token)
    return [
        Line(number, " ".join(token.string for token in line))
        for number, line in tokens.items()
        if any(token.type in COUNTED for token in line)
    ]


def _lines_left_out(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from range(node.lineno, max(node.body[0].lineno, node.lineno + 1))


def find_pairs(sources: dict[str, str], window: int = WINDOW) -> list[Pair]:
    """All pairs in these modules, by name and text, the longest first."""
    files = {name: counted_lines(source) for name, source in sources.items()}
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, lines in files.items():
        for start in range(len(lines) - window + 1):
            places[tuple(line.text for line in lines[start : start + window])].append((name, start))
    found = []
    for same in places.values():
        for (first, one), (second, other) in combinations(same, 2):
            before = one and other and files[first][one - 1].text == files[second][other - 1].text
            if before or (first == second and other - one < window):
                continue
            length = window
            while _goes_on(files[first], one + length, files[second], other + length):
                length += 1
            pair = Pair(first, files[first][one].number, second, files[second][other].number, length)
            found.append(pair)
    return sorted(found, key=lambda pair: (-pair.lines, pair))


def _goes_on(first: list[Line], one: int, second: list[Line], other: int) -> bool:
    return one < len(first) and other < len(second) and first[one].text == second[other].text


def allowed_pairs() -> int:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return int(settings["tool"]["omen"]["duplicates"]["pairs"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.duplicates", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "src", help="whose Python files are read (src)")
    folder: Path = parser.parse_args().folder
    files = sorted(folder.rglob("*.py"))
    pairs = find_pairs({str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files})
    allowed = allowed_pairs()
    if len(pairs) <= allowed:
        print(f"Duplicated code: {len(pairs)} pairs, {allowed} allowed.")
        return 0
    print(*pairs, sep="\n", file=sys.stderr)
    print(f"Duplicated code: {len(pairs)} pairs, {allowed} allowed. Share what is the same.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

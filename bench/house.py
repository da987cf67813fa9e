"""How the house is built, counted from a source tree without importing it.

    python -m bench.house --before PATH_OF_ITS_SRC [--now src] [--write]

prints the table of docs/architecture.md, another version of the code next to the present one; with `--write` it is put
into the page. What is counted:

- files and lines of rooms: Python files under `src/omen`, all lines of them;
- functions with more than seven parameters, without `self` and `cls`;
- string-keyed dispatches: `if`, `elif` and `case` branches that compare with a string literal, and timers,
  notifications and lookups that are made with a string, or a tuple that begins with one, as their key. Some are no
  fault: the kind of an event on the wire, the path of a web page, a word of a scenario file;
- reaches into the core: expressions outside `protocol` that read what a core holds (its parts and its private names)
  from something called core or node.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
PARAMETERS = 7
ROOMS = ("protocol", "net", "sim")
CORE_FILES = ("protocol/omen.py", "protocol/node.py", "protocol/spidercast/node.py")
"""Where a core is, in any version."""
OPEN_TO_ALL = frozenset({"config", "stopped"})
"""What a core holds and the outside may read."""
KEYED = frozenset({"set_timer", "SetTimer", "notify", "Notify", "find"})
"""What is called with a key as the first argument, for `find` as the second."""


@dataclass(frozen=True, slots=True)
class Source:
    """One parsed file. `path`: relative to the package."""

    path: str
    lines: int
    tree: ast.Module

    @property
    def room(self) -> str:
        return self.path.partition("/")[0] if "/" in self.path else ""


def read_sources(src: Path) -> list[Source]:
    """All files of the package `omen` under a folder `src`."""
    package = src / "omen"
    sources = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        sources.append(Source(path.relative_to(package).as_posix(), len(text.splitlines()), ast.parse(text)))
    return sources


def wide_functions(sources: Iterable[Source]) -> list[str]:
    """Functions with more parameters than the house allows, as `file:line name`."""
    found = []
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = node.args
                names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
                if len(names) - (names[:1] in (["self"], ["cls"])) > PARAMETERS:
                    found.append(f"{source.path}:{node.lineno} {node.name}")
    return found


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def holds_text(node: ast.AST) -> bool:
    """A string, or a tuple, list or set of them."""
    return is_text(node) or (isinstance(node, ast.Tuple | ast.List | ast.Set) and any(map(is_text, node.elts)))


def string_branches(sources: Iterable[Source]) -> list[str]:
    """Branches that compare with a string literal, as `file:line`."""
    found = []
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.If):
                compared = any(
                    isinstance(one, ast.Compare) and any(map(holds_text, (one.left, *one.comparators)))
                    for one in ast.walk(node.test)
                )
                if compared and "__name__" not in ast.unparse(node.test):
                    found.append(f"{source.path}:{node.lineno}")
            elif isinstance(node, ast.match_case) and any(
                isinstance(one, ast.MatchValue) and is_text(one.value) for one in ast.walk(node.pattern)
            ):
                found.append(f"{source.path}:{node.pattern.lineno}")
    return found


def string_keys(sources: Iterable[Source]) -> list[str]:
    """Timers, notifications and lookups made with a string for a key, as `file:line`."""
    found = []
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and last_name(node.func) in KEYED:
                place = 1 if last_name(node.func) == "find" else 0
                key = node.args[place] if len(node.args) > place else None
                first = key.elts[0] if isinstance(key, ast.Tuple) and key.elts else key
                if first is not None and is_text(first):
                    found.append(f"{source.path}:{node.lineno}")
    return found


def last_name(node: ast.AST) -> str:
    """What an expression is called: the last name of `self.world.cores[place]` is `cores`."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(_, name):
            return name
        case ast.Subscript(value):
            return last_name(value)
        case ast.Call(function):
            return last_name(function)
        case _:
            return ""


def held_by_cores(sources: Iterable[Source]) -> set[str]:
    """What cores assign to themselves, but for what is open to all."""
    return {
        node.attr
        for source in sources
        if source.path in CORE_FILES
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and last_name(node.value) == "self"
    } - OPEN_TO_ALL


def reaches(sources: list[Source]) -> list[str]:
    """Expressions outside protocol that read what a core holds, as `file:line core.part`."""
    held = held_by_cores(sources)
    found = []
    for source in sources:
        if source.room == "protocol":
            continue
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute) and node.attr in held and is_core(node.value):
                found.append(f"{source.path}:{node.lineno} {ast.unparse(node)}")
    return found


def is_core(node: ast.AST) -> bool:
    name = last_name(node)
    return name in ("core", "cores", "node", "nodes", "omen")


def most_side_by_side(sources: Iterable[Source]) -> int:
    """The modules of the fullest folder inside protocol."""
    folders = Counter(
        source.path.rpartition("/")[0]
        for source in sources
        if source.room == "protocol" and not source.path.endswith("__init__.py")
    )
    return max(folders.values(), default=0)


def rows(sources: list[Source]) -> Iterator[tuple[str, int]]:
    """The table of one version."""
    yield "files", len(sources)
    yield "lines", sum(source.lines for source in sources)
    for room in ROOMS:
        inside = [source for source in sources if source.room == room]
        yield f"files in `{room}`", len(inside)
        yield f"lines in `{room}`", sum(source.lines for source in inside)
    yield "most files side by side in `protocol`", most_side_by_side(sources)
    wide = wide_functions(sources)
    yield "functions over seven parameters", len(wide)
    yield "of these outside `kernels`", sum(not one.startswith("kernels/") for one in wide)
    dispatching = [source for source in sources if source.room in ROOMS]
    yield "branches on a string in `protocol`", len(string_branches(s for s in dispatching if s.room == "protocol"))
    yield (
        "branches on a string in `net` and `sim`",
        len(string_branches(s for s in dispatching if s.room != "protocol")),
    )
    yield "timers, notifications and lookups with a string key", len(string_keys(dispatching))
    yield "reaches into the core from outside `protocol`", len(reaches(sources))


def table(before: list[Source], now: list[Source]) -> str:
    lines = ["| | v0.1.0 | now |", "| --- | ---: | ---: |"]
    for (name, then), (_, since) in zip(rows(before), rows(now), strict=True):
        lines.append(f"| {name} | {then:,} | {since:,} |")
    return "\n".join(lines)


def write_into_page(text: str) -> None:
    """Between the marks of the page."""
    page = PAGE.read_text(encoding="utf-8")
    block = f"<!-- house -->\n{text}\n<!-- end of house -->"
    page, count = re.subn(r"<!-- house -->.*<!-- end of house -->", lambda _: block, page, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"{PAGE.name} has no place for the table")
    PAGE.write_text(page, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.house", description=__doc__)
    parser.add_argument("--before", metavar="SRC", type=Path, required=True, help="the folder src of another version")
    parser.add_argument("--now", metavar="SRC", type=Path, default=Path("src"))
    parser.add_argument("--write", action="store_true", help="into docs/architecture.md")
    parser.add_argument("--list", action="store_true", help="name what was counted in the present version")
    arguments = parser.parse_args()
    before, now = read_sources(arguments.before), read_sources(arguments.now)
    print(table(before, now))
    if arguments.write:
        write_into_page(table(before, now))
    if arguments.list:
        dispatching = [source for source in now if source.room in ROOMS]
        print(*wide_functions(now), *string_branches(dispatching), *string_keys(dispatching), *reaches(now), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

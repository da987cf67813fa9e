"""How results are printed: aligned for people, drawn where they sit at a terminal, one JSON object for scripts."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from omen.cli import terminal


def print_json(values: Mapping[str, Any]) -> None:
    """One object, on one line. JSON has no infinity and no nan: they become "inf" and null."""
    print(json.dumps(_plain(values), ensure_ascii=False, allow_nan=False))


def print_facts(facts: Sequence[tuple[str, Any]]) -> None:
    """Name and value, a line each, the values in one column."""
    width = max((len(name) for name, _ in facts), default=0)
    for name, value in facts:
        if terminal.is_terminal(sys.stdout):
            terminal.write_line(sys.stdout, f"{name:<{width}}", f"  {shown(value)}", "bold")
        else:
            print(f"{name:<{width}}  {shown(value)}")


Columns = Mapping[str, str]
"""The columns of a table, each with what it says; `explain` puts that into the help of the command."""


def explain(title: str, *tables: Columns) -> str:
    """What the columns of a command's tables say, as a section of its help."""
    told = {
        name or ("(last)" if number else "(first)"): meaning
        for columns in tables
        for number, (name, meaning) in enumerate(columns.items())
    }
    width = max(map(len, told))
    lines = (
        textwrap.fill(
            f"{name:<{width}}  {meaning}",
            100,
            initial_indent="  ",
            subsequent_indent=" " * (width + 4),
            break_on_hyphens=False,
        )
        for name, meaning in told.items()
    )
    return "\n".join((f"{title}:", *lines)) + "\n"


def print_table(columns: Columns, rows: Sequence[Sequence[Any]], indent: str = "") -> None:
    """First column to the left, the others to the right."""
    lines = [list(columns), *([shown(value) for value in row] for row in rows)]
    if terminal.is_terminal(sys.stdout):
        terminal.draw_table(sys.stdout, lines, indent)
        return
    widths = [max(len(line[column]) for line in lines) for column in range(len(columns))]
    for line in lines:
        cells = [
            line[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
        ]
        print(f"{indent}{'  '.join(cells)}".rstrip())


def shown(value: Any) -> str:
    """A value as a person reads it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return str(value)


OVERLAY_LINES = {
    "links": "how many the overlay has",
    "average degree": "links of a node, on average",
    "maximum degree": "links of the node with the most",
    "per-topic mesh": "what a mesh of 6 for each topic, as in common gossip systems, would need",
    "topic-connected": "whether the subscribers of every topic are connected by links among them",
}


def overlay_facts(result: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Sizes and degrees, and what the mesh of common gossip systems would need for each topic, where it was counted."""
    links = result.get("per_topic_mesh_links")
    return [
        ("nodes", result["nodes"]),
        ("topics", result["topics"]),
        ("links", result["edges"]),
        ("average degree", result["avg_degree"]),
        ("maximum degree", result["max_degree"]),
        *([] if links is None else [("per-topic mesh", f"{links:,} links")]),
    ]


def say(line: str) -> None:
    """A remark that is not part of the result, above a line of progress if one stands there."""
    if not terminal.is_terminal(sys.stderr):
        print(line, file=sys.stderr, flush=True)
        return
    marked = terminal.WARNING if line.startswith(terminal.WARNING) else ""
    terminal.write_line(sys.stderr, marked, line.removeprefix(marked), "bold yellow")


def complain(who: str, why: str) -> None:
    """An error that ends a command, in one line."""
    if terminal.is_terminal(sys.stderr):
        terminal.write_line(sys.stderr, f"{who}:", f" {why}", "bold red")
    else:
        print(f"{who}: {why}", file=sys.stderr)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if value is None or isinstance(value, (str, int)):
        return value
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return str(value)

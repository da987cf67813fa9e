"""The outside sees a protocol node by its inputs, outputs and status alone: no import of a part, no private member."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORES = (
    ROOT / "src/omen/protocol/node.py",
    ROOT / "src/omen/protocol/shown.py",
    ROOT / "src/omen/protocol/spidercast/node.py",
)
OUTSIDE = ("sim", "net", "mqtt", "systems", "sweep", "pipeline", "report", "cli")

OPEN = (
    "omen.protocol.node",
    "omen.protocol.events",
    "omen.protocol.config",
    "omen.protocol.status",
    "omen.protocol.messages",
    "omen.protocol.snapshots",
    "omen.protocol.spidercast.node",
    "omen.protocol.spidercast.config",
    "omen.protocol.spidercast.messages",
)
"""Modules of which everything may be used."""

NAMES = {
    "omen.protocol.membership.ring": {"SPACE", "SPARE", "clockwise", "nearest_after", "nearest_before", "place_of"},
    "omen.protocol.membership.peer_table": {"Registry"},
    "omen.protocol.audit.leader_reports": {"rendezvous_place"},
    "omen.protocol.repair.backups": {"RULES"},
    "omen.protocol.repair.links": {"LinkState"},
    "omen.protocol.repair.event_queue": {"HANDLED_AT_MOST"},
    "omen.protocol.repair.path_probes": {"PROBES_AT_MOST"},
    "omen.protocol.repair.views": {"SEEN_AT_MOST"},
}
"""Of the parts: where things stand on the ring, the bounds that monitors hold nodes to, what is handed to a node.

Timers may be imported from anywhere: they are inputs.
"""

EXCEPTIONS = {
    "bench/dissemination.py": "measures one part by itself",
    "tests/property/test_spidercast_oracle.py": "holds one part against its oracle",
    "tests/simulation/test_spider_watch.py": "breaks the core, to see that a monitor notices",
}
"""Files that may import parts, and why. So may tests/unit/protocol, which tests them."""


def outside_files() -> Iterator[Path]:
    for room in OUTSIDE:
        yield from sorted((ROOT / "src/omen" / room).rglob("*.py"))
    yield from sorted((ROOT / "bench").rglob("*.py"))
    yield from sorted((ROOT / "tests").rglob("*.py"))


def private_members() -> set[str]:
    """The names that a core gives its own private members."""
    return {
        node.attr
        for path in CORES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        and node.attr.startswith("_")
    }


def is_open(module: str, name: str) -> bool:
    """Whether this name may be imported from this module of the protocol."""
    if any(module == start or module.startswith(f"{start}.") for start in OPEN):
        return True
    return name.endswith("Timer") or name in NAMES.get(module, ()) or f"{module}.{name}" in OPEN


def part_imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("omen.protocol"):
            for alias in node.names:
                if not is_open(node.module or "", alias.name):
                    yield f"line {node.lineno} imports {alias.name} from {node.module}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("omen.protocol") and not is_open(alias.name, ""):
                    yield f"line {node.lineno} imports {alias.name}"


def private_uses(tree: ast.AST, private: set[str]) -> Iterator[str]:
    """Private members of a core used on anything but `self`, or named in a string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in private:
            if ast.unparse(node.value) not in ("self", "cls", "super()"):
                yield f"line {node.lineno} uses {ast.unparse(node)}"
        elif isinstance(node, ast.Constant) and node.value == "_parts":
            yield f"line {node.lineno} names '_parts'"


def breaches(path: Path, private: set[str]) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    if path == Path(__file__):
        return []
    tree = ast.parse(path.read_text())
    found = list(private_uses(tree, private))
    if name not in EXCEPTIONS and not name.startswith("tests/unit/protocol/"):
        found += part_imports(tree)
    return [f"{name}: {what}" for what in found]


def test_nothing_outside_reaches_into_a_core() -> None:
    private = private_members()
    found = [breach for path in outside_files() for breach in breaches(path, private)]
    assert not found, "\n".join(found)


def test_every_exception_and_every_open_name_is_still_there() -> None:
    assert all((ROOT / name).exists() for name in EXCEPTIONS)
    for module, names in NAMES.items():
        text = (ROOT / "src" / Path(*module.split("."))).with_suffix(".py").read_text()
        assert all(name in text for name in names), module


@pytest.mark.parametrize(
    ("source", "closed"),
    [
        ("from omen.protocol.repair.coordinator import Coordinator", True),
        ("from omen.protocol.membership.ring import Ring", True),
        ("from omen.protocol.parts import Parts", True),
        ("from omen.protocol.repair.links import UP", True),
        ("import omen.protocol.repair.links", True),
        ("from omen.protocol.membership.ring import place_of", False),
        ("from omen.protocol.membership.gossip import RoundTimer", False),
        ("from omen.protocol.messages.overlay import Ref", False),
        ("from omen.protocol.messages import wire", False),
        ("from omen.protocol import events", False),
        ("from omen.protocol import parts", True),
        ("core._parts.links", True),
        ("getattr(core, '_parts')", True),
        ("self._parts", False),
        ("population.cores[node]._dissemination", True),
        ("core.status().links", False),
    ],
)
def test_the_check_sees_what_it_is_there_to_see(source: str, closed: bool) -> None:
    tree = ast.parse(source)
    assert bool([*part_imports(tree), *private_uses(tree, private_members())]) is closed

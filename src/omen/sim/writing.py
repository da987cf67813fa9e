"""A scenario as TOML, to be read again by `read_scenario`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from omen.sim.scenario import LoadSpec, Scenario

TABLES = ("overlay", "config", "network", "bounds")


def write_scenario(scenario: Scenario) -> str:
    """Everything in it that is not as it would be anyway."""
    plain = Scenario()
    lines = [f"{name} = {_value(getattr(scenario, name))}" for name in ("name", "about") if getattr(scenario, name)]
    if scenario.until_s is not None:
        lines.append(f"until_s = {scenario.until_s}")
    for name in TABLES:
        given = _differing(getattr(scenario, name), getattr(plain, name))
        if given:
            lines += ["", f"[{name}]", *(f"{field} = {_value(value)}" for field, value in given)]
    if scenario.order is not None:
        lines += ["", "[order]", f"choices = {_value(scenario.order.choices)}"]
    if scenario.nodes:
        lines += ["", "[nodes]"]
        for node, spec in scenario.nodes.items():
            place = f", place = {spec.place}" if spec.place is not None else ""
            lines.append(f"{_key(node)} = {{ topics = {_value(spec.topics)}{place} }}")
    if scenario.drawn is not None:
        lines += ["", "[drawn]", *(f"{field} = {_value(value)}" for field, value in _fields(scenario.drawn))]
    if scenario.load is not None:
        given = _differing(scenario.load, LoadSpec(rate=-1, seconds=-1))
        lines += ["", "[load]", *(f"{field} = {_value(value)}" for field, value in given)]
    for name in ("events", "expect"):
        for entry in getattr(scenario, name):
            given = [(field, value) for field, value in _fields(entry) if value is not None]
            defaults = {"burst": 0, "after_ms": 0.0}
            lines += ["", f"[[{name}]]"]
            lines += [f"{field} = {_value(value)}" for field, value in given if defaults.get(field) != value]
    return "\n".join(lines) + "\n"


def _fields(table: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    for field in table.__struct_fields__:
        yield field, getattr(table, field)


def _differing(table: msgspec.Struct, plain: msgspec.Struct) -> list[tuple[str, Any]]:
    return [(field, value) for field, value in _fields(table) if value != getattr(plain, field) and value is not None]


def _key(word: str) -> str:
    return word if word.isascii() and word.isidentifier() else json.dumps(word)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, msgspec.Struct):
        inner = ", ".join(f"{field} = {_value(item)}" for field, item in _fields(value) if item is not None)
        return f"{{ {inner} }}"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value)

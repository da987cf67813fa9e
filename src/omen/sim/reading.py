"""Scenarios read from TOML: keys of former versions renamed, and what makes no sense refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from warnings import warn

import msgspec

from omen.errors import InvalidInput
from omen.protocol.repair.backups import RULES
from omen.sim.scenario import COORDINATOR, ROLES, STAGES, Action, EventSpec, Name, Scenario, drawn_names

RENAMED = {
    "config": {"mend_rho": "repair_rho"},
    "bounds": {"whole_s": "connected_s"},
    "expect": {"whole": "connected", "broken": "split"},
}
"""What keys of each table were called in version 0.1.0, and what they are called since."""


def read_scenario(path: str | Path) -> Scenario:
    """The scenario in a file; raises InvalidInput that says what in it is not as it should be."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from error
    return parse_scenario(text, str(path))


def parse_scenario(text: str | bytes, where: str = "scenario") -> Scenario:
    try:
        raw = msgspec.toml.decode(text)
        _rename(raw, where)
        scenario = msgspec.convert(raw, Scenario)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{where}: {_in_toml_words(str(error))}") from error
    complaint = _complaint(scenario)
    if complaint:
        raise InvalidInput(f"{where}: {complaint}")
    return scenario


def _rename(raw: dict[str, Any], where: str) -> None:
    """Keys of version 0.1.0 become those of now."""
    for table, names in RENAMED.items():
        found = raw.get(table)
        for entry in found if isinstance(found, list) else [found]:
            if isinstance(entry, dict):
                for old in sorted(names.keys() & entry.keys()):
                    if names[old] in entry:
                        raise InvalidInput(f"{where}: {old} of {table} is the former name of {names[old]}: give one")
                    warn(f"{where}: {old} of {table} is now {names[old]}", DeprecationWarning, stacklevel=3)
                    entry[names[old]] = entry.pop(old)


def _in_toml_words(message: str) -> str:
    for ours, toml in (
        ("Object", "table"),
        ("`object`", "a table"),
        ("`$.", "`"),
        ("`$`", "the top"),
        ("`array`", "an array"),
    ):
        message = message.replace(ours, toml)
    return message


def _complaint(scenario: Scenario) -> str | None:
    """What makes no sense although every word is known."""
    if scenario.until_s is not None and any(event.burst for event in scenario.events):
        return "a scenario with bursts ends when the last has settled: leave `until_s` out"
    if bool(scenario.nodes) == (scenario.drawn is not None):
        return "give either [nodes] or [drawn]"
    if scenario.config.backups is not None and scenario.config.backups not in RULES:
        return f"config.backups is {scenario.config.backups!r}: must be one of {', '.join(RULES)}"
    for name, least in (("resilience", 1), ("coverage", 0), ("halo_hops", 0), ("attempts", 1), ("sample_size", 1)):
        value = getattr(scenario.config, name)
        if value is not None and value < least:
            return f"config.{name} is {value}: must be {least} or more"
    for share in ("loss", "duplication", "drift", "silent_crashes"):
        if not 0 <= getattr(scenario.network, share) < 1:
            return f"network.{share} is {getattr(scenario.network, share)}: must be at least 0 and less than 1"
    known = _known_names(scenario)
    for position, event in enumerate(scenario.events, start=1):
        complaint = _event_complaint(event, known) or _order_complaint(scenario, event)
        if complaint:
            return f"event {position}: {complaint}"
    for name in _names_used(scenario):
        if name not in known:
            return f"there is no node {name!r}"
    return None


def _order_complaint(scenario: Scenario, event: EventSpec) -> str | None:
    if (event.step is not None) != (scenario.order is not None):
        return "`step` and an [order] belong together"
    return None


def _event_complaint(event: EventSpec, known: set[Name]) -> str | None:
    given = [action for action in Action if getattr(event, action) is not None]
    if len(given) != 1:
        return f"give exactly one of {', '.join(Action)}" + (f", not {' and '.join(given)}" if given else "")
    if sum(when is not None for when in (event.at, event.on, event.step)) != 1:
        return "give either `at`, in seconds, or `on`, a stage of a repair"
    if event.on is not None and (event.on not in STAGES or event.of is None):
        return f"`on` must be one of {', '.join(STAGES)}, with the node concerned in `of`"
    if event.at is not None and event.at < 0:
        return f"`at` is {event.at}: must be 0 or more"
    if given[0] in ("join", "resubscribe") and event.topics is None:
        return f"`{given[0]}` needs `topics`"
    if given[0] == "suspect" and event.by is None:
        return "`suspect` needs `by`, the node that is to declare it failed"
    if event.crash in ROLES and event.topic is None:
        return f'`crash = "{event.crash}"` needs `topic`'
    if given[0] == "scramble" and not 0 <= (event.scramble or 0) <= 1:
        return f"`scramble` is {event.scramble}: must be a share from 0 to 1"
    if event.alone and event.through is not None:
        return "a node that begins `alone` joins `through` none"
    groups: tuple[Any, ...] = (*(event.partition or ()), *(event.mute or ()), event.meet or ())
    fields = ("crash", "leave", "resubscribe", "pause", "resume", "suspect", "by", "through", "of")
    named = [getattr(event, field) for field in fields if event.topic is None or field != "crash"]
    for name in (*named, *(name for group in groups for name in group)):
        if name is not None and name not in known and not (name == COORDINATOR and event.on is not None):
            return f"there is no node {name!r}"
    return None


def _known_names(scenario: Scenario) -> set[Name]:
    drawn = scenario.drawn
    return {
        *scenario.nodes,
        *(drawn_names(drawn) if drawn is not None else ()),
        *(event.join for event in scenario.events if event.join is not None),
    }


def _names_used(scenario: Scenario) -> list[Name]:
    """The names in overlay, network, load and expectations."""
    load = scenario.load
    pairs = [*(scenario.overlay.links or ()), *(link.between for link in scenario.network.links)]
    pairs += [link.between for link in load.links] if load is not None else []
    names = [*(name for pair in pairs for name in pair), *(load.publishers if load is not None else ())]
    for expectation in scenario.expect:
        names += [name for pair in expectation.links or () for name in pair]
        if expectation.repair is not None:
            repair = expectation.repair
            names += [repair.of, *(repair.shadow or ()), *(name for pair in repair.links or () for name in pair)]
            names += [repair.coordinator] if repair.coordinator is not None else []
        if expectation.view is not None:
            names += [expectation.view.at, expectation.view.of, *(expectation.view.backups or ())]
    return names

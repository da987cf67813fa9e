"""Topic names and filters of MQTT (5.0, section 4.7): which are valid, and which filter matches which name."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

import msgspec

LONGEST = 65_535  # bytes: a string's length has two of them
MOST_LEVELS = 128
SHARE = "$share/"
OWN = "$omen/"
"""Topics that nodes use among themselves: no client publishes or subscribes there."""

Subscriber = TypeVar("Subscriber", bound=Hashable)
Value = TypeVar("Value")


def is_valid_name(name: str) -> bool:
    """Whether something can be published on a topic of this name (MQTT-4.7.1-1, MQTT-4.7.3-1)."""
    return bool(name) and "+" not in name and "#" not in name and _fits(name)


def is_valid_filter(pattern: str) -> bool:
    """Whether this can be subscribed to: `#` only as the last level, `+` and `#` only as whole levels."""
    if not pattern or not _fits(pattern):
        return False
    levels = pattern.split("/")
    if any(("+" in level or "#" in level) and len(level) > 1 for level in levels):
        return False
    return "#" not in levels[:-1]


def _fits(text: str) -> bool:
    return "\0" not in text and text.count("/") < MOST_LEVELS and len(text.encode("utf-8", "replace")) <= LONGEST


def filter_of(pattern: str) -> str:
    """The filter of a subscription; of a shared one what follows its share name (5.0, section 4.8.2)."""
    return pattern.split("/", 2)[2] if is_shared(pattern) else pattern


def is_shared(pattern: str) -> bool:
    return pattern.startswith(SHARE) and pattern.count("/") >= 2


def is_valid_share(pattern: str) -> bool:
    """`$share/NAME/FILTER`, the name without wildcards (MQTT-4.8.2-1, MQTT-4.8.2-2)."""
    if not is_shared(pattern):
        return False
    name = pattern.split("/", 2)[1]
    return bool(name) and not has_wildcard(name) and is_valid_filter(filter_of(pattern))


def has_wildcard(pattern: str) -> bool:
    return "+" in pattern or "#" in pattern


def matches(pattern: str, name: str) -> bool:
    """Whether a filter matches a name. A wildcard at the beginning matches no name that begins with `$`."""
    if name.startswith("$") and pattern[0] in "+#":
        return False
    filters, levels = pattern.split("/"), name.split("/")
    for place, level in enumerate(filters):
        if level == "#":
            return True
        if place >= len(levels) or level not in ("+", levels[place]):
            return False
    return len(filters) == len(levels)


class _Level(msgspec.Struct, Generic[Subscriber, Value]):
    below: dict[str, _Level[Subscriber, Value]] = msgspec.field(default_factory=dict)
    here: dict[Subscriber, Value] = msgspec.field(default_factory=dict)


class FilterTree(Generic[Subscriber, Value]):
    """Who has subscribed to which filter, and who is concerned by a name: in the number of levels, not of filters."""

    def __init__(self) -> None:
        self._root: _Level[Subscriber, Value] = _Level()
        self._known: dict[str, list[tuple[Subscriber, Value]]] = {}

    def add(self, pattern: str, subscriber: Subscriber, value: Value) -> None:
        level = self._root
        for part in pattern.split("/"):
            level = level.below.setdefault(part, _Level())
        level.here[subscriber] = value
        self._known.clear()

    def remove(self, pattern: str, subscriber: Subscriber) -> None:
        parts, path = pattern.split("/"), [self._root]
        for part in parts:
            below = path[-1].below.get(part)
            if below is None:
                return
            path.append(below)
        path[-1].here.pop(subscriber, None)
        for place in range(len(parts), 0, -1):
            if path[place].here or path[place].below:
                break
            del path[place - 1].below[parts[place - 1]]
        self._known.clear()

    def match(self, name: str) -> list[tuple[Subscriber, Value]]:
        """Every subscription that concerns a name; a subscriber stands there once for each of its filters."""
        found = self._known.get(name)
        if found is None:
            found = list(self._walk(self._root, name.split("/"), 0))
            if len(self._known) >= KNOWN_AT_MOST:
                self._known.clear()
            self._known[name] = found
        return found

    def _walk(
        self, level: _Level[Subscriber, Value], parts: list[str], place: int
    ) -> Iterator[tuple[Subscriber, Value]]:
        wild = place > 0 or not parts[0].startswith("$")
        rest = level.below.get("#")
        if rest is not None and wild:
            yield from rest.here.items()
        if place == len(parts):
            yield from level.here.items()
            return
        for part in (parts[place], "+") if wild else (parts[place],):
            below = level.below.get(part)
            if below is not None:
                yield from self._walk(below, parts, place + 1)


KNOWN_AT_MOST = 10_000
"""Names whose subscribers are remembered."""

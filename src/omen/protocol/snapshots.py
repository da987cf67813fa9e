"""The whole state of a node as bytes, and back into the same node: for drivers that try one thing, then another.

The parts of a node refer to each other, and stay as they are; what they hold is written. Two states that will behave
alike have the same key, whatever way led to them: values are written without regard to which of them are one object in
memory, except for those that can change, and sets in order.
"""

from __future__ import annotations

import copyreg
import io
import marshal
import pickle
from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from hashlib import blake2b
from typing import Any

import msgspec

from omen.protocol.config import Config, Dissemination
from omen.protocol.context import Clock, NodeContext
from omen.protocol.node import OmenNode
from omen.protocol.parts import Parts
from omen.protocol.validation import MessageValidator

STAYS = (Clock, Config, Dissemination, NodeContext, Parts, MessageValidator)
"""What never changes as long as an incarnation lasts, or is set with each input."""
CHANGES: dict[type, bool] = {dict: True, list: True}
"""Whether objects of a type can change; the others are found out."""
FROZEN: set[type] = set()
"""Types of values that cannot change, as far as they were met."""
PLAIN = frozenset((int, str, bytes, bool, float, type(None), tuple, type))
"""Written as they are: asked for first, for they are by far the most."""
NUMBERS = frozenset((int, bool, type(None)))
EMPTY: dict[type, int] = {dict: 0, list: 1, set: 2, deque: 3}
REST = ...
"""In the outline of a state: a value that is written after it."""
BUILT = ("_parts", "_handlers", "_timers", "_validator", "_engine", "_registry", "config")
"""What a node has from when it was made."""


class _Saver(pickle.Pickler):
    """Writes the number of a part where one is referred to. By type, for asking of every value costs more than writing
    it.
    """

    def __init__(self, file: io.BytesIO, numbers: dict[int, int], kinds: Iterable[type]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbers = numbers
        self.dispatch_table = copyreg.dispatch_table | dict.fromkeys(kinds, self._refer)

    def _refer(self, part: Any) -> Any:
        return _part, (self._numbers[id(part)],)


def _part(number: int) -> Any:
    """Stands for a part in what is written; `_Loader` puts the part there."""
    raise NotImplementedError


class _KeyWriter(pickle.Pickler):
    """Writes values, not objects: only what can change is told apart from what equals it."""

    def __init__(self, file: io.BytesIO, numbers: dict[int, int], values: dict[Any, int]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.fast = True
        self._numbers = numbers
        self._values = values
        self._met: dict[int, int] = {}
        self._kept: list[Any] = []  # what is made while writing, so that no other object gets its id meanwhile

    def persistent_id(self, obj: Any) -> Any:
        number = self._numbers.get(id(obj))
        if number is not None:
            return number
        kind = type(obj)
        if kind in PLAIN:
            return None
        if kind is set or kind is frozenset:
            return ("set", *_in_order(obj)) if obj else ()
        changes = CHANGES.get(kind)
        if changes is None:
            changes = CHANGES[kind] = issubclass(kind, msgspec.Struct) and not kind.__struct_config__.frozen
            if issubclass(kind, msgspec.Struct) and not changes:
                FROZEN.add(kind)
        if kind in FROZEN:
            return self._number(obj)
        if changes:
            before = self._met.get(id(obj))
            if before is not None:
                return ("again", before)
            self._met[id(obj)] = len(self._met)
            self._kept.append(obj)
        return None

    def outline(self, held: Iterable[dict[str, Any]]) -> tuple[bytes, list[Any]]:
        """What the parts hold, as far as it is numbers, other parts or empty; and the rest, to be written.

        Most of what a node holds is of this kind, and `marshal` writes it without asking of each value.
        """
        numbers, told, rest = self._numbers, list[Any](), list[Any]()
        for values in held:
            told.append(self._number(tuple(values)))
            for value in values.values():
                kind = type(value)
                if kind in NUMBERS:
                    told.append(value)
                elif (number := numbers.get(id(value))) is not None:
                    told.append((number,))
                elif kind in EMPTY and not value:
                    told.append((EMPTY[kind], self._met.setdefault(id(value), len(self._met))))
                else:
                    told.append(REST)
                    rest.append(value)
        return marshal.dumps(told, 2), rest

    def _number(self, value: Any) -> Any:
        """A value that cannot change is written once, and known by its number from then on: equal ones have one."""
        try:
            number = self._values.setdefault(value, len(self._values))
        except TypeError:  # it holds something that can change
            return None
        return ("value", number)


class _Loader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, parts: list[Any]) -> None:
        super().__init__(file)
        self._parts = parts

    def find_class(self, module: str, name: str) -> Any:
        is_part = name == _part.__name__ and module == __name__
        return self._parts.__getitem__ if is_part else super().find_class(module, name)


class Snapshots:
    """Takes and restores the states of one node. What it draws from is part of its state, by its attributes."""

    def __init__(self, node: OmenNode) -> None:
        self._node = node
        self._randomness = vars(node)["_random"]
        self._built: Any = None
        self._fixed: list[Any] = []
        self._parts: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._values: dict[Any, int] = {}
        self._kinds: set[type] = set()

    def take(self) -> tuple[bytes, bytes]:
        """The state, and its key."""
        return self.save(), self.key()

    def save(self) -> bytes:
        """The state as it is now."""
        file = io.BytesIO()
        held = self._held()
        _Saver(file, self._numbers, self._kinds).dump(held)
        return file.getvalue()

    def key(self) -> bytes:
        """The same for all states that will behave alike."""
        file = io.BytesIO()
        writer = _KeyWriter(file, self._numbers, self._values)
        outline, rest = writer.outline(self._held())
        file.write(outline)
        writer.dump(rest)
        return blake2b(file.getbuffer(), digest_size=16).digest()

    def _held(self) -> list[dict[str, Any]]:
        self._number_parts()
        return [*(vars(part) for part in self._parts), self._own_state()]

    def restore(self, saved: bytes) -> None:
        """Be again as when this was taken."""
        self._number_parts()
        *held, own = _Loader(io.BytesIO(saved), self._fixed).load()
        for part, values in zip(self._parts, held, strict=True):
            part.__dict__ = values
        vars(self._node).update(own)

    def _own_state(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in vars(self._node).items()
            if name not in BUILT and id(value) not in self._numbers
        }

    def _number_parts(self) -> None:
        """All parts, in the order in which they refer to each other: the same in every incarnation."""
        parts = vars(self._node)["_parts"]
        if parts is self._built:
            return
        self._built, self._fixed, self._numbers = parts, [], {}
        self._find(self._node)
        self._find(self._randomness)
        self._kinds = {type(part) for part in self._fixed}
        self._parts = [part for part in self._fixed if not isinstance(part, STAYS) and part is not self._node]

    def _find(self, thing: Any) -> None:
        if id(thing) in self._numbers:
            return
        self._numbers[id(thing)] = len(self._fixed)
        self._fixed.append(thing)
        for value in _values(thing):
            if isinstance(value, STAYS) or _is_part(value):
                self._find(value)


def _in_order(values: Any) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _is_part(value: Any) -> bool:
    """A part has an identity, and methods of its own; whatever else a node holds is a value."""
    is_ours = type(value).__module__.startswith("omen.protocol.")
    return is_ours and not isinstance(value, (msgspec.Struct, Enum, type)) and hasattr(value, "__dict__")


def _values(thing: Any) -> Iterator[Any]:
    if isinstance(thing, msgspec.Struct):
        yield from (getattr(thing, name) for name in thing.__struct_fields__)
    elif hasattr(thing, "__dict__"):
        yield from vars(thing).values()
    else:
        yield from (getattr(thing, name) for name in getattr(thing, "__slots__", ()))

"""Labels and the slots that stand for them inside."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Any

import numpy as np

from omen.errors import InvalidInput
from omen.interests import Label, Labels, label_array, label_keys

_SPREAD = 1 << 62  # order keys of text labels lie in (-2^62, 2^62)
_INT64 = np.iinfo(np.int64)


class Names:
    """Which slot stands for which label. Slots are reused, so that their order says nothing: `order` does.

    `order[slot]` ascends as labels do (numbers by value, strings by code point); `keys[slot]` is what randomness is
    keyed by. A whole-number label is its own order key; a text label gets one between those of its neighbours in the
    alphabet, and all are spread out anew when two neighbours leave no room between them.
    """

    def __init__(self, labels: Labels, what: str, spread: int = _SPREAD) -> None:
        self.what = what
        self.slot_of: dict[Label, int] = {}
        self.labels: list[Label | None] = labels.tolist()
        self.slot_of = {label: slot for slot, label in enumerate(labels.tolist())}
        self.text = labels.dtype == object if labels.size else None
        self.free: list[int] = []
        self._spread = spread
        self._sorted: list[str] = []
        size = max(labels.size, 1)
        self.order = np.zeros(size, np.int64)
        self.keys = np.zeros(size, np.uint64)
        self.keys[: labels.size] = label_keys(labels)
        if self.text:
            self._sorted = labels.tolist()
            self._spread_out()
        else:
            self.order[: labels.size] = labels

    def __len__(self) -> int:
        return len(self.slot_of)

    @property
    def capacity(self) -> int:
        return int(self.order.size)

    def checked(self, label: Any) -> Label:
        """The label as this population has them, or an error."""
        if isinstance(label, (np.integer, np.str_)):
            label = label.item()
        if isinstance(label, bool) or not isinstance(label, (int, str)):
            raise InvalidInput(f"{self.what} {label!r} must be a whole number or text")
        if self.text is not None and isinstance(label, str) != self.text and self.slot_of:
            kind = "text" if self.text else "whole numbers"
            raise InvalidInput(f"{self.what} {label!r} does not fit: the {self.what}s here are {kind}")
        if isinstance(label, int) and not _INT64.min <= label <= _INT64.max:
            raise InvalidInput(f"{self.what} {label} is beyond 64 bits: use text labels")
        return label

    def claim(self, label: Label) -> int:
        """A slot for a new label, which was `checked`."""
        if not self.slot_of:
            self.text = isinstance(label, str)
        slot = self.free.pop() if self.free else len(self.labels)
        if slot == len(self.labels):
            self.labels.append(label)
            if slot >= self.capacity:
                self.order = np.concatenate((self.order, np.zeros(self.capacity + 8, np.int64)))
                self.keys = np.concatenate((self.keys, np.zeros(self.order.size - self.keys.size, np.uint64)))
        self.labels[slot] = label
        self.slot_of[label] = slot
        self.keys[slot] = label_keys(label_array([label]))[0]
        if isinstance(label, str):
            insort(self._sorted, label)
            self._place_between(label, slot)
        else:
            self.order[slot] = label
        return slot

    def release(self, slot: int) -> None:
        """Take a label out; its slot may stand for another one later."""
        label = self.labels[slot]
        assert label is not None
        del self.slot_of[label]
        self.labels[slot] = None
        self.free.append(slot)
        if isinstance(label, str):
            del self._sorted[bisect_left(self._sorted, label)]

    def label(self, slot: int) -> Label:
        label = self.labels[slot]
        assert label is not None
        return label

    def sorted_slots(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """All slots in use, in label order."""
        slots = np.fromiter(self.slot_of.values(), np.int32, len(self.slot_of))
        return slots[np.argsort(self.order[slots])]

    def in_order(self, slots: Iterable[int]) -> list[int]:
        """These slots in label order."""
        order = self.order
        return sorted(slots, key=lambda slot: int(order[slot]))

    def array_of(self, slots: np.ndarray[Any, Any]) -> Labels:
        """The labels of these slots, as the nouns hold them."""
        labels = [self.labels[slot] for slot in slots.tolist()]
        if self.text and labels:
            array = np.empty(len(labels), object)
            array[:] = labels
            return array
        return np.array(labels, np.int64)

    def _place_between(self, label: str, slot: int) -> None:
        place = bisect_left(self._sorted, label)
        last = place + 1 == len(self._sorted)
        low = int(self.order[self.slot_of[self._sorted[place - 1]]]) if place else -self._spread
        high = self._spread if last else int(self.order[self.slot_of[self._sorted[place + 1]]])
        if high - low < 2:
            self._spread_out()
        else:
            self.order[slot] = (low + high) // 2

    def _spread_out(self) -> None:
        step = 2 * self._spread // (len(self._sorted) + 1)
        for place, label in enumerate(self._sorted, start=1):
            self.order[self.slot_of[label]] = place * step - self._spread

"""The numbers of what a node says itself."""

from __future__ import annotations

from omen.protocol.events import Time, Topic

TOPICS_AT_MOST = 1 << 16
"""Topics on which a node goes on counting: a number used twice would be taken for a duplicate."""


class Numbering:
    """How far this node is on each topic; it goes on counting when it begins another life. `silence`: ends a run."""

    def __init__(self, silence: Time) -> None:
        self._silence = silence
        self._latest: dict[Topic, tuple[int, Time, int]] = {}

    def last(self, topic: Topic) -> int:
        """The newest number; 0: none."""
        return self._latest.get(topic, (0, 0, 0))[0]

    def take(self, topic: Topic, incarnation: int, now: Time) -> tuple[int, bool]:
        """The next number, and whether it is the first of a run."""
        before, when, life = self._latest.get(topic, (0, 0, 0))
        if before == 0 and len(self._latest) >= TOPICS_AT_MOST:
            del self._latest[next(iter(self._latest))]
        self._latest[topic] = (before + 1, now, incarnation)
        return before + 1, life != incarnation or now - when >= self._silence

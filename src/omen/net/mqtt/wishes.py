"""Which topics of the overlay a node has to carry for its clients: those they name, and those their wildcards match."""

from __future__ import annotations

from collections import Counter

import msgspec

from omen.net.mqtt.topics import has_wildcard, matches


class Change(msgspec.Struct, frozen=True):
    """Topics to begin and to end with. `fresh`: begun topics that were first published on just now."""

    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()


class Wishes:
    """Counts who wants what. `directory`: the topics that are published on anywhere, as far as this node has heard;
    `beyond`: matches that were left out, because wildcards match too many.
    """

    def __init__(self, most_matches: int) -> None:
        self.directory: set[str] = set()
        self.beyond = 0
        self._most = most_matches
        self._exact: Counter[str] = Counter()
        self._wild: Counter[str] = Counter()
        self._matched: set[str] = set()

    @property
    def has_wildcards(self) -> bool:
        return bool(self._wild)

    @property
    def matched(self) -> int:
        return len(self._matched)

    def add(self, pattern: str) -> Change:
        if has_wildcard(pattern):
            self._wild[pattern] += 1
            if self._wild[pattern] > 1:
                return Change()
            return Change(begin=self._match(sorted(self.directory), [pattern]))
        self._exact[pattern] += 1
        is_new = self._exact[pattern] == 1 and pattern not in self._matched
        return Change(begin=(pattern,)) if is_new else Change()

    def remove(self, pattern: str) -> Change:
        counts = self._wild if has_wildcard(pattern) else self._exact
        counts[pattern] -= 1
        if counts[pattern] > 0:
            return Change()
        del counts[pattern]
        if counts is self._exact:
            return Change() if pattern in self._matched else Change(end=(pattern,))
        over = [name for name in self._matched if not any(matches(other, name) for other in self._wild)]
        self._matched.difference_update(over)
        return Change(end=tuple(sorted(name for name in over if not self._exact[name])))

    def learn(self, names: list[str], fresh: bool) -> Change:
        """Topics that others publish on. `fresh`: they have only just begun, so nothing on them is older than that."""
        new = [name for name in names if name not in self.directory]
        self.directory.update(new)
        begin = self._match(new, list(self._wild))
        return Change(fresh=begin) if fresh else Change(begin=begin)

    def _match(self, names: list[str], patterns: list[str]) -> tuple[str, ...]:
        begin = []
        for name in names:
            if name in self._matched or not any(matches(pattern, name) for pattern in patterns):
                continue
            if len(self._matched) >= self._most:
                self.beyond += 1
                continue
            self._matched.add(name)
            if not self._exact[name]:
                begin.append(name)
        return tuple(begin)

"""Shared subscriptions: which there are in the cluster, and which member of each gets a message (5.0, section 4.8.2).

The door that publishes a message chooses, and writes its choice beside the message: so it goes to one member wherever
that is meanwhile, and a session that comes from another node finds by it what it has missed.
"""

from __future__ import annotations

from omen.net.groups import GroupTable
from omen.net.mqtt.topics import FilterTree, filter_of

Choices = tuple[tuple[str, str], ...]
"""Shared subscriptions, and the client of each that gets a message."""
MOST_BYTES = 16 << 10
"""Choices that go with one message; of shared subscriptions beyond it each door chooses for itself."""


class Shares(GroupTable):
    """The members of every shared subscription, as far as this node has heard."""

    def __init__(self) -> None:
        super().__init__()
        self._filters: FilterTree[str, None] = FilterTree()

    def _begin(self, group: str) -> None:
        self._filters.add(filter_of(group), group, None)

    def _end(self, group: str) -> None:
        self._filters.remove(filter_of(group), group)

    def choose_all(self, topic: str, publication: str) -> Choices:
        """One member of each shared subscription that a topic matches. `publication`: another for each message."""
        if not len(self):
            return ()
        found: list[tuple[str, str]] = []
        size = 0
        for group, _ in self._filters.match(topic):
            name = self.choose(group, f"{group}|{publication}")
            size += len(group) + len(name or "")
            if name is not None and size <= MOST_BYTES:
                found.append((group, name))
        return tuple(found)

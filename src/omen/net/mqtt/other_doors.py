"""Which other front doors are there, and whether they have been all along: a door says so every few seconds."""

from __future__ import annotations

import os

from omen.net.mqtt import records
from omen.net.mqtt.shares import Shares
from omen.protocol.membership.ring import place_of

MISSED_AT_MOST = 100_000
SILENT_S = 7.0
"""A door that was not heard of for so long has crashed."""
OPEN_LONG_S, SETTLED_S, SETTLE_AT_MOST_S = 10.0, 2.0, 15.0
"""Where no other door has been open for so long, all have begun anew. Records are then read once all doors that wrote
some have been there for two seconds, in which nodes tell each other what is latest; after 15 s in any case.
"""


class OtherDoors:
    """The doors that one door hears of. `begun`: when it was opened itself, in seconds since 1970; `writers`: nodes
    that wrote what its disk has kept.
    """

    def __init__(self, owner: str, begun: float, shares: Shares) -> None:
        self.owner = owner
        self.begun = begun
        self.writers: frozenset[int] = frozenset()
        self._shares = shares
        self._heard: dict[str, float] = {}
        self._missed: dict[str, float] = {}
        self._came: dict[str, float] = {}
        self._lacking_at = begun
        self._is_settled = False

    def hear(self, said: records.DoorHere, now: float) -> bool:
        """Another door is there, or closes. One of the same name that was there before has ended. Whether it is new."""
        name = _name(said.door)
        for other in [door for door in self._heard if _name(door) == name and door != said.door]:
            del self._heard[other]
            self._shares.lose(other)
        if said.is_closing:
            self._shares.lose(said.door)
        is_new = said.door not in self._heard and not said.is_closing
        self._heard[said.door] = 0.0 if said.is_closing else now
        self._is_settled |= now - said.since >= OPEN_LONG_S
        return is_new

    def hear_groups(self, said: records.GroupMembers) -> None:
        """Another door has these members in shared subscriptions."""
        if said.is_all:
            self._shares.drop(said.door)
        for group, members in said.groups.items():
            self._shares.tell(said.door, group, members)

    def is_settled(self, now: float) -> bool:
        """Whether stored sessions can be read: not yet where the whole cluster has just been started again, and a door
        that may have later ones is not there.
        """
        if not self._is_settled:
            if not self.writers <= {place_of(_name(door)) for door in self._heard}:
                self._lacking_at = now
            is_complete = not self.writers or now - self._lacking_at >= SETTLED_S
            self._is_settled = is_complete or now - self.begun >= SETTLE_AT_MOST_S
        return self._is_settled

    def is_there(self, owner: str, now: float) -> bool:
        """Whether a door that has a session is there; one that was never heard of may be, for a while."""
        if owner == self.owner:
            return True
        heard = self._heard.get(owner)
        if heard is not None:
            return now - heard < SILENT_S
        if not owner or any(_name(door) == _name(owner) and door > owner for door in (*self._heard, self.owner)):
            return False  # its node has begun anew since
        if len(self._missed) >= MISSED_AT_MOST:
            self._missed.clear()
        return now - self._missed.setdefault(owner, now) < SILENT_S

    def note_client(self, client_id: str, now: float) -> None:
        """A client has come to another door."""
        if len(self._came) >= MISSED_AT_MOST:
            self._came.clear()
        self._came[client_id] = now

    def has_come(self, client_id: str, since: float) -> bool:
        """Whether a client has come to another door since a time."""
        return self._came.get(client_id, 0.0) >= since

    def miss(self, now: float) -> None:
        """Members of doors that have fallen silent are nobody's."""
        for door, heard in self._heard.items():
            if now - heard >= SILENT_S:
                self._shares.lose(door)


def new_door(name: str, now: float) -> str:
    """A name for a door that is opened: of two of one node the later one is greater."""
    return f"{name}#{int(now * 1000):012x}{os.urandom(2).hex()}"


def _name(door: str) -> str:
    return door.partition("#")[0]

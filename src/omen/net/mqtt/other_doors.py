"""Which other front doors are there, and whether they have been all along: a door says so every few seconds."""

from __future__ import annotations

import os
from collections.abc import Mapping

from omen.net.groups import Member
from omen.net.mqtt import records
from omen.net.mqtt.shares import Shares
from omen.protocol.membership.ring import place_of

MISSED_AT_MOST = 100_000
CLOSED = 0.0
"""When a door was heard of last that has closed."""
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
        self._told: dict[str, float] = {}
        self._gone: list[tuple[float, Mapping[str, tuple[Member, ...]]]] = []
        self._lacking_at = begun
        self._is_settled = False

    def hear(self, said: records.DoorHere, now: float) -> bool:
        """Another door is there, or closes. One of the same name that was there before has ended, and what it said may
        still come. Whether it is new.
        """
        if self._has_ended(said.door):
            return False
        name = _name(said.door)
        for other in [door for door in self._heard if _name(door) == name and door != said.door]:
            self._lose(other, self._heard.pop(other), now)
        if said.is_closing:
            self._lose(said.door, now, now)
        is_new = said.door not in self._heard and not said.is_closing
        self._heard[said.door] = CLOSED if said.is_closing else now
        self._is_settled |= now - said.since >= OPEN_LONG_S
        return is_new

    def hear_groups(self, said: records.GroupMembers, now: float) -> None:
        """Another door has these members in shared subscriptions. What a door said that has ended may come late."""
        if self._has_ended(said.door):
            return
        self._told[said.door] = now
        if said.is_all:
            self._shares.drop(said.door)
        for group, members in said.groups.items():
            self._shares.tell(said.door, group, members)

    def _has_ended(self, door: str) -> bool:
        """Whether a door has closed, or its node has begun anew since."""
        if self._heard.get(door) == CLOSED:
            return True
        return any(_name(other) == _name(door) and other > door for other in (*self._heard, self.owner))

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
        if not owner or self._has_ended(owner):
            return False
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

    def end_client(self, client_id: str, node: str) -> None:
        """A client has begun anew at a node: what it was a member of before, it is not any more."""
        doors = [door for door in self._shares.nodes if _name(door) == node]
        self._shares.forget(client_id, but_of=max(doors, default=""))

    def _lose(self, door: str, heard: float, now: float) -> None:
        self._told.pop(door, None)
        fleeting = self._shares.lose(door, now)
        if fleeting:
            self._gone.append((heard, fleeting))

    def miss(self, now: float) -> list[tuple[float, Mapping[str, tuple[Member, ...]]]]:
        """Members of doors that have fallen silent are nobody's. Returns those that have gone with their doors, and
        when these were heard of last.
        """
        for door in sorted(self._shares.nodes - {self.owner}):
            heard = self._heard.get(door, self._told.get(door, 0.0))
            if now - heard >= SILENT_S:
                self._lose(door, heard, now)
        self._shares.expire(now)
        gone, self._gone = self._gone, []
        return gone


def new_door(name: str, now: float) -> str:
    """A name for a door that is opened: of two of one node the later one is greater."""
    return f"{name}#{int(now * 1000):012x}{os.urandom(2).hex()}"


def _name(door: str) -> str:
    return door.partition("#")[0]

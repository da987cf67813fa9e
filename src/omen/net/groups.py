"""Queue groups: of all members of a group one gets each publication, wherever in the cluster they are.

Every node tells the others which members it has. Who publishes chooses, by the highest hash of publication and member
(rendezvous hashing, Thaler and Ravishankar 1998): no node is asked, and a member that comes or goes changes the choice
for its own share alone. Two nodes that know of the same members make the same choice.
"""

from __future__ import annotations

import hashlib

import msgspec

NOBODY = ""
"""Has the members whose node is gone, and which no other node has yet."""
ORPHANED_S = 60.0
"""A member that no other node has taken up by then is nowhere."""


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A member of a group. One that is not `is_ready` is chosen where no other is; one that `is_lasting` outlives its
    node.
    """

    name: str
    is_ready: bool = True
    is_lasting: bool = False


class GroupTable:
    """Who is in which group, by the node that says so."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, tuple[Member, ...]]] = {}
        self._lost_at: dict[tuple[str, str], float] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def tell(self, node: str, group: str, members: tuple[Member, ...]) -> None:
        """These are the members that a node has in a group now."""
        names = {one.name for one in members}
        orphans = self._groups.get(group, {}).get(NOBODY, ())
        if orphans:
            self._set(NOBODY, group, tuple(one for one in orphans if one.name not in names))
        self._set(node, group, members)

    def _set(self, node: str, group: str, members: tuple[Member, ...]) -> None:
        nodes = self._groups.get(group)
        if nodes is None:
            if not members:
                return
            nodes = self._groups[group] = {}
            self._begin(group)
        nodes.pop(node, None)
        if members:
            nodes[node] = members
        elif not nodes:
            del self._groups[group]
            self._end(group)

    def _begin(self, group: str) -> None:
        """A group has its first member."""

    def _end(self, group: str) -> None:
        """A group has no member any more."""

    def drop(self, node: str) -> None:
        """A node has no members any more."""
        for group in self.of(node):
            self._set(node, group, ())

    def lose(self, node: str, now: float) -> dict[str, tuple[Member, ...]]:
        """A node is gone. Its members that last are nobody's, and not ready, until another node has them, or until it
        is clear that none has. Returns those that do not last, and that no other node has.
        """
        fleeting: dict[str, tuple[Member, ...]] = {}
        for group, members in self.of(node).items():
            others = {one.name for other, told in self._groups[group].items() if other != node for one in told}
            alone = [one for one in members if one.name not in others]
            left = [Member(one.name, False, True) for one in alone if one.is_lasting]
            self._lost_at.update({(group, one.name): now for one in left})
            self._set(NOBODY, group, (*self._groups[group].get(NOBODY, ()), *left))
            self._set(node, group, ())
            fleeting[group] = tuple(one for one in alone if not one.is_lasting)
        return {group: members for group, members in fleeting.items() if members}

    def expire(self, now: float) -> None:
        """Members that have been nobody's for long are no members: their sessions have ended, or never had the group
        in what was stored of them.
        """
        for group, members in self.of(NOBODY).items():
            left = tuple(one for one in members if now - self._lost_at[group, one.name] < ORPHANED_S)
            if len(left) < len(members):
                self._set(NOBODY, group, left)
        if self._lost_at:
            orphans = {(group, one.name) for group, members in self.of(NOBODY).items() for one in members}
            self._lost_at = {member: at for member, at in self._lost_at.items() if member in orphans}

    def forget(self, name: str, but_of: str = NOBODY) -> None:
        """A member has ended, wherever it was; unless it is `but_of` a node again."""
        for group, nodes in list(self._groups.items()):
            for node, members in list(nodes.items()):
                if (node == NOBODY or node != but_of) and any(one.name == name for one in members):
                    self._set(node, group, tuple(one for one in members if one.name != name))

    @property
    def nodes(self) -> set[str]:
        """The nodes that have members."""
        return {node for nodes in self._groups.values() for node in nodes} - {NOBODY}

    @property
    def members(self) -> int:
        """How many members all groups have."""
        return sum(len(members) for nodes in self._groups.values() for members in nodes.values())

    def of(self, node: str) -> dict[str, tuple[Member, ...]]:
        """The groups in which a node has members."""
        return {group: nodes[node] for group, nodes in self._groups.items() if node in nodes}

    def choose(self, group: str, publication: str) -> str | None:
        """Which member gets a publication; None: the group is empty."""
        everyone = [one for members in self._groups.get(group, {}).values() for one in members]
        names = [one.name for one in everyone if one.is_ready] or [one.name for one in everyone]

        def weight(name: str) -> bytes:
            return hashlib.blake2b(f"{publication}|{name}".encode(), digest_size=8).digest()

        return max(names, key=weight, default=None)

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

    def lose(self, node: str) -> None:
        """A node is gone. Its members that last are nobody's, and not ready, until another node has them."""
        for group, members in self.of(node).items():
            others = {one.name for other, told in self._groups[group].items() if other != node for one in told}
            left = [Member(one.name, False, True) for one in members if one.is_lasting and one.name not in others]
            self._set(NOBODY, group, (*self._groups[group].get(NOBODY, ()), *left))
            self._set(node, group, ())

    def forget(self, name: str) -> None:
        """A member that was nobody's has ended."""
        for group, members in self.of(NOBODY).items():
            self._set(NOBODY, group, tuple(one for one in members if one.name != name))

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

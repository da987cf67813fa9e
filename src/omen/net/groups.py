"""Queue groups: of all members of a group one gets each publication, wherever in the cluster they are.

Every node tells the others which members it has. Each then makes the same choice by itself, by the highest hash of
publication and member (rendezvous hashing, Thaler and Ravishankar 1998): no node is asked, and a member that comes or
goes changes the choice for its own share alone. While such news travels, two nodes may choose differently: a
publication then goes to two members, or to one that has just gone.
"""

from __future__ import annotations

import hashlib

import msgspec


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A member of a group. One that is not `is_ready` is chosen where no other is."""

    name: str
    is_ready: bool = True


class GroupTable:
    """Who is in which group, by the node that says so."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, tuple[Member, ...]]] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def tell(self, node: str, group: str, members: tuple[Member, ...]) -> None:
        """These are the members that a node has in a group now."""
        nodes = self._groups.setdefault(group, {})
        nodes.pop(node, None)
        if members:
            nodes[node] = members
        elif not nodes:
            del self._groups[group]

    def drop(self, node: str) -> None:
        """A node is gone, with all its members."""
        for group in [group for group, nodes in self._groups.items() if node in nodes]:
            self.tell(node, group, ())

    def of(self, node: str) -> dict[str, tuple[Member, ...]]:
        """The groups in which a node has members."""
        return {group: nodes[node] for group, nodes in self._groups.items() if node in nodes}

    def choose(self, group: str, publication: str) -> tuple[str, str] | None:
        """Which member of which node gets a publication; None: the group is empty."""
        everyone = [(node, one) for node, members in self._groups.get(group, {}).items() for one in members]
        ready = [(node, one) for node, one in everyone if one.is_ready] or everyone

        def weight(entry: tuple[str, Member]) -> bytes:
            return hashlib.blake2b(f"{publication}|{entry[1].name}".encode(), digest_size=8).digest()

        if not ready:
            return None
        node, member = max(ready, key=weight)
        return node, member.name

"""What messages are made of. The bounds are checked where bytes become messages: no other value comes past the wire."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

NUMBER_AT_MOST = 1 << 48  # versions and counts: far from where a sum would no longer fit into the wire form
INCARNATION_AT_MOST = (1 << 32) - 1  # as much room as a publication has for it

Place = Annotated[int, msgspec.Meta(ge=0)]
"""A node's or a topic's place on the ring; the wire form ends at 64 bits."""
Number = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_AT_MOST)]
Incarnation = Annotated[int, msgspec.Meta(ge=0, le=INCARNATION_AT_MOST)]
"""Which incarnation of a node: a count of its starts, or the second of its start."""
Text = Annotated[str, msgspec.Meta(max_length=256)]
Address = Annotated[str, msgspec.Meta(max_length=256, pattern=r"\A[!-~]*\Z")]
"""HOST:PORT, or empty where it is not known. Visible ASCII alone: it is dialled, and stands in logs."""
Hops = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_AT_MOST)]
"""How often a message may still be passed on. The receiver lowers it to what its kind is allowed."""
FORWARDS_AT_MOST, WALK_STEPS_AT_MOST = 32, 4096
"""Of what goes to a place on the ring, nearer with each hop; of a walk round the whole ring, in steps of L."""
TOPICS_AT_MOST, NODES_AT_MOST = 1 << 17, 1 << 14
Topics = Annotated[tuple[Place, ...], msgspec.Meta(max_length=TOPICS_AT_MOST)]
"""Topics in one list: twice what a node is promised to have."""
Bits = Annotated[bytes, msgspec.Meta(max_length=TOPICS_AT_MOST // 8)]


class Ref(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How to reach a node, and which of its incarnations is meant."""

    id: Place
    incarnation: Incarnation
    address: Address


Refs = Annotated[tuple[Ref, ...], msgspec.Meta(max_length=NODES_AT_MOST)]
Places = Annotated[tuple[Place, ...], msgspec.Meta(max_length=NODES_AT_MOST)]
"""Nodes in one list: a neighbourhood, however large, and never the whole of a large cluster."""


class Digest(msgspec.Struct, frozen=True, array_like=True, gc=False, cache_hash=True):
    """A node in a few bytes: enough to see whether one's knowledge of it is old. Gossip asks for its hash often."""

    ref: Ref
    topics_version: Number
    links_version: Number


FORBIDDEN_AT_MOST, ZONE_LENGTH_AT_MOST = 256, 64

Forbidden = Annotated[tuple[Place, ...], msgspec.Meta(max_length=FORBIDDEN_AT_MOST)]


class LinkRules(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a node says of its links, as an operator set it: the most of them (0: any number), where the node stands,
    and to which nodes there must be none.
    """

    max_links: Number = 0
    zone: Annotated[str, msgspec.Meta(max_length=ZONE_LENGTH_AT_MOST)] = ""
    forbid: Forbidden = ()


class Descriptor(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one node knows of another. `rules`: None where nothing is said; version 0.1 skips it."""

    digest: Digest
    topics: Topics
    neighbours: Refs
    rules: LinkRules | None = None

    @property
    def is_full(self) -> bool:
        """Whether the node has as many links as it may have."""
        return self.rules is not None and 0 < self.rules.max_links <= len(self.neighbours)


class EventKind(StrEnum):
    """What a churn event is (omen 5); AUDIT: links that no event has led to."""

    JOIN = "join"
    LEAVE = "leave"
    ADD = "add"
    DROP = "drop"
    AUDIT = "audit"


class EventId(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """A simple churn event (omen 5): which node, in which incarnation, did what."""

    node: Place
    incarnation: Incarnation
    kind: EventKind
    version: Number = 0


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of all messages."""

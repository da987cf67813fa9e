"""What is known of one peer, and what is told of what happens to it."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Protocol

import msgspec

from omen.net.security.hello import Hello, Refused
from omen.net.transport.connection import Connection
from omen.protocol.events import NodeId

FrameParts = tuple[bytes, bytes]
"""The length of a frame, and its body: the same objects for all peers it goes to."""


@lru_cache(maxsize=4096)
def place_label(node: NodeId) -> str:
    """A node whose name is not known here. Kept, for it is asked for with each of its publications."""
    return f"{node:016x}"


class PeerListener(Protocol):
    """What is told of what happens to peers. `incarnation`: the one its core is in, once there is a core."""

    @property
    def incarnation(self) -> int | None: ...

    def on_peer_frames(self, node: NodeId, frames: list[bytes], connection: Connection) -> None: ...

    @property
    def is_member(self) -> bool: ...

    def on_name_met(self, other: Hello) -> None: ...

    def on_name_claimed(self, node: NodeId, claimant: Hello) -> None: ...

    def on_refused_by_peer(self, refusal: Refused) -> None: ...

    def on_peer_lost(self, node: NodeId, incarnation: int | None) -> None: ...

    def on_peer_broken(self, node: NodeId) -> None: ...

    def on_peer_refused(self, node: NodeId, later: int | None) -> None: ...

    def on_peer_unreached(self, node: NodeId, address: str) -> None: ...

    def on_slow_consumer(self, node: NodeId) -> None: ...

    def on_peer_room(self, node: NodeId, room: int) -> None: ...

    def on_peer_ready(self, node: NodeId) -> None: ...


class Peer(msgspec.Struct):
    """One peer. `is_wanted`: the core wants this connection. `is_broken`: frames were lost.

    `refused_at`: where the last dial was refused, if it was, and when. `direct_address`: where its process itself
    listens, once there was a connection.
    `up_since`: of the last connection.
    """

    node: NodeId
    address: str = ""
    name: str = ""
    incarnation: int | None = None
    session: int = 0
    is_wanted: bool = False
    is_broken: bool = False
    refused_at: tuple[str, float] | None = None
    connection: Connection | None = None
    dialling: asyncio.Task[None] | None = None
    retry: asyncio.TimerHandle | None = None
    waiting: list[tuple[FrameParts, int, bool, int]] = msgspec.field(default_factory=list)
    waiting_bytes: int = 0
    failures: int = 0
    is_reported: bool = False
    missed_since: float = 0.0
    direct_address: str = ""
    up_since: float = 0.0

    @property
    def is_dialled(self) -> bool:
        """Whether it is being dialled, or will be."""
        return self.dialling is not None or self.retry is not None

"""What is known of one other node, and who is told of what happens to it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from omen.net.connection import Connection
from omen.protocol.events import NodeId

Parts = tuple[bytes, bytes]


class Listener(Protocol):
    """Who is told of what happens to peers. `incarnation`: the life its core is in, once there is one."""

    @property
    def incarnation(self) -> int | None: ...

    def on_peer_frames(self, node: NodeId, frames: list[bytes], connection: Connection) -> None: ...

    def on_peer_lost(self, node: NodeId, incarnation: int | None) -> None: ...

    def on_peer_behind(self, node: NodeId) -> None: ...

    def on_peer_ready(self, node: NodeId) -> None: ...


@dataclass(slots=True)
class Peer:
    """What is known of one other node. `is_kept`: the core wants this connection. `is_broken`: frames were lost."""

    node: NodeId
    address: str = ""
    name: str = ""
    incarnation: int | None = None
    session: int = 0
    is_kept: bool = False
    is_broken: bool = False
    connection: Connection | None = None
    dialling: asyncio.Task[None] | None = None
    retry: asyncio.TimerHandle | None = None
    waiting: list[tuple[Parts, int, bool]] = field(default_factory=list)
    waiting_bytes: int = 0
    failures: int = 0
    is_reported: bool = False
    missed_since: float = 0.0

    @property
    def is_dialled(self) -> bool:
        """Whether it is being dialled, or will be."""
        return self.dialling is not None or self.retry is not None

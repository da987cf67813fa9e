"""The words of the front door's state machine: what it is told about, what it wants done, whom it knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from mqtt5 import ConnAckReasonCode, ConnectPacket, PubAckReasonCode

from omen.net.groups import Member
from omen.net.mqtt.codec import V5
from omen.net.mqtt.pace import Pace
from omen.net.mqtt.session import ApplicationMessage, Session, SessionLimits

REFUSED = 0x80
"""Reason codes from here on say that something was not done."""


class Write(msgspec.Struct, frozen=True):
    """Bytes for a connection."""

    connection: int
    data: bytes


class Close(msgspec.Struct, frozen=True):
    """Close a connection, once what was written before has gone out."""

    connection: int


class Publish(msgspec.Struct, frozen=True):
    """Publish on the overlay; for a client of a `connection`, one after the other. `token` 0: nobody waits for it.

    `at`: when it came, at this node or the one that published it first; 0: now.
    """

    connection: int
    token: int
    message: ApplicationMessage
    at: float = 0.0


class Carry(msgspec.Struct, frozen=True):
    """Subscribe to topics of the overlay. `replay`: also to what was published on them just now."""

    token: int
    topics: tuple[str, ...]
    replay: bool = False


class GiveUp(msgspec.Struct, frozen=True):
    """Carry these topics no longer."""

    topics: tuple[str, ...]


class Claim(msgspec.Struct, frozen=True):
    """A client is here now: other nodes close their connections to it. `wants_session`: and hand its session over,
    which `claimed` has to bring, or bring None. `is_clean`: a session that it had ends.
    """

    token: int
    client_id: str
    wants_session: bool
    is_clean: bool = False


class Save(msgspec.Struct, frozen=True):
    """Something of a session has changed: store what `begin_save` says, and say `saved`."""

    client_id: str


class Forget(msgspec.Struct, frozen=True):
    """A stored session has ended: remove its head and its segments."""

    client_id: str
    segments: tuple[int, ...]


class TellGroup(msgspec.Struct, frozen=True):
    """The members of a shared subscription at this node have changed: tell the others."""

    group: str
    members: tuple[Member, ...]


class HoldBack(msgspec.Struct, frozen=True):
    """A client here reads a topic, but not as fast as it is published on: other nodes are to know of it."""

    topic: str


Output: TypeAlias = Write | Close | Publish | Carry | GiveUp | Claim | Save | Forget | TellGroup | HoldBack
Authenticate: TypeAlias = Callable[[str, str | None, bytes | None], ConnAckReasonCode]
"""Client id, user name, password: whether such a client may connect."""
Authorise: TypeAlias = Callable[[str, str], bool]
"""User name (or client id), topic or filter: whether it may."""


class DoorLimits(msgspec.Struct, frozen=True):
    """What one client may have, and what all together may."""

    connect_timeout_s: float = 10.0
    packet_bytes: int = 1 << 20
    receive_max: int = 1000
    topic_aliases: int = 100
    subscriptions: int = 10_000
    all_subscriptions: int = 200_000
    connections: int = 20_000
    wildcard_matches: int = 10_000
    retained_bytes: int = 64 << 20
    sessions: int = 100_000
    session_expiry_s: int = 7 * 24 * 3600
    session: SessionLimits = SessionLimits()


class Rights(msgspec.Struct, frozen=True):
    """Who may connect, publish and subscribe."""

    authenticate: Authenticate
    may_publish: Authorise
    may_subscribe: Authorise


class Client(msgspec.Struct):
    """One connection. `user`: whom the access rules know it as. `session` None: it has not been accepted yet.

    `certified`: the name in its certificate, empty where it has none. `is_held`: it is not read from, since what it
    published waits. `retained`: filters whose retained messages it is being sent, each with the last topic it was sent;
    `given`: bytes of those with QoS 0, lately.
    """

    number: int
    heard_at: float
    version: int = V5
    id: str = ""
    user: str = ""
    session: Session | None = None
    is_accepted: bool = False
    keep_alive: int = 0
    receive_max: int = 65_535
    packet_bytes: int | None = None
    aliases: dict[int, str] = msgspec.field(default_factory=dict)
    will: ApplicationMessage | None = None
    will_delay: int = 0
    is_slow: bool = False
    unacknowledged: int = 0
    waiting: list[Any] = msgspec.field(default_factory=list)
    connect: ConnectPacket | None = None
    certified: str = ""
    pace: Pace = msgspec.field(default_factory=Pace)
    is_held: bool = False
    retained: dict[str, str] = msgspec.field(default_factory=dict)
    given: int = 0


class Retained(msgspec.Struct, frozen=True):
    """The last retained message of a topic, or that it was removed (an empty payload). The higher version counts."""

    version: tuple[int, str]
    message: ApplicationMessage


class Waiting(msgspec.Struct, frozen=True):
    """What happens when a token comes back."""

    connection: int
    finish: Callable[[Client | None, PubAckReasonCode, float], None]

"""The messages of SpiderCast (Fig. 4), their wire form, and their validation. `task`: which of the two is meant."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from omen.protocol.events import NodeId
from omen.protocol.messages.base import Incarnation, Number, Place
from omen.protocol.messages.overlay import Message, Ref
from omen.protocol.validation import FALSE, UNKNOWN, read_message

TASKS = 2


class Connect(Message, frozen=True, array_like=True, tag=50):
    """A request to become neighbours. `degree` and `target` are those of the sender."""

    sender: Ref
    task: Number
    degree: Number
    target: Number
    interest: tuple[Place, ...]


class ConnectOk(Message, frozen=True, array_like=True, tag=51):
    """The request is granted."""

    sender: Ref
    task: Number
    degree: Number
    target: Number
    interest: tuple[Place, ...]


class Redirect(Message, frozen=True, array_like=True, tag=52):
    """The sender has too many neighbours: this one, if any, may have room."""

    task: Number
    other: Ref | None


class Disconnect(Message, frozen=True, array_like=True, tag=53):
    """A request to be neighbours no longer. No answer is a refusal."""

    task: Number
    incarnation: Incarnation


class DisconnectOk(Message, frozen=True, array_like=True, tag=54):
    """The request is granted."""

    task: Number
    incarnation: Incarnation


class Leave(Message, frozen=True, array_like=True, tag=55):
    """The two are no neighbours any more, whether the receiver agrees or not."""

    task: Number
    incarnation: Incarnation


class Heartbeat(Message, frozen=True, array_like=True, tag=56):
    """How many neighbours the sender has and wants now; `interest` only where it changed."""

    sender: Ref
    task: Number
    degree: Number
    target: Number
    interest: tuple[Place, ...] | None = None


SpiderMessage = Connect | ConnectOk | Redirect | Disconnect | DisconnectOk | Leave | Heartbeat
KINDS: frozenset[type] = frozenset(get_args(SpiderMessage))

_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(SpiderMessage)


def decode(data: bytes) -> Message:
    """The message in these bytes; raises msgspec.MsgspecError where there is none. `encode` is that of all messages."""
    message: Message = _decoder.decode(data)
    return message


def validate(me: NodeId, sender: NodeId, message: Any) -> tuple[Any, str | None]:
    """The message, bytes turned into one, and what is wrong with it if anything is.

    What no type can say: that a message speaks for its sender, that it comes from another node, that there is such a
    task.
    """
    if type(message) is bytes:
        message, complaint = read_message(message, decode)
        if complaint is not None:
            return None, complaint
    if type(message) not in KINDS:
        return None, UNKNOWN
    speaker: Ref | None = getattr(message, "sender", None)
    speaks_for_another = speaker is not None and speaker.id != sender
    if sender == me or speaks_for_another or not 0 <= message.task < TASKS:
        return None, FALSE
    return message, None

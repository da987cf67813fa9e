"""What SpiderCast nodes say to each other (Fig. 4), and its wire form. `task` says which of the two tasks is meant."""

from __future__ import annotations

from typing import Any

import msgspec

from omen.protocol.messages.base import Incarnation, Number, Place
from omen.protocol.messages.overlay import Message, Ref


class Connect(Message, frozen=True, array_like=True, tag=50):
    """Let us be neighbours. `degree` and `target` are those of the sender."""

    sender: Ref
    task: Number
    degree: Number
    target: Number
    interest: tuple[Place, ...]


class ConnectOk(Message, frozen=True, array_like=True, tag=51):
    """We are."""

    sender: Ref
    task: Number
    degree: Number
    target: Number
    interest: tuple[Place, ...]


class Redirect(Message, frozen=True, array_like=True, tag=52):
    """I have too many: try this one, if any."""

    task: Number
    other: Ref | None


class Disconnect(Message, frozen=True, array_like=True, tag=53):
    """May we part? No answer is a no."""

    task: Number
    incarnation: Incarnation


class DisconnectOk(Message, frozen=True, array_like=True, tag=54):
    task: Number
    incarnation: Incarnation


class Leave(Message, frozen=True, array_like=True, tag=55):
    """We are no neighbours any more, whether you like it or not."""

    task: Number
    incarnation: Incarnation


class Heartbeat(Message, frozen=True, array_like=True, tag=56):
    """How many neighbours I have and want now; `interest` only where it changed."""

    sender: Ref
    task: Number
    degree: Number
    target: Number
    interest: tuple[Place, ...] | None = None


SpiderMessage = Connect | ConnectOk | Redirect | Disconnect | DisconnectOk | Leave | Heartbeat

_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(SpiderMessage)


def decode(data: bytes) -> Message:
    """The message in these bytes; raises msgspec.MsgspecError where there is none. `encode` is that of all messages."""
    message: Message = _decoder.decode(data)
    return message

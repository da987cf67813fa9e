"""What every part of a node is given: what it knows of others, its settings, its outbox, clock and randomness."""

from __future__ import annotations

from collections import deque

import msgspec

from omen.protocol.config import Config
from omen.protocol.events import (
    Connect,
    Disconnect,
    Engine,
    NodeId,
    Notification,
    Notify,
    Output,
    Randomness,
    Send,
    SetTimer,
    Time,
    Timer,
)
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.messages.base import Message, Ref


class Outbox:
    """Collects outputs in the order they were asked for. What a node says to itself never leaves it."""

    def __init__(self, me: NodeId) -> None:
        self._me = me
        self._outputs: list[Output] = []
        self.to_oneself: deque[Message] = deque()

    def send(self, to: Ref, message: Message) -> None:
        if to.id == self._me:
            self.to_oneself.append(message)
        else:
            self._outputs.append(Send(to.id, to.address, message))

    def put(self, output: Output) -> None:
        self._outputs.append(output)

    def set_timer(self, timer: Timer, delay: Time) -> None:
        self._outputs.append(SetTimer(timer, delay))

    def connect(self, to: Ref) -> None:
        self._outputs.append(Connect(to.id, to.address))

    def disconnect(self, node: NodeId) -> None:
        self._outputs.append(Disconnect(node))

    def notify(self, notification: Notification) -> None:
        self._outputs.append(Notify(notification))

    def take(self) -> list[Output]:
        """Everything since the last time."""
        outputs, self._outputs = self._outputs, []
        return outputs


class Clock:
    """The time of the present input. The node sets it; its parts read it."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now: Time = 0


class NodeContext(msgspec.Struct, frozen=True):
    """Handed to each part of a node when it is made. `engine`: the greedy engine, for those who choose links."""

    peer_table: PeerTable
    config: Config
    out: Outbox
    clock: Clock
    random: Randomness
    engine: Engine

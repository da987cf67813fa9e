"""Where the parts of a node put what they want done; the node hands it to the driver."""

from __future__ import annotations

from collections import deque
from typing import Any

from omen.protocol.events import Connect, Disconnect, NodeId, Notify, Output, Send, SetTimer, Time, TimerKey
from omen.protocol.messages.overlay import Message, Ref


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

    def set_timer(self, key: TimerKey, delay: Time) -> None:
        self._outputs.append(SetTimer(key, delay))

    def connect(self, to: Ref) -> None:
        self._outputs.append(Connect(to.id, to.address))

    def disconnect(self, node: NodeId) -> None:
        self._outputs.append(Disconnect(node))

    def notify(self, what: str, detail: Any = None) -> None:
        self._outputs.append(Notify(what, detail))

    def take(self) -> list[Output]:
        """Everything since the last time."""
        outputs, self._outputs = self._outputs, []
        return outputs

"""Where the parts of a node put what they want done; the node hands it to the driver."""

from __future__ import annotations

from typing import Any

from omen.protocol.events import Connect, Disconnect, NodeId, Notify, Output, Send, SetTimer, Time, TimerKey
from omen.protocol.messages import Message, Ref


class Outbox:
    """Collects outputs in the order they were asked for."""

    def __init__(self) -> None:
        self._outputs: list[Output] = []

    def send(self, to: Ref, message: Message) -> None:
        self._outputs.append(Send(to.id, to.address, message))

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

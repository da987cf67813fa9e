"""Publications over the links of the overlay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from omen.protocol.config import Config
from omen.protocol.events import NodeId, Output, Time, TimerKey, Topic
from omen.protocol.messages import Ref
from omen.protocol.outbox import Outbox
from omen.protocol.publications import Publication

TIMER = "spread"


class Dissemination:
    """Carries publications to whoever wants them."""

    def __init__(self, me: Ref, config: Config, out: Outbox, is_waiting: Callable[[Topic], bool]) -> None:
        self.me = me
        self.in_use = False

    def refresh(
        self,
        carried: Iterable[Topic],
        wanted: Iterable[Topic],
        neighbours: Mapping[NodeId, tuple[Ref, frozenset[Topic]]],
        now: Time,
    ) -> None:
        """These are the topics and links now."""

    def check_payload(self, payload: bytes) -> None:
        """Raises InvalidInput if this is more than one publication may carry."""

    def publish(self, topic: Topic, payload: bytes, now: Time) -> Sequence[Output]:
        """Say something; what is to be done, complete. Its sequence: `last_published`."""
        return ()

    def last_published(self, topic: Topic) -> int:
        """The sequence of this node's newest publication on a topic; 0: none."""
        return 0

    def replay(self, topic: Topic, now: Time) -> None:
        """Deliver what neighbours keep too."""

    def receive(self, sender: NodeId, publication: Publication, now: Time) -> Sequence[Output]:
        """A publication came in; what is to be done, complete."""
        return ()

    def on_control(self, sender: NodeId, message: Any, now: Time) -> None: ...

    def on_timer(self, key: TimerKey, now: Time) -> None: ...

    def on_behind(self, peer: NodeId) -> None: ...

    def on_ready(self, peer: NodeId, now: Time) -> None: ...

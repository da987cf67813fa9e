"""Publications meet the overlay: which links they may follow, and topics that a node carries only to publish on them.

Publishing on a topic makes it part of the node's interest (spidercast 2), so that it is linked to its subscribers. A
topic that the application has not asked for is lent: it is given up once the windows of what was published have lived.

Messages: those of the dissemination, by its `kinds`. Timers: its `timers`.
"""

from __future__ import annotations

from collections.abc import Iterable

from omen.protocol.context import NodeContext
from omen.protocol.dissemination.plumtree import Control, Dissemination, DisseminationTimer
from omen.protocol.dissemination.window import SweepTimer
from omen.protocol.events import Handlers, NodeId, TimerHandlers, Topic
from omen.protocol.parts import Parts
from omen.protocol.repair.links import FADING, UP


class Publishing:
    """`dissemination` outlasts the node's incarnations; the lent topics are handed from one to the next."""

    def __init__(
        self, context: NodeContext, parts: Parts, dissemination: Dissemination, lent: Iterable[Topic] = ()
    ) -> None:
        self._clock = context.clock
        self._window_age = context.config.dissemination.window_age
        self._peer_table = parts.peer_table
        self._links = parts.links
        self._requests = parts.requests
        self._dissemination = dissemination
        self.lent = set(lent)

    def handlers(self) -> Handlers:
        return dict.fromkeys(self._dissemination.kinds, self.on_control)

    def timers(self) -> TimerHandlers:
        return dict.fromkeys(self._dissemination.timers, self.on_timer)

    def on_control(self, sender: NodeId, message: Control) -> None:
        if not self._dissemination.in_use:
            self.follow_links()
        self._dissemination.on_control(sender, message, self._clock.now)

    def on_timer(self, timer: DisseminationTimer) -> None:
        self._dissemination.on_timer(timer, self._clock.now)
        if self.lent and type(timer) is SweepTimer:
            self._give_up_lent()

    def follow_links(self) -> None:
        """Tell the dissemination which links there are, and who wants what at their far ends."""
        topics_of, requests = self._peer_table.topics_of, self._requests
        neighbours = {
            other: (link.ref, topics_of(other))
            for other, link in self._links.links.items()
            if link.state in (UP, FADING)
        }
        topics = topics_of(self._peer_table.id)
        self._dissemination.refresh(topics, requests.wanted, requests.waiting_for(), neighbours, self._clock.now)

    def lend(self, topic: Topic) -> None:
        """Carry a topic that is only published on."""
        self.lent.add(topic)
        self._requests.resubscribe((topic,), ())
        self.follow_links()

    def subscribe(self, added: Iterable[Topic], dropped: Iterable[Topic]) -> None:
        """The application changes what it wants: what it asks for is lent no more."""
        self.lent.difference_update(added)
        self._requests.resubscribe(added, dropped)

    def _give_up_lent(self) -> None:
        """A topic only published on is carried no longer than its windows live."""
        oldest = self._clock.now - self._window_age
        over = [topic for topic in sorted(self.lent) if self._dissemination.published_at(topic) <= oldest]
        if over and not self._requests.departing:
            self.lent.difference_update(over)
            self._requests.resubscribe((), over)

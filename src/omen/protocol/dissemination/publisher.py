"""Publications meet the overlay: which links there are to spread over, and what publishing does to a node's topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omen.protocol.events import NodeId, Output, Topic
from omen.protocol.repair.links import FADING, UP

if TYPE_CHECKING:
    from omen.protocol.node import OmenNode


class Publisher:
    """Keeps the dissemination of a node told of its links."""

    def __init__(self, node: OmenNode) -> None:
        self._node = node

    def publish(self, topic: Topic, payload: bytes) -> Sequence[Output]:
        """Publishing on a topic makes it part of the node's interest (spidercast 2)."""
        node, dissemination = self._node, self._node.dissemination
        dissemination.check_payload(payload)
        if topic not in node.requests.wanted:
            node.requests.resubscribe((topic,), ())
            self.spread_over_links()
            return [*node.conclude(), *dissemination.publish(topic, payload, node.now)]
        if not dissemination.in_use:
            self.spread_over_links()
        return dissemination.publish(topic, payload, node.now)

    def on_control(self, sender: NodeId, message: Any) -> None:
        dissemination = self._node.dissemination
        if not dissemination.in_use:
            self.spread_over_links()
        dissemination.on_control(sender, message, self._node.now)

    def on_ready(self, peer: NodeId) -> None:
        self.spread_over_links()
        self._node.dissemination.on_ready(peer, self._node.now)

    def replay(self, topic: Topic) -> None:
        self.spread_over_links()
        self._node.dissemination.replay(topic, self._node.now)

    def spread_over_links(self) -> None:
        """Tell the dissemination which links there are, and who wants what at their far ends."""
        node = self._node
        topics_of = node.peer_table.topics_of
        neighbours = {
            other: (link.ref, topics_of(other))
            for other, link in node.links.links.items()
            if link.state in (UP, FADING)
        }
        node.dissemination.refresh(topics_of(node.peer_table.id), node.requests.wanted, neighbours, node.now)

    def is_waiting(self, topic: Topic) -> bool:
        """Whether this node is still to be linked in a topic."""
        return topic in self._node.requests.waiting_for()

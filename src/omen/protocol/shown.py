"""What a node shows of itself: a frozen snapshot, and the few values that drivers and monitors ask for often."""

from __future__ import annotations

from collections import Counter

from omen.protocol.config import Config
from omen.protocol.context import Clock
from omen.protocol.dissemination.plumtree import Dissemination
from omen.protocol.events import NodeId, Time, Topic
from omen.protocol.messages.base import Ref
from omen.protocol.parts import Parts
from omen.protocol.status import LinkStatus, NodeStatus, OwnStatus, StreamName, StreamStatus, links_status, take_status


class ShownNode:
    """The part of a node's interface that changes nothing."""

    config: Config
    stopped: bool
    _clock: Clock
    _contacts: tuple[Ref, ...]
    _dissemination: Dissemination
    _parts: Parts
    _refused: Counter[str]

    @property
    def ref(self) -> Ref:
        return self._parts.peer_table.ref

    @property
    def contacts(self) -> tuple[Ref, ...]:
        """The peers this incarnation joins through; none: it is the first of its overlay."""
        return self._contacts

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics this node carries."""
        return self._parts.peer_table.me.topics

    @property
    def wanted(self) -> set[Topic]:
        """The topics of this node once everything it asked for is handled."""
        return self._parts.requests.wanted

    @property
    def is_leaving(self) -> bool:
        return self._parts.requests.departing

    @property
    def is_busy(self) -> bool:
        """Whether this node has something to repair, to make or to report."""
        parts = self._parts
        queue = parts.coordinator.event_queue
        return bool(
            parts.requests.open
            or parts.loss_reports.open
            or queue.exe_q
            or queue.standby
            or parts.coordinator.repair
            or parts.shadow_member.proposals
            or parts.link_pruning.is_busy
        )

    def links(self) -> dict[NodeId, LinkStatus]:
        """The links alone, for monitors that look at all nodes often; `status` has the rest."""
        return links_status(self._parts)

    @property
    def open_lookups(self) -> int:
        return self._parts.ring_lookup.open_count

    def streams(self) -> dict[StreamName, StreamStatus]:
        """How far each stream is, for those who look often."""
        return self._dissemination.streams(self._clock.now)

    def status(self) -> NodeStatus:
        """The node as it is now: all that the outside sees of it."""
        own = OwnStatus(self.config, self.stopped, self.is_busy, dict(self._refused))
        return take_status(self._parts, own, self._dissemination.status(self._clock.now))

    def room(self, topic: Topic, now: Time) -> int:
        """How many bytes may be published on a topic now without anybody falling behind."""
        return self._dissemination.room(topic, now)

    def unheld(self) -> int:
        """Publications of this node that not every neighbour on their tree has."""
        reports = self._parts.loss_reports.open.values()
        return self._dissemination.unheld({topic for report in reports for topic in report.topics})

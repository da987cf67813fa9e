"""The links of the overlay: both ends agree that one exists before either counts it; planned ones are announced."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec

from omen.protocol.context import NodeContext
from omen.protocol.events import Handlers, NodeId, Time, Timer, TimerHandlers, Topic
from omen.protocol.messages.overlay import LinkClose, LinkOk, LinkOpen, LinkSeen, Ref


class LinkState(Enum):
    """How far a link is, as this end sees it. FADING: up still, but about to be taken down."""

    PLANNED = "planned"
    OPENING = "opening"
    ACCEPTED = "accepted"
    UP = "up"
    FADING = "fading"


PLANNED, OPENING, ACCEPTED, UP, FADING = LinkState
PLANNED_AT_MOST = 64
"""Links that are being made from this end: each is told to the successors at once. A repair proposes again."""


class LinkTimer(Timer, frozen=True):
    """The far end has had its time to answer."""

    node: NodeId


class Link(msgspec.Struct):
    """One link as this end sees it; `successors` are the far end's, to whom its loss is reported. `spare`: only
    connectivity 2 asks for it. `number`: as the end that opens counts its links; 0 where that is not known.
    """

    ref: Ref
    state: LinkState
    successors: tuple[Ref, ...] = ()
    attempts: int = 0
    spare: bool = False
    number: int = 0


class Links:
    """The end with the lower place opens: LinkOpen, LinkOk, LinkSeen.

    It numbers what it opens. An answer or a farewell may be overtaken by what follows it: one for a former link, that
    was given up and opened again, does not concern the one that is there.

    `version` counts the changes of who this node says its neighbours are, `changes` those of states too.
    """

    def __init__(self, context: NodeContext) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._out = context.out
        self._clock = context.clock
        self.links: dict[NodeId, Link] = {}
        self.successors: tuple[Ref, ...] = ()
        self.changed = False
        self.came_up: list[NodeId] = []
        self.version = 0
        self.changes = 0
        self.opened = 0
        self._fading_topics: dict[NodeId, tuple[int, Time, frozenset[Topic]]] = {}
        self._counted: tuple[tuple[Ref, ...], tuple[frozenset[Topic], ...]] = (), ()
        self._counted_at = (-1, -1)

    def take_came_up(self) -> list[NodeId]:
        """The links that have come up since this was asked last."""
        came_up, self.came_up = self.came_up, []
        return came_up

    def handlers(self) -> Handlers:
        return {LinkSeen: self.on_seen, LinkClose: self.on_close}

    def timers(self) -> TimerHandlers:
        return {LinkTimer: self.on_timer}

    def announce_successors(self, successors: tuple[Ref, ...]) -> None:
        """Neighbours hear of these when links are made: to them this node's loss is reported."""
        self.successors = successors

    def mark_changed(self) -> None:
        """What this node says of its neighbours has changed, though no link has."""
        self.changed = True

    def settle(self) -> None:
        """The node's descriptor is as new as its links."""
        self.changed = False

    def note_change(self) -> None:
        """Who this node says its neighbours are may have changed."""
        self.changed = True
        self.version += 1
        self.changes += 1

    def neighbours(self) -> tuple[Ref, ...]:
        """Who this node says its neighbours are: planned links count at once."""
        return tuple(self.links[node].ref for node in sorted(self.links))

    def up(self) -> list[NodeId]:
        """The links both ends agreed on."""
        return sorted(node for node, link in self.links.items() if link.state is UP)

    def is_up(self, node: NodeId) -> bool:
        link = self.links.get(node)
        return link is not None and link.state is UP

    def has(self, ref: Ref) -> bool:
        """Whether there is a link to this incarnation, or one is being made."""
        link = self.links.get(ref.id)
        return link is not None and link.ref.incarnation >= ref.incarnation

    def is_full(self) -> bool:
        """Whether this node takes no link that only connectivity asks for."""
        return 0 < self._config.max_links <= len(self.links)

    def note_fading(self, nodes: Iterable[NodeId], topics: Iterable[Topic]) -> None:
        """These neighbours are about to give topics up, or to leave.

        It counts until their topics change, they have failed, or as long as a node takes to leave: one may stay after
        all.
        """
        self._fading_topics = {node: entry for node, entry in self._fading_topics.items() if node in self.links}
        until = self._clock.now + 2 * self._config.standby_timeout
        for node in nodes:
            known = self._peer_table.known.get(node)
            if known is not None and node in self.links:
                faded = self._faded(node).union(topics)
                self._fading_topics[node] = (known.digest.topics_version, until, faded)

    def _faded(self, node: NodeId) -> frozenset[Topic]:
        version, until, topics = self._fading_topics.get(node, (0, 0, frozenset()))
        is_so = self._clock.now < until and version == self._peer_table.known[node].digest.topics_version
        return topics if is_so else frozenset()

    def count_on(self, node: NodeId) -> frozenset[Topic]:
        """The topics of a neighbour, without those it is about to give up or to leave with."""
        topics = self._peer_table.topics_of(node)
        return topics - self._faded(node) if node in self._fading_topics else topics

    def counted_on(self) -> tuple[tuple[Ref, ...], tuple[frozenset[Topic], ...]]:
        """The links both ends agreed on, and the topics of each far end that count. Asked for again and again while
        nothing changes; topics that fade do so by the clock.
        """
        stamp = (self.changes, self._peer_table.topics_stamp())
        if stamp != self._counted_at or self._fading_topics:
            up = self.up()
            self._counted = tuple(self.links[node].ref for node in up), tuple(self.count_on(node) for node in up)
            self._counted_at = stamp
        return self._counted

    def preset(self, ref: Ref, successors: tuple[Ref, ...]) -> None:
        """A link that exists from the beginning, agreed by both."""
        self.links[ref.id] = Link(ref, UP, successors)
        self.note_change()

    def plan(self, ref: Ref, spare: bool = False) -> None:
        """This link is to be: count it in, and make it. `spare`: unless one end has as many as it may."""
        if ref.id == self._peer_table.id or self._peer_table.is_declared_failed(ref):
            return
        if ref.id in self._config.forbid:  # a node that does not know has planned it: an older one, or connectivity 2
            return
        link = self.links.get(ref.id)
        if link is not None and link.ref.incarnation >= ref.incarnation:
            link.spare &= spare
            if link.state is PLANNED and self._peer_table.id < ref.id:
                self._open(link)
            return
        if sum(other.state in (PLANNED, OPENING) for other in self.links.values()) >= PLANNED_AT_MOST:
            return
        link = self.links[ref.id] = Link(ref, PLANNED, spare=spare)
        self.note_change()
        if self._peer_table.id < ref.id:
            self._open(link)
        else:
            self._out.set_timer(LinkTimer(ref.id), self._patience())

    def close(self, node: NodeId) -> None:
        """Take a link down from this end."""
        link = self.links.pop(node, None)
        if link is not None:
            self.note_change()
            self._refuse(link.ref, link.number)

    def drop(self, node: NodeId) -> Link | None:
        """The far end has failed or left."""
        link = self.links.pop(node, None)
        if link is not None:
            self.note_change()
        return link

    def fade(self, node: NodeId) -> None:
        """Count on a link no more: it is about to be taken down (see `link_pruning`)."""
        self._set_state(self.links[node], FADING)

    def unfade(self, node: NodeId) -> None:
        """It stays after all."""
        link = self.links.get(node)
        if link is not None and link.state is FADING:
            self._set_state(link, UP)
            self.came_up.append(node)

    def is_fading(self, node: NodeId) -> bool:
        link = self.links.get(node)
        return link is not None and link.state is FADING

    def on_open(self, _: NodeId, message: LinkOpen) -> None:
        ref = message.descriptor.digest.ref
        if self._peer_table.is_declared_failed(ref):
            return
        if ref.id in self._config.forbid:
            self._refuse(ref, message.number)
            return
        link = self.links.get(ref.id)
        if link is not None and link.state is FADING and link.ref.incarnation >= ref.incarnation:
            return
        if link is None and message.spare and self.is_full():
            self._refuse(ref, message.number)
            return
        if link is None or link.ref.incarnation < ref.incarnation:
            link = self.links[ref.id] = Link(ref, ACCEPTED)
            self.note_change()
        elif 0 < message.number < link.number:
            return
        elif link.state is not UP or 0 < link.number < message.number:  # the far end has given up the one that was up
            self._set_state(link, ACCEPTED)
        link.number = message.number
        link.successors = message.successors
        if not self._config.remedies.links_agreed_by_both:
            self._set_up(link)
        self._out.send(ref, LinkOk(self._peer_table.me, self.successors, link.number))
        if link.state is ACCEPTED:
            link.attempts = 0
            self._out.set_timer(LinkTimer(ref.id), self._config.answer_timeout)

    def on_ok(self, _: NodeId, message: LinkOk) -> None:
        ref = message.descriptor.digest.ref
        link = self.links.get(ref.id)
        if link is None or link.ref.incarnation != ref.incarnation:
            self._refuse(ref, message.number)
            return
        if 0 < message.number != link.number:
            return
        link.successors = message.successors
        if link.state is FADING:
            return
        self._set_up(link)
        self._out.send(ref, LinkSeen(link.number))

    def on_seen(self, sender: NodeId, message: LinkSeen) -> None:
        link = self.links.get(sender)
        if link is not None and link.state is ACCEPTED and message.number in (0, link.number):
            self._set_up(link)

    def on_close(self, sender: NodeId, message: LinkClose) -> None:
        link = self.links.get(sender)
        if link is None or link.ref.incarnation != message.incarnation:
            return
        if 0 < message.number < link.number or (message.number and link.state is PLANNED):
            return
        del self.links[sender]
        self.note_change()
        if link.state is UP and link.number:  # a farewell that the link itself has overtaken: the other end has it up
            self._refuse(link.ref, link.number)

    def on_timer(self, timer: LinkTimer) -> None:
        """Say it again, a few times; then give the link up."""
        node = timer.node
        link = self.links.get(node)
        if link is None or link.state in (UP, FADING):
            return
        link.attempts += 1
        if link.attempts >= self._config.attempts or link.state is PLANNED:
            self.close(node)
        elif link.state is OPENING:
            self._out.send(link.ref, LinkOpen(self._peer_table.me, self.successors, link.spare, link.number))
            self._out.set_timer(LinkTimer(node), self._config.answer_timeout)
        else:
            self._out.send(link.ref, LinkOk(self._peer_table.me, self.successors, link.number))
            self._out.set_timer(LinkTimer(node), self._config.answer_timeout)

    def _open(self, link: Link) -> None:
        self._set_state(link, OPENING)
        link.attempts = 0
        self.opened += 1
        link.number = self.opened
        self._out.send(link.ref, LinkOpen(self._peer_table.me, self.successors, link.spare, link.number))
        self._out.set_timer(LinkTimer(link.ref.id), self._config.answer_timeout)
        if not self._config.remedies.links_agreed_by_both:
            self._set_up(link)

    def _refuse(self, ref: Ref, number: int) -> None:
        self._out.send(ref, LinkClose(self._peer_table.ref.incarnation, number))

    def _set_up(self, link: Link) -> None:
        if link.state is not UP:
            self._set_state(link, UP)
            self.came_up.append(link.ref.id)

    def _set_state(self, link: Link, state: LinkState) -> None:
        link.state = state
        self.changes += 1

    def _patience(self) -> int:
        return self._config.answer_timeout * self._config.attempts

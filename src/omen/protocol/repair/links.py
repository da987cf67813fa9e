"""The links of the overlay: both ends agree that one exists before either counts it; planned ones are announced."""

from __future__ import annotations

from dataclasses import dataclass

from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.events import NodeId
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.messages.overlay import LinkClose, LinkOk, LinkOpen, LinkSeen, Ref

PLANNED, OPENING, ACCEPTED, UP, FADING = "planned", "opening", "accepted", "up", "fading"


@dataclass(slots=True)
class Link:
    """One link as this end sees it; `successors` are the far end's, to whom its loss is reported."""

    ref: Ref
    state: str
    successors: tuple[Ref, ...] = ()
    attempts: int = 0


class Links:
    """The end with the lower place opens: LinkOpen, LinkOk, LinkSeen."""

    def __init__(self, peer_table: PeerTable, config: Config, out: Outbox) -> None:
        self._peer_table = peer_table
        self._config = config
        self._out = out
        self.links: dict[NodeId, Link] = {}
        self.successors: tuple[Ref, ...] = ()
        self.changed = False
        self.came_up: list[NodeId] = []
        self.version = 0

    def note_change(self) -> None:
        """Who this node says its neighbours are may have changed."""
        self.changed = True
        self.version += 1

    def neighbours(self) -> tuple[Ref, ...]:
        """Who this node says its neighbours are: planned links count at once."""
        return tuple(self.links[node].ref for node in sorted(self.links))

    def up(self) -> list[NodeId]:
        """The links both ends agreed on."""
        return sorted(node for node, link in self.links.items() if link.state == UP)

    def is_up(self, node: NodeId) -> bool:
        link = self.links.get(node)
        return link is not None and link.state == UP

    def preset(self, ref: Ref, successors: tuple[Ref, ...]) -> None:
        """A link that exists from the beginning, agreed by both."""
        self.links[ref.id] = Link(ref, UP, successors)
        self.note_change()

    def plan(self, ref: Ref) -> None:
        """This link is to be: count it in, and make it."""
        if ref.id == self._peer_table.id or self._peer_table.is_declared_failed(ref):
            return
        link = self.links.get(ref.id)
        if link is not None and link.ref.incarnation >= ref.incarnation:
            if link.state == PLANNED and self._peer_table.id < ref.id:
                self._open(link)
            return
        link = self.links[ref.id] = Link(ref, PLANNED)
        self.note_change()
        if self._peer_table.id < ref.id:
            self._open(link)
        else:
            self._out.set_timer(("link", ref.id), self._patience())

    def close(self, node: NodeId) -> None:
        """Take a link down from this end."""
        link = self.links.pop(node, None)
        if link is not None:
            self.note_change()
            self._out.send(link.ref, LinkClose(self._peer_table.ref.incarnation))

    def drop(self, node: NodeId) -> Link | None:
        """The far end is gone."""
        link = self.links.pop(node, None)
        if link is not None:
            self.note_change()
        return link

    def fade(self, node: NodeId) -> None:
        """Count on a link no more: it is about to be taken down (see `sparing`)."""
        self.links[node].state = FADING

    def unfade(self, node: NodeId) -> None:
        """It stays after all."""
        link = self.links.get(node)
        if link is not None and link.state == FADING:
            link.state = UP
            self.came_up.append(node)

    def is_fading(self, node: NodeId) -> bool:
        link = self.links.get(node)
        return link is not None and link.state == FADING

    def on_open(self, message: LinkOpen) -> None:
        ref = message.descriptor.digest.ref
        if self._peer_table.is_declared_failed(ref):
            return
        link = self.links.get(ref.id)
        if link is not None and link.state == FADING and link.ref.incarnation >= ref.incarnation:
            return
        if link is None or link.ref.incarnation < ref.incarnation:
            link = self.links[ref.id] = Link(ref, ACCEPTED)
            self.note_change()
        elif link.state != UP:
            link.state = ACCEPTED
        link.successors = message.successors
        if not self._config.remedies.links_agreed_by_both:
            self._set_up(link)
        self._out.send(ref, LinkOk(self._peer_table.me, self.successors))
        if link.state == ACCEPTED:
            link.attempts = 0
            self._out.set_timer(("link", ref.id), self._config.answer_timeout)

    def on_ok(self, message: LinkOk) -> None:
        ref = message.descriptor.digest.ref
        link = self.links.get(ref.id)
        if link is None or link.ref.incarnation != ref.incarnation:
            self._out.send(ref, LinkClose(self._peer_table.ref.incarnation))
            return
        link.successors = message.successors
        if link.state == FADING:
            return
        self._set_up(link)
        self._out.send(ref, LinkSeen())

    def on_seen(self, sender: NodeId) -> None:
        link = self.links.get(sender)
        if link is not None and link.state == ACCEPTED:
            self._set_up(link)

    def on_close(self, sender: NodeId, message: LinkClose) -> None:
        link = self.links.get(sender)
        if link is not None and link.ref.incarnation == message.incarnation:
            del self.links[sender]
            self.note_change()

    def on_timer(self, node: NodeId) -> None:
        """Say it again, a few times; then give the link up."""
        link = self.links.get(node)
        if link is None or link.state in (UP, FADING):
            return
        link.attempts += 1
        if link.attempts >= self._config.attempts or link.state == PLANNED:
            self.close(node)
        elif link.state == OPENING:
            self._out.send(link.ref, LinkOpen(self._peer_table.me, self.successors))
            self._out.set_timer(("link", node), self._config.answer_timeout)
        else:
            self._out.send(link.ref, LinkOk(self._peer_table.me, self.successors))
            self._out.set_timer(("link", node), self._config.answer_timeout)

    def _open(self, link: Link) -> None:
        link.state = OPENING
        link.attempts = 0
        self._out.send(link.ref, LinkOpen(self._peer_table.me, self.successors))
        self._out.set_timer(("link", link.ref.id), self._config.answer_timeout)
        if not self._config.remedies.links_agreed_by_both:
            self._set_up(link)

    def _set_up(self, link: Link) -> None:
        if link.state != UP:
            link.state = UP
            self.came_up.append(link.ref.id)

    def _patience(self) -> int:
        return self._config.answer_timeout * self._config.attempts

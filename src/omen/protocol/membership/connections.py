"""To which peers a node keeps connections, what it says of itself, and which peers are told when that changes."""

from __future__ import annotations

from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.overlay import Descriptor, Digest, Ref, Status
from omen.protocol.repair.links import Links
from omen.protocol.repair.loss_reports import LossReports


class Connections:
    """`told`: the digest of this node that others were last told of."""

    def __init__(self, context: NodeContext, ring: Ring, links: Links) -> None:
        self._peer_table = context.peer_table
        self._out = context.out
        self._ring = ring
        self._links = links
        self._connected: set[NodeId] = set()
        self._told_successors: tuple[Ref, ...] = ()
        self._told_whom: set[NodeId] = set()
        self.told = Digest(context.peer_table.ref, 0, 0)

    def forget(self, node: NodeId) -> None:
        """The peer has failed or left, and with it the connection."""
        if node in self._connected:
            self._connected.discard(node)
            self._out.disconnect(node)

    def keep(self) -> dict[NodeId, Ref]:
        """To neighbours and all peers on the ring: one beyond L that has failed must not count as a successor."""
        refs = dict(self._ring.members)
        refs.update({node: link.ref for node, link in self._links.links.items()})
        for node in sorted(refs.keys() - self._connected):
            self._out.connect(refs[node])
        for node in sorted(self._connected - refs.keys()):
            self._out.disconnect(node)
        self._connected = set(refs)
        return refs

    def tell_status(self) -> None:
        """Successors hear of every change; neighbours of changed successors or topics, to report and link by."""
        me, successors = self._peer_table.me, self._links.successors
        before = self.told
        changed = me.digest is not before
        everyone = successors != self._told_successors or before.topics_version != me.digest.topics_version
        targets = {ref.id: ref for ref in successors}
        if everyone:
            targets.update({node: link.ref for node, link in self._links.links.items()})
        for node in sorted(targets):
            if changed or everyone or node not in self._told_whom:
                self._out.send(targets[node], Status(me.digest, me.neighbours, successors))
        self._told_whom = {ref.id for ref in successors}
        self._told_successors, self.told = successors, me.digest


class Incarnations:
    """The incarnations of a node that this one knows: by ring, links and peer table."""

    def __init__(self, context: NodeContext, ring: Ring, links: Links) -> None:
        self._peer_table = context.peer_table
        self._ring = ring
        self._links = links

    def known(self, node: NodeId) -> list[Ref]:
        member, link = self._ring.members.get(node), self._links.links.get(node)
        known = self._peer_table.known.get(node)
        refs = [member] if member is not None else []
        if link is not None:
            refs.append(link.ref)
        if known is not None:
            refs.append(known.digest.ref)
        return refs

    def latest(self, node: NodeId) -> Ref | None:
        """The first of `known` with the highest incarnation, without the list: it is asked with each heartbeat."""
        latest = self._ring.members.get(node)
        link = self._links.links.get(node)
        if link is not None and (latest is None or link.ref.incarnation > latest.incarnation):
            latest = link.ref
        known = self._peer_table.known.get(node)
        if known is not None and (latest is None or known.digest.ref.incarnation > latest.incarnation):
            latest = known.digest.ref
        return latest


class OwnDescriptor:
    """Keeps what this node says of itself as new as its links."""

    def __init__(self, context: NodeContext, links: Links, loss_reports: LossReports) -> None:
        self._peer_table = context.peer_table
        self._links = links
        self._loss_reports = loss_reports

    def refresh(self) -> Descriptor:
        """This node's descriptor, made anew where links have changed.

        A lost neighbour counts until its loss is known to be repaired: were this node lost too, the two would be linked
        losses although the link is down already.
        """
        table, links = self._peer_table, self._links
        if links.changed:
            links.settle()
            digest = table.me.digest
            lost = (ref for ref in self._loss_reports.unrepaired() if ref.id not in links.links)
            neighbours = tuple(sorted((*links.neighbours(), *lost), key=lambda ref: ref.id))
            if neighbours != table.me.neighbours:
                digest = Digest(digest.ref, digest.topics_version, digest.links_version + 1)
                table.describe(Descriptor(digest, table.me.topics, neighbours, table.me.rules))
        return table.me

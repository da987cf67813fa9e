"""Whom a node keeps connections to, and who is told when it has changed."""

from __future__ import annotations

from omen.protocol.context import Outbox
from omen.protocol.events import NodeId
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.overlay import Digest, Ref, Status
from omen.protocol.repair.links import Links


class Connections:
    """`told`: the digest of this node that others were last told of."""

    def __init__(self, peer_table: PeerTable, ring: Ring, links: Links, out: Outbox) -> None:
        self._peer_table = peer_table
        self._ring = ring
        self._links = links
        self._out = out
        self._connected: set[NodeId] = set()
        self._told_successors: tuple[Ref, ...] = ()
        self._told_whom: set[NodeId] = set()
        self.told = Digest(peer_table.ref, 0, 0)

    def forget(self, node: NodeId) -> None:
        """It is gone: so is the connection."""
        if node in self._connected:
            self._connected.discard(node)
            self._out.disconnect(node)

    def keep_connections(self) -> dict[NodeId, Ref]:
        """To neighbours and all it knows on the circle: a spare one that is gone must not be taken for a successor."""
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

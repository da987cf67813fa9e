"""The tree of each topic: which links carry publications at once, and which only hear what there is (Plumtree)."""

from __future__ import annotations

from omen.protocol.config import Dissemination as Settings
from omen.protocol.context import Outbox
from omen.protocol.dissemination.window import Stream, TopicWindow
from omen.protocol.events import NodeId, Time
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import Graft, Prune


class Plumtree:
    """Cuts branches that bring everything twice, but never the one by which this node hears the stream it follows."""

    def __init__(self, settings: Settings, out: Outbox, behind: set[NodeId]) -> None:
        self._settings = settings
        self._out = out
        self._slow = behind

    def fanout(self, carried: TopicWindow, sender: NodeId) -> tuple[NodeId, ...]:
        """To whom what comes from this one goes on; kept until links, interests or the tree change."""
        to = carried.fanout.get(sender)
        if to is None:
            to = tuple(sorted(peer for peer in carried.eager if peer != sender and peer not in self._slow))
            carried.fanout[sender] = to
        return to

    def on_duplicate(self, stream: Stream, sender: NodeId, now: Time) -> None:
        """Cut the branch it came by, if the stream also comes by another and is the one the tree follows."""
        carried = stream.carried
        ref = carried.peers.get(sender)
        if ref is None or stream.is_own:
            return
        if sender in carried.eager:
            if stream.parent == sender or stream.parent not in carried.eager or carried.pace(now) is not stream:
                return
            carried.make_lazy(sender)
        elif now - carried.pruned_at.get(sender, -self._settings.prune_pause) < self._settings.prune_pause:
            return
        self._cut(carried, ref, now)

    def _cut(self, carried: TopicWindow, ref: Ref, now: Time) -> None:
        carried.pruned_at[ref.id] = now
        self._out.send(ref, Prune(carried.topic))

    def on_prune(self, carried: TopicWindow, sender: NodeId, now: Time) -> None:
        """Agreed, unless this is where publications come from."""
        pace = carried.pace(now)
        if pace is not None and pace.parent == sender and not pace.is_own:
            self._out.send(carried.peers[sender], Graft(carried.topic))
        else:
            carried.make_lazy(sender)

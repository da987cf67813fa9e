"""The tree of a topic, as in Plumtree: branches that bring everything twice are cut, and broken ones bypassed."""

from __future__ import annotations

from omen.protocol.config import Dissemination as Settings
from omen.protocol.context import Outbox
from omen.protocol.dissemination.stream import NOBODY, Stream, heard_of
from omen.protocol.dissemination.window import TopicWindow
from omen.protocol.events import NodeId, Time
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import Graft, Prune, RetransmissionRequest, StreamKey

STREAMS_ASKED = 64
"""Of those that a broken branch brought, at least so many, the ones heard last, and all of `pace_time`: also one that
was silent for long may have been sent into it, and by announcements alone that takes some hundred milliseconds.
"""


class Plumtree:
    """Cuts branches that bring everything twice, but never the one by which this node hears the stream it follows."""

    def __init__(self, settings: Settings, out: Outbox, slow: set[NodeId]) -> None:
        self._settings = settings
        self._out = out
        self._slow = slow

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

    def bypass(self, carried: TopicWindow, broken: NodeId, now: Time) -> list[NodeId]:
        """A branch has broken: the other links of the topic take its place at once, and send what it may have kept.

        What then comes twice cuts them off again. The branches that hang on this node are asked too: they have no more
        than this node, and so learn that what they hear by it is missing; the way round may be a link of theirs.
        Returned: who took its place.
        """
        cut_off = [stream for stream in carried.streams.values() if stream.parent == broken and stream.is_settled]
        recent = sum(now - stream.heard < self._settings.pace_time for stream in cut_off)
        wants = tuple(
            (carried.topic, stream.publisher, stream.incarnation, stream.last + 1, 0)
            for stream in sorted(cut_off, key=heard_of)[-max(recent, STREAMS_ASKED) :]
        )
        others = []
        carried.expect_copies(now)
        for peer in sorted(carried.peers.keys() - {broken} - self._slow):
            if peer not in carried.eager:
                carried.make_eager(peer)
                others.append(peer)
            for begin in range(0, len(wants), STREAMS_ASKED):
                some = wants[begin : begin + STREAMS_ASKED]
                self._out.send(carried.peers[peer], RetransmissionRequest(some, graft=True))
            if not wants and peer in others:
                self._out.send(carried.peers[peer], Graft(carried.topic))
        for stream in cut_off:
            stream.parent = NOBODY
        return others

    def hear_request(self, carried: TopicWindow, sender: NodeId, key: StreamKey, first: int, now: Time) -> None:
        """A neighbour grafts this node for more than there is here, though the stream comes from itself: its own branch
        has broken.
        """
        stream = carried.streams.get(key)
        if stream is not None and stream.parent == sender and first > stream.known_to:
            self.bypass(carried, sender, now)

    def on_prune(self, carried: TopicWindow, sender: NodeId, now: Time) -> None:
        """Agreed, unless this is where publications come from."""
        pace = carried.pace(now)
        if pace is not None and pace.parent == sender and not pace.is_own:
            self._out.send(carried.peers[sender], Graft(carried.topic))
        else:
            carried.make_lazy(sender)

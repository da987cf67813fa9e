"""A walk round the ring that its origin leads: step by step, each repeated until it is answered.

A walk that nodes pass on from one to the next is quick, and gone with one message that is lost. So where the first
did not come back, those after it are led. Only the step that was lost is taken again, whatever the ring's length.
"""

from __future__ import annotations

import msgspec

from omen.protocol.events import NodeId, Topic
from omen.protocol.messages.overlay import Descriptor, EventId, Ref, RingWalk, RingWalkReply

STEP_REPEATS = 6  # with doubled pauses, 127 times the first in all; then the walk begins anew, for the ring may differ


class LedWalk(msgspec.Struct):
    """`at`: the node whose answer is waited for. `topics`: those that no node met so far has. `repeats`: of a step.

    `is_refused`: nobody listens there. The node before it does not know yet, and will: the walk begins anew, later.
    """

    number: int
    at: Ref
    topics: tuple[Topic, ...]
    skip: tuple[NodeId, ...]
    hops: int
    found: tuple[Descriptor, ...] = ()
    repeats: int = 0
    is_refused: bool = False

    def step(self, event: EventId, origin: Ref) -> RingWalk:
        return RingWalk(event, origin, self.topics, (), self.skip, self.hops, self.number, led=True)

    def repeat(self) -> bool:
        """No answer in time: whether this step is worth another try."""
        self.repeats += 1
        return self.repeats <= STEP_REPEATS and not self.is_refused

    def note_refused(self, node: NodeId, address: str) -> None:
        self.is_refused |= (self.at.id, self.at.address) == (node, address)

    def is_answered_by(self, sender: NodeId, reply: RingWalkReply) -> bool:
        return sender == self.at.id and reply.number == self.number

    def advance(self, reply: RingWalkReply) -> bool:
        """Take the answer to a step in; whether there is another step to take."""
        self.found += reply.descriptors
        if reply.onward is None or not self.hops:
            return False
        self.at, self.topics = reply.onward, reply.topics
        self.hops -= 1
        self.repeats, self.is_refused = 0, False
        return True

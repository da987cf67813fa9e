"""The door of a SpiderCast node: what does not make sense is dropped before a task sees it, as at the door of OMen's.

What no type can say: that a message speaks for its sender, that nobody writes to oneself, that there is such a task.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from omen.protocol.events import NodeId
from omen.protocol.messages.overlay import Ref
from omen.protocol.spidercast.messages import decode
from omen.protocol.validation import FALSE, UNKNOWN, read_message

TASKS = 2


def take_in(me: NodeId, sender: NodeId, message: Any, kinds: Container[type]) -> tuple[Any, str | None]:
    """The message, bytes turned into one, and what is wrong with it if anything is."""
    if type(message) is bytes:
        message, complaint = read_message(message, decode)
        if complaint is not None:
            return None, complaint
    if type(message) not in kinds:
        return None, UNKNOWN
    speaker: Ref | None = getattr(message, "sender", None)
    speaks_for_another = speaker is not None and speaker.id != sender
    if sender == me or speaks_for_another or not 0 <= message.task < TASKS:
        return None, FALSE
    return message, None

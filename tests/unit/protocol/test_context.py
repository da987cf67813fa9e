"""The outbox."""

from __future__ import annotations

import pytest

from omen.protocol.context import Outbox
from omen.protocol.messages.overlay import LinkClose, LinkSeen, Message
from unit.protocol.contexts import ref

ME = 1000


@pytest.mark.parametrize("message", [LinkSeen(), LinkClose(1)])
def test_what_a_node_says_to_itself_never_leaves_it(message: Message) -> None:
    out = Outbox(ME)
    out.send(ref(ME), message)
    assert out.take() == []
    assert list(out.to_oneself) == [message]

"""What a part of a node is made with, for tests of one part by itself."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from omen.maintain.choosing import choose_links
from omen.protocol.config import Config
from omen.protocol.context import Clock, NodeContext, Outbox
from omen.protocol.events import Send
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.messages.overlay import Descriptor, Digest, Message, Ref


def ref(node: int, incarnation: int = 1) -> Ref:
    return Ref(node, incarnation, "")


def describe(
    node: int, topics: Iterable[int] = (), incarnation: int = 1, versions: tuple[int, int] = (1, 1), degree: int = 0
) -> Descriptor:
    """A node with these topics, and neighbours that nothing else is known of."""
    neighbours = tuple(ref(1000 + number) for number in range(degree))
    return Descriptor(Digest(ref(node, incarnation), *versions), tuple(topics), neighbours)


def make_context(node: int, topics: Iterable[int] = (), seed: int = 1, **settings: Any) -> NodeContext:
    """The context of a node with these topics; `settings`: what its config has otherwise than by default."""
    config = Config(**settings)
    table = PeerTable(describe(node, topics), config.tombstone_life)
    return NodeContext(table, config, Outbox(node), Clock(), random.Random(seed), choose_links)


def sent(out: Outbox) -> list[tuple[int, Message]]:
    """The messages since the last time, each with its addressee."""
    return [(output.to, output.message) for output in out.take() if isinstance(output, Send)]

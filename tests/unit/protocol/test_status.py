"""A status is a snapshot: what a node does afterwards is not in it."""

from __future__ import annotations

import random
from collections.abc import Mapping, MutableMapping, Sequence, Set
from typing import Any

import msgspec
from tests.unit.protocol.contexts import describe, ref

from omen.maintain.choosing import choose_links
from omen.protocol.config import Config
from omen.protocol.events import SECOND, Received, Subscribe
from omen.protocol.messages.overlay import Descriptors, LinkOpen
from omen.protocol.node import OmenNode

ME, NEAR, FAR = 10, 5, 7


def frozen(value: Any) -> Any:
    """Everything in a status, as plain values that can be compared later."""
    if isinstance(value, msgspec.Struct):
        return {field: frozen(getattr(value, field)) for field in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {key: frozen(one) for key, one in value.items()}
    if isinstance(value, Set):
        return sorted(map(repr, value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [frozen(one) for one in value]
    return value


def test_what_a_node_wants_is_handed_out_as_it_is_now() -> None:
    node = OmenNode(ref(ME), (1, 2), Config(), random.Random(1), choose_links)
    node.start(0)
    wanted = node.wanted
    node.handle(Subscribe((3,), (1,)), SECOND)
    assert (wanted, node.wanted) == ({1, 2}, {2, 3})


def test_what_a_node_shows_can_be_read_alone() -> None:
    node = OmenNode(ref(ME), (1, 2), Config(), random.Random(1), choose_links)
    for mapping in (node.requests, node.refused, node.topic_sets):
        assert not isinstance(mapping, MutableMapping)


def test_nothing_in_a_status_changes_when_the_node_goes_on() -> None:
    node = OmenNode(ref(ME), (1, 2), Config(), random.Random(1), choose_links)
    node.start(0)
    node.handle(Received(NEAR, Descriptors((describe(NEAR, (1,)),))), SECOND)
    status = node.status()
    before = frozen(status)
    assert NEAR in status.membership.known
    node.handle(Received(FAR, Descriptors((describe(FAR, (2, 3)),))), 2 * SECOND)
    node.handle(Received(FAR, LinkOpen(describe(FAR, (2, 3)), ())), 3 * SECOND)
    assert frozen(node.status()) != before
    assert frozen(status) == before

"""What is kept of topic lists goes with the last node of the process that has it, and one peer brings only so much."""

from __future__ import annotations

import gc
import random
import tracemalloc

from omen.maintain.choosing import choose_links
from omen.protocol.config import Config
from omen.protocol.events import Received
from omen.protocol.membership.peer_table import BROUGHT_AT_MOST, PeerTable, topic_set
from omen.protocol.messages.overlay import Descriptors, Message
from omen.protocol.node import OmenNode
from unit.protocol.contexts import describe, ref

ME, OTHER = 10, 20


def kept(messages: list[Message]) -> int:
    """How many bytes a node keeps after a neighbour has said all of this."""
    node = OmenNode(ref(ME), (1, 2), Config(), random.Random(1), choose_links)
    node.preset([describe(OTHER, (1,))], [(ref(OTHER), ())], [])
    node.start(0)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for message in messages:
        node.handle(Received(OTHER, message), 1)
    messages.clear()
    del message
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


def changing_one_topic(times: int) -> list[Message]:
    topics = list(range(10_000, 12_000))
    said: list[Message] = []
    for version in range(times):
        topics[0] = 1_000_000 + version
        said.append(Descriptors((describe(OTHER, tuple(topics), versions=(version + 2, 1)),)))
    return said


def test_a_peer_that_changes_one_topic_again_and_again_costs_one_list() -> None:
    """Before: each list it ever had was kept, 460 MB after 300 changes of 5,000 topics."""
    assert kept(changing_one_topic(60)) < 3 * kept(changing_one_topic(2)) + 100_000


def test_forged_descriptors_cost_what_one_peer_may_bring() -> None:
    table = PeerTable(describe(ME), 1)
    for node in range(1_000, 1_100):
        table.learn(describe(node, range(node * 10_000, node * 10_000 + 10_000)), OTHER)
    assert sum(map(len, table.topic_sets.values())) <= BROUGHT_AT_MOST
    assert not table.has_room_for(OTHER) or len(table.known) == BROUGHT_AT_MOST // 10_001
    assert table.learn(describe(7, range(10_000)), 21)  # another peer may
    assert table.learn(describe(OTHER, range(10_000)))  # and it may speak for itself
    table.retain([7])
    assert table.learn(describe(1_000, range(10_000)), OTHER)


def test_nodes_of_one_process_share_a_list() -> None:
    one, other = topic_set((1, 2, 3)), topic_set((1, 2, 3))
    assert one is other
    assert topic_set((1, 2, 4)) == {1, 2, 4}

"""Stored records survive crashes of their writer and their holders, and follow the ring. No sockets."""

from __future__ import annotations

from dataclasses import replace

from omen.interests import Interests
from omen.maintain.choosing import choose_links
from omen.protocol.config import Config
from omen.protocol.events import SECOND, Fetch, Fetched, NodeId, Store, Stored, Time
from omen.protocol.membership.ring import nearest_after, place_of
from omen.protocol.messages.records import Record
from omen.sim.population import Population
from omen.sim.world import Heard, Network, World
from omen.systems import design_overlay

L = 3
CONFIG = replace(Config(), resilience=L, gossip_period=SECOND // 5)


class Stored16:
    """Sixteen nodes and more, one topic; who said what about records."""

    def __init__(self, count: int = 16, loss: float = 0.0) -> None:
        self.world = World(11, Network(loss=loss))
        self.population = Population(self.world, CONFIG, choose_links)
        names = [f"n{number}" for number in range(count)]
        interests = Interests.from_pairs([(name, "t") for name in names])
        self.population.set_up(interests, design_overlay(interests))
        self.heard: list[tuple[NodeId, Heard]] = []
        self.world.listeners.append(lambda node, heard, _: self.heard.append((node, heard)))
        self._token = 0
        self.run(2 * SECOND)

    def run(self, time: Time) -> None:
        self.world.run_until(self.world.now + time)

    def after(self, place: int) -> list[NodeId]:
        return nearest_after(place, self.world.alive(), len(self.world.alive()))

    def store(self, node: NodeId, *records: Record) -> int:
        self._token += 1
        self.world.tell(node, Store(self._token, records))
        self.run(2 * SECOND)
        (said,) = [heard for _, heard in self.heard if isinstance(heard, Stored) and heard.token == self._token]
        return said.copies

    def fetch(self, node: NodeId, place: int) -> dict[bytes, bytes]:
        self._token += 1
        self.world.tell(node, Fetch(self._token, place))
        self.run(2 * SECOND)
        (found,) = [heard for _, heard in self.heard if isinstance(heard, Fetched) and heard.token == self._token]
        assert found.is_sure
        return {record.key: record.value for record in found.records}

    def holders(self) -> set[NodeId]:
        return {node for node in self.world.alive() if self.population.cores[node].status().storage.records}


PLACE = place_of("a client")


def record(writer: NodeId, version: int = 1, value: bytes = b"tea", key: bytes = b"s", life: int = 3_600_000) -> Record:
    return Record(PLACE, key, version, writer, value, life)


def test_a_record_is_at_the_first_l_nodes_after_its_place_and_at_its_writer() -> None:
    nodes = Stored16()
    order = nodes.after(PLACE)
    writer = order[9]
    assert nodes.store(writer, record(writer)) == L
    assert nodes.holders() == {*order[:L], writer}
    assert nodes.fetch(order[5], PLACE) == {b"s": b"tea"}


def test_it_survives_the_crash_of_its_writer_and_of_all_holders_but_one() -> None:
    nodes = Stored16()
    order = nodes.after(PLACE)
    nodes.store(order[9], record(order[9]))
    for node in (order[9], *order[: L - 1]):
        nodes.world.crash(node)
    nodes.run(SECOND)
    assert nodes.fetch(order[12], PLACE) == {b"s": b"tea"}


def test_records_move_when_the_ring_changes_so_wave_after_wave_of_crashes_is_survived() -> None:
    nodes = Stored16()
    writer = nodes.after(PLACE)[9]
    nodes.store(writer, record(writer), record(writer, key=b"t"))
    for _ in range(3):
        first = [writer] if writer in nodes.world.alive() else []
        for node in (first + nodes.after(PLACE))[:L]:
            nodes.world.crash(node)
        nodes.run(15 * SECOND)
    order = nodes.after(PLACE)
    assert len(order) == 16 - 3 * L and set(order[: L + 1]) <= nodes.holders()
    assert nodes.fetch(order[-1], PLACE) == {b"s": b"tea", b"t": b"tea"}


def test_a_removed_record_stays_removed_also_where_a_holder_comes_with_an_old_version() -> None:
    nodes = Stored16()
    order = nodes.after(PLACE)
    nodes.store(order[9], record(order[9]))
    nodes.store(order[8], record(order[8], version=2, value=b""))
    assert nodes.fetch(order[5], PLACE) == {}
    nodes.store(order[9], record(order[9]))  # as one that had slept meanwhile
    assert nodes.fetch(order[5], PLACE) == {}


def test_a_record_ends_with_its_life_at_every_holder() -> None:
    nodes = Stored16()
    order = nodes.after(PLACE)
    nodes.store(order[9], record(order[9], life=4000))
    nodes.run(20 * SECOND)
    assert nodes.holders() == set()


def test_writes_get_through_where_messages_are_lost() -> None:
    nodes = Stored16(loss=0.1)
    order = nodes.after(PLACE)
    assert nodes.store(order[9], record(order[9])) >= 2
    nodes.run(15 * SECOND)
    assert set(order[: L + 1]) <= nodes.holders()


def test_a_cluster_that_stores_nothing_says_nothing_about_it() -> None:
    nodes = Stored16()
    nodes.run(20 * SECOND)
    assert not [kind for kind in nodes.world.messages if kind.startswith("Record")]

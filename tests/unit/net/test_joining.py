"""Asking seeds, and what is made of their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from omen.errors import InvalidInput
from omen.net.errors import NameTaken, NotJoined
from omen.net.joining import SeedSearch, wait_until_joined
from omen.net.name_guard import NameGuard
from omen.net.observe.logs import Log
from omen.net.security.hello import Hello, Reason, Refused
from omen.net.seeds import SeedList, read_seeds
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import Ref

ANN, BOB, OWN, OTHER, SLOW = (f"127.0.0.1:{port}" for port in (1, 2, 3, 4, 5))
SILENT = TimeoutError()


class Node:
    """A node that has joined as soon as a seed has answered."""

    def __init__(self) -> None:
        self.found: list[Ref] = []
        self._news = asyncio.Event()
        self.guard = NameGuard("cid", Log("cid"), self.on_outcome)

    @property
    def is_joined(self) -> bool:
        return bool(self.found)

    def is_connected(self, node: int) -> bool:
        return False

    def estimate_nodes(self) -> int:
        return 1

    def on_contact(self, ref: Ref) -> None:
        self.found.append(ref)

    def on_outcome(self) -> None:
        self._news.set()

    async def wait_for_news(self, at_most: float) -> None:
        self._news.clear()
        await asyncio.wait((asyncio.ensure_future(self._news.wait()),), timeout=at_most)


def search(
    seeds: tuple[str, ...],
    answers: dict[str, Exception | str],
    timeout_s: float = 0.5,
    meanwhile: Callable[[Node], None] = lambda node: None,
) -> list[Ref]:
    """What is found where addresses answer so; a text is the name of a member."""

    async def greet(address: str) -> Hello:
        answer = answers.get(address, ConnectionRefusedError("refused"))
        if answer is SILENT:
            await asyncio.sleep(60)
        if isinstance(answer, Exception):
            raise answer
        return Hello("omen", place_of(answer), answer, 1, address, 1)

    async def test() -> list[Ref]:
        node = Node()
        seeking = SeedSearch(SeedList(seeds), (OWN,), greet, node, Log("cid"))
        running = asyncio.ensure_future(seeking.run())
        meanwhile(node)
        try:
            await wait_until_joined(seeking, node, timeout_s)
        finally:
            running.cancel()
        return node.found

    return asyncio.run(test())


def test_every_member_that_answers_is_met() -> None:
    assert search((ANN, BOB), {BOB: "bob"}) == [Ref(place_of("bob"), 1, BOB)]
    assert [ref.address for ref in search((ANN, BOB), {ANN: "ann", BOB: "bob"})] == [ANN, BOB]


def test_a_silent_seed_does_not_hold_up_the_others() -> None:
    assert [ref.address for ref in search((ANN, BOB), {ANN: SILENT, BOB: "bob"})] == [BOB]


def test_without_another_seed_a_node_is_the_first() -> None:
    assert search((), {}) == search((OWN,), {}) == []


def test_a_node_that_meets_itself_begins_alone_where_no_other_answers() -> None:
    assert search((ANN, BOB), {ANN: Refused("this node", Reason.SELF)}) == []


def test_where_no_member_answers_in_time_each_cause_is_told() -> None:
    with pytest.raises(NotJoined, match=r"no member to join through at 127\.0\.0\.1:1 within 0\.3 s: .*: refused"):
        search((ANN,), {}, timeout_s=0.3)


def test_one_bad_seed_does_not_spoil_the_others() -> None:
    bad = Refused("another cluster", Reason.CLUSTER)
    assert [ref.address for ref in search((ANN, BOB), {ANN: bad, BOB: "bob"})] == [BOB]


def test_where_no_further_try_would_help_it_ends_at_once() -> None:
    bad = Refused("another cluster", Reason.CLUSTER)
    with pytest.raises(NotJoined, match=r"127\.0\.0\.1:1: another cluster; 127\.0\.0\.1:2: another cluster"):
        search((ANN, BOB), {ANN: bad, BOB: bad}, timeout_s=60)


def test_a_newcomer_whose_name_is_taken_is_told_after_some_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Refused("the name is taken", Reason.REFUSED_BY_PEER, by_peer=True, said=Reason.NAME_TAKEN)
    monkeypatch.setattr("omen.net.name_guard.PATIENCE_S", 0.0)
    with pytest.raises(NameTaken, match="the name is taken"):
        search((ANN,), {}, 60, lambda node: node.guard.on_refused(taken, is_member=False))


def test_a_file_of_seeds_may_hold_comments_and_must_hold_addresses(tmp_path: Path) -> None:
    file = tmp_path / "seeds"
    file.write_text("# all of them\n10.0.0.1:7070\n\nn2.example:7070 # second\n")
    assert read_seeds(str(file)) == ("10.0.0.1:7070", "n2.example:7070")
    file.write_text("10.0.0.1\n")
    with pytest.raises(InvalidInput, match=r"seeds:1 '10\.0\.0\.1': must be HOST:PORT"):
        read_seeds(str(file))


def test_a_file_that_cannot_be_read_leaves_the_seeds_it_had(tmp_path: Path) -> None:
    file = tmp_path / "seeds"
    file.write_text(f"{ANN}\n")
    seeds = SeedList((BOB,), str(file))
    assert seeds.current() == (BOB, ANN)
    file.unlink()
    assert seeds.current() == (BOB, ANN)
    assert "seeds" in seeds.error
    file.write_text(f"{OWN}\n")
    assert seeds.current() == (BOB, OWN)


def test_a_seed_that_is_none_any_more_is_not_unreachable_and_a_new_one_is_asked_at_once(tmp_path: Path) -> None:
    file = tmp_path / "seeds"
    file.write_text(f"{OTHER}\n")
    asked: list[str] = []

    async def greet(address: str) -> Hello:
        asked.append(address)
        if address == SLOW:
            await asyncio.sleep(60)
        if address != BOB:
            raise ConnectionRefusedError("refused")
        return Hello("omen", place_of("bob"), "bob", 1, BOB, 1)

    async def test() -> None:
        seeking = SeedSearch(SeedList((ANN, SLOW), str(file)), (OWN,), greet, Node(), Log("cid"))
        running = asyncio.ensure_future(seeking.run())
        async with asyncio.timeout(10):
            while seeking.unreachable != [ANN, OTHER] or SLOW not in asked:
                await asyncio.sleep(0.01)
            seeking._pause = lambda tries: 60.0  # type: ignore[method-assign]
            await asyncio.sleep(0.3)
            seeking.set_seeds((BOB,))
            assert seeking.unreachable == [] and OTHER not in seeking.seeds.current()
            while BOB not in asked:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0)
            assert {seed for seed, _ in seeking.outcomes} == {BOB}
        running.cancel()

    asyncio.run(test())


def test_a_name_that_is_claimed_again_and_again_by_one_process_is_one_conflict() -> None:
    """Every attempt of it, and every neighbour that told of it, had counted."""

    async def test() -> None:
        guard = NameGuard("cid", Log("cid"), lambda: None)
        for incarnation in (7, 7, 8):
            guard.note_conflict(ANN, incarnation)
        assert guard.conflicts == 1
        guard.note_conflict(BOB, 7)
        assert guard.conflicts == 2

    asyncio.run(test())


class Alone(Node):
    """A node whose driver has ended, or that has begun again and not joined."""

    is_joined = False


def returned(seeds: tuple[str, ...], answers: dict[str, Exception], known: tuple[str, ...]) -> tuple[bool, list[str]]:
    """Whether a node that begins again is the first, and which addresses it asked until then."""
    asked: list[str] = []

    async def greet(address: str) -> Hello:
        asked.append(address)
        raise answers.get(address, ConnectionRefusedError("refused"))

    async def test() -> bool:
        node = Alone()
        seeking = SeedSearch(SeedList(seeds), (OWN,), greet, node, Log("cid"))
        running = asyncio.ensure_future(seeking.run())
        await asyncio.sleep(0.05)
        assert seeking.is_first
        seeking.rest()
        asked.clear()
        await asyncio.sleep(0.3)
        assert not asked and not seeking.outcomes
        seeking.begin_again(known)
        assert not seeking.is_first
        await asyncio.sleep(0.05)
        running.cancel()
        return seeking.is_first

    return asyncio.run(test()), asked


@pytest.mark.parametrize("seeds", [(), (OWN, ANN)])
def test_a_node_that_gave_its_name_up_asks_those_it_knew_before_it_begins_alone(seeds: tuple[str, ...]) -> None:
    is_first, asked = returned(seeds, {}, (BOB,))
    assert is_first and BOB in asked and (ANN in asked) == (ANN in seeds)


def test_a_name_that_is_taken_is_told_also_to_a_node_that_could_begin_alone() -> None:
    def meet_another(node: Node) -> None:
        node.guard.error = NameTaken("the name 'cid' is taken")

    with pytest.raises(NameTaken):
        search((), {}, meanwhile=meet_another)


def test_a_file_of_seeds_that_is_of_no_use_is_said_at_each_attempt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "seeds"

    async def greet(address: str) -> Hello:
        return Hello("omen", place_of("ann"), "ann", 1, address, 1)

    async def test() -> None:
        node = Node()
        seeking = SeedSearch(SeedList((), str(path)), (OWN,), greet, node, Log("cid"))
        running = asyncio.ensure_future(seeking.run())
        await asyncio.sleep(0.3)
        path.write_text("nonsense\n")
        await asyncio.sleep(0.5)
        path.write_text(f"{ANN}\n")
        await wait_until_joined(seeking, node, 5.0)
        running.cancel()

    with caplog.at_level("INFO", logger="omen.node"):
        asyncio.run(test())
    said = [record.__dict__["fields"]["cause"] for record in caplog.records if record.message == "seeds_not_read"]
    assert "No such file" in said[0] and "nonsense" in said[-1]

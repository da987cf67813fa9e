"""A cluster comes together whoever begins first, and two nodes of one name do not stay."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omen.net import joining, seeds
from omen.net.broker import Broker, NameTaken, NotJoined
from omen.net.errors import Stopped
from omen.net.settings import Limits, NodeConfig

from .brokers import config, go, take, until
from .cold_starts import free_ports

SOON = Limits(join_timeout_s=8.0)


def at(port: int, name: str, *topics: str, join: tuple[str, ...] = (), **more: Any) -> NodeConfig:
    return config(name, *topics, join=join, listen=f"127.0.0.1:{port}", limits=more.pop("limits", SOON), **more)


def addresses(ports: list[int]) -> list[str]:
    return [f"127.0.0.1:{port}" for port in ports]


def is_one(*brokers: Broker) -> bool:
    return all(len(broker.status().membership.ring) == len(brokers) - 1 for broker in brokers)


def test_seeds_that_list_each_other_and_not_themselves_form_one_ring() -> None:
    async def test() -> None:
        ports = free_ports(3)
        seeds = addresses(ports)
        configs = [
            at(port, f"n{number}", "tea", join=tuple(seed for seed in seeds if not seed.endswith(f":{port}")))
            for number, port in enumerate(ports)
        ]
        brokers = [Broker(one) for one in configs]
        await asyncio.gather(*(broker.start() for broker in brokers))
        await until(lambda: is_one(*brokers))
        await brokers[0].publish("tea", b"hot")
        assert [message.payload for message in await take(brokers[2], 1)] == [b"hot"]
        await asyncio.gather(*(broker.abandon() for broker in brokers))

    go(test())


def test_a_seed_under_another_spelling_starts_although_the_other_is_silent() -> None:
    async def test() -> None:
        silent = await asyncio.start_server(lambda reader, writer: reader.read(), "127.0.0.1", 0)
        nowhere = silent.sockets[0].getsockname()[1]
        (port,) = free_ports(1)
        seeds = (f"localhost:{port}", f"127.0.0.1:{nowhere}")
        async with Broker(at(port, "n0", join=seeds, limits=Limits(join_timeout_s=4.0))) as broker:
            assert broker.is_joined
        silent.close()

    go(test())


def test_nodes_that_began_alone_become_one_cluster_when_a_seed_answers() -> None:
    async def test() -> None:
        ports = free_ports(2)
        seeds = tuple(addresses(ports))
        async with Broker(at(ports[0], "n0", "tea", join=seeds)) as first:
            await first.publish("tea", b"before")
            async with Broker(at(ports[1], "n1", "tea", join=(seeds[1],))) as second:
                await until(lambda: is_one(first, second) and first.is_joined)
                await until(lambda: first.has_neighbours("tea"))
                await first.publish("tea", b"after")
                assert (await take(second, 1))[-1].payload in (b"before", b"after")

    go(test())


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_seed_that_is_silent_or_no_node_is_skipped(answer: bytes | None) -> None:
    async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
        writer.close()

    async def test() -> None:
        server = await asyncio.start_server(stranger, "127.0.0.1", 0)
        bad = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with Broker(config("n0", "tea")) as good:
            hasty = Limits(join_timeout_s=4.0)
            async with Broker(config("n1", "tea", join=(bad, good.address), limits=hasty)) as broker:
                assert is_one(good, broker)
        server.close()

    go(test())


def test_a_seed_of_another_cluster_is_skipped_and_said(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with (
            Broker(config("x", cluster="other")) as other,
            Broker(config("n0", "tea")) as good,
            Broker(config("n1", "tea", join=(other.address, good.address))) as broker,
        ):
            assert is_one(good, broker)
            skipped = [record for record in caplog.records if record.message == "seed_skipped"]
            assert any("'other'" in str(record.__dict__["fields"]["cause"]) for record in skipped)

    with caplog.at_level("INFO", logger="omen.node"):
        go(test())


def test_where_every_seed_refuses_the_reasons_are_told_at_once() -> None:
    async def test() -> None:
        async with Broker(config("x", cluster="other")) as other:
            with pytest.raises(NotJoined, match=r"127\.0\.0\.1:\d+: .*'omen'.*'other'"):
                await Broker(config("n1", join=(other.address,), limits=Limits(join_timeout_s=60))).start()

    go(test())


def test_a_second_node_of_a_name_is_refused_while_the_first_is_alive() -> None:
    async def test() -> None:
        async with Broker(config("ann")) as ann, Broker(config("bob", join=(ann.address,))) as bob:
            await until(lambda: is_one(ann, bob))
            for count, contact in enumerate((ann.address, bob.address), 1):
                with pytest.raises(NameTaken, match=f"'ann' is taken by .*{ann.address}"):
                    await Broker(config("ann", join=(contact,))).start()
                await until(lambda count=count: ann.guard.conflicts >= count)
                assert is_one(ann, bob) and ann.guard.conflicts == count

    go(test())


def test_a_node_that_crashed_comes_back_under_its_name() -> None:
    async def test() -> None:
        async with Broker(config("ann")) as ann:
            bob = Broker(config("bob", join=(ann.address,)))
            await bob.start()
            await until(lambda: is_one(ann, bob))
            await bob.abandon()
            async with Broker(config("bob", join=(ann.address,))) as again:
                await until(lambda: is_one(ann, again))
                assert again.status().ref.incarnation > bob.status().ref.incarnation

    go(test())


def test_of_two_members_of_one_name_that_meet_the_lower_gives_way_and_returns() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            ports = free_ports(4)
            here, there = addresses(ports)[0], addresses(ports)[2]
            ann = await stack.enter_async_context(Broker(at(ports[0], "ann", join=(here,))))
            lower = await stack.enter_async_context(Broker(at(ports[1], "cid", "tea", join=(here,))))
            bob = await stack.enter_async_context(Broker(at(ports[2], "bob", join=(there,))))
            higher = Broker(at(ports[3], "cid", "tea", join=(there,)))
            await higher.start()
            ann.set_seeds((here, there))
            with pytest.raises(NameTaken):
                await anext(lower.messages())
            with pytest.raises((NameTaken, Stopped)):
                await lower.publish("tea", b"hot")
            assert higher.is_joined
            await until(lambda: is_one(ann, bob, higher))
            await higher.stop()
            await until(lambda: lower.is_joined and is_one(ann, bob, lower))

    go(test())


@pytest.mark.parametrize("lists_itself", [False, True])
@pytest.mark.parametrize("dialler", ["lower", "higher"])
def test_a_member_that_gave_way_does_not_begin_alone_and_take_its_name_back(dialler: str, lists_itself: bool) -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            here, there = addresses(ports := free_ports(2))
            own = {here: (here,), there: (there,)} if lists_itself else {here: (), there: ()}
            lower = await stack.enter_async_context(Broker(at(ports[0], "cid", "tea", join=own[here])))
            higher = Broker(at(ports[1], "cid", "tea", join=own[there]))
            await higher.start()
            if dialler == "lower":
                lower.set_seeds((*own[here], there))
            else:
                higher.set_seeds((*own[there], here))
            with pytest.raises(NameTaken, match=there):
                await anext(lower.messages())
            await asyncio.sleep(2.5)  # by then it has tried to come back
            assert higher.is_joined and not lower.is_joined
            await higher.stop()
            lower.set_seeds(own[here])
            await until(lambda: lower.is_joined)

    go(test())


def test_a_file_of_seeds_is_read_again_when_it_changes(tmp_path: Path) -> None:
    async def test() -> None:
        file = tmp_path / "seeds"
        file.write_text("127.0.0.1:1  # not there\n")
        async with Broker(config("n0")) as first:
            second = Broker(config("n1", join_file=str(file), limits=SOON))
            starting = asyncio.ensure_future(second.start())
            await asyncio.sleep(0.3)
            assert not starting.done()
            file.write_text(f"127.0.0.1:1\n{first.address}\n")
            await starting
            assert is_one(first, second)
            await second.stop()

    go(test())


def test_all_addresses_behind_a_name_are_asked_again_at_each_try(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def test() -> None:
        async with Broker(config("n0")) as first:

            async def resolve(seed: str) -> tuple[str, ...]:
                asked.append(seed)
                return ("127.0.0.1:1",) if len(asked) < 3 else ("127.0.0.1:1", first.address)

            monkeypatch.setattr(joining, "resolve", resolve)
            async with Broker(config("n1", join=("seeds.example:7070",), limits=SOON)) as second:
                assert is_one(first, second)

    go(test())
    assert len(asked) >= 3


def test_a_name_is_resolved_to_all_its_addresses() -> None:
    found = asyncio.run(seeds.resolve("localhost:7070"))
    assert "127.0.0.1:7070" in found
    assert asyncio.run(seeds.resolve("[::1]:7070")) == ("[::1]:7070",)


def test_an_advertised_address_that_cannot_be_reached_is_said_to_the_newcomer() -> None:
    async def test() -> None:
        (nobody,) = free_ports(1)
        async with Broker(config("n0")) as first:
            wrong = replace(config("n1", join=(first.address,)), advertise=f"127.0.0.1:{nobody}")
            with pytest.raises(NotJoined, match=f"'n1' cannot be reached at 127.0.0.1:{nobody}"):
                await Broker(wrong).start()
            right = free_ports(1)[0]
            good = at(right, "n2", join=(first.address,), advertise=f"localhost:{right}")
            async with Broker(good) as second:
                await until(lambda: is_one(first, second))

    go(test())

"""Which members are found to join through."""

from __future__ import annotations

import asyncio

import pytest

from omen.net.errors import NotJoined
from omen.net.joining import find_contacts
from omen.net.security.hello import Hello, Reason, Refused
from omen.net.settings import Limits, NodeConfig
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import Ref

ANN, BOB, OWN = "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"
HASTY = Limits(join_timeout_s=0.5)


def find(join: tuple[str, ...], answers: dict[str, Exception | str]) -> tuple[Ref, ...]:
    """What is found where addresses answer so; a text is the name of a member."""

    async def greet(address: str) -> Hello:
        answer = answers.get(address, ConnectionRefusedError("refused"))
        if isinstance(answer, Exception):
            raise answer
        return Hello("omen", place_of(answer), answer, 1, address, 1)

    async def test() -> tuple[Ref, ...]:
        config = NodeConfig(name="cid", join=join, limits=HASTY)
        deadline = asyncio.get_running_loop().time() + HASTY.join_timeout_s
        return await find_contacts(config, OWN, greet, deadline)

    return asyncio.run(test())


def test_all_members_that_answer_are_found() -> None:
    assert find((ANN, BOB), {BOB: "bob"}) == (Ref(place_of("bob"), 1, BOB),)
    assert [ref.address for ref in find((ANN, BOB), {ANN: "ann", BOB: "bob"})] == [ANN, BOB]


def test_without_members_to_join_through_a_node_is_the_first() -> None:
    assert find((), {}) == find((OWN,), {}) == ()


def test_a_node_that_meets_itself_begins_alone_where_no_other_answers() -> None:
    assert find((ANN, BOB), {ANN: Refused("this node", Reason.SELF)}) == ()


def test_where_no_member_answers_the_last_cause_is_told() -> None:
    with pytest.raises(NotJoined, match=r"no member to join through at 127\.0\.0\.1:1: refused"):
        find((ANN,), {})


def test_a_refusal_that_another_try_would_not_change_ends_it_at_once() -> None:
    with pytest.raises(NotJoined, match="another cluster"):
        find((ANN,), {ANN: Refused("another cluster", Reason.CLUSTER)})

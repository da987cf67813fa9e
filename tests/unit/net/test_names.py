"""Names at the edge, numbers inside."""

from __future__ import annotations

import pytest

from omen.errors import InvalidInput
from omen.net.names import check_name, join_address, next_incarnation, split_address, topic_key

PRICES_KEY = 0x7C5BFBE418588B98  # part of the wire form: nodes that compute another do not understand each other


def test_incarnations_grow() -> None:
    first, second = next_incarnation(), next_incarnation()
    assert second > first
    assert next_incarnation(after=second + 100) == second + 101


def test_topics_have_the_same_key_everywhere() -> None:
    assert topic_key("prices") == PRICES_KEY


@pytest.mark.parametrize("name", ["", "a b", "a\n", "n" * 256])
def test_a_name_that_does_not_fit_logs_and_tables_is_bad_input(name: str) -> None:
    with pytest.raises(InvalidInput, match="without blanks"):
        check_name(name)


@pytest.mark.parametrize("address", ["127.0.0.1:7070", "[::1]:80", "host.example:0"])
def test_an_address_is_split_and_joined_again(address: str) -> None:
    assert join_address(*split_address(address)) == address

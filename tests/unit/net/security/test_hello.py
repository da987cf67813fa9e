"""The first thing each end of a connection says: versions and revisions."""

from __future__ import annotations

import msgspec
import pytest

from omen.net.security.hello import PREFACE, Hello, Reason, Refused, read_hello
from omen.protocol.membership.ring import place_of

OLDER_HELLO = bytes.fromhex(
    "4f4d454e00010000002e96a46f6d656ecf363e603a4b887e73a56f6c646572ce1054e880ae3132372e302e302e313a37303730ce075bcd15"
)
"""As nodes of revision 0 said it, recorded from one."""


def hello(name: str) -> Hello:
    return Hello("omen", place_of(name), name, 7, "127.0.0.1:1", 5, 1)


@pytest.mark.parametrize(("version", "word"), [(0, "an older"), (2, "a newer")])
def test_another_version_is_refused_with_one_clear_line_before_the_rest_is_looked_at(version: int, word: str) -> None:
    other = bytearray(OLDER_HELLO)
    other[4:6] = version.to_bytes(2, "big")
    line = f"the other end speaks {word} wire format, version {version}; this node speaks version 1"
    with pytest.raises(Refused, match=line) as refused:
        read_hello(bytes(other[: PREFACE.size]))
    assert refused.value.reason is Reason.VERSION


def test_fields_that_a_later_revision_adds_are_passed_over() -> None:
    body = msgspec.msgpack.encode([*msgspec.structs.astuple(hello("bob")), "of tomorrow", 7])
    greeting = read_hello(PREFACE.pack(b"OMEN", 1, len(body)) + body)
    assert greeting is not None and greeting.hello == hello("bob")

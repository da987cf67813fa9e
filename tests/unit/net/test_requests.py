"""What a reply carries."""

from __future__ import annotations

import pytest

from omen.errors import InvalidInput
from omen.net.inbox import Message
from omen.net.requests import CORRELATION, REQUEST, fields_of_reply
from omen.protocol.messages.publications import Fields, write_fields


def asked(headers: dict[str, str], reply_to: str | None) -> Message:
    return Message("tea", b"green", "ann", 1, 1, write_fields(Fields(headers=headers, reply_to=reply_to)))


@pytest.mark.parametrize("name", [REQUEST, CORRELATION])
def test_a_reply_names_its_request(name: str) -> None:
    topic, fields = fields_of_reply(asked({name: "7", "sort": "sencha"}, "here"), {"by": "bob"})
    assert (topic, fields.headers) == ("here", {"by": "bob", name: "7"})


def test_a_message_without_reply_to_wants_no_reply() -> None:
    with pytest.raises(InvalidInput, match="wants no reply"):
        fields_of_reply(asked({REQUEST: "7"}, None), None)

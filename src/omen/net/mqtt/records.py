"""What a message of MQTT is on the overlay, and what nodes with a front door tell each other.

A message is a publication with the same payload. Its properties are fields of the publication, so that applications
that are nodes themselves can read and write them: user properties are headers, `mqtt-qos`, `mqtt-retain`, `mqtt-text`,
`mqtt-correlation` (base64), `mqtt-mark` and `mqtt-shares` (JSON; see `session`) and, where a key stands twice,
`mqtt-user` (JSON) are added, and `mqtt-client` where its client wants nothing of its own. A publication without them is
a message with QoS 0.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TypeAlias

import msgspec

from omen.net.groups import Member
from omen.net.inbox import Message
from omen.net.mqtt.outputs import Retained
from omen.net.mqtt.session import ApplicationMessage, Stream
from omen.net.mqtt.topics import OWN
from omen.net.security.hello import UNREADABLE
from omen.protocol.messages.publications import Fields, read_fields

TOPICS = f"{OWN}mqtt/topics"
"""Names of topics that clients publish on, for nodes whose clients have wildcards."""
ASKS = f"{OWN}mqtt/asks"
"""Questions of nodes that came late."""
RETAINED = f"{OWN}mqtt/retained"
"""Retained messages, for every node with a front door."""
CLIENTS = f"{OWN}mqtt/clients"
"""Which client is where, and sessions that move."""
QOS, RETAIN, TEXT, CORRELATION, USER = "mqtt-qos", "mqtt-retain", "mqtt-text", "mqtt-correlation", "mqtt-user"
MARK, SHARES, CLIENT = "mqtt-mark", "mqtt-shares", "mqtt-client"
RESERVED = frozenset((QOS, RETAIN, TEXT, CORRELATION, USER, MARK, SHARES, CLIENT))


class TopicsPublished(msgspec.Struct, frozen=True, tag=1):
    """Names that clients of a node publish on. `fresh`: they have just begun; else this answers a question."""

    names: list[str]
    fresh: bool


class AskTopics(msgspec.Struct, frozen=True, tag=2):
    """A node has clients with wildcards now: which topics are published on?"""

    node: str


class AskRetained(msgspec.Struct, frozen=True, tag=3):
    """A node has just opened its front door: what is retained?"""

    node: str


class RetainedMessages(msgspec.Struct, frozen=True, tag=4):
    """One that has just been published, or, as an answer to `to`, all that a node knows of."""

    messages: list[Retained]
    to: str = ""


class ClientHere(msgspec.Struct, frozen=True, tag=5):
    """A client has connected to this node; where `wants_session`, its session is awaited; `is_clean`: it ends."""

    client_id: str
    node: str
    token: int
    wants_session: bool
    is_clean: bool = False


class SessionHanded(msgspec.Struct, frozen=True, tag=6):
    """The session of a client is stored, for the node where the client is now. `again`: the client whose session that
    node is to store again, for this one may have stored it after it.
    """

    node: str
    token: int
    again: str = ""


class GroupMembers(msgspec.Struct, frozen=True, tag=8):
    """The members that a front door has in shared subscriptions now; `is_all`: and in no other."""

    door: str
    groups: dict[str, tuple[Member, ...]]
    is_all: bool = False


class DoorHere(msgspec.Struct, frozen=True, tag=7):
    """A front door is there; said again and again, and for the last time when it closes. `since`: when it opened, in
    seconds since 1970.
    """

    door: str
    is_closing: bool = False
    since: float = 0.0


class TopicsBusy(msgspec.Struct, frozen=True, tag=9):
    """Topics that clients of a front door do not read as fast as they are published on, all of them just now."""

    door: str
    topics: list[str]


Record: TypeAlias = (
    GroupMembers
    | TopicsPublished
    | AskTopics
    | AskRetained
    | RetainedMessages
    | ClientHere
    | SessionHanded
    | DoorHere
    | TopicsBusy
)
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


def write_record(record: Record) -> bytes:
    return msgspec.msgpack.encode(record)


def read_record(data: bytes) -> Record | None:
    """None: it cannot be read, as from a later version."""
    try:
        return _decoder.decode(data)
    except UNREADABLE:
        return None


def fields_of_message(message: ApplicationMessage, names_client: bool = False) -> Fields | None:
    """What goes with the payload; None: nothing, it is a plain message with QoS 0. `names_client`: also who sent it."""
    headers: dict[str, str] = {}
    pairs = message.user_properties
    if pairs:
        is_plain = len({key for key, _ in pairs}) == len(pairs) and not RESERVED.intersection(key for key, _ in pairs)
        headers = dict(pairs) if is_plain else {USER: json.dumps(pairs)}
    if message.qos:
        headers[QOS] = str(message.qos)
    if message.retain:
        headers[RETAIN] = "1"
    if message.is_text:
        headers[TEXT] = "1"
    if message.correlation_data is not None:
        headers[CORRELATION] = base64.b64encode(message.correlation_data).decode()
    if message.mark:
        headers[MARK] = message.mark
    if message.shares:
        headers[SHARES] = json.dumps(message.shares)
    if names_client:
        headers[CLIENT] = message.client
    expiry = None if message.expires_at is None else int(message.expires_at * 1000)
    if not headers and expiry is None and message.content_type is None and message.response_topic is None:
        return None
    return Fields(headers=headers, expiry=expiry, reply_to=message.response_topic, content_type=message.content_type)


def message_from(publication: Message, client: str) -> ApplicationMessage:
    """A publication as a message for clients. What its fields say wrongly is left out."""
    topic, payload = publication.topic, publication.payload
    if not publication.fields:
        return ApplicationMessage(topic, payload, client=client)
    try:
        fields = read_fields(publication.fields)
    except UNREADABLE:
        return ApplicationMessage(topic, payload, client=client)
    headers = fields.headers
    qos = headers.get(QOS, "0")
    return ApplicationMessage(
        topic,
        payload,
        int(qos) if qos in ("0", "1", "2") else 0,
        RETAIN in headers,
        None if fields.expiry is None else fields.expiry / 1000,
        fields.content_type,
        fields.reply_to,
        _correlation(headers.get(CORRELATION)),
        TEXT in headers,
        _user_properties(headers),
        client or headers.get(CLIENT, ""),
        headers.get(MARK, ""),
        _pairs(headers.get(SHARES)),
    )


def stream_of(publication: Message) -> Stream:
    return publication.topic, publication.node, publication.incarnation


def _correlation(text: str | None) -> bytes | None:
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except binascii.Error:
        return None


def _user_properties(headers: dict[str, str]) -> tuple[tuple[str, str], ...]:
    if USER in headers:
        return _pairs(headers[USER])
    return tuple((key, value) for key, value in headers.items() if key not in RESERVED)


def _pairs(text: str | None) -> tuple[tuple[str, str], ...]:
    try:
        return () if text is None else msgspec.json.decode(text.encode(), type=tuple[tuple[str, str], ...])
    except UNREADABLE:
        return ()

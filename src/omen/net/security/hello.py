"""The first thing each end of a connection says. Nothing else is interpreted until it has been checked.

On the wire: `OMEN`, the version (two bytes), the length of the rest (four bytes), then msgpack: a list of the fields
below in order. An end that refuses says why, as `OMNO`, its version, a length and text, and closes.

The version changes when nodes of the former one could not follow; it is refused before the rest is looked at. Fields
added at the end of the hello, which older nodes skip, change the revision alone. A node of an older revision is served;
where a later one is needed, as for a secret, it is refused with what it lacks. Messages that an older revision does not
know are not sent to it.

Revisions: 0, without the last five fields; 1, with two of them, and a proof after the hello (see `handshake`); 2,
publications with a block of fields; 3, the last three fields, the reason at the end of a refusal behind a zero byte,
`NameClaimed`, and the messages of a search for ways round a node; 4, stored records; 5, frames for the live page.
"""

from __future__ import annotations

import struct
from enum import StrEnum
from typing import Annotated

import msgspec

from omen.errors import OmenError
from omen.protocol.messages.base import Address, Incarnation, Place, Text

Nonce = Annotated[bytes, msgspec.Meta(max_length=64)]
VERSION = 1
REVISION = 5
FIELDS_REVISION = 2
NEARBY_REVISION = 3
NAMES_REVISION = 3
RECORDS_REVISION = 4
WATCHING_REVISION = 5
MAGIC, REFUSAL = b"OMEN", b"OMNO"
ENCRYPTED = (b"\x15\x03", b"\x16\x03")  # how TLS begins: an alert, a handshake
PREFACE = struct.Struct(">4sHI")
LARGEST = 4096
LONGEST_REASON = 300
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What comes of bytes that are no message: wrong in kind, in text, or nested too deep."""


class Reason(StrEnum):
    """Why a connection was refused; in metrics, pages and logs it goes by these names."""

    ACCESS = "access"
    BANNED = "banned"
    CERTIFICATE = "certificate"
    CLUSTER = "cluster"
    CONNECTION_LIMIT = "connection_limit"
    FORMER_INCARNATION = "former_incarnation"
    FRAME = "frame"
    FRAME_TIMEOUT = "frame_timeout"
    HELLO = "hello"
    HELLO_TIMEOUT = "hello_timeout"
    IDENTITY = "identity"
    NAME_TAKEN = "name_taken"
    NOT_A_NODE = "not_a_node"
    REFUSED_BY_PEER = "refused_by_peer"
    REFUSED_NAME = "refused_name"
    SECRET = "secret"
    SELF = "self"
    STALLED = "stalled"
    UNEXPECTED_NODE = "unexpected_node"
    UNREACHABLE = "unreachable"
    VERSION = "version"


class Refused(OmenError):
    """A connection that goes no further, and why; `by_peer`: the other end said so, and `said` is its own reason."""

    def __init__(self, explanation: str, reason: Reason, by_peer: bool = False, said: Reason | None = None) -> None:
        super().__init__(explanation)
        self.reason = reason
        self.by_peer = by_peer
        self.said = said


class Hello(msgspec.Struct, frozen=True, array_like=True):
    """Which node speaks: cluster, place, name, incarnation, where it listens, and a random number for its process.

    `nonce`: drawn for this connection, where the cluster has a secret. `is_direct`: the address is the process's own,
    so that a connection refused there means that it has ended. `process`: its number. `joining`: it has not been a
    member yet, and gives way to one of its name that is.
    """

    cluster: Text
    node: Place
    name: Text
    incarnation: Incarnation
    address: Address
    session: Place
    revision: Place = 0
    nonce: Nonce = b""
    is_direct: bool = False
    process: Place = 0
    joining: bool = False

    @property
    def rank(self) -> tuple[int, int]:
        """Of two members of one name the one with the higher rank stays."""
        return self.incarnation, self.process


def gives_way(own: Hello, other: Hello) -> bool:
    """Of two living nodes of one name, whether this one gives way: one that joins to a member, the later of two that
    join, the lower of two members.
    """
    if own.joining != other.joining:
        return own.joining
    return own.rank > other.rank if own.joining else own.rank < other.rank


class Greeting(msgspec.Struct, frozen=True):
    """A hello read from a buffer, and how many bytes it took."""

    hello: Hello
    size: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Hello)


def write_hello(hello: Hello) -> bytes:
    body = _encoder.encode(hello)
    return PREFACE.pack(MAGIC, VERSION, len(body)) + body


def write_refusal(explanation: str, reason: Reason | None = None) -> bytes:
    """`reason`: for the program at the other end; older ones show it as a last word."""
    code = b"\0" + reason.encode() if reason is not None else b""
    body = explanation.encode()[: LARGEST - len(code)] + code
    return PREFACE.pack(REFUSAL, VERSION, len(body)) + body


def read_hello(data: bytes | bytearray) -> Greeting | None:
    """The hello at the front of what has come in; None while there is too little; raises Refused."""
    if bytes(data[:2]) in ENCRYPTED:
        raise Refused("the other end uses certificates, and this node does not", Reason.NOT_A_NODE)
    if not MAGIC.startswith(bytes(data[:4])) and not REFUSAL.startswith(bytes(data[:4])):
        raise Refused("what came in is not from an OMen node", Reason.NOT_A_NODE)
    if len(data) < PREFACE.size:
        return None
    magic, version, length = PREFACE.unpack_from(data)
    if length > LARGEST:
        raise Refused(f"a hello of {length} bytes: at most {LARGEST} are taken", Reason.HELLO)
    end = PREFACE.size + length
    if magic == REFUSAL:
        if len(data) < end:
            return None
        raise _refused_by_peer(data)
    if version != VERSION:
        age = "an older" if version < VERSION else "a newer"
        raise Refused(
            f"the other end speaks {age} wire format, version {version}; this node speaks version {VERSION}",
            Reason.VERSION,
        )
    if len(data) < end:
        return None
    try:
        return Greeting(_decoder.decode(bytes(data[PREFACE.size : end])), end)
    except UNREADABLE as error:
        raise Refused(f"a hello that cannot be read: {error}", Reason.HELLO) from error


def read_refusal(data: bytes) -> Refused | None:
    """What the other end says in place of a frame, as it goes; None: it is no refusal."""
    return _refused_by_peer(data) if data[:4] == REFUSAL and len(data) >= PREFACE.size else None


def _refused_by_peer(data: bytes | bytearray) -> Refused:
    _, _, length = PREFACE.unpack_from(data)
    text = bytes(data[PREFACE.size : PREFACE.size + min(length, LARGEST)]).decode(errors="replace")
    explanation, _, code = text.partition("\0")
    words = _one_line(explanation) or "without a reason"
    said = Reason(code) if code in set(Reason) else None
    return Refused(f"refused by the other end: {words}", Reason.REFUSED_BY_PEER, by_peer=True, said=said)


def _one_line(text: str) -> str:
    """What another end says may go into a log: a line of it, and not a long one."""
    return "".join(char if char.isprintable() else " " for char in text[:LONGEST_REASON])


def check_hello(hello: Hello, own: Hello) -> None:
    """Whether the two belong together; raises Refused."""
    if hello.cluster != own.cluster:
        raise Refused(f"this node belongs to cluster {own.cluster!r}, the other to {hello.cluster!r}", Reason.CLUSTER)
    if hello.node == own.node and hello.session == own.session:
        raise Refused(f"this is node {own.name!r} itself", Reason.SELF)

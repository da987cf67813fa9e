"""Further targets of `fuzz`: whatever else reads bytes that another process or a disk has written.

WebSocket frames are read by the library websockets, and bytes of TLS by ssl: what they hand on is read by the targets.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import h11
import msgspec

from omen.net.inbox import Message
from omen.net.mqtt import records, stored
from omen.net.mqtt.codec import Decoder, Malformed
from omen.net.observe.serving import LARGEST_REQUEST, read_request
from omen.net.security.hello import UNREADABLE
from omen.net.state import last_incarnation, path_of, read_states
from omen.net.watching.messages import Entry, NodeDigest, Told, Watch, decode, encode, read_entry, write_entry
from omen.protocol.messages.publications import Fields, write_fields
from omen.protocol.messages.records import Record

PLACE = 7


def try_fields(data: bytes) -> str:
    """The fields of a publication, as an application and the front door look at them."""
    message = Message("tea", b"tea", "ann", 3, 4, data[: 1 << 16], 2)
    found = message.headers, message.reply_to
    records.message_from(message, "")
    return "some" if any(found) else "none"


def sample_fields() -> Iterator[bytes]:
    yield write_fields(Fields(headers={"a": "b"}, timestamp=5, expiry=7, reply_to="r", content_type="t"))
    yield write_fields(Fields(signature=bytes(80), certificate=bytes(300)))


def try_watching(data: bytes) -> str:
    """Frames of the live page, and the entries in them."""
    try:
        frame = decode(b"\x08" + data)
    except UNREADABLE:
        return "unreadable"
    if isinstance(frame, Told):
        return f"{min(len(list(filter(None, map(read_entry, frame.entries)))), 1)} read"
    assert decode(encode(frame)) == frame
    return "watch"


def sample_watching() -> Iterator[bytes]:
    yield encode(Watch(1, 2, 3, (4, 5), (6,)))[1:]
    entry = write_entry(Entry(1, 2, 3, NodeDigest(name="ann", links=(1, 2), topics=(3,), names={3: "tea"}, out=1.5)))
    assert entry is not None
    yield encode(Told(1, (entry, entry)))[1:]


def try_mqtt_records(data: bytes) -> str:
    """What front doors tell each other, and what is stored of sessions."""
    told = records.read_record(data)
    head = Record(PLACE, stored.head_key("c"), 1, 2, data, 5)
    segment = Record(PLACE, stored.segment_key("c", 0), 1, 2, data, 5)
    published = Record(PLACE, stored.PUBLISHED + b"x", 1, 2, data, 5)
    found = [stored.read_session("c", (head, segment)), stored.read_published("t", (published,)) or None]
    for each in sample_heads():
        found.append(stored.read_session("c", (Record(PLACE, stored.head_key("c"), 1, 2, each, 5), segment)))
    return "read" if told is not None or any(each is not None for each in found[:2]) else "unreadable"


def sample_heads() -> Iterator[bytes]:
    yield msgspec.msgpack.encode(stored.SessionHead("c", "n1", True, 5, None, received=(1,), inflight=((1, 2),)))


def sample_mqtt_records() -> Iterator[bytes]:
    yield from sample_heads()
    yield records.write_record(records.AskTopics("n1"))
    yield records.write_record(records.TopicsBusy("n1", ["a", "b"]))
    yield records.write_record(records.TopicsPublished(["a", "b"], True))
    message = records.ApplicationMessage("t", b"tea")
    yield msgspec.msgpack.encode(stored.Published(message, ("t", 1, 2), 3))


def try_mqtt_packets(data: bytes) -> str:
    """The codec alone, in pieces; sessions behind it are fuzzed by `fuzz_mqtt`."""
    decoder = Decoder(1 << 16)
    step = 1 + (data[0] if data else 0)
    try:
        return f"{min(3, sum(len(decoder.feed(data[at : at + step])) for at in range(1, len(data), step)))} packets"
    except Malformed:
        return "malformed"


def sample_mqtt_packets() -> Iterator[bytes]:
    from tests.network.fuzz_mqtt import samples

    packets = samples()
    for packet in packets:
        yield b"\x10" + (packets[0] if packet[0] != 0x10 else b"") + packet


def try_http(data: bytes) -> str:
    """A request to the pages."""

    async def read() -> str:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        try:
            request = await read_request(reader, h11.Connection(h11.SERVER, max_incomplete_event_size=LARGEST_REQUEST))
        except h11.ProtocolError:
            return "refused"
        return "gone" if request is None else "read"

    return _loop().run_until_complete(read())


def sample_http() -> Iterator[bytes]:
    yield b"GET /metrics?a=b HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/plain\r\n\r\n"
    yield b"POST /node HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    yield b"POST /node HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"


def try_state(data: bytes) -> str:
    """The file that a node leaves for its next incarnation."""
    with tempfile.TemporaryDirectory() as folder:
        path_of(folder, "ann").write_bytes(data)
        found = last_incarnation(folder, "ann")
        read_states(Path(folder))
    assert isinstance(found, int)
    return "read" if found else "none"


def sample_state() -> Iterator[bytes]:
    yield b'{"name": "ann", "cluster": "omen", "incarnation": 7, "left": true, "pid": 1, "begun": 2}'


_loops: list[asyncio.AbstractEventLoop] = []


def _loop() -> asyncio.AbstractEventLoop:
    if not _loops:
        _loops.append(asyncio.new_event_loop())
    return _loops[0]


DECODERS: dict[str, tuple[Callable[[bytes], str], Callable[[], Iterator[bytes]]]] = {
    "fields": (try_fields, sample_fields),
    "watching": (try_watching, sample_watching),
    "mqtt-packets": (try_mqtt_packets, sample_mqtt_packets),
    "mqtt-records": (try_mqtt_records, sample_mqtt_records),
    "http": (try_http, sample_http),
    "state": (try_state, sample_state),
}

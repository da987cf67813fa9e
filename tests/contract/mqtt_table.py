"""The tables of conformance: every normative statement of a version, and what became of it.

A statement is held by a check, or it concerns clients alone, or it is not supported, with the reason. `account` says
which identifiers are in none or in two of these. Identifiers are those of the standards; the words are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import mqtt5
from tests.unit.net.mqtt.doors import Harness

from omen.net.mqtt.codec import V5, Decoder, Malformed
from omen.net.mqtt.outputs import Write

Check = Callable[[], None]


class Table:
    """The statements of one version."""

    def __init__(self, sections: Mapping[str, tuple[int, int]]) -> None:
        self.all = [f"{section}-{number}" for section, (a, b) in sections.items() for number in range(a, b + 1)]
        self.checks: list[tuple[tuple[str, ...], Check]] = []
        self.of_clients: tuple[str, ...] = ()
        self.not_supported: dict[str, str] = {}

    def holds(self, *ids: str) -> Callable[[Check], Check]:
        def take(check: Check) -> Check:
            self.checks.append((ids, check))
            return check

        return take

    def checks_of(self, module: str) -> list[Check]:
        """The checks that stand in one module."""
        return [check for _, check in self.checks if check.__module__ == module]

    @property
    def held(self) -> Counter[str]:
        return Counter(id_ for ids, _ in self.checks for id_ in ids)

    def account(self) -> tuple[list[str], list[str], list[str]]:
        """Statements in no table, in two of them, and those that are none."""
        told = [set(self.held), set(self.of_clients), set(self.not_supported)]
        counts = Counter(id_ for ids in told for id_ in ids)
        missing = [id_ for id_ in self.all if id_ not in counts]
        return missing, [id_ for id_, count in counts.items() if count > 1], sorted(set(counts) - set(self.all))


class Wire(Harness):
    """A door behind the codec: bytes go in."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.decoders: dict[int, Decoder] = {}

    def _do(self, output: Any) -> None:
        decoder = self.decoders.get(output.connection) if isinstance(output, Write) else None
        if decoder is not None and decoder.version != V5:
            self.got.setdefault(output.connection, []).append(output.data)
        else:
            super()._do(output)

    def bytes_in(self, number: int, data: bytes) -> list[Any]:
        if number not in self.decoders:
            self.door.open(number, self.now)
            self.decoders[number] = Decoder(self.door.limits.packet_bytes)
        decoder = self.decoders[number]
        try:
            for packet in decoder.feed(data):
                self.door.receive(number, packet, decoder.version, self.now)
        except Malformed as error:
            self.door.refuse(number, error, decoder.version, self.now)
        self.settle()
        return self.take(number)

    def connect(self, number: int, client_id: str = "", **settings: Any) -> Any:
        clean = settings.pop("clean_start", True)
        packet = mqtt5.ConnectPacket(client_id or f"c{number}", clean_start=clean, **settings)
        self.decoders.pop(number, None)
        first, *rest = self.bytes_in(number, packet.write())
        if rest:
            self.got[number] = rest
        return first

    def send(self, number: int, packet: Any) -> None:
        decoder = self.decoders.get(number)
        self.door.receive(number, packet, decoder.version if decoder is not None else V5, self.now)
        self.settle()

    def is_closed_by(self, data: bytes, number: int = 1) -> bool:
        """Whether bytes after a CONNECT end the connection."""
        self.connect(number)
        self.bytes_in(number, data)
        return number in self.closed


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return len(data).to_bytes(2, "big") + data


def framed(first: int, body: bytes) -> bytes:
    assert len(body) < 128
    return bytes((first, len(body))) + body

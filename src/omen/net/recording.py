"""Everything a core was told, in a file, and a fresh core that is told the same: it must answer the same.

A recording is a row of msgpack pieces, each behind its length: first the `CoreSpec`, then a `Step` for each input. A
timer that fired is written as which `SetTimer` of the core it was, so that timers need no wire form. Of the outputs a
digest is kept.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, get_args

import msgspec

from omen.errors import InvalidInput
from omen.net.core_spec import CoreSpec, make_core
from omen.protocol.events import Engine, Input, Output, Received, SetTimer, Time, Timer, TimerFired
from omen.protocol.messages import wire

LENGTH = struct.Struct(">I")
START, RECEIVED, TIMER, OTHER = range(4)

_encoder = msgspec.msgpack.Encoder()


class Step(msgspec.Struct, frozen=True, array_like=True):
    """One input: its kind, when, sender or timer, its bytes, and the digest of what the core answered."""

    kind: int
    now: Time
    number: int
    body: bytes
    answer: bytes


def digest_of(outputs: Sequence[Output]) -> bytes:
    """A few bytes that differ where outputs do."""
    return blake2b(repr(list(outputs)).encode(), digest_size=8).digest() if outputs else b""


class Timers:
    """Numbers the timers a core sets, in the order it sets them."""

    def __init__(self) -> None:
        self.keys: dict[int, Timer] = {}
        self._numbers: dict[Timer, int] = {}
        self._count = 0

    def note(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            if type(output) is SetTimer:
                former = self._numbers.get(output.timer)
                if former is not None:
                    self.keys.pop(former, None)
                self._numbers[output.timer] = self._count
                self.keys[self._count] = output.timer
                self._count += 1

    def take(self, key: Timer) -> int:
        """The number of a timer that fires now."""
        number = self._numbers.pop(key)
        self.keys.pop(number, None)
        return number

    def fire(self, number: int) -> Timer:
        """The key of a timer that fires now."""
        key = self.keys.pop(number)
        self._numbers.pop(key, None)
        return key


def _create_private(path: str | Path) -> BinaryIO:
    """A file that only its owner reads, whatever was there before: a recording holds payloads."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "wb")


def _check_trusted(path: str | Path) -> None:
    """Raises InvalidInput where any user could have written a recording."""
    mode = Path(path).stat().st_mode
    if mode & 0o002:
        raise InvalidInput(f"{path}: mode {mode & 0o777:03o} lets every user write it: chmod 600 {path}")


class Recorder:
    """Writes a recording as things happen. A process that is killed leaves all but its last few steps."""

    def __init__(self, path: str | Path, spec: CoreSpec) -> None:
        self._file: BinaryIO = _create_private(path)
        self._timers = Timers()
        self._write(_encoder.encode(spec))

    def note_start(self, now: Time, outputs: Sequence[Output]) -> None:
        self._note(START, now, 0, b"", outputs)

    def note(self, event: Input, now: Time, outputs: Sequence[Output]) -> None:
        """An input and the answer to it."""
        if isinstance(event, Received):
            self._note(RECEIVED, now, event.sender, wire.encode(event.message), outputs)
        elif isinstance(event, TimerFired):
            self._note(TIMER, now, self._timers.take(event.timer), b"", outputs)
        else:
            self._note(OTHER, now, 0, _encoder.encode((type(event).__name__, event)), outputs)

    def _note(self, kind: int, now: Time, number: int, body: bytes, outputs: Sequence[Output]) -> None:
        self._timers.note(outputs)
        self._write(_encoder.encode(Step(kind, now, number, body, digest_of(outputs))))

    def _write(self, data: bytes) -> None:
        self._file.write(LENGTH.pack(len(data)) + data)

    def close(self) -> None:
        self._file.close()


class Replayed(msgspec.Struct, frozen=True):
    """How a replay went. `differs_at`: the first step answered otherwise, or None."""

    steps: int
    outputs: int
    seconds: float
    differs_at: int | None


_INPUTS = {kind.__name__: kind for kind in get_args(Input)}


def read_recording(path: str | Path) -> tuple[CoreSpec, Iterator[Step]]:
    """What a recording holds. The last piece may be cut short, as a crash leaves it."""
    _check_trusted(path)
    pieces = _read_pieces(path)
    try:
        spec = msgspec.msgpack.decode(next(pieces), type=CoreSpec)
    except StopIteration as error:
        raise InvalidInput(f"{path}: not a recording of a node: it does not begin with a whole piece") from error
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"{path}: not a recording of a node: {error}") from error
    return spec, (_read_step(path, piece) for piece in pieces)


def _read_pieces(path: str | Path) -> Iterator[bytes]:
    with Path(path).open("rb") as file:
        while len(head := file.read(LENGTH.size)) == LENGTH.size:
            (length,) = LENGTH.unpack(head)
            piece = file.read(length)
            if len(piece) < length:
                return
            yield piece


def _read_step(path: str | Path, piece: bytes) -> Step:
    try:
        return msgspec.msgpack.decode(piece, type=Step)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"{path}: a step that cannot be read: {error}") from error


def _event_of(step: Step, timers: Timers) -> Input:
    if step.kind == RECEIVED:
        return Received(step.number, wire.decode(step.body))
    if step.kind == TIMER:
        return TimerFired(timers.fire(step.number))
    name, fields = msgspec.msgpack.decode(step.body)
    event: Input = msgspec.convert(fields, _INPUTS[name])
    return event


def replay_recording(path: str | Path, engine: Engine | None = None) -> Replayed:
    """Tell a fresh core what was recorded, and compare its answers up to the first difference."""
    spec, steps = read_recording(path)
    core = make_core(spec) if engine is None else make_core(spec, engine)
    timers = Timers()
    count = answers = 0
    first = last = None
    for count, step in enumerate(steps, 1):
        outputs = core.start(step.now) if step.kind == START else core.handle(_event_of(step, timers), step.now)
        if digest_of(outputs) != step.answer:
            return Replayed(count, answers, _span(first, step.now), count)
        timers.note(outputs)
        answers += len(outputs)
        first, last = step.now if first is None else first, step.now
    return Replayed(count, answers, _span(first, last), None)


def _span(first: Time | None, last: Time | None) -> float:
    return 0.0 if first is None or last is None else (last - first) / 1e6

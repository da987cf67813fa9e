"""Bytes that no node would send, to the first things a node does with bytes: the hello, the proof, frames, messages.

    python -m tests.network.fuzz --seconds 3600 [--engine atheris|own] [--target NAME ...] [--report FILE]

atheris (coverage-guided) is used where it is installed, a mutator of our own where it is not. What raises anything but
the errors it may raise is a finding; so is whatever reads otherwise after it was written again.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from omen.net.security.handshake import Handshake
from omen.net.security.hello import UNREADABLE, Hello, Refused, check_hello, read_hello, write_hello, write_refusal
from omen.net.settings import LIVE
from omen.protocol.events import Multicast, Publish, Received, Send
from omen.protocol.membership.ring import place_of
from omen.protocol.messages import overlay as messages
from omen.protocol.messages import publications, wire
from omen.protocol.messages.overlay import Descriptor, Digest, Ref
from omen.protocol.node import OmenNode

from .fuzz_decoders import DECODERS

SECRET = b"a secret for fuzzing, nobody else's"
OWN = Hello("omen", place_of("ann"), "ann", 7, "127.0.0.1:1", 11, 1)
THEIRS = Hello("omen", place_of("bob"), "bob", 8, "127.0.0.1:2", 12, 1)


def sample_of(kind: Any, draw: random.Random) -> Any:
    """A value of a field's type."""
    info = msgspec.inspect.type_info(kind)
    return _draw(info, draw)


def _draw(info: Any, draw: random.Random) -> Any:
    inspect = msgspec.inspect
    match info:
        case inspect.IntType():
            return draw.choice((0, 1, 7, 300, 70_000, 1 << 31))
        case inspect.StrType():
            return draw.choice(("", "n1", "127.0.0.1:7070"))
        case inspect.EnumType():
            return draw.choice([member.value for member in info.cls])
        case inspect.BytesType():
            return draw.randbytes(draw.randrange(8))
        case inspect.BoolType():
            return draw.randrange(2) == 1
        case inspect.UnionType():
            return _draw(draw.choice(info.types), draw)
        case inspect.NoneType():
            return None
        case inspect.VarTupleType():
            return [_draw(info.item_type, draw) for _ in range(draw.randrange(3))]
        case inspect.TupleType():
            return [_draw(item, draw) for item in info.item_types]
        case inspect.StructType():
            values = [_draw(field.type, draw) for field in info.fields]
            return [info.tag, *values] if info.tag is not None else values
    raise TypeError(info)


def sample_frames(draw: random.Random, of_each: int = 3) -> Iterator[bytes]:
    """Valid frames of every kind there is."""
    for kind in (*messages.AnyMessage.__args__, *publications.Control.__args__):
        head = b"\x03" if kind in publications.Control.__args__ else b"\x00"
        for _ in range(of_each):
            yield head + msgspec.msgpack.encode(sample_of(kind, draw))
    key = publications.stream_key(1, 2, 3)
    for payload in (b"", b"tea", bytes(300)):
        yield publications.make_publication(key, draw.randrange(1, 99), payload, opening=bool(payload)).frame


def sample_hellos() -> Iterator[bytes]:
    yield write_hello(THEIRS)
    yield write_hello(msgspec.structs.replace(THEIRS, nonce=bytes(16)))
    yield write_hello(msgspec.structs.replace(THEIRS, revision=0)) + bytes(8)
    yield write_refusal("no")
    there, here = Handshake(THEIRS, dialled=True, secrets=(SECRET,)), Handshake(OWN, dialled=False, secrets=(SECRET,))
    proof, _ = there.take(bytearray(here.opening))
    yield there.opening + proof


def try_hello(data: bytes) -> str:
    """The handshake, in pieces; the first byte says how it is set."""
    how = data[0] if data else 0
    secrets = (SECRET,) if how & 1 else ()
    certified = ("bob", "eve-*") if how & 2 else None
    shake = Handshake(OWN, bool(how & 4), None, secrets, certified)
    step = 1 + (how >> 3)
    buffer = bytearray()
    try:
        for start in range(1, len(data), step):
            buffer += data[start : start + step]
            _, hello = shake.take(buffer)
            if hello is not None:
                assert hello.node == place_of(hello.name) and hello.cluster == OWN.cluster
                assert not secrets, "passed without the secret"
                return "taken"
    except Refused as refusal:
        str(refusal).encode()
        return refusal.reason
    assert len(buffer) < 8192
    return "waits"


def try_frame(data: bytes) -> str:
    """The decoder, and back again."""
    try:
        message = wire.decode(data)
    except UNREADABLE:
        return "unreadable"
    again = wire.encode(message)
    assert wire.decode(again) == message
    return "read"


class Core:
    """A node with one neighbour, which says everything that can be read; begun anew now and then."""

    LIVES = 300

    def __init__(self) -> None:
        self._inputs = 0
        self._core: Any = None
        self._now = 0

    def __call__(self, data: bytes) -> str:
        try:
            message = wire.decode(data)
        except UNREADABLE:
            return "unreadable"
        if self._core is None or self._inputs % self.LIVES == 0 or self._core.stopped:
            self._begin()
        self._inputs += 1
        self._now += 1000
        core = self._core
        try:
            outputs = core.handle(Received(THEIRS.node, message), self._now)
            for output in outputs:
                if isinstance(output, (Send, Multicast)):
                    wire.encode(output.message)
        except Exception:
            self._core = None
            raise
        return "heard"

    def _begin(self) -> None:
        ann, bob = Ref(OWN.node, 7, OWN.address), Ref(THEIRS.node, 8, THEIRS.address)
        forgiving = replace(LIVE, offence_limit=0)  # or it would listen to its neighbour no more
        self._core = OmenNode(ann, (1, 7, 300), forgiving, random.Random(self._inputs), lambda *_: [])
        self._core.preset([Descriptor(Digest(bob, 1, 1), (1, 7, 300), (ann,))], [(bob, (ann,))], [bob])
        self._core.start(self._now)
        self._core.handle(Publish(1, b"tea"), self._now)


class Signed:
    """A publication as one that requires signatures looks at it. Keys are made when it is first used."""

    def __init__(self) -> None:
        self._verifier: Any = None
        self._genuine: list[tuple[object, ...]] = []

    def __call__(self, data: bytes) -> str:
        if self._verifier is None:
            self._begin()
        try:
            message = wire.decode(data)
        except UNREADABLE:
            return "unreadable"
        if not isinstance(message, publications.Publication):
            return "another"
        verdict: str = self._verifier.check(message)
        assert verdict != "verified" or _content(message) in self._genuine, "verified, and never signed"
        return str(verdict)

    def samples(self) -> Iterator[bytes]:
        """Signed publications that are genuine."""
        if self._verifier is None:
            self._begin()
        key = publications.stream_key(7, THEIRS.node, 8)
        for sequence, block in ((1, b""), (2, publications.write_fields(publications.Fields(headers={"a": "b"})))):
            sealed = self._signer.seal(key, sequence, sequence == 1, b"tea", block)
            publication = publications.make_publication(key, sequence, b"tea", sequence == 1, sealed)
            self._genuine.append(_content(publication))
            yield publication.frame

    def _begin(self) -> None:
        from omen.net.security.key_files import make_cluster_keys, security_from
        from omen.net.security.signing import Signer, Verifier

        with tempfile.TemporaryDirectory() as folder:
            make_cluster_keys(Path(folder), "omen", ("bob",))
            security = replace(security_from(Path(folder), "bob"), sign=True, verify="require")
            self._signer = Signer(security, "omen", "bob")
            self._verifier = Verifier(security, "omen", lambda _: None)


def _content(publication: publications.Publication) -> tuple[object, ...]:
    """All that a signature covers."""
    fields = publications.split_fields(publication.fields)
    others = sorted((number, bytes(raw)) for number, raw in fields.items() if number != publications.SIGNATURE)
    return publication.key, publication.sequence, publication.is_opening, publication.payload, others


class Findings:
    """What went wrong, one of each place it went wrong at."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, Any]] = {}

    def note(self, target: str, data: bytes, error: BaseException) -> None:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{target} {type(error).__name__} {Path(last.filename).name}:{last.lineno}"
        entry = self.seen.setdefault(place, {"count": 0, "error": str(error)[:200], "input": data[:2000].hex()})
        entry["count"] += 1


TARGETS: dict[str, Callable[[bytes], str]] = {"hello": try_hello, "frame": try_frame, "core": Core()}
SIGNED = Signed()
TARGETS["signed"] = SIGNED
TARGETS.update((name, target) for name, (target, _) in DECODERS.items())


class Campaign:
    """One run: counts what came of each input, writes a report as it goes."""

    def __init__(self, engine: str, report: Path | None) -> None:
        self.engine = engine
        self.inputs: Counter[str] = Counter()
        self.results: Counter[str] = Counter()
        self.findings = Findings()
        self._report = report
        self._begun = self._told = time.monotonic()

    def try_one(self, target: str, data: bytes) -> None:
        self.inputs[target] += 1
        try:
            self.results[f"{target} {TARGETS[target](data)}"] += 1
        except Exception as error:
            known = len(self.findings.seen)
            self.findings.note(target, data, error)
            if len(self.findings.seen) > known:
                self.write()  # at once: atheris ends the process without a word
        if self._report is not None and not sum(self.inputs.values()) % 256 and time.monotonic() - self._told > 10:
            self.write()

    def write(self) -> None:
        self._told = time.monotonic()
        if self._report is not None:
            self._report.write_text(json.dumps(self.facts(), indent=1) + "\n")

    def facts(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "seconds": round(time.monotonic() - self._begun, 1),
            "inputs": dict(self.inputs),
            "results": dict(sorted(self.results.items())),
            "findings": self.findings.seen,
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Bytes flipped, cut out, doubled, put in; now and then nothing of it left."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        place = draw.randrange(len(changed) + 1)
        match draw.randrange(6):
            case 0 if changed:
                changed[place % len(changed)] = draw.randrange(256)
            case 1:
                del changed[place : place + draw.choice((1, 2, 8))]
            case 2:
                changed[place:place] = changed[place : place + draw.choice((1, 4, 64))]
            case 3:
                changed[place:place] = draw.randbytes(draw.choice((1, 4, 9)))
            case 4:
                changed[place : place + 9] = b"\xcf" + draw.choice((b"\xff", b"\x7f", b"\x80")) + b"\xff" * 7
            case _ if not draw.randrange(20):
                changed = bytearray(draw.randbytes(draw.randrange(200)))
    return bytes(changed[: 1 << 16])


def run_own(campaign: Campaign, seconds: float, seed: int, targets: Sequence[str]) -> None:
    """Our own mutator, over samples of everything."""
    draw = random.Random(seed)
    pool = {
        "hello": [bytes([draw.randrange(64)]) + hello for hello in sample_hellos() for _ in range(8)],
        "frame": list(sample_frames(draw)),
        "core": list(sample_frames(draw)),
        "signed": list(SIGNED.samples()) if "signed" in targets else [],
        **{name: list(samples()) for name, (_, samples) in DECODERS.items()},
    }
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for target in targets:
            for _ in range(200):
                campaign.try_one(target, mutate(draw.choice(pool[target]), draw))


def run_atheris(campaign: Campaign, seconds: float, seed: int, corpus: Path, targets: Sequence[str]) -> None:
    """The first byte of an input says which target it is for."""
    import atheris

    draw = random.Random(seed)
    corpus.mkdir(parents=True, exist_ok=True)
    for number, frame in enumerate(sample_frames(draw)):
        for target in range(len(targets)):
            (corpus / f"frame{number}.{target}").write_bytes(bytes([target]) + frame)
    if "signed" in targets:
        for number, frame in enumerate(SIGNED.samples()):
            (corpus / f"signed{number}").write_bytes(bytes([targets.index("signed")]) + frame)
    if "hello" in targets:
        for number, hello in enumerate(sample_hellos()):
            for how in range(8):
                (corpus / f"hello{number}.{how}").write_bytes(bytes([targets.index("hello"), how]) + hello)
    for name in set(targets) & set(DECODERS):
        for number, sample in enumerate(DECODERS[name][1]()):
            (corpus / f"{name}{number}").write_bytes(bytes([targets.index(name)]) + sample)

    def one(data: bytes) -> None:
        if data:
            campaign.try_one(targets[data[0] % len(targets)], data[1:])

    of_handshake = [function for function in vars(Handshake).values() if callable(function)]
    of_hello = [read_hello, check_hello]
    of_frames = [wire.decode, wire.encode, publications.parse_publication]
    if "signed" in targets:
        from omen.net.security.signing import Verifier

        of_frames += [function for function in vars(Verifier).values() if callable(function)]
    of_others = [DECODERS[name][0] for name in targets if name in DECODERS]
    for function in (try_hello, try_frame, *of_handshake, *of_hello, *of_frames, *of_others):
        atheris.instrument_func(function)
    options = [f"-max_total_time={int(seconds)}", "-max_len=8192", f"-seed={seed}", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    try:
        atheris.Fuzz()
    finally:
        campaign.write()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--engine", choices=("atheris", "own"))
    parser.add_argument("--report", type=Path)
    parser.add_argument("--corpus", type=Path, default=Path("build/corpus"))
    parser.add_argument("--target", action="append", choices=tuple(TARGETS))
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    told = parser.parse_args(argv)
    targets = tuple(told.target or TARGETS)
    engine = told.engine
    if engine is None:
        try:
            import atheris  # noqa: F401
        except ImportError:
            engine = "own"
        else:
            engine = "atheris"
    if engine == "atheris" and not told.alone:
        facts = run_apart(sys.argv[1:] if argv is None else argv, told.report)
    else:
        campaign = Campaign(engine, told.report)
        if engine == "atheris":
            run_atheris(campaign, told.seconds, told.seed, told.corpus, targets)
        else:
            run_own(campaign, told.seconds, told.seed, targets)
        campaign.write()
        facts = campaign.facts()
    print(json.dumps(facts))
    tried, found, status = sum(facts["inputs"].values()), len(facts["findings"]), facts.get("status", 0)
    print(
        f"{engine}: {facts['seconds']} s, {facts['inputs']}, {found} findings, {facts['memory_mb']} MB, exit {status}"
    )
    return 1 if found or status or not tried else 0


def run_apart(argv: Sequence[str], report: Path | None) -> dict[str, Any]:
    """atheris ends the process it is in, by exit code 0 and with nothing said: so it runs in one of its own, and what
    it found is read from its report.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = report or Path(folder) / "report.json"
        path.unlink(missing_ok=True)
        command = [sys.executable, "-m", "tests.network.fuzz", *argv, "--engine", "atheris", "--alone"]
        status = subprocess.run([*command, "--report", str(path)], stdout=sys.stderr).returncode
        nothing = {"inputs": {}, "findings": {}, "seconds": 0, "memory_mb": 0}
        facts: dict[str, Any] = json.loads(path.read_text()) if path.exists() else nothing
    return facts | {"status": status}


if __name__ == "__main__":
    sys.exit(main())

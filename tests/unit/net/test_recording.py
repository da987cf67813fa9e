"""What a core was told, in a file, and a fresh core that is told the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from omen.errors import InvalidInput
from omen.net.core_spec import CoreSpec, make_core
from omen.net.recording import Recorder, Timers, read_recording, replay_recording
from omen.net.settings import LIVE
from omen.protocol.events import Depart, Input, Publish, SetTimer, Subscribe, Time, TimerFired
from omen.protocol.messages.base import Ref

SPEC = CoreSpec(Ref(1, 1, "127.0.0.1:1"), (5,), LIVE, seed=7)


def record(path: Path, inputs: list[Input]) -> None:
    core, recorder, now = make_core(SPEC), Recorder(path, SPEC), 1000
    outputs = core.start(now)
    recorder.note_start(now, outputs)
    for event in inputs:
        now += 1000
        recorder.note(event, now, core.handle(event, now))
    timer = next(output.timer for output in outputs if isinstance(output, SetTimer))
    recorder.note(TimerFired(timer), now, core.handle(TimerFired(timer), now))
    recorder.close()


def test_a_recording_replays_with_the_same_answers(tmp_path: Path) -> None:
    record(tmp_path / "run", [Publish(5, b"green"), Subscribe((6,), (5,)), Publish(6, b"black"), Depart()])
    replayed = replay_recording(tmp_path / "run")
    assert (replayed.steps, replayed.differs_at) == (6, None)
    spec, _ = read_recording(tmp_path / "run")
    assert spec == SPEC


def test_the_first_different_answer_is_found(tmp_path: Path) -> None:
    record(tmp_path / "run", [Publish(5, b"green"), Publish(5, b"black")])
    data = (tmp_path / "run").read_bytes()
    (tmp_path / "run").write_bytes(data.replace(b"black", b"white"))
    assert replay_recording(tmp_path / "run").differs_at == 3


def test_a_recording_that_a_crash_cut_short_replays_as_far_as_it_goes(tmp_path: Path) -> None:
    record(tmp_path / "run", [Publish(5, b"green")])
    (tmp_path / "run").write_bytes((tmp_path / "run").read_bytes()[:-3])
    assert (replay_recording(tmp_path / "run").steps, replay_recording(tmp_path / "run").differs_at) == (2, None)


@pytest.mark.parametrize("data", [b"", b"\0\0\0\x01\xc0"])
def test_another_file_is_no_recording(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "run").write_bytes(data)
    with pytest.raises(InvalidInput, match="not a recording of a node"):
        replay_recording(tmp_path / "run")


def test_a_timer_that_is_set_again_has_another_number() -> None:
    core = make_core(SPEC)
    now: Time = 0
    first = [output for output in core.start(now) if isinstance(output, SetTimer)]
    timers = Timers()
    timers.note(first)
    timers.note(first[:1])
    assert timers.take(first[0].timer) == len(first)
    assert timers.fire(1) == first[1].timer


def test_a_recording_is_its_owners_alone_and_one_that_anybody_can_write_is_not_read(tmp_path: Path) -> None:
    """Before: it was made with whatever the umask allows, and read from any file."""
    path = tmp_path / "run"
    path.touch(0o666)
    path.chmod(0o666)
    record(path, [])
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o666)
    with pytest.raises(InvalidInput, match="mode 666 lets every user write it: chmod 600"):
        read_recording(path)

"""omen churn, replay and mend: their words, what they print and write, and how they end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from commands import run, run_json
from omen.maintain import MAINTAINERS
from omen.systems import SYSTEMS
from omen.tables import read_churn, read_overlay, read_workload

COMMANDS = ("churn", "churn random", "churn lifetimes", "replay", "mend")
COLUMNS = (
    "seq time_s event node repair_s handled_s edges_added edges_removed"
    " max_degree avg_degree shadow_size messages bytes"
)
TABLES = ("interests.parquet", "nodes.parquet", "overlay.parquet", "workload.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workload w, an overlay o.parquet and a trace c.parquet."""
    folder = tmp_path_factory.mktemp("mend")
    assert run("workload synth --nodes 80 --topics 20 --sizes uniform:1:6 --seed 3", "--out", folder / "w") == 0
    assert run("design --workload", folder / "w", "--out", folder / "o.parquet") == 0
    assert run("churn random --rounds 60 --seed 5 --workload", folder / "w", "--out", folder / "c.parquet") == 0
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(command, "--help")
    assert ended.value.code == 0
    assert f"example:\n  omen {command}".rstrip() in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["random --rounds 40", "lifetimes --mean-up 50 --mean-down 10 --duration 40"])
def test_the_same_seed_gives_the_same_trace_in_bytes(kind: str, folder: Path, tmp_path: Path) -> None:
    for name in ("a.csv", "a.parquet", "b.csv", "b.parquet"):
        assert run(f"churn {kind} --seed 4 --workload", folder / "w", "--out", tmp_path / name) == 0
    for suffix in ("csv", "parquet"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()
    assert read_churn(tmp_path / "a.csv").trace == read_churn(tmp_path / "a.parquet").trace


def test_churn_tells_where_new_interests_come_from(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = run_json(capsys, "churn random --rounds 9 --workload", folder / "w", "--out", tmp_path / "c.csv")
    assert (told["events"], told["new_interests"]) == (9, "drawn as the workload's were")
    (tmp_path / "interests.csv").write_text("node,topic\nann,tea\nbob,tea\n")
    told = run_json(capsys, "churn random --rounds 9 --workload", tmp_path, "--out", tmp_path / "c.csv")
    assert told["new_interests"] == "copied from random nodes"
    told = run_json(
        capsys, "churn lifetimes --mean-up 8 --duration 9 --workload", tmp_path, "--out", tmp_path / "l.csv"
    )
    assert told["mean_down"] == 2.0
    assert set(told["by_event"]) <= {"crash", "join"}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_replay_is_a_workload_folder_that_anybody_can_judge(
    system: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r"
    words = f"replay --system {system} --verify every --workload"
    told = run_json(capsys, words, folder / "w", "--churn", folder / "c.parquet", "--out", out)
    assert (told["events"], told["judged"], told["topic_connected"], told["skipped"]) == (60, 60, True, 0)
    checked = run_json(capsys, "check --workload", out, "--overlay", out)
    assert checked["holds"]
    assert all(checked[name] == told[name] for name in ("nodes", "edges", "avg_degree", "max_degree"))
    replayed = pq.read_table(out / "replay.parquet")
    assert replayed.column_names == COLUMNS.split()
    assert replayed.column("seq").to_pylist() == list(range(60))
    central = system in MAINTAINERS  # a central system sends no messages
    assert all((messages is None) == central for messages in replayed.column("messages").to_pylist())
    assert replayed.schema.field("handled_s").type == "double"
    assert read_workload(out).info["workload"]["made"] == "synth"
    assert not (tmp_path / "r.checkpoint").exists()
    assert run("churn random --rounds 3 --workload", out, "--out", tmp_path / "again.csv") == 0


def test_a_replay_takes_options_of_its_system_and_starts_from_an_overlay(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "replay --system shadow --lambda 1 --rho 2 --backups greedy-cover --components halo --rebalance 3 --seed 9"
    paths = ("--workload", folder / "w", "--churn", folder / "c.parquet", "--overlay", folder / "o.parquet")
    told = run_json(capsys, words, *paths, "--out", tmp_path / "r")
    expected = {"lambda": 1, "rho": 2.0, "backups": "greedy-cover", "components": "halo", "rebalance": 3, "seed": 9}
    assert told["options"] == expected | {"degree_of": "s", "k": 1}
    assert run(words, *paths, "--out", tmp_path / "r") == 0
    printed = capsys.readouterr().out
    for word in ("shadow (", "events", "topic-connected", "yes", "join", "leave", "median ms"):
        assert word in printed


def test_the_same_replay_writes_the_same_bytes_but_for_times(folder: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert run("replay --workload", folder / "w", "--churn", folder / "c.parquet", "--out", tmp_path / name) == 0
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in TABLES)
    first, second = (pq.read_table(tmp_path / name / "replay.parquet").drop_columns(["repair_s"]) for name in "ab")
    assert first.equals(second)


BAD_TRACES = {
    "an unknown node leaves": ("0,1,leave,5,\n1,2,leave,4711,\n", ["row 2", "node 4711 leaves", "unknown"]),
    "a known one joins": ("0,1,leave,5,\n1,2,join,5,\n2,3,join,5,\n", ["row 3", "node 5 joins", "present"]),
    "out of order": ("0,2,leave,5,\n1,1,leave,6,\n", ["row 2", "in order of time"]),
    "an unknown word": ("0,2,reboot,5,\n", ["row 1", "reboot"]),
    "no node": ("0,2,leave,,\n", ["row 1", "no node"]),
}


@pytest.mark.parametrize("case", BAD_TRACES)
def test_a_bad_trace_ends_a_replay_with_its_row_and_nothing_written(
    case: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, words = BAD_TRACES[case]
    trace = tmp_path / "c.csv"
    trace.write_text("seq,time_s,event,node,topics\n" + rows)
    assert run("replay --workload", folder / "w", "--churn", trace, "--out", tmp_path / "r") == 2
    printed = capsys.readouterr()
    assert (len(printed.err.splitlines()), printed.out) == (1, "")
    for word in ("c.csv", *words):
        assert word in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["c.csv"]


def test_a_trace_with_unknown_columns_ends_a_replay(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "c.csv"
    trace.write_text("seq,time_s,event,node,topics,weight\n0,1,leave,5,,3\n")
    assert run("replay --workload", folder / "w", "--churn", trace, "--out", tmp_path / "r") == 2
    assert "'weight' is unknown" in capsys.readouterr().err


def test_skip_impossible_counts_them_and_goes_on(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "c.csv"
    trace.write_text("seq,time_s,event,node,topics\n3,1,leave,5,\n4,2,leave,5,\n7,3,leave,4711,\n9,4,join,81,[1]\n")
    words = "replay --skip-impossible --verify every --workload"
    told = run_json(capsys, words, folder / "w", "--churn", trace, "--out", tmp_path / "r")
    assert (told["events"], told["skipped"], told["topic_connected"]) == (2, 2, True)
    assert told["skipped_by_reason"] == {"leave of a node that is not present": 2}
    assert pq.read_table(tmp_path / "r" / "replay.parquet").column("seq").to_pylist() == [3, 9]


def test_a_folder_that_is_not_ours_is_refused_before_the_replay(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("dear diary")
    assert run("replay --workload", folder / "w", "--churn", folder / "c.parquet", "--out", tmp_path) == 2
    assert "left as it is" in capsys.readouterr().err


@pytest.mark.parametrize("every", ["0", "30"])
def test_a_file_in_the_place_of_the_checkpoint_that_is_not_ours_stays(every: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "r.checkpoint").write_text("dear diary")
    words = f"replay --checkpoint-every {every} --workload"
    assert run(words, folder / "w", "--churn", folder / "c.parquet", "--out", tmp_path / "r") == 0
    assert (tmp_path / "r.checkpoint").read_text() == "dear diary"


def test_a_killed_replay_goes_on_with_the_same_command(tmp_path: Path) -> None:
    assert run("workload synth --nodes 300 --topics 40 --sizes uniform:4:12 --out", tmp_path / "w") == 0
    assert run("churn random --rounds 2000 --seed 5 --workload", tmp_path / "w", "--out", tmp_path / "c.parquet") == 0
    words = [sys.executable, "-m", "omen.cli", "replay", "--verify", "every", "--checkpoint-every", "0.01", "--json"]
    paths = ["--workload", str(tmp_path / "w"), "--churn", str(tmp_path / "c.parquet"), "--out"]
    killed, whole, notes = tmp_path / "killed", tmp_path / "whole", tmp_path / "killed.checkpoint"
    process = subprocess.Popen([*words, *paths, str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not notes.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert notes.exists()
    assert not killed.exists()
    done = subprocess.run([*words, *paths, str(killed)], check=True, capture_output=True, text=True)
    assert 0 < json.loads(done.stdout)["resumed_at"] < 2000
    assert "went on from event" in done.stderr
    subprocess.run([*words, *paths, str(whole)], check=True, capture_output=True)
    assert all((killed / name).read_bytes() == (whole / name).read_bytes() for name in TABLES)
    first, second = (pq.read_table(path / "replay.parquet").drop_columns(["repair_s"]) for path in (killed, whole))
    assert first.equals(second)
    assert not notes.exists()


def links(overlay: Any) -> set[tuple[Any, Any]]:
    return set(overlay.links())


@pytest.mark.parametrize("system", ["shadow", "naive", "lowoda-inc", "lowoda-re"])
def test_mend_tells_the_links_to_make_and_to_drop_and_applies_them(
    system: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = tmp_path / "topics.csv"
    topics.write_text("node,topic\n100,0\n100,1\n7,2\n7,3\n")
    words = f"mend --system {system} --leave 3 --leave 4 --join 100 --resubscribe 7 --topics"
    paths = (topics, "--workload", folder / "w", "--overlay", folder / "o.parquet")
    told = run_json(capsys, words, *paths, "--apply", "--out", tmp_path / "m")
    assert told["topic_connected"]
    before = links(read_overlay(folder / "o.parquet", read_workload(folder / "w").interests))
    mended = read_workload(tmp_path / "m")
    after = links(read_overlay(tmp_path / "m", mended.interests))
    make, drop = ({tuple(link) for link in told[name]} for name in ("make", "drop"))
    assert after == (before - drop) | make
    assert {link for link in before if {3, 4} & set(link)} <= drop
    nodes = mended.interests.nodes.tolist()
    assert (3 in nodes, 4 in nodes, 100 in nodes) == (False, False, True)
    assert [pair for pair in mended.interests.pairs() if pair[0] == 7] == [(7, 2), (7, 3)]
    assert run("check --workload", tmp_path / "m", "--overlay", tmp_path / "m") == 0


def test_mends_and_replays_in_a_row_tell_only_how_the_first_workload_was_made(folder: Path, tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    assert (
        run("mend --leave 3 --workload", folder / "w", "--overlay", folder / "o.parquet", "--apply", "--out", first)
        == 0
    )
    start = ("--workload", folder / "w", "--overlay", folder / "o.parquet")
    assert run("mend --leave 3 --apply", *start, "--out", first) == 0
    assert run("mend --leave 4 --apply --workload", first, "--overlay", first, "--out", second) == 0
    (tmp_path / "c.csv").write_text("seq,time_s,event,node,topics\n0,1,leave,5,\n")
    assert run("replay --workload", second, "--churn", tmp_path / "c.csv", "--out", third) == 0
    made = read_workload(folder / "w").info
    assert made["made"] == "synth"
    for made_from in (first, second, third):
        assert read_workload(made_from).info["workload"] == made


def test_mend_prints_a_table_and_writes_nothing_unless_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in folder.iterdir())
    assert run("mend --leave 3 --workload", folder / "w", "--overlay", folder / "o.parquet") == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].split() == ["link", "u", "v"]
    assert "3 left" in printed
    assert "links to make" in printed
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_node_of_the_workload_without_links_may_join_with_its_own_topics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "interests.csv").write_text("node,topic\nann,tea\nbob,tea\ncid,tea\n")
    (tmp_path / "o.csv").write_text("u,v\nann,bob\n")
    told = run_json(capsys, "mend --join cid --workload", tmp_path, "--overlay", tmp_path / "o.csv")
    assert len(told["make"]) == 1
    assert "cid" in told["make"][0]


def test_a_node_that_leaves_and_joins_at_once_starts_anew(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = run_json(capsys, "mend --leave 3 --join 3 --workload", folder / "w", "--overlay", folder / "o.parquet")
    assert told["nodes"] == 80
    assert told["topic_connected"]


BAD_MENDS = {
    "nothing happens": ("", ["nothing happens"]),
    "an unknown node leaves": ("--leave 4711", ["4711", "not in the overlay"]),
    "a known one joins": ("--join 5", ["node 5 joins", "links in the overlay already"]),
    "a new node without topics": ("--join 4711", ["4711", "neither"]),
    "an unknown node resubscribes": ("--resubscribe 4711 --topics {topics}", ["4711", "no row"]),
    "a node without new topics": ("--resubscribe 5", ["node 5 resubscribes", "no row"]),
    "a name among numbers": ("--leave bob", ["'bob'", "numbers"]),
    "a number tables do not know": ("--leave 0_1", ["'0_1'", "numbers"]),
    "a number beyond 64 bits": (f"--leave {2**64}", [str(2**64), "64 bits"]),
    "the same node twice": ("--leave 5 --leave 5", ["node 5 leaves twice"]),
    "apply without out": ("--leave 5 --apply", ["--apply", "--out"]),
    "out without apply": ("--leave 5 --out {out}", ["--apply", "--out"]),
    "an unknown system": ("--leave 5 --system shadows", ["did you mean 'shadow'"]),
    "an option of another system": ("--leave 5 --system naive --lambda 3", ["naive", "lambda"]),
    "a bad value": ("--leave 5 --lambda -1", ["lambda", "-1"]),
    "a bad word": ("--leave 5 --backups best", ["backups", "best", "pd-weight"]),
    "an overlay that splits topics": ("--leave 5 --overlay {empty}", ["topic 0 is in", "pieces"]),
}


@pytest.mark.parametrize("case", BAD_MENDS)
def test_bad_input_ends_mend_with_one_line_and_nothing_written(
    case: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, told = BAD_MENDS[case]
    topics, empty = tmp_path / "topics.csv", tmp_path / "empty.csv"
    topics.write_text("node,topic\n9,1\n")
    empty.write_text("u,v\n1,2\n")
    filled = words.format(topics=topics, out=tmp_path / "out", empty=empty)
    status = run("mend --workload", folder / "w", "--overlay", folder / "o.parquet", *filled.split())
    assert status == 2
    printed = capsys.readouterr()
    assert (len(printed.err.splitlines()), printed.out) == (1, "")
    for word in told:
        assert word in printed.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.csv", "topics.csv"]


def test_without_k_the_record_of_the_overlay_decides(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overlay = tmp_path / "g.parquet"
    assert run("design --algorithm gm2 --workload", folder / "w", "--out", overlay) == 0
    capsys.readouterr()
    words = ("--workload", folder / "w", "--overlay", overlay, "--leave", 3)
    assert run("mend", *words, "--apply", "--out", tmp_path / "m") == 0
    printed = capsys.readouterr()
    assert "2-topic-connected  yes" in printed.out
    assert printed.err == "the overlay was made for k = 2, so the repair keeps that (--k 1 does not)\n"
    assert run("check --k 2 --workload", tmp_path / "m", "--overlay", tmp_path / "m") == 0
    capsys.readouterr()
    assert run_json(capsys, "mend", *words)["options"]["k"] == 2
    assert run_json(capsys, "mend", *words, "--k", 1)["options"]["k"] == 1
    assert (
        run_json(capsys, "mend --workload", tmp_path / "m", "--overlay", tmp_path / "m", "--leave", 4)["options"]["k"]
        == 2
    )


def test_an_overlay_without_a_record_is_repaired_for_k_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overlay = folder / "bare.csv"
    assert run("design --algorithm gm2 --workload", folder / "w", "--out", overlay) == 0
    capsys.readouterr()
    told = run_json(capsys, "mend --workload", folder / "w", "--overlay", overlay, "--leave", 3)
    assert told["options"]["k"] == 1


def test_a_replay_tells_when_events_were_and_draws_itself(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    trace = pq.read_table(folder / "c.parquet").column("time_s").to_pylist()
    paths = ("replay --workload", folder / "w", "--churn", folder / "c.parquet", "--out", tmp_path / "r")
    assert run(*paths, "--figure", tmp_path / "r.svg") == 0
    assert pq.read_table(tmp_path / "r" / "replay.parquet").column("time_s").to_pylist() == trace
    drawn = (tmp_path / "r.svg").read_text()
    for words in ("links of a node", "links changed so far", "repair, ms of processor time", "time of the trace"):
        assert f"<!-- {words}" in drawn, words
    capsys.readouterr()
    assert run(*paths, "--figure", tmp_path / "r.gif") == 2
    assert "a figure is written as .svg, .png, .pdf" in capsys.readouterr().err

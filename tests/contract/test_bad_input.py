"""Bad input: one clear line, exit code 2, nothing half-written, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omen
from omen.cli.main import main

INTERESTS = "node,topic\n1,tea\n2,tea\n2,jazz\n3,jazz\n"
OVERLAY = "u,v\n1,2\n2,3\n"
TRACE = "seq,time_s,event,node,topics\n0,1,leave,1,\n1,2,join,1,\n"
DESIGN = "design --workload {w} --out {out}"
CHECK = "check --workload {w} --overlay {o}"
EXPORT = "export --workload {w} --overlay {o} --format json --out {out}"
IMPORT = "workload import --table {w}/interests.csv --out {out}"
CHURN = "churn random --workload {w} --rounds 3 --out {out}"
REPLAY = "replay --workload {w} --overlay {o} --churn {c} --verify every --out {out}"
MEND = "mend --workload {w} --overlay {o} --leave 1 --apply --out {out}"
SYNTH = "workload synth --nodes 5 --topics 5 --sizes 2 --out {out}"

WORKLOAD_CASES = {
    "missing file": (None, ["no such file"]),
    "empty file": ("", ["empty"]),
    "missing column": ("node,channel\n1,tea\n", ["no column 'topic'", "node, channel"]),
    "null": ("node,topic\n1,tea\n2,\n", ["interests.csv, row 2", "topic"]),
    "too few fields": ("node,topic\n1,tea\n2\n", ["interests.csv, row 2"]),
    "open quote": ('node,topic\n1,"tea\n', ["quote"]),
    "binary junk": (b"\x00\xff\xfe\x80PNG\r\n\x1a\n", ["interests.csv"]),
    "damaged parquet": (b"PAR1 this is not one PAR1", ["interests.csv"]),
}
OVERLAY_CASES = {
    "missing file": (None, ["no such file"]),
    "missing column": ("a,b\n1,2\n", ["no column 'u'", "a, b"]),
    "null": ("u,v\n1,2\n2,\n", ["o.csv, row 2", "v"]),
    "text where the workload has numbers": ("u,v\n1,2\n1,bob\n", ["o.csv", "bob"]),
    "unknown node": ("u,v\n1,2\n2,9\n", ["o.csv, row 2", "9", "not a node"]),
    "self-loop": ("u,v\n1,2\n3,3\n", ["o.csv, row 2", "3", "itself"]),
}
OPTION_CASES = [
    ("design --workload {w} --algorithm low-oda --rho 0.5 --out {out}", ["rho", "at least 1", "0.5"]),
    ("design --workload {w} --algorithm low-oda --rho nan --out {out}", ["rho", "nan"]),
    ("design --workload {w} --algorithm low-oda --rho three --out {out}", ["rho", "three"]),
    ("design --workload {w} --algorithm harary-pt --k 0 --out {out}", ["k", "0"]),
    ("design --workload {w} --algorithm harary-pt --k 1.5 --out {out}", ["k", "1.5"]),
    ("design --workload {w} --algorithm gm --rho 3 --out {out}", ["gm", "rho", "none"]),
    ("design --workload {w} --algorithm low-oda --k 3 --out {out}", ["low-oda", "'k'", "it takes rho"]),
    ("design --workload {w} --algorithm lowoda --out {out}", ["'lowoda'", "did you mean 'low-oda'"]),
    ("design --workload {w} --algorithm hararypt --out {out}", ["did you mean 'harary-pt'"]),
    ("check --workload {w} --overlay {o} --k 0", ["--k", "1 or more", "'0'"]),
    ("check --workload {w} --overlay {o} --k two", ["--k", "'two'"]),
    ("check --workload {w} --overlay {o} --tables {out}", ["--tables", "--engine spark"]),
    ("check --workload {w} --overlay {o} --engine flink", ["flink", "local", "spark"]),
    ("export --workload {w} --overlay {o} --format png", ["png", "graphml", "dot", "json"]),
    ("export --workload {w} --overlay {o} --format dot --json", ["--out"]),
    ("workload synth --nodes 0 --topics 5 --sizes 2 --out {out}", ["--nodes", "1 or more"]),
    ("workload synth --nodes 5 --topics 5 --sizes 9 --out {out}", ["9", "5 topics"]),
    ("workload synth --nodes 5 --topics 5 --sizes some --out {out}", ["some", "uniform:A:B"]),
    ("workload synth --nodes 5 --topics 5 --sizes 2 --popularity zpif:1 --out {out}", ["zpif:1", "zipf:ALPHA"]),
    ("workload synth --nodes 5 --topics 5 --sizes 2 --seed -1 --out {out}", ["--seed", "0 or more"]),
    ("workload import --table {w}/interests.csv --node-column user --out {out}", ["'user'", "node, topic"]),
    ("workload import --table {w}/interests.csv --max-rejected -1 --out {out}", ["--max-rejected"]),
    ("workload import --table {w}/none.csv --out {out}", ["none.csv", "no such file"]),
    ("design --workload {w} --out {out} --color", ["--color"]),
    ("mould", ["mould", "design"]),
    ("", ["COMMAND"]),
]


def write(path: Path, content: str | bytes | None) -> None:
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def lay_out(
    folder: Path, interests: str | bytes | None = INTERESTS, overlay: str | bytes | None = OVERLAY
) -> dict[str, Path]:
    (folder / "w").mkdir()
    write(folder / "w" / "interests.csv", interests)
    write(folder / "o.csv", overlay)
    write(folder / "c.csv", TRACE)
    return {"w": folder / "w", "o": folder / "o.csv", "c": folder / "c.csv", "out": folder / "out"}


def run(words: str, **places: object) -> int:
    """The exit code, as the shell sees it."""
    try:
        return main(words.format(**places).split())
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        return ended.code


def assert_refused(capsys: pytest.CaptureFixture[str], code: int, fragments: list[str], out: Path) -> None:
    printed = capsys.readouterr()
    assert code == 2, printed
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("omen")
    for fragment in fragments:
        assert fragment in printed.err
    assert not out.exists()
    assert not list(out.parent.glob(".*"))


@pytest.mark.parametrize("command", [DESIGN, CHECK, EXPORT])
@pytest.mark.parametrize("case", WORKLOAD_CASES)
def test_strict_commands_refuse_a_bad_workload(
    case: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, fragments = WORKLOAD_CASES[case]
    places = lay_out(tmp_path, interests=content)
    if content is None:
        places["w"].rmdir()
    assert_refused(capsys, run(command, **places), fragments, places["out"])


@pytest.mark.parametrize("command", [CHECK, EXPORT])
@pytest.mark.parametrize("case", OVERLAY_CASES)
def test_strict_commands_refuse_a_bad_overlay(
    case: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, fragments = OVERLAY_CASES[case]
    places = lay_out(tmp_path, overlay=content)
    assert_refused(capsys, run(command, **places), fragments, places["out"])


def test_labels_numeric_in_one_table_and_text_in_another_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = lay_out(tmp_path)
    pq.write_table(pa.table({"node": ["1", "2", "3"]}), places["w"] / "nodes.parquet")
    (places["w"] / "interests.csv").unlink()
    pq.write_table(pa.table({"node": [1, 2], "topic": ["tea", "tea"]}), places["w"] / "interests.parquet")
    assert_refused(capsys, run(DESIGN, **places), ["numbers", "text"], places["out"])


@pytest.mark.parametrize(("words", "fragments"), OPTION_CASES)
def test_bad_options_are_refused_with_what_would_be_right(
    words: str, fragments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = lay_out(tmp_path)
    assert_refused(capsys, run(words, **places), fragments, places["out"])


@pytest.mark.parametrize("command", [DESIGN, EXPORT, IMPORT, SYNTH, CHURN, REPLAY, MEND])
def test_an_output_that_cannot_be_written_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = lay_out(tmp_path)
    write(tmp_path / "file", "mine")
    impossible = tmp_path / "file" / "below"
    assert_refused(capsys, run(command, **places | {"out": impossible}), [str(impossible)], impossible)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="nothing is forbidden to root")
@pytest.mark.parametrize("command", [DESIGN, EXPORT, IMPORT, SYNTH, CHURN, REPLAY, MEND])
def test_a_folder_without_permission_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = lay_out(tmp_path)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert_refused(capsys, run(command, **places | {"out": closed / "out"}), [str(closed)], closed / "out")


def test_a_folder_of_the_users_is_not_replaced_by_a_workload(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    write(folder / "chapter.txt", "mine")
    assert run(SYNTH, out=folder) == 2
    assert str(folder) in capsys.readouterr().err
    assert (folder / "chapter.txt").read_text() == "mine"


def test_a_failed_run_leaves_the_previous_output_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = lay_out(tmp_path)
    assert run(DESIGN, **places) == 0
    before = places["out"].read_bytes()
    write(places["w"] / "interests.csv", "node,topic\n1,\n")
    assert run(DESIGN, **places) == 2
    assert places["out"].read_bytes() == before


def test_interrupting_a_command_is_quiet_and_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, omen.workloads as w\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell in the background has it ignored
        "w.generate_interests = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "from omen.cli.main import main\n"
        f"sys.exit(main('{SYNTH.format(out=tmp_path / 'out')}'.split()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert not list(tmp_path.iterdir())


FIELDS = st.one_of(
    st.integers(-3, 12).map(str), st.sampled_from(["", "tea", '"', "1e3", "ä", "\t", "null", str(2**70)])
)
CSV = st.builds(
    lambda header, rows: "\n".join([header, *(",".join(row) for row in rows)]),
    st.sampled_from(["node,topic", "u,v", "topic,node", "node", "node,topic,extra", "node,node", ""]),
    st.lists(st.lists(FIELDS, min_size=1, max_size=3), max_size=8),
)
BYTES = st.one_of(
    CSV.map(str.encode), st.binary(max_size=60), st.sampled_from([b"PAR1", b"\xff\xfeu\x00", b"\x1f\x8b\x08"])
)
COLUMN = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=4, max_size=4).map(
        lambda v: pa.array(v, pa.int64())
    ),
    st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=4, max_size=4).map(lambda v: pa.array(v, pa.string())),
    st.lists(st.floats(), min_size=4, max_size=4).map(pa.array),
    st.lists(st.binary(max_size=3), min_size=4, max_size=4).map(pa.array),
    st.lists(st.booleans(), min_size=4, max_size=4).map(pa.array),
    st.lists(st.lists(st.integers(0, 9)), min_size=4, max_size=4).map(lambda v: pa.array(v, pa.list_(pa.int64()))),
)
TABLES = st.one_of(
    BYTES,
    st.builds(
        lambda a, b, names: pa.table({names[0]: a, names[1]: b}),
        COLUMN,
        COLUMN,
        st.sampled_from([("node", "topic"), ("u", "v"), ("node", "x")]),
    ),
)


def put(folder: Path, name: str, table: Any) -> None:
    if isinstance(table, bytes):
        (folder / f"{name}.csv").write_bytes(table)
    else:
        pq.write_table(table, folder / f"{name}.parquet")


def assert_done_or_refused(capsys: pytest.CaptureFixture[str], code: int, out: Path) -> None:
    printed = capsys.readouterr()
    assert code in (0, 1, 2)
    if code == 2:
        assert len(printed.err.splitlines()) == 1
        assert printed.out == ""
        assert not out.exists()


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(interests=TABLES, nodes=st.none() | TABLES, overlay=TABLES)
def test_no_table_makes_a_command_die_with_a_traceback(
    interests: Any,
    nodes: Any,
    overlay: Any,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path_factory.mktemp("any")
    workload = folder / "w"
    workload.mkdir()
    put(workload, "interests", interests)
    if nodes is not None:
        put(workload, "nodes", nodes)
    put(folder, "o", overlay)
    table = next(workload.glob("interests.*"))
    for words in (DESIGN, CHECK, EXPORT.replace("json", "graphml"), f"workload import --table {table} --out {{out}}"):
        out = folder / f"out-{words.split()[0]}"
        assert_done_or_refused(capsys, run(words, w=workload, o=folder / "o", out=out), out)


CHURN_FIELDS = (
    st.sampled_from(["0", "1", "2", "-1", "0_1", "", "x", str(2**70)]),
    st.sampled_from(["0", "1.5", "2", "nan", "inf", "-1", "", "soon"]),
    st.sampled_from(["join", "leave", "crash", "resubscribe", "JOIN", "reboot", ""]),
    st.sampled_from(["1", "2", "3", "9", "ann", "0_1", "", str(2**70)]),
    st.sampled_from(["", "[]", '"[""tea""]"', '"[""tea"", ""rye""]"', "[1]", "[null]", "{}", "tea", "[[", "1"]),
)
EVENTS = (
    "leave,1,",
    "crash,2,",
    "leave,9,",
    "join,1,",
    'join,9,"[""tea""]"',
    'resubscribe,3,"[""rye""]"',
    "resubscribe,2,[]",
)
TRACES = st.one_of(
    st.lists(st.tuples(*CHURN_FIELDS), max_size=4).map(
        lambda rows: "\n".join(["seq,time_s,event,node,topics", *map(",".join, rows)]).encode()
    ),
    st.lists(st.sampled_from(EVENTS), max_size=6).map(
        lambda events: "\n".join(
            ["seq,time_s,event,node,topics", *(f"{i},{i // 2},{event}" for i, event in enumerate(events))]
        ).encode()
    ),
    st.lists(COLUMN, min_size=5, max_size=5).map(
        lambda columns: pa.table(dict(zip(("seq", "time_s", "event", "node", "topics"), columns, strict=True)))
    ),
    TABLES,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    interests=st.just(INTERESTS.encode()) | TABLES,
    overlay=st.just(OVERLAY.encode()) | TABLES,
    trace=TRACES,
    topics=TABLES,
)
def test_no_table_makes_a_command_about_churn_die_with_a_traceback(
    interests: Any,
    overlay: Any,
    trace: Any,
    topics: Any,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "w").mkdir()
    put(folder / "w", "interests", interests)
    for name, table in (("o", overlay), ("c", trace), ("t", topics)):
        put(folder, name, table)
    places = {"w": folder / "w", "o": folder / "o", "c": next(folder.glob("c.*")), "t": next(folder.glob("t.*"))}
    commands = (CHURN, REPLAY, f"{REPLAY} --skip-impossible", MEND, f"{MEND} --join 9 --topics {{t}}")
    for number, words in enumerate(commands):
        out = folder / f"out-{number}"
        assert_done_or_refused(capsys, run(words, **places, out=out), out)


def test_what_design_and_import_accept_they_keep(tmp_path: Path) -> None:
    places = lay_out(tmp_path)
    assert run(IMPORT, **places) == 0
    assert omen.read_workload(places["out"]).interests == omen.read_workload(places["w"]).interests

"""The table churn: what is written is read back, and what is wrong with a row is told with its file and number."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omen.churn import Crash, Event, Join, Leave, Resubscribe, Trace
from omen.errors import InvalidTable
from omen.interests import Interests
from omen.tables import read_churn, write_churn
from omen.tables.churn_table import COLUMNS

HEADER = "seq,time_s,event,node,topics\n"
NUMBERS = Interests.from_pairs([(1, 10), (2, 10), (2, 11)])
WORDS = Interests.from_pairs([("ann", "tea"), ("bob", "tea")])


def traces(node: st.SearchStrategy[int] | st.SearchStrategy[str]) -> st.SearchStrategy[Trace]:
    times = st.integers(0, 10).map(float)
    topics = st.none() | st.lists(node, max_size=3).map(tuple)
    events: st.SearchStrategy[Event] = st.one_of(
        st.builds(Join, times, node, topics),
        st.builds(Leave, times, node),
        st.builds(Crash, times, node),
        st.builds(Resubscribe, times, node, topics),
    )
    return st.lists(events, max_size=6).map(lambda those: Trace(tuple(sorted(those, key=lambda one: one.time_s))))


@pytest.mark.parametrize("name", ["c.csv", "c.csv.gz", "c.parquet"])
@given(trace=traces(st.integers(-(2**63), 2**63 - 1)) | traces(st.text('ab,"[é\n ', min_size=1, max_size=4)))
def test_a_written_trace_is_read_back(name: str, trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("churn") / name
    write_churn(path, trace)
    read = read_churn(path)
    assert read.trace == trace
    assert read.seqs == tuple(range(len(trace)))


def test_equal_traces_are_equal_bytes(tmp_path: Path) -> None:
    trace = Trace((Join(0.5, 7, (1, 2)), Leave(1.0, 7)))
    for suffix in ("csv", "csv.gz", "parquet"):
        write_churn(tmp_path / f"a.{suffix}", trace)
        write_churn(tmp_path / f"b.{suffix}", trace)
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_a_trace_without_topics_has_the_kinds_of_the_workload(tmp_path: Path) -> None:
    write_churn(tmp_path / "c.parquet", Trace((Leave(1.0, "ann"),)), WORDS)
    schema = pq.read_schema(tmp_path / "c.parquet")
    assert schema.names == list(COLUMNS)
    assert schema.field("topics").type.value_type in (pa.string(), pa.large_string())


def test_the_pipeline_writes_the_same_columns() -> None:
    schemas = pytest.importorskip("omen.pipeline.schemas")
    assert tuple(schemas.churn(schemas.INTEGER, schemas.INTEGER).names) == COLUMNS


def test_numbers_in_csv_are_text_where_the_nodes_of_the_workload_are(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(HEADER + "0,1,leave,17,\n")
    assert read_churn(path, WORDS).trace.events == (Leave(1.0, "17"),)
    assert read_churn(path, NUMBERS).trace.events == (Leave(1.0, 17),)


def test_topics_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("seq,time_s,event,node\n4,0,crash,1\n9,0,join,1\n")
    read = read_churn(path, NUMBERS)
    assert read.trace.events == (Crash(0.0, 1), Join(0.0, 1, None))
    assert (read.seqs, read.where(1)) == ((4, 9), f"{path}, row 2")


def test_parts_of_a_spark_folder_follow_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    for part in range(2):
        rows = {"seq": [part], "time_s": [float(part)], "event": ["leave"], "node": [part + 1], "topics": [None]}
        table = pa.table(rows, pa.schema([*zip(COLUMNS, _TYPES, strict=True)]))
        pq.write_table(table, folder / f"part-{part:05}.parquet")
    assert read_churn(folder, NUMBERS).trace.events == (Leave(0.0, 1), Leave(1.0, 2))


_TYPES = (pa.int64(), pa.float64(), pa.string(), pa.int64(), pa.list_(pa.int64()))

BAD_ROWS = {
    "unknown event": ("0,1,leave,1,\n1,2,quit,1,\n", ["row 2", "'quit'", "join, leave, crash, resubscribe"]),
    "no node": ("0,1,leave,,\n", ["row 1", "no node"]),
    "no seq": (",1,leave,1,\n", ["row 1", "no seq"]),
    "time is no number": ("0,soon,leave,1,\n", ["row 1", "time_s", "'soon'"]),
    "time is not finite": ("0,nan,leave,1,\n", ["row 1", "time_s"]),
    "seq is no number": ("zero,1,leave,1,\n", ["row 1", "seq", "'zero'"]),
    "seq out of order": ("1,1,leave,1,\n0,2,leave,2,\n", ["row 2", "in order of seq"]),
    "the same seq twice": ("1,1,leave,1,\n1,2,leave,2,\n", ["row 2", "in order of seq"]),
    "time out of order": ("0,2,leave,1,\n1,1,leave,2,\n", ["row 2", "in order of time"]),
    "topics are not JSON": ("0,1,join,1,tea\n", ["row 1", "'tea'", "JSON"]),
    "topics are not a list": ('0,1,join,1,"{""a"": 1}"\n', ["row 1", "not a list"]),
    "a topic is null": ("0,1,join,1,[null]\n", ["row 1", "topic null"]),
    "a leave with topics": ("0,1,leave,1,[10]\n", ["row 1", "takes no topics"]),
    "topics of another kind": ('0,1,join,1,"[""tea""]"\n', ["row 1", "'tea'", "text", "numbers"]),
    "a node of another kind": ("0,1,leave,1,\n1,1,leave,bob,\n", ["row 2", "'bob'", "numbers"]),
    "too few fields": ("0,1,leave,1,\n1,1\n", ["row 2", "fewer fields"]),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_told_with_file_and_number(case: str, tmp_path: Path) -> None:
    rows, words = BAD_ROWS[case]
    path = tmp_path / "c.csv"
    path.write_text(HEADER + rows)
    with pytest.raises(InvalidTable) as told:
        read_churn(path, NUMBERS)
    for word in ("c.csv", *words):
        assert word in str(told.value)


@pytest.mark.parametrize(
    ("header", "word"),
    [("seq,time_s,event,node,topic", "'topic' is unknown"), ("seq,event,node", "no column 'time_s'")],
)
def test_unknown_and_missing_columns_are_told(header: str, word: str, tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(f"{header}\n")
    with pytest.raises(InvalidTable, match=word):
        read_churn(path)


def test_parquet_columns_of_the_wrong_kind_are_told(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    good = {"seq": [0], "time_s": [1.0], "event": ["join"], "node": [1], "topics": [[10]]}
    for name, bad in (("seq", ["x"]), ("time_s", ["x"]), ("event", [1]), ("node", [1.5]), ("topics", ["x"])):
        pq.write_table(pa.table(good | {name: bad}), path)
        with pytest.raises(InvalidTable, match=f"'{name}'"):
            read_churn(path, NUMBERS)
    pq.write_table(pa.table(good | {"event": pa.array([None], pa.string())}), path)
    with pytest.raises(InvalidTable, match="row 1: no event"):
        read_churn(path, NUMBERS)

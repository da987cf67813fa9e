from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from omen.errors import InvalidInput, InvalidTable
from omen.pipeline import table_lines
from omen.pipeline.engines import require_readable
from omen.pipeline.failures import spark_failures
from omen.pipeline.ingest import Counts, ingest_edges, require_few_rejects
from omen.pipeline.subscriptions import ingest_adjacency, ingest_subscriptions
from omen.tables import read_table
from omen.workloads import edge_lists, import_subscriptions
from omen.workloads.edge_files import NOT_A_WHOLE_NUMBER
from omen.workloads.edge_lists import read_edge_line

SHAPES = b"""\
# a comment
% another
FromNodeId\tToNodeId

1\t2
2 3
3,4
"4", "5"
5  6   1.5  1377000000
1\t2
7
7 7
8\t08
9,,10
these are words
\xff\xfe 12
"""


@pytest.fixture
def small_blocks(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.files.maxPartitionBytes", "1000")
    yield
    spark.conf.unset("spark.sql.files.maxPartitionBytes")


def rows_of(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"1 2", ("1", "2", None)),
        (b"\t1\t2 ", ("1", "2", None)),
        (b"ann,bob,friends since school", ("ann", "bob", None)),
        (b"ann bob", ("ann", "bob", None)),
        (b"ann bob 0.5", ("ann", "bob", None)),
        (b"1 2 words after numbers", ("1", "2", None)),
        (b"ann and bob", (None, None, edge_lists.WORDS_AFTER_PAIR)),
        (b"1", (None, None, edge_lists.TOO_FEW_COLUMNS)),
        (b"1,", (None, None, edge_lists.TOO_FEW_COLUMNS)),
        (b"ann ann", (None, None, edge_lists.SELF_LOOP)),
        (b"1 01", (None, None, edge_lists.SELF_LOOP)),
        (b"1 \x00", (None, None, edge_lists.NOT_TEXT)),
        (b"\xff 1", (None, None, edge_lists.NOT_TEXT)),
        (b"  ", None),
        (b"# 1 2", None),
        (b"%1 2", None),
        (b"from to", None),
    ],
)
def test_a_line_of_any_shape_is_a_pair_or_has_a_reason(line: bytes, expected: object) -> None:
    assert read_edge_line(line, header="from to") == expected


def test_edges_of_all_shapes_come_in_and_the_rest_is_rejected_by_line(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "edges [1].txt"  # a name that is a pattern to Spark
    path.write_bytes(SHAPES)
    read = ingest_edges(spark, str(path))
    assert rows_of(read.pairs) == [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]
    assert read.header == "FromNodeId\tToNodeId"
    assert read.counts == Counts(
        rows=12,
        kept=5,
        duplicates=1,
        rejected={
            edge_lists.TOO_FEW_COLUMNS: 2,
            edge_lists.WORDS_AFTER_PAIR: 1,
            edge_lists.NOT_TEXT: 1,
            edge_lists.SELF_LOOP: 2,
        },
    )
    rejected = rows_of(read.rejected)
    assert [row[1] for row in rejected] == [11, 12, 13, 14, 15, 16]
    assert {row[0] for row in rejected} == {str(path)}
    assert rejected[1][2:] == (edge_lists.SELF_LOOP, "7 7")
    with pytest.raises(InvalidInput, match=r"6 rows rejected .*--max-rejected is 5"):
        require_few_rejects(read.counts, 5, str(path))
    read.release()


@pytest.mark.usefixtures("small_blocks")
def test_row_numbers_are_those_of_the_file_however_it_is_cut(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f"{n} {n + 1}" if n % 97 else f"{n}" for n in range(1, 3001)]
    (tmp_path / "edges.txt").write_text("\n".join(lines))
    read = ingest_edges(spark, str(tmp_path / "edges.txt"))
    assert [row[1] for row in rows_of(read.rejected)] == [n for n in range(1, 3001) if n % 97 == 0]
    assert read.counts.kept == 3000 - 30
    read.release()


def test_labels_are_numbers_only_if_every_one_is(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(gzip.compress(b"source,target\n1,2\n2,99999999999999999999\n007,2\n"))
    read = ingest_edges(spark, str(path))
    assert rows_of(read.pairs) == [("007", "2"), ("1", "2"), ("2", "99999999999999999999")]
    read.release()
    numbers = ingest_edges(spark, str(path), labels="integer", either_way=True)
    assert rows_of(numbers.pairs) == [(1, 2), (2, 7)]
    assert numbers.counts.rejected == {NOT_A_WHOLE_NUMBER: 1}
    assert [row[1] for row in rows_of(numbers.rejected)] == [3]
    numbers.release()


def test_a_file_that_cannot_be_used_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"{n} {n + 1}\n" for n in range(200_000)).encode())
    cases = {
        "cut.txt.gz": (whole[: len(whole) // 2], "cut short"),
        "junk.bin": (bytes(range(256)) * 50, "none of its"),
        "comments.txt": (b"# nothing\n\n", "no rows"),
    }
    for name, (content, message) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidTable, match=message) as raised, spark_failures():
            ingest_edges(spark, str(tmp_path / name))
        assert str(raised.value).startswith(f"{tmp_path / name}: ")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "plain.gz").write_text("1 2\n")
    for name, message in {"empty.txt": "empty", "absent.txt": "no such file", "plain.gz": "not a gzip file"}.items():
        with pytest.raises(InvalidTable, match=message):
            require_readable(str(tmp_path / name))


def test_users_called_by_a_letter_are_no_header(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("u v\nv x\n")
    read = ingest_edges(spark, str(tmp_path / "edges.txt"))
    assert rows_of(read.pairs) == [("u", "v"), ("v", "x")]
    assert read.header is None
    read.release()


@pytest.mark.slow
def test_a_million_bad_rows_are_counted_and_kept(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("1 2\n" + "bad\n" * 1_000_000 + "2 3\n")
    read = ingest_edges(spark, str(path))
    assert read.counts.rejected == {edge_lists.TOO_FEW_COLUMNS: 1_000_000}
    assert read.rejected.agg({"row": "max"}).collect()[0][0] == 1_000_001
    read.release()


TABLES = {
    "blanks.csv": b'user, channel\nann , tea\n ann,tea\nann, tea\n\n  \n"bob",\n,"a ""b"""\n"x, y",z\nsolo\na,b,c\n\n',
    "numbers.csv": b"\xef\xbb\xbfuser; channel\r\n1;+7\r\n1;7\r\n\r\n2;-8\r\n3;\r\n0004;00000000000000000000009\r\n",
    "texts.csv": b"user\t channel\n1\t7\n2\t99999999999999999999\n3\t\xff\n\xff\n03\t7\n3\t7\n3\t\xc3\xa9\n",
    "plain.csv.gz": gzip.compress(b"x,user, channel\n" + b"".join(b"-,%d,%d\n" % (n % 50, n % 7) for n in range(500))),
    "t.jsonl": b"""{"user": 1, " channel": "tea"}
{" channel": 7}

rubbish
[1]
{"user": 1.5, " channel": 7}
{"user": true, " channel": 7}
{"user": 3, " channel": ""}
{"user": 3, " channel": 7, "more": {"deep": [1]}}
{"user": 3, " channel": "7"}
\xff
""",
    "numbers.jsonl": b'{"user": 1, " channel": 2}\n{"user": 99999999999999999999, " channel": 2}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_subscriptions_come_in_as_on_one_machine(spark: SparkSession, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(TABLES[name])
    read = ingest_subscriptions(spark, str(path), "user", " channel")
    here = import_subscriptions(path, "table", "user", " channel")
    assert rows_of(read.pairs) == here.interests.pairs()
    assert rows_of(read.rejected) == sorted(here.rejected)
    assert (read.counts.rows, read.counts.duplicates) == (here.rows, here.duplicates)
    assert read.counts.rejected == here.reasons
    with pytest.raises(InvalidTable, match="no column 'topic'"):
        ingest_subscriptions(spark, str(path), "user", "topic")
    read.release()


def test_binary_junk_is_no_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "junk.csv").write_bytes(bytes(range(256)) * 20)
    with pytest.raises(InvalidTable, match=r"junk\.csv: is neither Parquet nor text with a header$"):
        ingest_subscriptions(spark, str(tmp_path / "junk.csv"))


def test_a_quote_has_to_close_in_its_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('node,topic\n1,2\n3,"4\n5,6"\n7,8\n9,"0')
    read = ingest_subscriptions(spark, str(tmp_path / "t.csv"))
    assert rows_of(read.pairs) == [(1, "2"), (5, '6"'), (7, "8")]
    assert [row[1:] for row in rows_of(read.rejected)] == [
        (2, table_lines.OPEN_QUOTE, '3,"4'),
        (5, table_lines.OPEN_QUOTE, '9,"0'),
    ]
    read.release()


def test_parquet_tables_come_in_with_row_numbers(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(1, "a"), (2, None), (1, "a"), (3, "5"), (None, 'say "é"')]
    frame = spark.createDataFrame(rows, "n int, t string").coalesce(1)
    frame.write.parquet(str(tmp_path / "t"))
    read = ingest_subscriptions(spark, str(tmp_path / "t"), "n", "t")
    assert rows_of(read.pairs) == [(1, "a"), (3, "5")]
    assert (read.counts.duplicates, read.counts.rejects) == (1, 2)
    assert rows_of(read.rejected) == import_subscriptions(tmp_path / "t", "table", "n", "t").rejected
    edges = ingest_edges(spark, str(tmp_path / "t"), labels="text")
    assert rows_of(edges.pairs) == [("1", "a"), ("3", "5")]
    read.release()
    edges.release()


def test_citeulike_comes_in_as_its_readme_counts(spark: SparkSession, data: Path) -> None:
    path = data / "citeulike-a_users.dat.gz"
    read, nodes = ingest_adjacency(spark, str(path))
    assert (read.counts.rows, read.counts.kept, read.counts.rejects) == (5551, 204_986, 0)
    assert nodes.count() == 5551
    with gzip.open(path, "rt") as lines:
        slow = {(node, int(topic)) for node, line in enumerate(lines) for topic in line.split()[1:]}
    pairs = read.pairs.toArrow()
    assert set(zip(pairs["node"].to_pylist(), pairs["topic"].to_pylist(), strict=True)) == slow
    assert len({topic for _, topic in slow}) == 16_980
    read.release()


def test_rejects_of_adjacency_lines_leave_their_number_unused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "users.dat"
    path.write_text("2 10 11\n3 1\n 1,12,\nx\n\n+1 3\n0\n\n \n")
    read, nodes = ingest_adjacency(spark, str(path))
    here = import_subscriptions(path, "adjacency")
    assert rows_of(read.pairs) == here.interests.pairs() == [(0, 10), (0, 11), (2, 12)]
    assert rows_of(nodes) == [(0,), (2,), (6,)]
    assert rows_of(read.rejected) == here.rejected
    assert read.counts.rows == here.rows == 7
    read.release()


def test_what_spark_rejects_is_a_table_of_ours(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_bytes(b"1 2\n3\n\xff\n")
    read = ingest_edges(spark, str(tmp_path / "edges.txt"))
    read.rejected.coalesce(1).write.parquet(str(tmp_path / "rejected"))
    columns = read_table(tmp_path / "rejected", ("source_file", "row", "reason", "text"))
    assert len(columns["reason"].codes) == 2
    read.release()

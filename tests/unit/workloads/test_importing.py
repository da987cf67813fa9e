from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omen.errors import InvalidInput, InvalidTable
from omen.interests import Interests
from omen.workloads import import_subscriptions

DATA = Path(os.environ.get("OMEN_DATA", Path(__file__).parents[4] / "shared" / "data"))


def put(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_columns_of_any_name_are_imported(tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv", "when,user,channel\n1,ann,tea\n2,bob,tea\n3,ann,tea\n")
    imported = import_subscriptions(path, node_column="user", topic_column="channel")
    assert imported.interests == Interests.from_pairs([("ann", "tea"), ("bob", "tea")])
    assert (imported.rows, imported.duplicates, imported.rejected) == (3, 1, [])


def test_bad_rows_are_set_aside_with_their_number_reason_and_text(tmp_path: Path) -> None:
    text = b'node,topic,x\na,t,1\n,t,2\n\nb\nc,,"q,r"\nd,t,4,5\ne,\xff\xfe,6\nf,t,7\n\xffg\n'
    imported = import_subscriptions(put(tmp_path / "x.csv", text))
    assert imported.interests.pairs() == [("a", "t"), ("f", "t")]
    assert [tuple(row[1:]) for row in imported.rejected] == [
        (2, "no node", ",t,2"),
        (3, "fewer fields than the header", "b"),
        (4, "no topic", 'c,,"q,r"'),
        (5, "more fields than the header", "d,t,4,5"),
        (6, "not readable as text", "e,\ufffd\ufffd,6"),
        (8, "not readable as text", "\ufffdg"),
    ]
    assert {row.source_file for row in imported.rejected} == {str(tmp_path / "x.csv")}
    assert imported.reasons["not readable as text"] == 2
    assert imported.rows == 8


def test_bad_rows_decide_nothing_about_the_kind_of_labels(tmp_path: Path) -> None:
    imported = import_subscriptions(put(tmp_path / "x.csv", "node,topic\n1,5\nx,\n2,6\ny\n"))
    assert imported.interests.pairs() == [(1, 5), (2, 6)]


def test_parquet_rows_without_labels_are_set_aside(tmp_path: Path) -> None:
    broken = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a", b"\xff", b""]).buffers())
    pq.write_table(pa.table({"node": broken, "topic": [1, 2, None]}), tmp_path / "x.parquet")
    imported = import_subscriptions(tmp_path / "x.parquet")
    assert imported.interests.pairs() == [("a", 1)]
    assert [tuple(row[1:]) for row in imported.rejected] == [
        (2, "not readable as text", '{"node": "\\\\xff", "topic": 2}'),
        (3, "no node", '{"node": "", "topic": null}'),
    ]


def test_json_lines_are_imported(tmp_path: Path) -> None:
    lines = [
        '{"node": 1, "topic": "tea", "more": [1]}',
        "",
        '{"node": 2}',
        '{"node": 2.5, "topic": "tea"}',
        '{"node": true, "topic": "tea"}',
        '{"node": 3, "topic": "\\ud800"}',
        "[1]",
        "{",
        "[" * 100_000,
        '{"node": 12, "topic": "7"}\r',
    ]
    for name, data in (("x.jsonl", "\n".join(lines).encode()), ("x.json.gz", gzip.compress("\n".join(lines).encode()))):
        imported = import_subscriptions(put(tmp_path / name, data))
        assert imported.interests.pairs() == [(1, "tea"), (12, "7")]
        assert [(row.row, row.reason) for row in imported.rejected] == [
            (2, "no topic"),
            (3, "neither a whole number nor text"),
            (4, "neither a whole number nor text"),
            (5, "not readable as text"),
            (6, "not a JSON object"),
            (7, "not a JSON object"),
            (8, "not a JSON object"),
        ]
    mixed = put(tmp_path / "m.jsonl", '{"node": 1, "topic": 18446744073709551616}\n{"node": "1", "topic": 2}\n')
    assert import_subscriptions(mixed).interests.pairs() == [("1", "18446744073709551616"), ("1", "2")]
    with pytest.raises(InvalidTable, match="no column 'topic': its columns are node, subject"):
        import_subscriptions(put(tmp_path / "y.jsonl", '{"node": 1, "subject": 2}\n'))


def test_adjacency_lines_keep_nodes_without_topics(tmp_path: Path) -> None:
    imported = import_subscriptions(put(tmp_path / "x.dat", "2 7 30\n0\n3 7 7 8\r\n1\t30\n\n"), format="adjacency")
    assert imported.interests == Interests.from_pairs([(0, 7), (0, 30), (2, 7), (2, 8), (3, 30)], nodes=range(4))
    assert (imported.rows, imported.duplicates) == (4, 1)


def test_bad_adjacency_lines_leave_the_numbers_of_the_others_alone(tmp_path: Path) -> None:
    text = b"1 a\n2 a\n\nx a\n1 \xff\n0\n1 b"
    imported = import_subscriptions(put(tmp_path / "x.dat", text), format="adjacency")
    assert imported.interests == Interests.from_pairs([(0, "a"), (6, "b")], nodes=[0, 5, 6])
    assert [tuple(row[1:]) for row in imported.rejected] == [
        (2, "the count in front is not the number of topics", "2 a"),
        (3, "no count in front", ""),
        (4, "no count in front", "x a"),
        (5, "not readable as text", "1 \ufffd"),
    ]


def test_files_that_hold_nothing_to_import_are_refused(tmp_path: Path) -> None:
    for text, format in (
        ("node,topic\n", "table"),
        ("node,topic\na\n,b\n", "table"),
        ("", "adjacency"),
        ("x\n", "adjacency"),
    ):
        with pytest.raises(InvalidTable, match=r"no rows in it|none of its \d rows can be used \("):
            import_subscriptions(put(tmp_path / "x.csv", text), format=format)
    with pytest.raises(InvalidTable, match="no such file"):
        import_subscriptions(tmp_path / "nowhere", format="adjacency")
    with pytest.raises(InvalidTable, match="is a folder"):
        import_subscriptions(tmp_path, format="adjacency")
    with pytest.raises(InvalidInput, match="format 'csv' is not one of table, adjacency"):
        import_subscriptions(tmp_path / "x.csv", format="csv")


def test_a_hundred_thousand_bad_rows_are_all_counted(tmp_path: Path) -> None:
    text = "node,topic\n" + ",t\nx\n" * 50_000 + "a,b\n"
    imported = import_subscriptions(put(tmp_path / "x.csv", text))
    assert imported.reasons == {"fewer fields than the header": 50_000, "no node": 50_000}
    assert imported.interests.pairs() == [("a", "b")]
    assert [row.row for row in imported.rejected] == list(range(1, 100_001))


def test_citeulike_has_the_counts_its_source_states() -> None:
    path = DATA / "citeulike-a_users.dat.gz"
    if not path.exists():
        pytest.skip(f"real data is not here: {path.name} is looked for in OMEN_DATA or ../shared/data")
    imported = import_subscriptions(path, format="adjacency")
    interests = imported.interests
    assert (interests.node_count, interests.topic_count, interests.subscription_count) == (5_551, 16_980, 204_986)
    assert imported.rejected == []


def test_labels_with_blanks_around_them_are_counted(tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv", 'node,topic\n ann,tea\nann,tea\n"bob\t",coffee \nann of the hill,7\n')
    imported = import_subscriptions(path)
    assert imported.interests.node_count == 4
    assert imported.padded == {"nodes": 2, "topics": 1}
    assert import_subscriptions(put(tmp_path / "n.csv", "node,topic\n1,2\n")).padded == {}


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_text_of_another_encoding_is_read_where_it_is_named(encoding: str, tmp_path: Path) -> None:
    table = put(tmp_path / "x.csv", "node,topic\nzoë,thé\nrené,thé\n".encode(encoding))
    lines = put(tmp_path / "lines", "1 thé\n2 café thé\n".encode(encoding))
    wanted = [("rené", "thé"), ("zoë", "thé")]
    assert import_subscriptions(table, encoding=encoding).interests.pairs() == wanted
    imported = import_subscriptions(lines, format="adjacency", encoding=encoding)
    assert imported.interests.pairs() == [(0, "thé"), (1, "café"), (1, "thé")]


def test_an_encoding_that_is_not_known_is_refused(tmp_path: Path) -> None:
    for name in ("klingon", "base64"):
        with pytest.raises(InvalidInput, match=name):
            import_subscriptions(put(tmp_path / "x.csv", "node,topic\na,b\n"), encoding=name)

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omen.errors import InvalidTable
from omen.interests import Interests
from omen.tables import read_interests, read_overlay, read_table, read_workload

PAIRS = [("ann", "tea"), ("bob", "tea"), ("bob", "war")]
WORKLOAD = Interests.from_pairs(PAIRS)


def save(path: Path, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def csv_of(pairs: list[tuple[object, object]], header: str = "node,topic") -> str:
    return "\n".join([header, *(f"{a},{b}" for a, b in pairs)]) + "\n"


def refuse(path: Path, *words: str) -> None:
    with pytest.raises(InvalidTable) as caught:
        read_workload(path)
    message = str(caught.value)
    assert "\n" not in message and message.isprintable()
    for word in words:
        assert word in message


def test_the_same_interests_are_read_from_every_form_of_table(tmp_path: Path) -> None:
    nodes, topics = [pair[0] for pair in PAIRS], [pair[1] for pair in PAIRS]
    forms = [
        save(tmp_path / "a.parquet", node=nodes, topic=topics),
        save(tmp_path / "no_suffix", node=nodes, topic=topics),
        save(tmp_path / "large.parquet", node=pa.array(nodes, pa.large_string()), topic=pa.array(topics)),
        save(tmp_path / "dictionary.parquet", node=pa.array(nodes).dictionary_encode(), topic=topics, more=[1, 2, 3]),
        put(tmp_path / "b.csv", csv_of(PAIRS)),
        put(tmp_path / "crlf.csv", csv_of(PAIRS).replace("\n", "\r\n")),
        put(tmp_path / "bom.csv", "\ufeff" + csv_of(PAIRS)),
        put(tmp_path / "no_end.csv", csv_of(PAIRS).rstrip()),
        put(tmp_path / "gaps.csv", "\n\nnode,topic\nann,tea\n\nbob,tea\nbob,war\n\n"),
        put(tmp_path / "quoted.csv", '"node","topic"\n"ann","tea"\nbob,tea\n"bob",war\n'),
        put(tmp_path / "turned.csv", "x,topic,node\n1,tea,ann\n,tea,bob\n2,war,bob\n"),
        put(tmp_path / "tab.csv", csv_of(PAIRS).replace(",", "\t")),
        put(tmp_path / "c.csv.gz", gzip.compress(csv_of(PAIRS).encode())),
    ]
    for form in forms:
        assert read_workload(form).interests == WORKLOAD, form
        if form.suffix:
            assert read_workload(str(form)).duplicates == 0


def test_a_folder_of_parts_is_one_table(tmp_path: Path) -> None:
    for folder, suffix in (("p", "parquet"), ("c", "csv")):
        for part, pairs in (("part-00000", PAIRS[:1]), ("part-00001", PAIRS[1:])):
            path = tmp_path / folder / f"{part}.{suffix}"
            if suffix == "csv":
                put(path, csv_of(pairs))  # type: ignore[arg-type]
            else:
                save(path, node=[a for a, _ in pairs], topic=[b for _, b in pairs])
        put(tmp_path / folder / "_SUCCESS", b"")
        put(tmp_path / folder / f".part-00000.{suffix}.crc", b"\0\1")
        assert read_workload(tmp_path / folder).interests == WORKLOAD
    put(tmp_path / "c" / "part-00002.csv", b"")
    assert read_workload(tmp_path / "c").interests == WORKLOAD
    put(tmp_path / "c" / "part-00003.csv", csv_of([("cid", "")]))
    refuse(tmp_path / "c", "part-00003.csv, row 1", "no topic")


@pytest.mark.parametrize("name", ["interests.csv", "interests.csv.gz", "interests.parquet", "interests/part-0.parquet"])
def test_a_workload_folder_holds_its_tables_in_any_form(tmp_path: Path, name: str) -> None:
    path = tmp_path / "w" / name
    if "parquet" in name:
        save(path, node=["ann"], topic=["tea"])
    else:
        data = b"node,topic\nann,tea\n"
        put(path, gzip.compress(data) if name.endswith("gz") else data)
    put(tmp_path / "w" / "nodes.csv", "node\nann\nbob\n")
    put(tmp_path / "w" / "workload.json", '{"seed": 7}')
    workload = read_workload(tmp_path / "w")
    assert workload.interests == Interests.from_pairs([("ann", "tea")], nodes=["ann", "bob"])
    assert workload.info == {"seed": 7}


def test_two_tables_of_one_name_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "interests.csv", csv_of([]))
    save(tmp_path / "interests.parquet", node=["a"], topic=["b"])
    refuse(tmp_path, "interests.parquet and interests.csv")


def test_a_column_is_numeric_only_if_every_value_is(tmp_path: Path) -> None:
    def labels(*values: str) -> list[object]:
        text = "node,topic\n" + "".join(f"{value},t\n" for value in values)
        return read_interests(put(tmp_path / "x.csv", text))[0].nodes.tolist()  # type: ignore[no-any-return]

    assert labels("10", "9", "-3") == [-3, 9, 10]
    assert labels("+5", "007") == [5, 7]
    assert labels("10", "9", "x") == ["10", "9", "x"]
    assert labels("1", "9223372036854775807") == [1, 2**63 - 1]
    assert labels("1", "9223372036854775808") == ["1", "9223372036854775808"]
    assert labels("1", "-9223372036854775809") == ["-9223372036854775809", "1"]
    for odd in ("1.0", "1e3", "inf", "nan", "0x1F", " 2", "2 ", "--1", "1_0", "٣"):
        assert set(labels("1", odd)) == {"1", odd}
    assert labels("z", "é", "Z", "\U0001f600") == ["Z", "z", "é", "\U0001f600"]


def test_parquet_whole_numbers_of_any_width_are_numbers(tmp_path: Path) -> None:
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()):
        path = save(tmp_path / "x.parquet", node=pa.array([3, 1], kind), topic=["a", "b"])
        assert read_interests(path)[0].nodes.tolist() == [1, 3]
    path = save(tmp_path / "x.parquet", node=pa.array([2**64 - 1, 1], pa.uint64()), topic=["a", "b"])
    assert read_interests(path)[0].nodes.tolist() == ["1", str(2**64 - 1)]


@pytest.mark.parametrize(
    "values", [pa.array([1.0]), pa.array([True]), pa.array([[1]]), pa.array([b"x"]), pa.array([1], pa.timestamp("s"))]
)
def test_parquet_columns_of_other_kinds_are_refused(tmp_path: Path, values: pa.Array) -> None:
    refuse(save(tmp_path / "x.parquet", node=values, topic=["a"]), "column 'node' is", "whole numbers or text")


def test_csv_labels_follow_the_kind_of_the_labels_they_match(tmp_path: Path) -> None:
    save(tmp_path / "nodes.parquet", node=["1", "2"])
    put(tmp_path / "interests.csv", "node,topic\n1,5\n")
    interests = read_workload(tmp_path).interests
    assert interests.nodes.tolist() == ["1", "2"] and interests.topics.tolist() == [5]
    overlay = put(tmp_path / "o.csv", "u,v\n2,1\n")
    assert read_overlay(overlay, interests).links() == [("1", "2")]


def test_labels_numeric_in_one_table_and_text_in_another_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "nodes.parquet", node=["1", "2"])
    path = save(tmp_path / "interests.parquet", node=[1], topic=["x"])
    refuse(tmp_path, "interests.parquet", "holds numbers", "are text")
    path.unlink()
    save(tmp_path / "nodes.parquet", node=[1, 2])
    put(tmp_path / "interests.csv", "node,topic\n1,x\ntwo,x\n")
    refuse(tmp_path, "nodes.parquet", "numbers")
    numbers = Interests.from_pairs([(1, 1), (2, 1)])
    with pytest.raises(InvalidTable, match=r"o\.csv, row 2: v 'x' is text.* are numbers"):
        read_overlay(put(tmp_path / "o.csv", "u,v\n1,2\n1,x\n"), numbers)
    with pytest.raises(InvalidTable, match=r"o\.parquet, row 1: u '1' is text.* are numbers"):
        read_overlay(save(tmp_path / "o.parquet", u=["1"], v=["2"]), numbers)
    with pytest.raises(InvalidTable, match=r"column 'u' holds numbers.* are text"):
        read_overlay(save(tmp_path / "o.parquet", u=[1], v=[2]), WORKLOAD)


def test_parts_that_disagree_on_the_kind_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "x" / "a.parquet", node=[1], topic=["t"])
    save(tmp_path / "x" / "b.parquet", node=["1"], topic=["t"])
    refuse(tmp_path / "x", "numbers in one part and text in another")


def test_bad_rows_are_named_by_file_and_row(tmp_path: Path) -> None:
    refuse(put(tmp_path / "x.csv", "node,topic\na,b\n\n,c\n"), "x.csv, row 2", "no node")
    refuse(put(tmp_path / "x.csv", 'node,topic\na,b\nc,""\n'), "x.csv, row 2", "no topic")
    refuse(put(tmp_path / "x.csv", "node,topic\na,b\nc\nd,\n"), "x.csv, row 2", "fewer fields than the header")
    refuse(put(tmp_path / "x.csv", "node,topic\na,b\nc,d,e\n"), "x.csv, row 2", "more fields than the header")
    refuse(put(tmp_path / "x.csv", b"node,topic\na,b\nc,\xff\xfe\n"), "x.csv, row 2", "not readable as text")
    refuse(put(tmp_path / "x.csv", b"node,topic\na,b\n\xff\n"), "x.csv, row 2", "not readable as text")
    refuse(save(tmp_path / "x.parquet", node=["a", None], topic=["t", "t"]), "x.parquet, row 2", "no node")
    refuse(save(tmp_path / "x.parquet", node=["a", ""], topic=["t", "t"]), "x.parquet, row 2", "no node")
    refuse(save(tmp_path / "x.parquet", node=[1, 2], topic=pa.array([3, None], pa.int64())), "row 2", "no topic")
    refuse(save(tmp_path / "x.parquet", node=pa.nulls(2), topic=[1, 2]), "row 1", "no node")
    broken = pa.Array.from_buffers(pa.string(), 2, pa.array([b"a", b"\xff"]).buffers())
    refuse(save(tmp_path / "x.parquet", node=broken, topic=[1, 2]), "x.parquet, row 2", "not readable as text")


def test_bad_encoding_in_other_columns_is_nobodys_business(tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv", b"node,topic,remark\nann,tea,\xff\nbob,tea,\nbob,war,ok\n")
    assert read_workload(path).interests == WORKLOAD


def test_files_that_are_no_tables_are_refused_in_one_line(tmp_path: Path) -> None:
    refuse(tmp_path / "nowhere", "nowhere", "no such file")
    refuse(tmp_path / "no" / "where.csv", "no such file")
    refuse(put(tmp_path / "x.csv", "user,topic\na,b\n"), "no column 'node'", "user, topic")
    refuse(save(tmp_path / "x.parquet", user=["a"], topic=["b"]), "no column 'node'", "user, topic")
    refuse(put(tmp_path / "x.csv", "node,topic,node\na,b,c\n"), "column 'node' twice")
    refuse(put(tmp_path / "x.csv", ""), "is empty")
    refuse(put(tmp_path / "x.csv", "\n\n"), "is empty")
    refuse(put(tmp_path / "x.parquet", b""), "x.parquet", "cannot be read")
    refuse(put(tmp_path / "x.parquet", b"\x00\xff" * 500), "x.parquet", "cannot be read")
    refuse(put(tmp_path / "x.parquet", b"PAR1" + b"\x00\xff" * 500 + b"PAR1"), "cannot be read")
    refuse(put(tmp_path / "x.csv", bytes(range(256)) * 20), "x.csv", "neither Parquet nor a CSV text")
    refuse(put(tmp_path / "x.csv", csv_of(PAIRS).encode("utf-16")), "UTF-16")  # type: ignore[arg-type]
    packed = gzip.compress(csv_of([(i, i) for i in range(999)]).encode())
    refuse(put(tmp_path / "x.csv.gz", packed[:-20]), "x.csv.gz", "cannot be read")
    refuse(put(tmp_path / "x.csv.gz", packed[:50] + b"\xff" * 50 + packed[100:]), "cannot be read")
    refuse(put(tmp_path / "x.csv", 'node,topic\na,"b\nc,d\ne,f\n'), "a quote is opened and never closed")
    (tmp_path / "empty").mkdir()
    refuse(tmp_path / "empty", "no Parquet or CSV parts")
    save(tmp_path / "deep" / "node=1" / "a.parquet", topic=["x"])
    refuse(tmp_path / "deep", "holds the folder 'node=1'")
    save(tmp_path / "mixed" / "a.parquet", node=["x"], topic=["x"])
    put(tmp_path / "mixed" / "b.csv", csv_of([]))
    refuse(tmp_path / "mixed", "different formats")
    put(tmp_path / "w" / "workload.json", "{}")
    refuse(tmp_path / "w", "without the table 'interests'")
    put(tmp_path / "w" / "interests.csv", csv_of([(1, 1)]))
    for junk in ("[1]", "{", "\udcff".encode("utf-8", "surrogatepass")):
        put(tmp_path / "w" / "workload.json", junk)
        refuse(tmp_path / "w", "workload.json")


def test_doubled_rows_are_merged_and_counted(tmp_path: Path) -> None:
    workload = read_workload(put(tmp_path / "x.csv", csv_of([*PAIRS, PAIRS[0], PAIRS[0]])))  # type: ignore[arg-type]
    assert workload.interests == WORKLOAD and workload.duplicates == 2


def test_a_table_without_rows_is_a_workload_without_nodes(tmp_path: Path) -> None:
    for path in (
        put(tmp_path / "x.csv", "node,topic"),
        save(tmp_path / "x.parquet", node=pa.array([], pa.string()), topic=pa.array([], pa.int64())),
    ):
        interests = read_workload(path).interests
        assert interests.node_count == 0
        assert read_overlay(put(tmp_path / "o.csv", "u,v\n"), interests).link_count == 0
        with pytest.raises(InvalidTable, match="not a node"):
            read_overlay(put(tmp_path / "o.csv", "u,v\n1,2\n"), interests)


def test_interests_of_an_unlisted_node_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "nodes.csv", "node\nann\n")
    put(tmp_path / "interests.csv", csv_of(PAIRS))  # type: ignore[arg-type]
    refuse(tmp_path, "interests.csv, row 2", "node 'bob'", "nodes.csv")


def test_overlay_links_are_merged_whatever_their_direction(tmp_path: Path) -> None:
    path = put(tmp_path / "o.csv", "u,v\nbob,ann\nann,bob\nann,bob\n")
    assert read_overlay(path, WORKLOAD).links() == [("ann", "bob")]
    assert read_overlay(tmp_path / "o", WORKLOAD).links() == [("ann", "bob")]
    put(tmp_path / "run" / "overlay.csv", "u,v\nbob,ann\n")
    assert read_overlay(tmp_path / "run", WORKLOAD).links() == [("ann", "bob")]


def test_overlay_of_unknown_nodes_or_loops_is_refused_with_the_row(tmp_path: Path) -> None:
    with pytest.raises(InvalidTable, match=r"o\.csv, row 2: v 'cid' is not a node of the workload"):
        read_overlay(put(tmp_path / "o.csv", "u,v\nann,bob\nann,cid\ndan,ann\n"), WORKLOAD)
    with pytest.raises(InvalidTable, match=r"o\.csv, row 1: node 'bob' is linked to itself"):
        read_overlay(put(tmp_path / "o.csv", "u,v\nbob,bob\n"), WORKLOAD)
    with pytest.raises(InvalidTable, match=r"o\.parquet, row 1: v 9 is not a node"):
        read_overlay(save(tmp_path / "o.parquet", u=[1], v=[9]), Interests.from_pairs([(1, 1)]))


def test_label_columns_of_any_table_can_be_read(tmp_path: Path) -> None:
    table = read_table(put(tmp_path / "x.csv", "a,b\n3,x\n1,y\n3,x\n"), ("a", "b"), {"b": "text"})
    assert table["a"].labels.tolist() == [1, 3] and table["a"].codes.tolist() == [1, 0, 1]
    assert table["b"].labels.tolist() == ["x", "y"]
    with pytest.raises(InvalidTable, match="row 1: b 'x' is text"):
        read_table(tmp_path / "x.csv", ("b",), {"b": "numbers"})


def test_rows_keep_their_numbers_over_blocks_and_parts(tmp_path: Path) -> None:
    rows = [f"n{i},t{i % 7}" for i in range(5000)]
    rows[4000] = ",t"
    path = put(tmp_path / "x.csv", "node,topic\n" + "\n".join(rows))
    refuse(path, "row 4001", "no node")
    rows[4000] = "n,t"
    interests = read_workload(put(path, "node,topic\n" + "\n".join(rows))).interests
    assert interests.subscription_count == 5000 and np.all(np.diff(interests.node_offsets) == 1)

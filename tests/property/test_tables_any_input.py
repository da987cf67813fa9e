"""No bytes and no table make a reader raise anything but an OmenError, and what is written is read back."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omen.errors import OmenError
from omen.interests import Interests
from omen.overlay import Overlay
from omen.tables import read_overlay, read_workload, write_overlay, write_workload
from omen.workloads import import_subscriptions

NUMBERED = Interests.from_pairs([(i, i % 2) for i in range(5)])
NAMED = Interests.from_pairs([(c, "t") for c in "abc"])
READERS: list[Callable[[Path], object]] = [
    read_workload,
    lambda path: read_overlay(path, NUMBERED),
    lambda path: read_overlay(path, NAMED),
    import_subscriptions,
    lambda path: import_subscriptions(path, format="adjacency"),
]

cells = st.one_of(
    st.sampled_from(
        ["", "a", "b", "1", "2", '"', '"a"', "node", "9" * 25, "-1", "1.5", " ", "\0", "é", "\n", "\r", "{", "["]
    ),
    st.text(max_size=4),
)
csv_text = st.lists(st.lists(cells, max_size=4).map(",".join), max_size=6).map("\n".join)
headers = st.sampled_from(
    ["node,topic\n", "u,v\n", "node,topic,u,v\n", '"node",topic,u,v\r\n', "", "\ufeffnode,topic\n"]
)
tables = st.one_of(
    st.tuples(headers, csv_text).map(lambda parts: "".join(parts).encode(errors="replace")),
    st.tuples(headers, st.binary(max_size=40)).map(lambda parts: parts[0].encode() + parts[1]),
    st.binary(max_size=60),
)
labels = (
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.none(), st.integers(0, 4)),
    st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), st.none(), st.sampled_from("abc")),
)


def read_everything(path: Path) -> None:
    for read in READERS:
        try:
            read(path)
        except OmenError as error:
            assert "\n" not in str(error)


@settings(max_examples=150, deadline=None)
@given(tables, st.sampled_from(["x", "x.csv", "x.csv.gz", "x.parquet", "x.jsonl"]), st.booleans())
@example(b"\x1f\x8b", "x.csv.gz", False)
@example(b"PAR1PAR1", "x", False)
@example(b'node,topic\n"', "x.csv", False)
def test_no_bytes_make_a_reader_crash(data: bytes, name: str, packed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(gzip.compress(data) if packed else data)
        read_everything(path)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_damage_to_a_parquet_file_makes_a_reader_crash(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.parquet"
        pq.write_table(pa.table({"node": ["a", "b"], "topic": [1, 2], "u": ["a", "b"], "v": ["b", "c"]}), path)
        damaged = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(damaged[: data.draw(st.integers(len(damaged) - 9, len(damaged)))])
        read_everything(path)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.lists(labels[0], min_size=3, max_size=3),
            st.lists(labels[1], min_size=3, max_size=3),
            st.lists(st.floats(), min_size=3, max_size=3),
        ),
        min_size=2,
        max_size=2,
    )
)
def test_no_parquet_columns_make_a_reader_crash(columns: list[list[object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for names in (("node", "topic"), ("u", "v")):
            path = Path(folder) / "x.parquet"
            pq.write_table(pa.table(dict(zip(names, columns, strict=True))), path)
            read_everything(path)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.text(min_size=1, max_size=4), st.text(min_size=1, max_size=4)), max_size=8), st.booleans())
def test_what_is_written_is_read_back(pairs: list[tuple[str, str]], numbered: bool) -> None:
    if numbered:
        interests = Interests.from_pairs([(sum(map(ord, a)) - 300, len(b)) for a, b in pairs])
    else:
        pairs = [(a.encode(errors="replace").decode(), b.encode(errors="replace").decode()) for a, b in pairs]
        interests = Interests.from_pairs(pairs)
    links = [(a, b) for a in interests.nodes.tolist() for b in interests.nodes.tolist() if a < b][::2]
    overlay = Overlay.from_links(interests.nodes, links)
    with tempfile.TemporaryDirectory() as folder:
        write_workload(Path(folder) / "w", interests, {})
        assert read_workload(Path(folder) / "w").interests == interests
        for name in ("o.parquet", "p.csv"):
            write_overlay(Path(folder) / name, overlay)
            assert read_overlay(Path(folder) / name, interests) == overlay

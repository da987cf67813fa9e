from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omen.interests import Interests
from omen.overlay import Overlay
from omen.pipeline.grouped import TopicChunk, code_labels, whole_groups
from omen.quality import topic_components, topic_diameters

KEYS = st.lists(st.sampled_from("abcdé"), max_size=40).map(sorted)


@settings(max_examples=150, deadline=None)
@given(KEYS, st.integers(1, 6), st.integers(1, 12))
def test_groups_are_cut_between_keys_and_none_is_lost(keys: list[str], batch_rows: int, at_least: int) -> None:
    table = pa.table({"key": pa.array(keys, pa.string()), "row": np.arange(len(keys))})
    parts = list(whole_groups(table.to_batches(batch_rows), "key", at_least))
    assert [row for part in parts for row in part.column("row").to_pylist()] == list(range(len(keys)))
    seen = [set(part.column("key").to_pylist()) for part in parts]
    assert sum(len(part) for part in seen) == len(set(keys))
    assert all(part.num_rows for part in parts)


@pytest.mark.parametrize("values", [[["b", "a"], [None, "é"]], [[5, -3], [None, 2**62]]])
def test_labels_get_codes_in_label_order(values: list[list[object]]) -> None:
    labels, codes = code_labels([pa.chunked_array([column]) for column in values])
    assert labels.to_pylist() == sorted(labels.to_pylist())
    for column, found in zip(values, codes, strict=True):
        assert [
            labels[code].as_py() for value, code in zip(column, found.tolist(), strict=True) if value is not None
        ] == [value for value in column if value is not None]


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.tuples(st.integers(0, 7), st.integers(0, 4)), min_size=1),
    st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda link: link[0] < link[1])),
)
def test_a_chunk_judges_each_topic_as_the_whole_does(pairs: set[tuple[int, int]], links: set[tuple[int, int]]) -> None:
    interests = Interests.from_pairs(sorted(pairs), nodes=range(8))
    overlay = Overlay.from_links(range(8), links)
    wants = {node: {topic for other, topic in pairs if other == node} for node in range(8)}
    rows: list[tuple[int, int, int | None]] = [(topic, node, None) for node, topic in pairs]
    rows += [(topic, u, v) for u, v in links for topic in wants[u] & wants[v]]
    rows.sort(key=lambda row: row[0])
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    chunk = TopicChunk.from_table(pa.table(columns, names=["topic", "u", "v"]))
    assert chunk.topics.to_pylist() == interests.topics.tolist()
    assert chunk.labels.take(pa.array(chunk.node_codes)).to_pylist() == interests.topic_nodes.tolist()
    components = topic_components(interests, overlay)
    assert np.array_equal(topic_components(chunk.interests, chunk.overlay), components)
    connected = components == 1
    assert np.array_equal(topic_diameters(*chunk.only(connected)), topic_diameters(interests, overlay)[connected])

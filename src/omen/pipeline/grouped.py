"""Whole groups of rows at a time inside Spark's workers, and whole topics as arrays the kernels take.

Rows are repartitioned and sorted by their group (a topic, a node) and handed over as Arrow batches; here they are cut
between groups, so that one call of a kernel serves thousands of small groups or a single large one. A group has to fit
into the memory of a worker: some 100 bytes per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omen.interests import Interests
from omen.overlay import Overlay

CHUNK_ROWS = 1 << 20


def whole_groups(batches: Iterable[pa.RecordBatch], key: str, at_least: int = CHUNK_ROWS) -> Iterator[pa.Table]:
    """Tables of whole groups, from batches sorted by the column `key`; given out once `at_least` rows are held."""
    held: list[pa.RecordBatch] = []
    rows, cut = 0, 0  # rows held, and where the last group among them begins
    last: Any = None
    for batch in batches:
        if not batch.num_rows:
            continue
        runs = pc.run_end_encode(batch.column(key))
        if len(runs.run_ends) > 1:
            cut = rows + runs.run_ends[len(runs.run_ends) - 2].as_py()
        elif held and runs.values[0] != last:
            cut = rows
        last = runs.values[len(runs.values) - 1]
        held.append(batch)
        rows += batch.num_rows
        if rows >= at_least and cut:
            table = pa.Table.from_batches(held)
            yield table.slice(0, cut)
            held = table.slice(cut).to_batches()
            rows, cut = rows - cut, 0
    if held:
        yield pa.Table.from_batches(held)


def code_labels(columns: list[pa.ChunkedArray]) -> tuple[pa.Array, list[npt.NDArray[np.int64]]]:
    """(the labels in all columns, sorted, no doubles; for each column its codes into them, 0 for a null)."""
    kind = pa.large_string() if pa.types.is_string(columns[0].type) else columns[0].type
    chunks = [chunk.cast(kind) for column in columns for chunk in column.chunks]
    encoded = pa.concat_arrays(chunks).dictionary_encode() if chunks else pa.array([], kind).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    codes = ranks[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)] if len(order) else np.empty(0, np.int64)
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return encoded.dictionary.take(pa.array(order)), np.split(codes, ends)


def group_codes(table: pa.Table, key: str) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """(label of each group, group of each row) of a table whose groups stand together."""
    runs = pc.run_end_encode(_one_array(table.column(key)))
    lengths = np.diff(runs.run_ends.to_numpy(), prepend=0)
    return runs.values, np.repeat(np.arange(lengths.size, dtype=np.int64), lengths)


@dataclass(frozen=True)
class TopicChunk:
    """Whole topics side by side: every subscription is a vertex of its own, so topics share none.

    `interests` and `overlay` are over these vertices, which stand in label order within their topic, topic after topic.
    The subgraph of a topic is then the one it has in the whole overlay, and whatever takes an instance takes a chunk.
    """

    topics: pa.Array
    labels: pa.Array  # of nodes, sorted
    node_codes: npt.NDArray[np.int64]  # the node behind each vertex, as a place in `labels`
    interests: Interests
    overlay: Overlay

    @classmethod
    def from_table(cls, table: pa.Table) -> TopicChunk:
        """From rows (topic, u, v), equal topics together: a subscription of u where v is null, else a link."""
        topics, rows_topic = group_codes(table, "topic")
        labels, (u, v) = code_labels([table.column("u"), table.column("v")])
        stride = max(len(labels), 1)
        is_link = table.column("v").is_valid().to_numpy(zero_copy_only=False)
        vertices = np.unique((rows_topic * stride + u)[~is_link])
        base = rows_topic[is_link] * stride
        link_u = np.searchsorted(vertices, base + u[is_link])
        link_v = np.searchsorted(vertices, base + v[is_link])
        topic_codes, node_codes = np.divmod(vertices, stride)
        interests = disjoint_interests(topic_codes, len(topics))
        overlay = Overlay.from_codes(interests.nodes, link_u, link_v)
        return cls(topics, labels, node_codes, interests, overlay)

    def only(self, wanted: npt.NDArray[np.bool_]) -> tuple[Interests, Overlay]:
        """The wanted topics alone, vertices numbered anew."""
        codes = self.interests.node_topics
        kept = wanted[codes]
        places = np.cumsum(kept) - 1
        interests = disjoint_interests((np.cumsum(wanted) - 1)[codes[kept]], int(wanted.sum()))
        links = kept[self.overlay.u]
        overlay = Overlay.from_codes(interests.nodes, places[self.overlay.u[links]], places[self.overlay.v[links]])
        return interests, overlay


def disjoint_interests(topic_codes: npt.NDArray[np.int64], topic_count: int) -> Interests:
    """Vertex i wants topic topic_codes[i], and nothing else; the codes ascend."""
    n = topic_codes.size
    return Interests(
        nodes=np.arange(n, dtype=np.int64),
        topics=np.arange(topic_count, dtype=np.int64),
        node_offsets=np.arange(n + 1, dtype=np.int64),
        node_topics=topic_codes.astype(np.int32),
        topic_offsets=np.searchsorted(topic_codes, np.arange(topic_count + 1)).astype(np.int64),
        topic_nodes=np.arange(n, dtype=np.int32),
    )


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined

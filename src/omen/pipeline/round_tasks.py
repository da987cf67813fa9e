"""What Spark's workers do in a round: whole partitions of rows as arrays, and the kernels of the rounds of one machine.

Rows are spread by Spark by a key (a node, a part, a topic), and taken in as they come: sorting them here takes less
time than in Spark. A partition has to fit into the memory of a worker: some 50 bytes per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omen.design.rounds import PartNodes, PartRows, Rounds, choose_in_part, part_rows_of
from omen.design.schedule import Step

Ints = npt.NDArray[np.int32]

CONNECTED = -1  # instead of a label: all of the topic is one piece now
LINK, MERGE = 0, 1
RELABEL, TOPIC = 0, 1
_SIGN = np.uint64(1 << 63)


def gather(batches: Iterable[pa.RecordBatch], *names: str) -> list[Ints] | None:
    """These columns of a whole partition; None where it is empty."""
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return None
    table = pa.Table.from_batches(held)
    return [table.column(name).to_numpy().astype(np.int32, copy=False) for name in names]


def batch_of(**columns: npt.NDArray[np.generic]) -> pa.RecordBatch:
    """The columns as one batch."""
    return pa.RecordBatch.from_pydict({name: pa.array(np.ascontiguousarray(c)) for name, c in columns.items()})


def begins(ascending: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
    """Where each group of equal values begins, and the end."""
    new = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1
    return np.concatenate(([0], new, [ascending.size])).astype(np.int64)


@dataclass(frozen=True)
class Keys:
    """(node, topic) to (node, first, second): the words by which nodes are divided, as signed numbers of one order."""

    seed: int
    alike: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from omen.kernels.rounds import division_keys

        found = gather(batches, "node", "topic")
        if found is None:
            return
        nodes, topics = found
        order = np.argsort(nodes, kind="stable")
        offsets = begins(nodes[order])
        names = nodes[order][offsets[:-1]]
        keys = (division_keys(offsets, topics[order], names, np.uint64(self.seed), self.alike) ^ _SIGN).view(np.int64)
        yield batch_of(node=names, first=keys[:, 0], second=keys[:, 1])


@dataclass(frozen=True)
class Engine:
    """(part, node, degree, topic, label, alone) to (kind, a, b, c): links (u, v, 0), merges (topic, label, into)."""

    step: Step
    settings: Rounds
    max_degree: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = gather(batches, "part", "node", "degree", "topic", "label", "alone")
        if found is None:
            return
        order = np.lexsort((found[3], found[1], found[0]))
        part, node, degree, topic, label, alone = (column[order] for column in found)
        cuts = begins(part)
        for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            yield self.run(*(column[start:end] for column in (node, degree, topic, label, alone)))

    def run(self, node: Ints, degree: Ints, topic: Ints, label: Ints, alone: Ints) -> pa.RecordBatch:
        """One part, its rows sorted by node and topic."""
        offsets = begins(node)
        names = node[offsets[:-1]]
        topics, codes = np.unique(topic, return_inverse=True)
        pieces = np.unique(label, return_inverse=True)[1].astype(np.int32)
        everyone = np.arange(names.size, dtype=np.int32)
        rows = part_rows_of(everyone, offsets, codes.astype(np.int32), pieces, topics.size)
        lonely = np.add.reduceat(alone, offsets[:-1], dtype=np.int32)
        present = PartNodes(degree[offsets[:-1]], lonely, self.max_degree)
        links = choose_in_part(rows, present, self.step, self.settings)
        merged, into = merges_of(links, rows, offsets, codes.astype(np.int32), label)
        ends = names[links]
        kinds = np.repeat(np.array([LINK, MERGE], np.int32), [len(links), merged.size])
        return batch_of(
            kind=kinds,
            a=np.concatenate((ends[:, 0], topic[merged])),
            b=np.concatenate((ends[:, 1], label[merged])),
            c=np.concatenate((np.zeros(len(links), np.int32), label[into])),
        )


def merges_of(
    links: Ints, rows: PartRows, offsets: npt.NDArray[np.int64], topics: Ints, labels: Ints
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Places of components that links merged, and places of those they became part of."""
    from omen.kernels.rounds import merge_components

    key = topics.astype(np.int64) << 32 | labels
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    forest = first[group].astype(np.int32)  # the lowest place of the component: places ascend with nodes
    merge_components(links, offsets, topics, forest, np.empty(len(links), np.int32))
    into = forest[first]
    while (forest[into] != into).any():
        into = forest[into]
    moved = into != first
    return first[moved], into[moved]


class Merges:
    """(topic, label, into, pieces) to (kind, topic, label, into): labels that change, and pieces of each topic.

    A row is a merge, or, with pieces above 0, a topic that is still split. Where a topic is one piece now, its labels
    become CONNECTED: all of them are here, since each was merged in this round.
    """

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from omen.kernels.label_merges import join_pairs

        found = gather(batches, "topic", "label", "into", "pieces")
        if found is None:
            return
        topic, label, into, pieces = found
        is_topic = pieces > 0
        order = np.argsort(topic[is_topic])
        topics, left = topic[is_topic][order], pieces[is_topic][order]
        topic, label, into = topic[~is_topic], label[~is_topic], into[~is_topic]
        high = topic.astype(np.int64) << 32
        keys, codes = np.unique(np.concatenate((high | label, high | into)), return_inverse=True)
        ones, others = np.split(codes.astype(np.int32), 2)
        roots = join_pairs(np.ascontiguousarray(ones), np.ascontiguousarray(others), keys.size)
        owner = np.searchsorted(topics, (keys >> 32).astype(np.int32))
        removed = np.bincount(owner[roots != np.arange(keys.size)], minlength=topics.size)
        left = (left - removed).astype(np.int32)
        names = (keys & (2**32 - 1)).astype(np.int32)
        target = np.where(left[owner] == 1, CONNECTED, names[roots]).astype(np.int32)
        yield batch_of(
            kind=np.repeat(np.array([RELABEL, TOPIC], np.int32), [keys.size, topics.size]),
            topic=np.concatenate(((keys >> 32).astype(np.int32), topics)),
            label=np.concatenate((names, np.zeros(topics.size, np.int32))),
            into=np.concatenate((target, left)),
        )


@dataclass(frozen=True)
class Proposals:
    """(topic, node, label, degree, room) to (u, v, word): what whole topics propose in a sub-round."""

    seed: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from omen.kernels.rounds import link_words, propose_links

        found = gather(batches, "topic", "node", "label", "degree", "room")
        if found is None:
            return
        order = np.lexsort((found[1], found[0]))
        topic, node, label, degree, room = (column[order] for column in found)
        names, first, codes = np.unique(node, return_index=True, return_inverse=True)
        pieces = np.unique(label, return_inverse=True)[1].astype(np.int32)
        seed = np.uint64(self.seed)
        arrays = (names, degree[first], room[first])
        links = propose_links(begins(topic), codes.astype(np.int32), pieces, *arrays, seed)
        u, v = names[links[:, 0]], names[links[:, 1]]
        yield batch_of(u=u, v=v, word=link_words(u, v, seed).view(np.int64))

"""Who wants which topic.

Nodes and topics are known inside by codes 0..n-1, given in label order (numbers by value, strings by code point), so
that "the lowest node" of the papers' tie rules is the lowest label. Labels appear only at the edge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput

if TYPE_CHECKING:
    import networkx
    import pandas

Label = int | str
Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Labels = npt.NDArray[Any]  # int64, or object holding str; sorted, no doubles

_INT64 = np.iinfo(np.int64)


def label_array(values: Iterable[Any] | npt.NDArray[Any], what: str = "label") -> Labels:
    """Values as an int64 array, or as an object array of str; anything else, or a mixture, is refused."""
    array = values if isinstance(values, np.ndarray) else np.array(list(values), dtype=object)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and int(array.max()) > _INT64.max:
            raise InvalidInput(f"{what} {int(array.max())} is beyond 64 bits: use text labels")
        return array.astype(np.int64)
    if array.dtype.kind in "UT":
        return array.astype(object)
    kinds = {type(value) for value in array.tolist()}
    if kinds == {str}:
        return array.astype(object, copy=False)
    if all(issubclass(kind, str) for kind in kinds):
        return np.array([str(value) for value in array.tolist()], dtype=object)
    if all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        try:
            return array.astype(np.int64)
        except OverflowError:
            raise InvalidInput(f"a {what} is beyond 64 bits: use text labels") from None
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InvalidInput(f"{what}s must be all whole numbers or all text, found {names}")


def plain(labels: Labels, code: int) -> Label:
    """One label as a plain int or str, as messages show it."""
    label: Label = labels[[code]].tolist()[0]
    return label


def encode(labels: Labels, values: Labels) -> npt.NDArray[np.int64]:
    """The code of each value in the sorted `labels`, -1 where it is not among them."""
    if labels.size == 0 or values.size == 0 or labels.dtype != values.dtype:
        return np.full(values.size, -1, dtype=np.int64)
    codes = np.searchsorted(labels, values)
    codes[codes == labels.size] = 0
    codes[labels[codes] != values] = -1
    return codes.astype(np.int64)


def label_keys(labels: Labels) -> npt.NDArray[np.uint64]:
    """A 64-bit key for each label that depends on the label alone: what randomness is keyed by wherever it runs."""
    if labels.dtype != object:
        return labels.astype(np.int64).view(np.uint64)
    digests = b"".join(
        hashlib.blake2b(label.encode("utf-8", "surrogatepass"), digest_size=8).digest() for label in labels
    )
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def distinct(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The keys sorted, each once. By sorting: numpy's `unique` hashes, which takes many times as long on millions."""
    ordered = np.sort(keys)
    first = np.ones(ordered.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def group(keys: npt.NDArray[Any], values: npt.NDArray[Any], groups: int) -> tuple[Offsets, Codes]:
    """Compressed rows: values of key k, ascending, stand at values[offsets[k]:offsets[k + 1]]. Both are codes."""
    span = int(values.max(initial=0)) + 1
    ordered = np.sort(keys.astype(np.int64) * span + values)
    offsets = np.zeros(groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=groups), out=offsets[1:])
    return offsets, (ordered % span).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Interests:
    """The interest relation, as compressed rows both ways. Make one with `from_pairs` or `from_codes`."""

    nodes: Labels
    topics: Labels
    node_offsets: Offsets
    node_topics: Codes
    topic_offsets: Offsets
    topic_nodes: Codes

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[tuple[Label, Label]] | tuple[npt.NDArray[Any], npt.NDArray[Any]],
        nodes: Iterable[Label] | None = None,
    ) -> Interests:
        """From (node, topic) pairs, or two equally long arrays. Doubles are merged.

        `nodes` names all nodes, those without topics among them; left out, the nodes are those of the pairs.

        >>> Interests.from_pairs([("ann", "tea"), ("bob", "tea")], nodes=["ann", "bob", "cid"]).node_count
        3
        """
        node_values, topic_values = _columns(pairs)
        if nodes is None:
            node_labels, node_codes = np.unique(node_values, return_inverse=True)
        else:
            node_labels = np.unique(label_array(nodes, "node"))
            node_codes = encode(node_labels, node_values)
            if node_codes.size and node_codes.min() < 0:
                missing = plain(node_values, int(np.argmin(node_codes)))
                raise InvalidInput(f"node {missing!r} has topics but is not among the nodes given")
        topic_labels, topic_codes = np.unique(topic_values, return_inverse=True)
        return cls.from_codes(node_labels, topic_labels, node_codes, topic_codes)

    @classmethod
    def from_codes(
        cls, nodes: Labels, topics: Labels, node_codes: npt.NDArray[Any], topic_codes: npt.NDArray[Any]
    ) -> Interests:
        """From sorted labels and pairs of codes into them. Doubles are merged."""
        pair_keys = node_codes.astype(np.int64) * max(topics.size, 1) + topic_codes.astype(np.int64)
        node_codes, topic_codes = np.divmod(distinct(pair_keys), max(topics.size, 1))
        node_offsets, node_topics = group(node_codes, topic_codes, nodes.size)
        topic_offsets, topic_nodes = group(topic_codes, node_codes, topics.size)
        return cls(nodes, topics, node_offsets, node_topics, topic_offsets, topic_nodes)

    @classmethod
    def from_pandas(cls, frame: pandas.DataFrame, node: str = "node", topic: str = "topic") -> Interests:
        """From two columns of a pandas table."""
        for column in (node, topic):
            if column not in frame.columns:
                raise InvalidInput(f"the table has no column {column!r}: it has {', '.join(map(str, frame.columns))}")
            if frame[column].isna().any():
                raise InvalidInput(f"column {column!r} holds missing values")
        return cls.from_pairs((frame[node].to_numpy(), frame[topic].to_numpy()))

    def to_pandas(self) -> pandas.DataFrame:
        """The pairs as a table with the columns node and topic, sorted."""
        import pandas

        nodes, topics = self.pair_codes
        return pandas.DataFrame({"node": self.nodes[nodes], "topic": self.topics[topics]})

    def to_networkx(self) -> networkx.Graph:
        """The bipartite graph of ("node", label) and ("topic", label) vertices."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from((("node", label) for label in self.nodes.tolist()), bipartite=0)
        graph.add_nodes_from((("topic", label) for label in self.topics.tolist()), bipartite=1)
        graph.add_edges_from((("node", node), ("topic", topic)) for node, topic in self.pairs())
        return graph

    @property
    def node_count(self) -> int:
        """How many nodes there are, those without topics included."""
        return int(self.nodes.size)

    @property
    def topic_count(self) -> int:
        """How many topics there are."""
        return int(self.topics.size)

    @property
    def subscription_count(self) -> int:
        """How many pairs of a node and a topic there are."""
        return int(self.node_topics.size)

    def counts(self) -> dict[str, int]:
        """How many nodes, topics and subscriptions there are."""
        return {"nodes": self.node_count, "topics": self.topic_count, "subscriptions": self.subscription_count}

    @cached_property
    def pair_codes(self) -> tuple[Codes, Codes]:
        """(node codes, topic codes) of all subscriptions, sorted by node, then topic."""
        nodes = np.repeat(np.arange(self.node_count, dtype=np.int32), np.diff(self.node_offsets))
        return nodes, self.node_topics

    def pairs(self) -> Sequence[tuple[Label, Label]]:
        """All subscriptions as (node label, topic label), sorted."""
        nodes, topics = self.pair_codes
        return list(zip(self.nodes[nodes].tolist(), self.topics[topics].tolist(), strict=True))

    def topics_by_node(self) -> dict[Label, list[Label]]:
        """The topics of each node, by label."""
        topics = self.topics[self.node_topics].tolist()
        ends = self.node_offsets.tolist()
        return {label: topics[ends[code] : ends[code + 1]] for code, label in enumerate(self.nodes.tolist())}

    def first_nodes(self, count: int) -> Interests:
        """The interests of the first nodes in label order; topics that none of them wants are left out."""
        kept = int(self.node_offsets[count])
        nodes, topics = self.pair_codes
        return Interests.from_pairs(
            (self.nodes[nodes[:kept]], self.topics[topics[:kept]]), nodes=self.nodes[:count].tolist()
        )

    def topics_of(self, node: int) -> Codes:
        """The topic codes of a node code, ascending."""
        return self.node_topics[self.node_offsets[node] : self.node_offsets[node + 1]]

    def subscribers_of(self, topic: int) -> Codes:
        """The node codes of a topic code, ascending."""
        return self.topic_nodes[self.topic_offsets[topic] : self.topic_offsets[topic + 1]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interests):
            return NotImplemented
        return (
            np.array_equal(self.nodes, other.nodes)
            and np.array_equal(self.topics, other.topics)
            and np.array_equal(self.node_offsets, other.node_offsets)
            and np.array_equal(self.node_topics, other.node_topics)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays: compared by content, never a key

    def __repr__(self) -> str:
        return f"Interests({self.node_count} nodes, {self.topic_count} topics, {self.subscription_count} subscriptions)"


def _columns(pairs: Iterable[tuple[Any, Any]] | tuple[npt.NDArray[Any], npt.NDArray[Any]]) -> tuple[Labels, Labels]:
    if isinstance(pairs, tuple) and len(pairs) == 2 and isinstance(pairs[0], np.ndarray):
        nodes, topics = pairs
        if len(nodes) != len(topics):
            raise InvalidInput(f"{len(nodes)} nodes but {len(topics)} topics: the columns must be equally long")
    else:
        rows: list[Any] = list(pairs)
        if any(not isinstance(row, (tuple, list)) or len(row) != 2 for row in rows):
            raise InvalidInput("each pair must hold exactly a node and a topic")
        nodes = np.array([row[0] for row in rows], dtype=object)
        topics = np.array([row[1] for row in rows], dtype=object)
    return label_array(nodes, "node"), label_array(topics, "topic")

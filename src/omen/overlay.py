"""Who is linked to whom: an undirected graph over the nodes, without loops or doubles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput
from omen.interests import Codes, Label, Labels, Offsets, distinct, encode, group, label_array, plain

if TYPE_CHECKING:
    import networkx
    import pandas


@dataclass(frozen=True, eq=False)
class Overlay:
    """Links between nodes, each once as codes u < v, sorted by (u, v). `nodes` are the labels, as in `Interests`."""

    nodes: Labels
    u: Codes
    v: Codes

    @classmethod
    def from_codes(cls, nodes: Labels, u: npt.NDArray[Any], v: npt.NDArray[Any]) -> Overlay:
        """From pairs of codes in any order and direction. Doubles are merged, loops refused."""
        low = np.minimum(u, v).astype(np.int64)
        high = np.maximum(u, v).astype(np.int64)
        if low.size and (low.min() < 0 or high.max() >= nodes.size):
            raise InvalidInput("a link names a node that does not exist")
        loops = np.flatnonzero(low == high)
        if loops.size:
            raise InvalidInput(f"node {plain(nodes, int(low[loops[0]]))!r} is linked to itself")
        keys = distinct(low * max(nodes.size, 1) + high)
        low, high = np.divmod(keys, max(nodes.size, 1))
        return cls(nodes, low.astype(np.int32), high.astype(np.int32))

    @classmethod
    def from_links(cls, nodes: Iterable[Label] | Labels, links: Iterable[tuple[Label, Label]]) -> Overlay:
        """From pairs of labels.

        >>> Overlay.from_links(["ann", "bob"], [("bob", "ann")]).links()
        [('ann', 'bob')]
        """
        labels = np.unique(label_array(nodes, "node"))
        pairs = list(links)
        if any(len(pair) != 2 for pair in pairs):
            raise InvalidInput("each link must hold exactly two nodes")
        ends = label_array([end for pair in pairs for end in pair], "node")
        codes = encode(labels, ends)
        if codes.size and codes.min() < 0:
            missing = plain(ends, int(np.argmin(codes)))
            raise InvalidInput(f"a link names node {missing!r}, which is not among the nodes")
        return cls.from_codes(labels, codes[0::2], codes[1::2])

    @classmethod
    def from_networkx(cls, graph: networkx.Graph) -> Overlay:
        """From a networkx graph of any kind; its vertices are the node labels, parallel edges are one link."""
        return cls.from_links(graph.nodes, graph.edges())

    @classmethod
    def from_pandas(cls, frame: pandas.DataFrame, nodes: Iterable[Label] | Labels) -> Overlay:
        """From a table with the columns u and v."""
        for column in ("u", "v"):
            if column not in frame.columns:
                raise InvalidInput(f"the table has no column {column!r}: it has {', '.join(map(str, frame.columns))}")
        return cls.from_links(nodes, zip(frame["u"].tolist(), frame["v"].tolist(), strict=True))

    def to_networkx(self) -> networkx.Graph:
        """The graph of the nodes and their links, by label."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(self.nodes.tolist())
        graph.add_edges_from(self.links())
        return graph

    def to_pandas(self) -> pandas.DataFrame:
        """A table with the columns u and v, sorted."""
        import pandas

        return pandas.DataFrame({"u": self.nodes[self.u], "v": self.nodes[self.v]})

    @property
    def node_count(self) -> int:
        """How many nodes there are, those without links included."""
        return int(self.nodes.size)

    @property
    def link_count(self) -> int:
        """How many links there are."""
        return int(self.u.size)

    @cached_property
    def degrees(self) -> Codes:
        """Links of each node."""
        ends = np.concatenate((self.u, self.v))
        return np.bincount(ends, minlength=self.node_count).astype(np.int32)

    @cached_property
    def adjacency(self) -> tuple[Offsets, Codes]:
        """Compressed rows of neighbours, each row ascending."""
        return group(np.concatenate((self.u, self.v)), np.concatenate((self.v, self.u)), self.node_count)

    def neighbours_of(self, node: int) -> Codes:
        """The codes of the nodes linked to the node of this code."""
        offsets, neighbours = self.adjacency
        return neighbours[offsets[node] : offsets[node + 1]]

    def links(self) -> list[tuple[Label, Label]]:
        """All links as pairs of labels, sorted."""
        return list(zip(self.nodes[self.u].tolist(), self.nodes[self.v].tolist(), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Overlay):
            return NotImplemented
        return (
            np.array_equal(self.nodes, other.nodes)
            and np.array_equal(self.u, other.u)
            and np.array_equal(self.v, other.v)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays: compared by content, never a key

    def __repr__(self) -> str:
        return f"Overlay({self.node_count} nodes, {self.link_count} links)"

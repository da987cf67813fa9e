"""The one way in to the greedy engine: an instance in, links out.

GM, MinMax-ODA, Low-ODA and every repair are one loop over components (`choose_links`), GM2 is the same loop over blocks
(`choose_block_links`). This module loads no compiled code: each call loads what it needs, the first one waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Codes = npt.NDArray[np.int32]
    Offsets = npt.NDArray[np.int64]

ALL_PAIRS = -1
OF_INSTANCE = -1


class InterestRows(Protocol):
    """Who wants which topic, as compressed rows both ways; codes ascend within a row. `Interests` are such rows."""

    @property
    def node_offsets(self) -> Offsets: ...
    @property
    def node_topics(self) -> Codes: ...
    @property
    def topic_offsets(self) -> Offsets: ...
    @property
    def topic_nodes(self) -> Codes: ...


@dataclass(frozen=True, slots=True)
class Rows:
    """Interest rows of some nodes and some topics alone."""

    node_offsets: Offsets
    node_topics: Codes
    topic_offsets: Offsets
    topic_nodes: Codes


@dataclass(frozen=True, slots=True)
class Instance:
    """The nodes and topics concerned, and what is connected already.

    `labels`, parallel to `rows.topic_nodes`: the component of that subscriber in that topic; equal means connected.
    Small numbers from 0. `degrees`: the present ones. `max_degree`: that of the whole overlay, where it is more than
    any in `degrees`.
    """

    rows: InterestRows
    labels: Codes
    degrees: Codes
    max_degree: int = OF_INSTANCE


@dataclass(frozen=True, slots=True)
class Tuning:
    """Where the paths inside the engine part. Results do not depend on it, only time and memory do.

    `cache_length`: candidates that a row keeps, at least 1. `dense_divisor`: topics of more than nodes / dense_divisor
    subscribers are compared as dense rows; 0 for none, negative for rows of 32 bits where 16 suffice. `small_nodes`: up
    to here the engine counts all pairs directly.
    """

    cache_length: int = 64
    dense_divisor: int = 12
    small_nodes: int = 64


TUNED = Tuning()


def unlinked(rows: InterestRows) -> Instance:
    """The instance of an overlay without links: every subscriber is its own component."""
    import numpy as np

    from omen.kernels.greedy import fresh_labels

    return Instance(rows, fresh_labels(rows.topic_offsets), np.zeros(rows.node_offsets.size - 1, np.int32))


def choose_links(instance: Instance, rho: float, centre: int = ALL_PAIRS, tuning: Tuning = TUNED) -> Codes:
    """The links that connect every topic as far as the candidate pairs allow: rows (u, v), u < v, in the order chosen.

    `rho`: how many times better a link must be to raise the maximum degree; below 1 the degree never decides (GM),
    infinity is MinMax-ODA. `centre`: only pairs with this node are candidates. See `greedy.greedy_links`.
    """
    from omen.kernels.greedy import greedy_links

    rows = instance.rows
    return greedy_links(
        rows.node_offsets,
        rows.node_topics,
        rows.topic_offsets,
        rows.topic_nodes,
        instance.labels,
        instance.degrees,
        instance.max_degree,
        rho,
        centre,
        tuning.cache_length,
        tuning.dense_divisor,
        tuning.small_nodes,
    )


def choose_block_links(rows: InterestRows, tuning: Tuning = TUNED) -> Codes:
    """The links that make every topic one block (GM2), in the order chosen: see `biconnected.gm2_links`."""
    from omen.kernels.biconnected import gm2_links

    return gm2_links(
        rows.node_offsets,
        rows.node_topics,
        rows.topic_offsets,
        rows.topic_nodes,
        tuning.cache_length,
        tuning.dense_divisor,
    )

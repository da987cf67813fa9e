"""The one way in to the greedy engine: an instance in, links out.

GM, MinMax-ODA, Low-ODA and every repair are one loop over components (`choose_links`), GM2 is the same loop over blocks
(`choose_block_links`). `choose_ruled_links` is the first of them for fleets with rules about pairs. This module loads
no compiled code: each call loads what it needs, the first one waits for it. `choose_small` never does: it is for those
who cannot wait, and takes the compiled engine only where that is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Protocol

from omen.kernels import small, small_ruled
from omen.kernels.small_ruled import NO_LIMIT as NO_LIMIT
from omen.kernels.small_ruled import LinkLimits as LinkLimits

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Codes = npt.NDArray[np.int32]
    Offsets = npt.NDArray[np.int64]

ALL_PAIRS = -1
OF_INSTANCE = -1
BARRED = -2
SMALL_STEPS = 100_000  # the small engine takes a tenth of a second for them

_loaded = Event()


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
    any in `degrees`. `caps`: the most links each node may have; None where nothing limits them.
    """

    rows: InterestRows
    labels: Codes
    degrees: Codes
    max_degree: int = OF_INSTANCE
    caps: Codes | None = None


@dataclass(frozen=True, slots=True)
class PairRules:
    """The cost group of every pair, 0, 1, ... from cheap to dear; BARRED where it is no candidate.

    A pair has the group of the zones of its ends, unless it stands in `nodes`: compressed rows of the pairs (u, v),
    u < v, with a group of their own. `sigma`: how many times as much a dearer link must contribute.
    """

    zones: Codes
    zone_groups: Codes  # zones x zones
    offsets: Offsets
    nodes: Codes
    groups: Codes
    sigma: float = 1.0


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


def choose_links(
    instance: Instance,
    rho: float,
    centre: int = ALL_PAIRS,
    tuning: Tuning = TUNED,
    least: int = 1,
    raising: int = 1,
) -> Codes:
    """The links that connect every topic as far as the candidate pairs allow: rows (u, v), u < v, in the order chosen.

    `rho`: how many times better a link must be to raise the maximum degree; below 1 the degree never decides (GM),
    infinity is MinMax-ODA. `centre`: only pairs with this node are candidates. `least`: the smallest contribution worth
    a link; `raising`: the same for links of a node that has the maximum degree. See `greedy.greedy_links`.
    """
    from omen.kernels.greedy import greedy_links

    return greedy_links(
        *_arrays(instance),
        instance.max_degree,
        least,
        raising,
        rho,
        centre,
        tuning.cache_length,
        tuning.dense_divisor,
        tuning.small_nodes,
    )


def _arrays(instance: Instance) -> tuple[Offsets, Codes, Offsets, Codes, Codes, Codes, Codes]:
    import numpy as np

    rows = instance.rows
    caps = np.empty(0, np.int32) if instance.caps is None else instance.caps
    shape = (rows.node_offsets, rows.node_topics, rows.topic_offsets, rows.topic_nodes)
    return (*shape, instance.labels, instance.degrees, caps)


def choose_ruled_links(
    instance: Instance, rho: float, rules: PairRules, tuning: Tuning = TUNED, least: int = 1
) -> Codes:
    """As `choose_links`, among the pairs that the rules allow and from cheap ones to dear: see `ruled.ruled_links`."""
    from omen.kernels.ruled import ruled_links

    return ruled_links(
        *_arrays(instance),
        rules.zones,
        rules.zone_groups,
        rules.offsets,
        rules.nodes,
        rules.groups,
        instance.max_degree,
        least,
        rho,
        rules.sigma,
        tuning.cache_length,
        tuning.dense_divisor,
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


def choose_pairs(
    topics_of: Sequence[Sequence[int]],
    labels_of: Sequence[Sequence[int]],
    degrees: Sequence[int],
    rho: float,
    centre: int = ALL_PAIRS,
) -> list[tuple[int, int]]:
    """`choose_links` for plain lists: the topics of each node 0..n-1, and in each the label of its piece.

    Labels may be any integers; equal means same piece.
    """
    import numpy as np

    subscribers: dict[int, list[int]] = {}
    pieces: dict[int, dict[int, int]] = {}
    labels: dict[int, list[int]] = {}
    for node, (topics, row) in enumerate(zip(topics_of, labels_of, strict=True)):
        for topic, label in zip(topics, row, strict=True):
            subscribers.setdefault(topic, []).append(node)
            names = pieces.setdefault(topic, {})
            labels.setdefault(topic, []).append(names.setdefault(label, len(names)))
    split = {topic: code for code, topic in enumerate(sorted(t for t, names in pieces.items() if len(names) > 1))}
    if not split:
        return []
    rows = [[split[topic] for topic in sorted(topics) if topic in split] for topics in topics_of]
    interests = Rows(
        np.cumsum([0, *map(len, rows)], dtype=np.int64),
        np.array([code for row in rows for code in row], dtype=np.int32),
        np.cumsum([0, *(len(subscribers[topic]) for topic in split)], dtype=np.int64),
        np.array([node for topic in split for node in subscribers[topic]], dtype=np.int32),
    )
    instance = Instance(
        interests,
        np.array([label for topic in split for label in labels[topic]], dtype=np.int32),
        np.array(degrees, dtype=np.int32),
    )
    chosen = choose_links(instance, rho, centre)
    return [(int(one), int(other)) for one, other in chosen]


def choose_small(
    topics_of: Sequence[Sequence[int]],
    labels_of: Sequence[Sequence[int]],
    degrees: Sequence[int],
    rho: float,
    centre: int = ALL_PAIRS,
) -> list[tuple[int, int]]:
    """The links of `choose_pairs` without waiting for compiled code: large cases take longer until it is loaded."""
    choose = choose_pairs if _loaded.is_set() and is_large(topics_of, centre) else small.choose_links
    return choose(topics_of, labels_of, degrees, rho, centre)


def choose_within(
    topics_of: Sequence[Sequence[int]],
    labels_of: Sequence[Sequence[int]],
    degrees: Sequence[int],
    rho: float,
    limits: LinkLimits,
    centre: int = ALL_PAIRS,
) -> list[tuple[int, int]]:
    """`choose_small` within the rules of a fleet; caps are exceeded where a topic would stay split (`small_ruled`)."""
    return small_ruled.choose_links_within(topics_of, labels_of, degrees, rho, limits, centre)


def is_large(topics_of: Sequence[Sequence[int]], centre: int = ALL_PAIRS) -> bool:
    """Whether the compiled engine is worth its memory for such a case."""
    return small.count_steps(topics_of, centre) > SMALL_STEPS


def is_loaded() -> bool:
    """Whether `load` has succeeded in this process."""
    return _loaded.is_set()


def load() -> None:
    """Load the compiled engine in the calling thread, with the smallest case there is; compile it if it is not kept."""
    choose_pairs([[0], [0]], [[0], [1]], [0, 0], 3.0)
    _loaded.set()

"""What a replay came to, in a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from omen.churn import Crash, Join, Leave, Resubscribe
from omen.fleet import describe_violations
from omen.systems.replay import ABOVE, NO_COUNT, Replayed
from omen.tables import event_word

KINDS = {"join": (Join,), "leave": (Leave, Crash), "resubscribe": (Resubscribe,)}


def summarise(replayed: Replayed) -> dict[str, Any]:
    """Counts, degrees and the verdict at the end, and for each kind of event what repairs took and changed."""
    overlay, interests = replayed.overlay, replayed.interests
    degrees = overlay.degrees
    return {
        "system": replayed.system,
        "options": replayed.options,
        "events": len(replayed.events),
        "skipped": sum(replayed.skipped.values()),
        "skipped_by_reason": replayed.skipped,
        "nodes": interests.node_count,
        "topics": interests.topic_count,
        "edges": overlay.link_count,
        "avg_degree": 2 * overlay.link_count / interests.node_count if interests.node_count else 0.0,
        "max_degree": int(degrees.max()) if degrees.size else 0,
        "judged": replayed.judged,
        "topic_connected": replayed.topic_connected,
        "instants_broken": len(replayed.splits),
        "fleet": _of_fleet(replayed),
        "repairs": {kind: found for kind in KINDS if (found := _of_kind(replayed, kind))},
    }


def _of_fleet(replayed: Replayed) -> dict[str, Any] | None:
    """Where a replay was outside the rules of a fleet: nodes above their caps on the way, and what is so at the end."""
    if replayed.within is None:
        return None
    counts = replayed.columns[ABOVE]
    rules = replayed.within.rules.restricted(replayed.overlay.nodes)
    return {
        "sigma": replayed.within.sigma,
        "events_above_cap": int((counts > 0).sum()),
        "most_above_cap": max((one.most - one.max_links for one in replayed.exceeded), default=0),
        "above_cap": [one._asdict() for one in replayed.exceeded],
        "violations": describe_violations(replayed.overlay, rules),
    }


def columns_of(replayed: Replayed, seqs: Sequence[int]) -> dict[str, Any]:
    """The columns of the table replay; `seqs` are those of the trace, by position."""
    return {
        "seq": [seqs[position] for position in replayed.positions],
        "time_s": np.array([event.time_s for event in replayed.events], dtype=np.float64),
        "event": [event_word(event) for event in replayed.events],
        "node": [event.node for event in replayed.events],
        **replayed.columns,
    }


def _of_kind(replayed: Replayed, kind: str) -> dict[str, Any]:
    """The repairs whose numbers stand with an event of this kind: medians, 95th percentiles and means."""
    columns = replayed.columns
    chosen = np.array([isinstance(event, KINDS[kind]) for event in replayed.events], dtype=bool)
    if not chosen.any():
        return {}
    seconds = columns["repair_s"][chosen]
    seconds = seconds[~np.isnan(seconds)]
    return {
        "events": int(chosen.sum()),
        "repairs": int(seconds.size),
        "repair_s_median": _of(np.median, seconds),
        "repair_s_p95": _of(lambda values: np.quantile(values, 0.95), seconds),
        "edges_added_mean": _mean(columns["edges_added"][chosen]),
        "edges_removed_mean": _mean(columns["edges_removed"][chosen]),
        "shadow_size_mean": _mean(columns["shadow_size"][chosen]),
    }


def _mean(counts: npt.NDArray[np.int64]) -> float | None:
    return _of(np.mean, counts[counts != NO_COUNT])


def _of(measure: Any, values: npt.NDArray[Any]) -> float | None:
    return float(measure(values)) if values.size else None

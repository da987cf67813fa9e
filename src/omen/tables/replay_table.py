"""The table `replay`, and the folder a replay leaves behind, which is a workload folder too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omen.interests import Interests
from omen.overlay import Overlay
from omen.rules import FleetRules
from omen.tables.arrow_arrays import from_numpy, from_words
from omen.tables.rules_writing import rules_as_tables
from omen.tables.writing import overlay_table, write_workload

REPLAY_COLUMNS = (
    "seq",
    "time_s",
    "event",
    "node",
    "repair_s",
    "handled_s",
    "edges_added",
    "edges_removed",
    "max_degree",
    "avg_degree",
    "shadow_size",
    "messages",
    "bytes",
)
RULED_COLUMN = "links_above_max"


def write_replay(
    folder: str | Path,
    interests: Interests,
    overlay: Overlay,
    columns: Mapping[str, npt.NDArray[Any] | Sequence[Any]],
    info: Mapping[str, Any],
    rules: FleetRules | None = None,
) -> None:
    """The tables `replay`, `overlay`, `interests`, `nodes` and workload.json: what happened, and what was there at
    the end, with the rules of the nodes that are there.

    In `columns`, nan and negative counts stand for what was not measured; they become null. `RULED_COLUMN` is there
    where a replay had the rules of a fleet.
    """
    names = (*REPLAY_COLUMNS, *([RULED_COLUMN] if RULED_COLUMN in columns else []))
    replay = pa.table({name: _column(name, columns[name]) for name in names})
    more = {"overlay": overlay_table(overlay), "replay": replay}
    write_workload(folder, interests, info, more=more | _rules(interests, rules))


def write_repaired(
    folder: str | Path,
    interests: Interests,
    overlay: Overlay,
    info: Mapping[str, Any],
    made: Mapping[str, Any] | None = None,
    rules: FleetRules | None = None,
) -> None:
    """A workload folder with the table `overlay` in it, and in that the record of how it was made; and with the rules
    of its nodes.
    """
    write_workload(folder, interests, info, more={"overlay": overlay_table(overlay, made)} | _rules(interests, rules))


def _rules(interests: Interests, rules: FleetRules | None) -> dict[str, Any]:
    """The tables of rules, for the nodes that are left."""
    return {} if rules is None or rules.is_empty else rules_as_tables(rules.restricted(interests.nodes))


def _column(name: str, values: npt.NDArray[Any] | Sequence[Any]) -> Any:
    if name in ("seq", "event", "node"):
        words = len(values) > 0 and isinstance(values[0], str)
        return from_words(list(values)) if words or name == "event" else from_numpy(np.array(values, dtype=np.int64))
    numbers = np.asarray(values)
    present = ~np.isnan(numbers) if numbers.dtype.kind == "f" else numbers >= 0
    if present.all():
        return from_numpy(numbers)
    numbers = np.where(present, numbers, 0)
    validity = pa.py_buffer(np.packbits(present, bitorder="little"))
    kind = pa.from_numpy_dtype(numbers.dtype)
    return pa.Array.from_buffers(kind, numbers.size, [validity, pa.py_buffer(numbers)])

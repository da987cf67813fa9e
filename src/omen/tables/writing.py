"""Nouns into tables. Rows stand in label order, and equal contents give equal bytes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from omen.errors import CannotWrite, InvalidInput
from omen.interests import Interests, Labels
from omen.overlay import Overlay
from omen.tables.arrow_arrays import from_numpy, from_words
from omen.tables.parquet_parts import RECORD
from omen.tables.parts import SUFFIXES, shown
from omen.tables.raw import RejectedRow
from omen.tables.replacing import replace_file, replace_folder

_ROWS_IN_GROUP = 1 << 20
_WORKLOAD_TABLES = ("interests", "nodes", "rejected")


def write_overlay(path: str | Path, overlay: Overlay, made: Mapping[str, Any] | None = None) -> None:
    """The table `overlay` (u, v), u < v in label order: Parquet, or CSV where the name ends in .csv or .csv.gz.

    `made` is a record of how it was made, as `read_record` reads it. Only Parquet can hold one.
    """
    write_arrow(path, overlay_table(overlay, made))


def overlay_table(overlay: Overlay, made: Mapping[str, Any] | None = None) -> Any:
    """The links as an Arrow table, with the record of how they were made."""
    table = pa.table({"u": labels_at(overlay.nodes, overlay.u), "v": labels_at(overlay.nodes, overlay.v)})
    return table.replace_schema_metadata({RECORD: json_text(made)}) if made else table


def write_workload(
    folder: str | Path,
    interests: Interests,
    info: Mapping[str, Any],
    rejected: Sequence[RejectedRow] | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """A workload folder: `interests`, `nodes`, `rejected` if there are any, workload.json with `info` and counts.

    `more` are further Arrow tables to put in it, by name.
    """
    nodes, topics = interests.pair_codes
    pairs = pa.table({"node": labels_at(interests.nodes, nodes), "topic": labels_at(interests.topics, topics)})
    everyone = pa.table({"node": label_column(interests.nodes)})
    counts = {
        "nodes": interests.node_count,
        "topics": interests.topic_count,
        "subscriptions": interests.subscription_count,
    }
    described = json_text({**info, "counts": counts | dict(info.get("counts", {})), **_rejects(info, rejected)})

    def fill(aside: Path) -> None:
        _save(aside / "interests.parquet", pairs)
        _save(aside / "nodes.parquet", everyone)
        if rejected:
            _save(aside / "rejected.parquet", rejected_table(rejected))
        for name, table in (more or {}).items():
            _save(aside / f"{name}.parquet", table)
        (aside / "workload.json").write_text(described, encoding="utf-8")

    replace_folder(folder, "workload.json", (*_WORKLOAD_TABLES, *(more or {})), fill)


def write_rejected(path: str | Path, rows: Sequence[RejectedRow]) -> None:
    """The table `rejected`: source_file, row, reason, text."""
    write_arrow(path, rejected_table(rows))


def write_table(path: str | Path, columns: Mapping[str, npt.NDArray[Any] | Sequence[Any]]) -> None:
    """Any table, its columns numbers or text."""
    write_arrow(path, pa.table({name: _any_column(values) for name, values in columns.items()}))


def write_text(path: str | Path, lines: Iterable[str]) -> None:
    """A text file, line by line."""
    with replace_file(path) as aside, aside.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def write_arrow(path: str | Path, table: Any) -> None:
    """An Arrow table: Parquet, or CSV where the name ends in .csv or .csv.gz."""
    require_table_name(path)
    with replace_file(path) as aside:
        _save(aside, table, Path(path).name.lower())


def require_table_name(path: str | Path) -> None:
    """Refuse a name whose ending promises a format that tables are not written in. No ending at all means Parquet."""
    name = Path(path).name.lower()
    if Path(name).suffix and not name.endswith(SUFFIXES):
        raise CannotWrite(f"{shown(path)}: tables are written as {', '.join(SUFFIXES)}: give the name such an ending")


def count_reasons(rejected: Iterable[RejectedRow]) -> dict[str, int]:
    """How many rows were rejected for each reason."""
    counts: dict[str, int] = {}
    for row in rejected:
        counts[row.reason] = counts.get(row.reason, 0) + 1
    return dict(sorted(counts.items()))


def rejected_table(rows: Sequence[RejectedRow]) -> Any:
    """Rejected rows as an Arrow table."""
    return pa.table(
        {
            "source_file": from_words([_printable(row.source_file) for row in rows]),
            "row": from_numpy(np.array([row.row for row in rows], dtype=np.int64)),
            "reason": from_words([row.reason for row in rows]),
            "text": from_words([_printable(row.text) for row in rows]),
        }
    )


def json_text(info: Mapping[str, Any]) -> str:
    """A JSON object as a text that depends on its contents alone."""
    try:
        return json.dumps(info, indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"what is to be said of the workload cannot be written as JSON: {error}") from None


def _rejects(info: Mapping[str, Any], rejected: Sequence[RejectedRow] | None) -> dict[str, Any]:
    if "rejected" in info or rejected is None:
        return {}
    return {"rejected": count_reasons(rejected)}


def _save(path: Path, table: Any, name: str = ".parquet") -> None:
    if name.endswith(".csv"):
        pa_csv.write_csv(table, path)
    elif name.endswith(".csv.gz"):
        with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            pa_csv.write_csv(table, packed)
    else:
        with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False, version="2.6") as file:
            file.write_table(table, _ROWS_IN_GROUP)
            if table.schema.metadata:  # without a stored schema it is left out
                file.add_key_value_metadata(table.schema.metadata)


def labels_at(labels: Labels, codes: npt.NDArray[Any]) -> Any:
    """The labels of these codes as an Arrow array."""
    return label_column(labels).take(from_numpy(np.asarray(codes, dtype=np.int64)))


def label_column(labels: Labels) -> Any:
    """Labels as an Arrow array."""
    try:
        return from_words(labels.tolist()) if labels.dtype == object else from_numpy(labels.astype(np.int64))
    except UnicodeEncodeError:
        raise InvalidInput("a label holds characters that no file can hold: half of a surrogate pair") from None


def _any_column(values: npt.NDArray[Any] | Sequence[Any]) -> Any:
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
        return from_numpy(values)
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    try:
        return from_words(listed) if all(isinstance(value, str) for value in listed) else pa.array(listed)
    except (UnicodeEncodeError, pa.ArrowException) as error:
        raise InvalidInput(f"a column cannot be written: {str(error).splitlines()[0]}") from None


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()

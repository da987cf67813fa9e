"""Tables and workloads as Spark writes them, put in place in one step.

On this machine's file system a folder is written aside and renamed, so that whatever stood there stays whole until the
new one is. At other addresses (hdfs://, s3a://) Spark overwrites a table in place, as it always does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.pipeline.session import cancel_jobs
from omen.tables import replace_folder
from omen.tables.writing import json_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_WORKLOAD_TABLES = ("interests", "nodes", "rejected", "ccdf", "ccdf.svg")


def write_folder(frame: DataFrame, path: str, order: Sequence[str]) -> None:
    """A table as a folder of Parquet parts, its rows in order from part to part. `order` may be empty: as they come."""
    rows = frame.repartitionByRange(*order).sortWithinPartitions(*order) if order else frame
    if "://" in path:
        rows.write.mode("overwrite").options(**_encoding(rows)).parquet(path)
        return
    target = Path(path)
    parts = [entry.name for entry in target.iterdir() if _is_sparks(entry.name)] if target.is_dir() else []
    replace_folder(target, "_SUCCESS", parts, lambda aside: _write_parts(rows, aside))


def write_workload_folder(
    path: str, interests: DataFrame, nodes: DataFrame, info: Mapping[str, Any], rejected: DataFrame | None = None
) -> dict[str, int]:
    """A workload folder, its tables in the order they come; returns its counts, taken from what was written."""
    tables = {"interests": interests, "nodes": nodes} | ({} if rejected is None else {"rejected": rejected})
    counts: dict[str, int] = {}

    def fill(aside: Path) -> None:
        for name, table in tables.items():
            _write_parts(table, aside / name)
        counts.update(_count(interests.sparkSession, aside))
        described = json_text({**info, "counts": counts | dict(info.get("counts", {}))})
        (aside / "workload.json").write_text(described, encoding="utf-8")

    replace_folder(path, "workload.json", _WORKLOAD_TABLES, fill)
    return counts


def _count(spark: SparkSession, folder: Path) -> dict[str, int]:
    written = {name: spark.read.parquet((folder / name).resolve().as_uri()) for name in ("interests", "nodes")}
    return {
        "nodes": written["nodes"].count(),
        "topics": written["interests"].select("topic").distinct().count(),
        "subscriptions": written["interests"].count(),
    }


def _write_parts(frame: DataFrame, folder: Path) -> None:
    try:
        frame.write.mode("append").options(**_encoding(frame)).parquet(folder.resolve().as_uri())
    except KeyboardInterrupt:
        cancel_jobs(frame.sparkSession)  # or they put files back into a folder that is being removed
        raise


def _encoding(frame: DataFrame) -> dict[str, str]:
    """Numbers as differences from one to the next, not as dictionaries: two thirds of the time, half of the bytes."""
    plain = {f"parquet.enable.dictionary#{name}": "false" for name, kind in frame.dtypes if kind == "bigint"}
    return {"parquet.writer.version": "PARQUET_2_0", **plain}


def _is_sparks(name: str) -> bool:
    return name.startswith(("part-", "_", "."))

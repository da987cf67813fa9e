"""Reads, rejects and writes tables and workload folders.

A table is a Parquet file, a folder of Parquet or CSV parts as Spark leaves it, or CSV with a header (also gzipped).
Labels are whole numbers of 64 bits or text, taken exactly as they stand, blanks around them included; an empty value
is a missing one. Rows are counted from 1 within their file, without header and empty lines. Readers for `design`,
`check` and the like are strict: the first bad row is an error. `read_accepting` collects bad rows and goes on.
"""

from __future__ import annotations

from typing import Any
from warnings import warn

from omen.tables.churn_table import ChurnTable, event_word, read_churn, read_topic_lists, write_churn
from omen.tables.columns import Column, column_of_words
from omen.tables.parquet_parts import read_record
from omen.tables.raw import NOT_TEXT, RejectedRow, read_text
from omen.tables.reading import (
    Workload,
    find_row,
    read_accepting,
    read_interests,
    read_overlay,
    read_table,
    read_workload,
)
from omen.tables.replacing import replace_file, replace_folder, require_replaceable
from omen.tables.replay_table import write_repaired, write_replay
from omen.tables.rules_table import RuleTables, find_rules, read_addresses, read_rules
from omen.tables.writing import (
    count_reasons,
    require_table_name,
    write_overlay,
    write_rejected,
    write_table,
    write_text,
    write_workload,
)

__all__ = [
    "NOT_TEXT",
    "ChurnTable",
    "Column",
    "RejectedRow",
    "RuleTables",
    "Workload",
    "column_of_words",
    "count_reasons",
    "event_word",
    "find_row",
    "find_rules",
    "read_accepting",
    "read_addresses",
    "read_churn",
    "read_interests",
    "read_overlay",
    "read_record",
    "read_rules",
    "read_table",
    "read_text",
    "read_topic_lists",
    "read_workload",
    "replace_file",
    "replace_folder",
    "require_replaceable",
    "require_table_name",
    "write_churn",
    "write_overlay",
    "write_rejected",
    "write_repaired",
    "write_replay",
    "write_table",
    "write_text",
    "write_workload",
]


def __getattr__(name: str) -> Any:
    if name == "write_mended":
        warn("omen.tables.write_mended is now write_repaired", DeprecationWarning, stacklevel=2)
        return write_repaired
    raise AttributeError(f"module 'omen.tables' has no attribute {name!r}")

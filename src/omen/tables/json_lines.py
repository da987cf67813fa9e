"""JSON lines: an object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omen.tables.arrow_arrays import from_words
from omen.tables.parts import Part
from omen.tables.raw import NOT_TEXT, REPLACED, RawPart, missing, read_text, require_columns

NOT_JSON = "not a JSON object"
NOT_A_LABEL = "neither a whole number nor text"


def read_json_lines(part: Part, columns: Sequence[str]) -> RawPart:
    """The columns of JSON lines; a column is open where all its values are whole numbers."""
    text, damaged = read_text(part.path, part.encoding)
    lines = [line.removesuffix("\r") for line in text.split("\n") if line.strip()]
    reasons: dict[int, str] = {}
    values: dict[str, list[str]] = {name: [""] * len(lines) for name in columns}
    texts: set[str] = set()
    present: dict[str, None] = {}
    for place, line in enumerate(lines):
        found = NOT_TEXT if damaged and REPLACED in line else _parse_object(line)
        if isinstance(found, str):
            reasons[place] = found
            continue
        present.update(dict.fromkeys(name for name in found if len(present) < 100 or name in columns))
        for name in columns:
            value = found.get(name)
            reason = _reason_against(name, value)
            if reason:
                reasons.setdefault(place, reason)
            else:
                values[name][place] = str(value)
                if isinstance(value, str):
                    texts.add(name)
    if present:
        require_columns(part.path, list(present), columns)
    arrays = {name: pa.chunked_array([from_words(column)]) for name, column in values.items()}

    def render(chosen: npt.NDArray[np.int64]) -> list[str]:
        return [lines[place] for place in chosen.tolist()]

    return RawPart(part.path, arrays, frozenset(columns) - texts, len(lines), reasons, [], render)


def _parse_object(line: str) -> dict[str, Any] | str:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return NOT_JSON
    return found if isinstance(found, dict) else NOT_JSON


def _reason_against(name: str, value: object) -> str | None:
    if value is None or value == "":
        return missing(name)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return NOT_A_LABEL
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return NOT_TEXT
    return None

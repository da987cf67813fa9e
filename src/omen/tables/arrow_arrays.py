"""Between Arrow arrays and numpy, by their buffers.

Arrow's own `array` and `to_numpy` import pandas wherever it is installed, which costs a short command most of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def to_numpy(array: Any) -> npt.NDArray[Any]:
    """Whole numbers or truth values of an Arrow array or chunked array; anything may stand where it has nulls."""
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    dtype = np.dtype(bool if pa.types.is_boolean(array.type) else str(array.type))
    return np.concatenate([np.empty(0, dtype=dtype), *(_chunk_to_numpy(chunk) for chunk in chunks)])


def _chunk_to_numpy(chunk: Any) -> npt.NDArray[Any]:
    data = chunk.buffers()[1]
    if data is None:
        return np.empty(0, dtype=bool if pa.types.is_boolean(chunk.type) else str(chunk.type))
    if pa.types.is_boolean(chunk.type):
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
        return bits[chunk.offset : chunk.offset + len(chunk)].astype(bool)
    itemsize = np.dtype(str(chunk.type)).itemsize
    return np.frombuffer(data, dtype=str(chunk.type), count=len(chunk), offset=chunk.offset * itemsize)


def from_numpy(values: npt.NDArray[Any]) -> Any:
    """Numbers or truth values as an Arrow array."""
    if values.dtype == bool:
        return from_numpy(values.astype(np.uint8)).cast(pa.bool_())
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.size, [None, pa.py_buffer(values)])


def from_words(words: Sequence[str]) -> Any:
    """Text as an Arrow array of large strings."""
    encoded = [word.encode() for word in words]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(word) for word in encoded], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)

"""xxHash of 64 bits as Spark's function `xxhash64` computes it, so that one machine draws what a cluster draws.

After the description of XXH64 by Yann Collet. Spark hashes column after column, the hash of one being the seed of the
next, the first seed being 42; whole numbers go in as eight bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_FIRST_SEED = 42
_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def keyed_hashes(seed: int, purpose: int, labels: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
    """A random number for each label: Spark's xxhash64(purpose, seed, label)."""
    start = hash_bytes(_eight(seed), hash_bytes(_eight(purpose), _FIRST_SEED))
    if labels.dtype == object:
        hashes = [hash_bytes(str(label).encode(), start) for label in labels.tolist()]
        return np.array(hashes, dtype=np.uint64).view(np.int64)
    return _hash_numbers(labels.astype(np.int64), start)


def hash_bytes(data: bytes, seed: int) -> int:
    """XXH64 of a few bytes, without a sign."""
    place, size = 0, len(data)
    if size >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while place + 32 <= size:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], int.from_bytes(data[place : place + 8], "little"))
                place += 8
        found = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = (seed + _P5) & _MASK
    found = (found + size) & _MASK
    while place + 8 <= size:
        found = (_rotate(found ^ _round(0, int.from_bytes(data[place : place + 8], "little")), 27) * _P1 + _P4) & _MASK
        place += 8
    if place + 4 <= size:
        found ^= (int.from_bytes(data[place : place + 4], "little") * _P1) & _MASK
        found = (_rotate(found, 23) * _P2 + _P3) & _MASK
        place += 4
    for byte in data[place:]:
        found = (_rotate(found ^ ((byte * _P5) & _MASK), 11) * _P1) & _MASK
    found = ((found ^ (found >> 33)) * _P2) & _MASK
    found = ((found ^ (found >> 29)) * _P3) & _MASK
    return found ^ (found >> 32)


def _hash_numbers(numbers: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.int64]:
    """The same for the eight bytes of each number, all at once."""
    words = numbers.view(np.uint64)
    mixed = words * np.uint64(_P2)
    mixed = ((mixed << np.uint64(31)) | (mixed >> np.uint64(33))) * np.uint64(_P1)
    found = np.uint64((seed + _P5 + 8) & _MASK) ^ mixed
    found = ((found << np.uint64(27)) | (found >> np.uint64(37))) * np.uint64(_P1) + np.uint64(_P4)
    found = (found ^ (found >> np.uint64(33))) * np.uint64(_P2)
    found = (found ^ (found >> np.uint64(29))) * np.uint64(_P3)
    return (found ^ (found >> np.uint64(32))).view(np.int64)


def _eight(number: int) -> bytes:
    return (number & _MASK).to_bytes(8, "little")


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK


def _round(lane: int, word: int) -> int:
    return (_rotate((lane + word * _P2) & _MASK, 31) * _P1) & _MASK

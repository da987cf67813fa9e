"""Randomness without state: a 64-bit word for each (seed, stream, counter).

A stream is a node, a topic or whatever owns a sequence of draws; the counter numbers its draws. Nothing is carried from
one draw to the next, so the same words come out whatever the order, the number of threads or the split into partitions.
The mixing is the multiply-xorshift permutation of SplitMix64 (Steele, Lea, Flood 2014), once for each word taken in.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled

Words = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
_STREAM_STEP = np.uint64(0xD1B54A32D192ED03)  # odd: distinct streams of a seed stay distinct
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_SHIFT_TO_53 = np.uint64(11)
_TO_UNIT = 2.0**-53


@compiled("uint64(uint64)")
def scramble(word: np.uint64) -> np.uint64:
    """A permutation of the 64-bit words that spreads every bit of `word` over all bits."""
    word = (word ^ (word >> _SHIFT_1)) * _MULTIPLIER_1
    word = (word ^ (word >> _SHIFT_2)) * _MULTIPLIER_2
    return word ^ (word >> _SHIFT_3)


@compiled("uint64(uint64, uint64)")
def stream_key(seed: np.uint64, stream: np.uint64) -> np.uint64:
    """The part of `mix` that all draws of a stream share."""
    return scramble(scramble(seed + _GOLDEN) ^ (stream * _STREAM_STEP + _GOLDEN))


@compiled("uint64(uint64, uint64)")
def draw(key: np.uint64, counter: np.uint64) -> np.uint64:
    """Draw number `counter` of the stream with this key."""
    return scramble(scramble(key + (counter + np.uint64(1)) * _GOLDEN) ^ key)


@compiled("uint64(uint64, uint64, uint64)")
def mix(seed: np.uint64, a: np.uint64, b: np.uint64) -> np.uint64:
    """The random word of (seed, stream a, counter b). Within a stream no word comes twice."""
    return draw(stream_key(seed, a), b)


@compiled("float64(uint64)")
def to_unit(word: np.uint64) -> float:
    """A word as a number in [0, 1), all 53 bits of it random."""
    return np.float64(word >> _SHIFT_TO_53) * _TO_UNIT


@compiled("float64(uint64, uint64, uint64)")
def uniform(seed: np.uint64, a: np.uint64, b: np.uint64) -> float:
    """The uniform number in [0, 1) of (seed, stream a, counter b)."""
    return to_unit(mix(seed, a, b))


@compiled("uint64[::1](uint64, uint64[::1], uint64[::1])")
def mix_array(seed: np.uint64, a: Words, b: Words) -> Words:
    """`mix` of each pair (a[i], b[i])."""
    words = np.empty(a.size, dtype=np.uint64)
    for i in range(a.size):
        words[i] = mix(seed, a[i], b[i])
    return words

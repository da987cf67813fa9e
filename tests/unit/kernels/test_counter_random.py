from __future__ import annotations

import numpy as np
import pytest

from omen.kernels.counter_random import mix, mix_array, uniform

COUNTERS = np.arange(200_000, dtype=np.uint64)


def test_words_of_a_seed_never_change() -> None:
    assert mix(0, 0, 0) == 0xD3DC5D64746EE298
    assert mix(7, 3, 2**63) == 0x3C19EC0A9CE0F370
    assert uniform(1, 2, 3) == 0.5160636681690438


def test_array_form_gives_the_words_of_the_scalar_form() -> None:
    streams = np.array([0, 5, 2**64 - 1], dtype=np.uint64)
    counters = np.array([9, 0, 2**40], dtype=np.uint64)
    words = mix_array(11, streams, counters)
    assert words.tolist() == [mix(11, int(a), int(b)) for a, b in zip(streams, counters, strict=True)]


@pytest.mark.parametrize("varied", ["seed", "stream", "counter"])
def test_words_look_random_whichever_of_the_three_varies(varied: str) -> None:
    if varied == "counter":
        words = mix_array(3, np.full_like(COUNTERS, 8), COUNTERS)
    elif varied == "stream":
        words = mix_array(3, COUNTERS, np.full_like(COUNTERS, 8))
    else:
        words = np.array([mix(seed, 3, 8) for seed in range(20_000)], dtype=np.uint64)
    n = words.size
    assert np.unique(words).size == n
    bits = np.unpackbits(words.view(np.uint8)).reshape(n, 64)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 4.5 * 0.5 / np.sqrt(n)
    cells = np.bincount((words >> np.uint64(56)).astype(np.int64), minlength=256)
    chi_square = ((cells - n / 256) ** 2 / (n / 256)).sum()
    assert 255 - 5 * np.sqrt(2 * 255) < chi_square < 255 + 5 * np.sqrt(2 * 255)
    units = (words >> np.uint64(11)) * 2.0**-53
    assert abs(np.corrcoef(units[:-1], units[1:])[0, 1]) < 5 / np.sqrt(n)


def test_one_flipped_bit_flips_half_of_the_word() -> None:
    flips = [
        (mix(5, a, 9) ^ mix(5, a ^ (1 << bit), 9)).bit_count() + (mix(5, 9, a) ^ mix(5, 9, a ^ (1 << bit))).bit_count()
        for a in range(100)
        for bit in range(64)
    ]
    assert abs(np.mean(flips) / 2 - 32) < 0.3


def test_uniform_numbers_lie_in_the_unit_interval() -> None:
    units = [uniform(seed, 1, 2) for seed in range(10_000)]
    assert min(units) >= 0 and max(units) < 1
    assert abs(np.mean(units) - 0.5) < 0.015

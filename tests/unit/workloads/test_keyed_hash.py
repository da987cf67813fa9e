"""Against values that xxHash's own documentation gives; that Spark's are the same is tested with Spark."""

from __future__ import annotations

import numpy as np
import pytest

from omen.workloads.keyed_hash import hash_bytes, keyed_hashes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_known_values(text: bytes, found: int) -> None:
    assert hash_bytes(text, 0) == found


def test_numbers_go_in_as_their_eight_bytes() -> None:
    numbers = np.array([0, 1, -1, 2**62, -(2**63)])
    words = [int(one).to_bytes(8, "little", signed=True) for one in numbers]
    start = hash_bytes((7).to_bytes(8, "little"), hash_bytes((1).to_bytes(8, "little"), 42))
    expected = np.array([hash_bytes(word, start) for word in words], dtype=np.uint64).view(np.int64)
    assert keyed_hashes(7, 1, numbers).tolist() == expected.tolist()

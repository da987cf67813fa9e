"""One test a claim, on few and small workloads. What only shows at thousands of nodes is measured by command."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from . import spidercast

Compare = Callable[[ModuleType, str], None]

LARGE = {f"{claim}{letter}" for claim in ("P18", "P19") for letter in "bcdef"}
"""Of 2,000 nodes and more, within five percent."""


@pytest.mark.parametrize("claim_id", spidercast.MEASURES)
def test_claim(claim_id: str, compare: Compare) -> None:
    if claim_id in LARGE:
        pytest.skip("its size is for `omen reproduce spidercast --scale full`")
    compare(spidercast, claim_id)

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from omen.report.ledger import claims


@pytest.fixture
def compare(record_property: Callable[[str, object], None]) -> Callable[[ModuleType, str], None]:
    """Measures a claim at small sizes and holds it to the paper or, where we are known to deviate, to our number."""

    def compare_one(paper: ModuleType, claim_id: str) -> None:
        claim, measured = claims()[claim_id], paper.MEASURES[claim_id](paper.QUICK)
        deviation = paper.DEVIATIONS.get(claim_id)
        agrees = claim.agrees(measured.ours)
        verdict = ("agrees" if agrees else "does not agree") + (", known to deviate" if deviation else "")
        record_property("claim", [claim_id, claim.shown, measured.shown, verdict, measured.note])
        said = f"{claim_id}, {claim.quantity}: the paper says {claim.shown}, ours is {measured.shown} ({measured.note})"
        if deviation is None:
            assert agrees, said
        else:
            assert deviation.low <= measured.compared <= deviation.high, (
                f"{said}; known to deviate, but within {deviation.low:g}..{deviation.high:g}"
            )

    return compare_one

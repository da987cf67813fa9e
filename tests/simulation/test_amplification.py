"""No kind of message costs the others more than its row in docs/security.md says, and no kind is without a row."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.simulation.amplification import KINDS, Caused, Factors, measure, run

from omen.protocol.messages.base import Message

PAGE = Path(__file__).parents[2] / "docs" / "security.md"


def bounds() -> dict[str, Factors]:
    """The last four columns of the table: what one message, or one byte, causes at most."""
    table = PAGE.read_text().partition("<!-- costs -->")[2].partition("<!-- end of costs -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "`" in line]
    return {re.sub("`", "", row[0]): Factors(*map(float, row[3:])) for row in rows}


@pytest.fixture(scope="module")
def quiet() -> Iterator[Caused]:
    """The same nodes, and nothing said to them."""
    tracemalloc.start()
    run([])
    yield run([])
    tracemalloc.stop()


def test_every_kind_of_message_has_a_row_and_every_row_a_kind() -> None:
    assert set(bounds()) == {kind.__name__ for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_message_causes_no_more_than_its_row_says(kind: type[Message], quiet: Caused) -> None:
    found, bound = measure(kind, quiet), bounds()[kind.__name__]
    assert all(one <= most for one, most in zip(found, bound, strict=True)), (found, bound)

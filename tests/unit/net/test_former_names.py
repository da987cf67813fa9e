"""Names of the last release work, and warn."""

from __future__ import annotations

import asyncio

import pytest

from omen.net.former_names import FormerNames


class Present(FormerNames):
    """Something that has the present names."""

    def __init__(self) -> None:
        self.carried: list[str] = []

    @property
    def slow_consumers(self) -> list[str]:
        return ["bob"]

    async def carry(self, topic: str, timeout: float | None = None) -> None:
        self.carried.append(topic)

    def has_neighbours(self, topic: str) -> bool:
        return topic == "tea"


def test_former_names_hand_over_to_the_present_ones_and_warn() -> None:
    present = Present()
    with pytest.warns(
        DeprecationWarning, match=r"Broker\.behind is deprecated and will go: use slow_consumers"
    ) as found:
        assert present.behind == ["bob"]
    assert found[0].filename == __file__, "the warning names the line that uses the former name"
    with pytest.warns(DeprecationWarning, match="use has_neighbours"):
        assert present.has_company("tea")
    with pytest.warns(DeprecationWarning, match="use carry"):
        asyncio.run(present.take_part("tea"))
    assert present.carried == ["tea"]

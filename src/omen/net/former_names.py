"""Names of `Broker` as version 0.1.0 had them. They work for one release, with a warning."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod


class FormerNames(ABC):
    """Each former name hands over to the present one."""

    @property
    @abstractmethod
    def slow_consumers(self) -> list[str]: ...

    @abstractmethod
    async def carry(self, topic: str, timeout: float | None = None) -> None: ...

    @abstractmethod
    def has_neighbours(self, topic: str) -> bool: ...

    @property
    def behind(self) -> list[str]:
        """Deprecated: use `slow_consumers`."""
        _warn("behind", "slow_consumers")
        return self.slow_consumers

    async def take_part(self, topic: str, timeout: float | None = None) -> None:
        """Deprecated: use `carry`."""
        _warn("take_part", "carry")
        await self.carry(topic, timeout)

    def has_company(self, topic: str) -> bool:
        """Deprecated: use `has_neighbours`."""
        _warn("has_company", "has_neighbours")
        return self.has_neighbours(topic)


def _warn(former: str, name: str) -> None:
    warnings.warn(f"Broker.{former} is deprecated and will go: use {name}", DeprecationWarning, stacklevel=3)

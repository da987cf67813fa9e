"""What happens to a population of nodes: they join, leave, crash and change their topics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omen.errors import InvalidInput
from omen.interests import Label


@dataclass(frozen=True, slots=True)
class Join:
    """A node joins. `topics` None: those it has in the workload's interests."""

    time_s: float
    node: Label
    topics: tuple[Label, ...] | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """A node leaves in good order."""

    time_s: float
    node: Label


@dataclass(frozen=True, slots=True)
class Crash:
    """A node ends without a word."""

    time_s: float
    node: Label


@dataclass(frozen=True, slots=True)
class Resubscribe:
    """A node's topics become these. `topics` None: those it has in the workload's interests."""

    time_s: float
    node: Label
    topics: tuple[Label, ...] | None = None


Event = Join | Leave | Crash | Resubscribe


@dataclass(frozen=True, slots=True)
class Trace:
    """Events in the order they happen."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        for position in range(1, len(self.events)):
            if self.events[position].time_s < self.events[position - 1].time_s:
                raise InvalidInput(
                    f"event {position} at {self.events[position].time_s} s comes before the one ahead of it"
                    f" at {self.events[position - 1].time_s} s: events must be in order of time"
                )

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def absent_at_start(self) -> frozenset[Label]:
        """The nodes whose first event is a join: they start absent, all others present."""
        seen: set[Label] = set()
        absent: set[Label] = set()
        for event in self.events:
            if event.node not in seen:
                seen.add(event.node)
                if isinstance(event, Join):
                    absent.add(event.node)
        return frozenset(absent)

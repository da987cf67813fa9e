"""The small worlds that are explored: nodes in a row, and all that can happen to some of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product

from omen.sim.scenario import ConfigSpec, EventSpec, Name, NodeSpec, OrderSpec, OverlaySpec, Scenario

KINDS = ("crash", "leave", "drop", "join")
TOPICS = ("a", "b", "c")
SPACING = 1000
NEWCOMER = "x"


def small_worlds(nodes: int, events: int, topics: int = 1, kinds: Sequence[str] = KINDS) -> Iterator[Scenario]:
    """All worlds of so many nodes with exactly so many events, each at a node of its own.

    The nodes stand in a row, each linked to the next; all have the first topic, and each further one fewer of them.
    A newcomer, one at most, knows a node that nothing happens to.
    """
    names = [f"n{number}" for number in range(1, nodes + 1)]
    told = [kind for kind in kinds if kind != "join"]
    for newcomers in range(int("join" in kinds) + 1):
        for concerned in combinations(names, events - newcomers):
            for what in product(told, repeat=len(concerned)):
                chosen = [_event(kind, name, topics) for kind, name in zip(what, concerned, strict=True)]
                contact = next((name for name in reversed(names) if name not in concerned), None)
                if newcomers and contact is not None:
                    place = SPACING * nodes + SPACING // 2
                    chosen.append(EventSpec(step=0, join=NEWCOMER, topics=TOPICS[:1], place=place, through=contact))
                if contact is not None:
                    yield _world(names, topics, tuple(chosen))


def _event(kind: str, name: Name, topics: int) -> EventSpec:
    if kind == "drop":
        return EventSpec(step=0, resubscribe=name, topics=TOPICS[1:topics])
    return EventSpec(step=0, crash=name) if kind == "crash" else EventSpec(step=0, leave=name)


def _world(names: list[Name], topics: int, events: tuple[EventSpec, ...]) -> Scenario:
    what = [f"{event.action} {getattr(event, event.action)}" for event in events]
    row = {
        name: NodeSpec(
            tuple(topic for step, topic in enumerate(TOPICS[:topics]) if place >= step), SPACING * (place + 1)
        )
        for place, name in enumerate(names)
    }
    return Scenario(
        f"{len(names)} nodes: {', '.join(what)}",
        nodes=row,
        overlay=OverlaySpec(links=tuple(pairwise(names))),
        config=ConfigSpec(resilience=max(2, len(events)), coverage=1, standby_timeout_ms=1500.0, redundant_removals=0),
        order=OrderSpec(),
        events=events,
    )

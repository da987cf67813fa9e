"""What became of every publication, from the logs of the members alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

GRACE_US = 30_000_000  # a subscription given up sooner after a publication than this need not have seen it

Stream = tuple[str, int, int]


@dataclass
class Life:
    """One process, as its log tells. `subscribed`: for each topic, from when to when (None: to the end)."""

    name: str
    node: int = 0
    ended_well: bool = False
    subscribed: dict[str, list[tuple[int, int | None]]] = field(default_factory=dict)
    published: list[tuple[int, str, int, int]] = field(default_factory=list)
    delivered: Counter[tuple[Stream, int]] = field(default_factory=Counter)
    gaps: list[str] = field(default_factory=list)
    disordered: int = 0

    def covers(self, topic: str, time: int) -> bool:
        """Whether it was subscribed from before a publication until long after it."""
        return any(
            begun < time and (ended is None or ended > time + GRACE_US)
            for begun, ended in self.subscribed.get(topic, ())
        )


def read_life(path: Path) -> Life:
    """A log; its last line may be cut off, as a kill leaves it."""
    life = Life(path.stem)
    last: dict[Stream, int] = {}
    for line in path.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        at, kind, *words = line.split()
        time = int(at)
        if kind == "I":
            life.node = int(words[0])
        elif kind == "S":
            life.subscribed.setdefault(words[0], []).append((time, None))
        elif kind == "U":
            begun, _ = life.subscribed[words[0]][-1]
            life.subscribed[words[0]][-1] = (begun, time)
        elif kind == "P":
            life.published.append((time, words[0], int(words[1]), int(words[2])))
        elif kind == "D":
            stream = (words[0], int(words[1]), int(words[2]))
            sequence = int(words[3])
            life.delivered[(stream, sequence)] += 1
            life.disordered += sequence <= last.get(stream, 0)
            last[stream] = max(sequence, last.get(stream, 0))
        elif kind == "G":
            life.gaps.append(" ".join(words))
        elif kind == "E":
            life.ended_well = True
    return life


@dataclass
class Verdict:
    """`due`: deliveries that had to happen. `lost`: those that did not."""

    lives: int = 0
    survivors: int = 0
    publications: int = 0
    due: int = 0
    delivered: int = 0
    lost: int = 0
    duplicated: int = 0
    disordered: int = 0
    gaps: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return self.due > 0 and not (self.lost or self.duplicated or self.disordered)

    def lines(self) -> list[str]:
        return [
            f"processes {self.lives}, alive at the end {self.survivors}",
            f"publications accepted {self.publications}, by publishers alive at the end",
            f"deliveries {self.delivered}, of them due {self.due}",
            f"lost {self.lost}",
            f"duplicated {self.duplicated}",
            f"out of order {self.disordered}",
            f"gaps told {self.gaps}",
        ]


def judge(paths: Iterable[Path], ended: bool = True) -> Verdict:
    """Every publication accepted by a survivor, at every survivor subscribed throughout: once, and in order.

    `ended`: only who wrote its last line has survived; otherwise the run goes on, and everybody has so far.
    """
    lives = [read_life(path) for path in sorted(paths)]
    survivors = [life for life in lives if life.ended_well or not ended]
    verdict = Verdict(len(lives), len(survivors))
    for life in lives:
        verdict.delivered += sum(life.delivered.values())
        verdict.duplicated += sum(count - 1 for count in life.delivered.values())
        verdict.disordered += life.disordered
        verdict.gaps += len(life.gaps)
    for publisher in survivors:
        verdict.publications += len(publisher.published)
        for time, topic, incarnation, sequence in publisher.published:
            stream = (topic, publisher.node, incarnation)
            for life in survivors:
                if life.covers(topic, time):
                    verdict.due += 1
                    if not life.delivered[(stream, sequence)]:
                        verdict.lost += 1
                        if len(verdict.examples) < 20:
                            verdict.examples.append(f"{life.name} lacks {topic} {publisher.name} {sequence} at {time}")
    return verdict

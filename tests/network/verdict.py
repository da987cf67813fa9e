"""What became of every publication, from the logs of the members alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

GRACE_US = 30_000_000  # a subscription given up sooner after a publication than this need not have seen it
LASTING_US = 60_000_000  # a process killed later than this after a publication should have seen it, as its publisher

Stream = tuple[str, int, int]


@dataclass
class ProcessLog:
    """One process, as its log tells. `subscribed`: for each topic, from when to when (None: to the end)."""

    name: str
    node: int = 0
    ended_well: bool = False
    last_seen: int = 0
    subscribed: dict[str, list[tuple[int, int | None]]] = field(default_factory=dict)
    published: list[tuple[int, str, int, int]] = field(default_factory=list)
    delivered: dict[Stream, Counter[int]] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)
    disordered: int = 0
    changes: int = 0

    def covers(self, topic: str, time: int) -> bool:
        """Whether it was subscribed from before a publication until long after it."""
        return any(
            begun < time and (ended is None or ended > time + GRACE_US)
            for begun, ended in self.subscribed.get(topic, ())
        )

    def lasts(self, time: int) -> bool:
        """Whether it was still there long after a publication."""
        return self.ended_well or self.last_seen > time + LASTING_US

    def has(self, stream: Stream, sequence: int) -> bool:
        return stream in self.delivered and self.delivered[stream][sequence] > 0


def read_log(path: Path) -> ProcessLog:
    """A log; its last line may be cut off, as a kill leaves it."""
    log = ProcessLog(path.stem)
    last: dict[Stream, int] = {}
    is_beginning = True
    for line in path.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        at, kind, *words = line.split()
        log.last_seen = time = int(at)
        if kind == "I":
            log.node = int(words[0])
        elif kind == "S":
            log.subscribed.setdefault(words[0], []).append((time, None))
            log.changes += not is_beginning
        elif kind == "U":
            begun, _ = log.subscribed[words[0]][-1]
            log.subscribed[words[0]][-1] = (begun, time)
        elif kind == "P":
            log.published.append((time, words[0], int(words[1]), int(words[2])))
        elif kind == "D":
            stream = (words[0], int(words[1]), int(words[2]))
            sequence = int(words[3])
            log.delivered.setdefault(stream, Counter())[sequence] += 1
            log.disordered += sequence <= last.get(stream, 0)
            last[stream] = max(sequence, last.get(stream, 0))
        elif kind == "G":
            log.gaps.append(" ".join(words))
        elif kind == "E":
            log.ended_well = True
        is_beginning = is_beginning and kind in "IS"
    return log


@dataclass
class Verdict:
    """`due`: deliveries that had to happen. `lost`: those that did not.

    `due_on_the_way`: the same from and to those who were killed, but not within a minute after the publication.
    `accepted`: publications of all, those who were killed too, in `seconds` from the first to the last. `changes`:
    topics taken up while running.
    """

    logs: int = 0
    survivors: int = 0
    accepted: int = 0
    seconds: float = 0.0
    changes: int = 0
    publications: int = 0
    due: int = 0
    delivered: int = 0
    lost: int = 0
    due_on_the_way: int = 0
    lost_on_the_way: int = 0
    duplicated: int = 0
    disordered: int = 0
    gaps: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return self.due > 0 and not (self.lost or self.lost_on_the_way or self.duplicated or self.disordered)

    @property
    def rate(self) -> float:
        """Publications accepted a second."""
        return self.accepted / self.seconds if self.seconds else 0.0

    def lines(self) -> list[str]:
        return [
            f"processes {self.logs}, alive at the end {self.survivors}",
            f"publications accepted {self.accepted}, {self.rate:.1f} a second; topics taken up {self.changes}",
            f"by publishers alive at the end {self.publications}",
            f"deliveries {self.delivered}, of them due {self.due}",
            f"due from or to those killed more than a minute later {self.due_on_the_way}, lost {self.lost_on_the_way}",
            f"lost {self.lost}",
            f"duplicated {self.duplicated}",
            f"out of order {self.disordered}",
            f"gaps told {self.gaps}",
        ]


def judge(paths: Iterable[Path], ended: bool = True) -> Verdict:
    """Every publication accepted by a survivor, at every survivor subscribed throughout: once, and in order.

    `ended`: only who wrote its last line has survived; otherwise the run goes on, and everybody has so far.
    """
    logs = [read_log(path) for path in sorted(paths)]
    for log in logs:
        log.ended_well |= not ended
    verdict = Verdict(len(logs), sum(log.ended_well for log in logs))
    for log in logs:
        verdict.delivered += sum(counts.total() for counts in log.delivered.values())
        verdict.duplicated += sum(counts.total() - len(counts) for counts in log.delivered.values())
        verdict.disordered += log.disordered
        verdict.gaps += len(log.gaps)
        verdict.accepted += len(log.published)
        verdict.changes += log.changes
    times = [published[0] for log in logs for published in log.published]
    verdict.seconds = (max(times) - min(times)) / 1e6 if times else 0.0
    subscribers: dict[str, list[ProcessLog]] = {}
    for log in logs:
        for topic in log.subscribed:
            subscribers.setdefault(topic, []).append(log)
    for publisher in logs:
        _judge_publisher(verdict, publisher, subscribers)
    return verdict


def _judge_publisher(verdict: Verdict, publisher: ProcessLog, subscribers: dict[str, list[ProcessLog]]) -> None:
    if publisher.ended_well:
        verdict.publications += len(publisher.published)
    for time, topic, incarnation, sequence in publisher.published:
        if not publisher.lasts(time):
            continue
        stream = (topic, publisher.node, incarnation)
        for log in subscribers.get(topic, ()):
            if not log.lasts(time) or not log.covers(topic, time):
                continue
            missing = not log.has(stream, sequence)
            if publisher.ended_well and log.ended_well:
                verdict.due += 1
                verdict.lost += missing
            else:
                verdict.due_on_the_way += 1
                verdict.lost_on_the_way += missing
            if missing and len(verdict.examples) < 20:
                verdict.examples.append(f"{log.name} lacks {topic} {publisher.name} {sequence} at {time}")

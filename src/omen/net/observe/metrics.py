"""The text that Prometheus reads: its own format, or OpenMetrics where the scraper asks for it.

Labels take values from short fixed lists, never names of topics. It is written here, and not by a library, since a
node that nobody scrapes should not load one; tests hold it to the parsers of both formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Labels = Mapping[str, str]

PLAIN_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text"
OPENMETRICS_TYPE = f"{OPENMETRICS}; version=1.0.0; charset=utf-8"
UNITS = ("seconds", "bytes")


class Histogram:
    """How often something took how long."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.total += value
        for position, bound in enumerate(self.bounds):
            if value <= bound:
                self.counts[position] += 1
                return
        self.counts[-1] += 1

    @property
    def count(self) -> int:
        return sum(self.counts)


class Page:
    """The text of one answer, metric by metric."""

    def __init__(self, openmetrics: bool = False) -> None:
        self._lines: list[str] = []
        self._openmetrics = openmetrics

    def gauge(self, name: str, meaning: str, value: float) -> None:
        self._head(name, meaning, "gauge")
        self._lines.append(f"{name} {_number(value)}")

    def counter(self, name: str, meaning: str, value: float) -> None:
        self._head(name, meaning, "counter")
        self._lines.append(f"{name} {_number(value)}")

    def counters(self, name: str, meaning: str, label: str, values: Iterable[tuple[str, float]]) -> None:
        """One counter split by one label."""
        self._split(name, meaning, "counter", label, values)

    def _split(self, name: str, meaning: str, kind: str, label: str, values: Iterable[tuple[str, float]]) -> None:
        self._head(name, meaning, kind)
        for value, count in sorted(values):
            self._lines.append(f'{name}{{{label}="{_escaped(value)}"}} {_number(count)}')

    def gauges(self, name: str, meaning: str, label: str, values: Iterable[tuple[str, float]]) -> None:
        """One gauge split by one label."""
        self._split(name, meaning, "gauge", label, values)

    def histogram(self, name: str, meaning: str, histogram: Histogram) -> None:
        self._head(name, meaning, "histogram")
        so_far = 0
        for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
            so_far += count
            edge = "+Inf" if bound == float("inf") else repr(float(bound))
            self._lines.append(f'{name}_bucket{{le="{edge}"}} {so_far}')
        self._lines.append(f"{name}_sum {_number(histogram.total)}")
        self._lines.append(f"{name}_count {so_far}")

    def info(self, name: str, meaning: str, labels: Labels) -> None:
        """Facts that are not numbers, as labels of a 1."""
        self._head(name, meaning, "info")
        inside = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
        self._lines.append(f"{name}{{{inside}}} 1")

    def _head(self, name: str, meaning: str, kind: str) -> None:
        """In OpenMetrics a family goes by its name without `_total` or `_info`, and tells its unit."""
        if self._openmetrics:
            name = name.removesuffix("_total").removesuffix("_info")
        elif kind == "info":
            kind = "gauge"
        self._lines.append(f"# HELP {name} {meaning}")
        self._lines.append(f"# TYPE {name} {kind}")
        unit = name.rpartition("_")[2]
        if self._openmetrics and unit in UNITS:
            self._lines.append(f"# UNIT {name} {unit}")

    def text(self) -> str:
        end = ["# EOF"] if self._openmetrics else []
        return "\n".join([*self._lines, *end]) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

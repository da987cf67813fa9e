"""docs/benchmarks.md from what is kept in bench/results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bench.measure import RESULTS, ROOT

PAGE = ROOT / "docs" / "benchmarks.md"

INTRODUCTION = """\
# Benchmarks

What was measured, on which machine, and what was to be reached. `make bench` measures all parts again, which
takes an hour, and writes this page; `.venv/bin/python -m bench PART` measures one, and `python -m bench page` only
writes the page, from the results kept in `bench/results`. Times are never part of the tests: a slow machine fails none.
Every measurement is also appended to `bench/results/history.jsonl`; `make bench-compare` shows the last two of each
part side by side.
"""

BUSY = (
    "**The machine was busy with other work** (see its load): medians are those of a busy machine, and say little about"
    " what is reached on a quiet one. Processor time, of one core for all but compiling, is nearer to that."
)


def write_page() -> None:
    """All parts that have been measured, design first."""
    kept = sorted(RESULTS.glob("*.json"), key=lambda path: (path.stem != "design", path.stem))
    lines = [INTRODUCTION]
    for path in kept:
        found = json.loads(path.read_text(encoding="utf-8"))
        make = _pipeline_lines if "results" in found else _live_lines if "live" in found else _part_lines
        lines += make(found)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _part_lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"## {found['title']}\n"
    yield f"{found['introduction']}\n"
    yield f"{_machine(found['machine'])}\n"
    if max(found["machine"]["load_average"]) > found["machine"]["cores"]:
        yield f"{BUSY}\n"
    yield "| what | median | processor time | to reach | peak memory | to reach | runs | |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    for row in found["rows"]:
        details = ", ".join(f"{name} {_number(value)}" for name, value in row["details"].items())
        cells = (
            row["what"],
            _seconds(row["wall_s"]),
            _seconds(row["processor_s"]),
            _seconds(row["target_s"]),
            _megabytes(row["peak_mb"]),
            _megabytes(row["target_mb"]),
            str(row["runs"]),
            details,
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def _pipeline_lines(found: dict[str, Any]) -> Iterator[str]:
    """The form that bench/pipeline.py writes: rates at growing sizes."""
    yield "## Pipeline on Spark\n"
    yield f"{_machine(found['machine'])}\n"
    if note := found.get("note"):
        yield f"{note}\n"
    yield "| job | size | seconds | per second | to reach at full size | |"
    yield "| --- | ---: | ---: | ---: | --- | --- |"
    for one in found["results"]:
        details = ", ".join(f"{name} {_number(value)}" for name, value in one["details"].items() if value is not None)
        size = f"{one['size']:,} {one['unit']}"
        yield f"| {one['job']} | {size} | {one['seconds']:.1f} | {one['rate']:,.0f} | {one['target']} | {details} |"
    yield ""


def _live_lines(found: dict[str, Any]) -> Iterator[str]:
    """The form that bench/net.py writes: rates and latencies of a live overlay next to servers."""
    yield f"## {found['title']}\n"
    yield f"{found['introduction']}\n"
    yield f"{_machine(found['machine'])}\n"
    links = found["links"]
    yield (
        f"Links per node in the 40-node overlay: {links['omen']:.1f} on average, {links['omen_most']:.0f} at most; with"
        f" a mesh of 6 for each topic {links['meshes']:.1f} and {links['meshes_most']:.0f}.\n"
    )
    yield (
        "| | processes | payload | system | deliveries per second | processor each | p50, p99 at half of it"
        " | p50, p99 at a load for all | duplicates | load |"
    )
    yield "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in found["live"]:
        duplicates = "" if row["duplicates"] is None else f"{row['duplicates']:.3f}"
        cells = (
            row["scene"],
            str(row["processes"]),
            f"{row['payload']:,} B",
            row["system"],
            f"{row['deliveries_per_s']:,.0f}",
            f"{row['processor_us']:.1f} µs",
            f"{row['p50_ms']:.1f}, {row['p99_ms']:.1f} ms",
            f"{row['steady_p50_ms']:.1f}, {row['steady_p99_ms']:.1f} ms ({row['steady_per_s']:,.0f}/s)",
            duplicates,
            f"{row['load_average'][0]:.1f}",
        )
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield from _tls_lines(found.get("tls", []))
    for paragraph in found.get("notes", ()):
        yield f"{paragraph}\n"


def _tls_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """What certificates cost, as bench/net_tls.py found it."""
    if not rows:
        return
    yield (
        "With certificates (mutual TLS 1.3) and without, by turns (`python -m bench.net_tls`): three nodes in one"
        " process, one publishes, two hear it. What counts is processor time, for all ends of all links.\n"
    )
    yield "| payload | publications | turns | deliveries per processor-second without | with | ratio | load |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        plain, tls = row["plain_per_processor_s"], row["tls_per_processor_s"]
        yield (
            f"| {row['payload']:,} B | {row['publications']:,} | {row['turns']} | {plain:,.0f} | {tls:,.0f}"
            f" | {tls / plain:.2f} | {row['load_average'][0]:.1f} |"
        )
    yield ""
    signed = [row for row in rows if "signed_per_processor_s" in row]
    if signed:
        yield (
            "The same with every publication [signed](security.md#signed-publications) by its publisher and verified by"
            " each of the two others, over the same certificates:\n"
        )
        yield "| payload | unsigned | signed by ECDSA on P-256 | ratio | by Ed25519 | ratio |"
        yield "| ---: | ---: | ---: | ---: | ---: | ---: |"
        for row in signed:
            base, ways = row["tls_per_processor_s"], [row[f"{way}_per_processor_s"] for way in ("signed", "ed25519")]
            cells = " | ".join(f"{way:,.0f} | {way / base:.2f}" for way in ways)
            yield f"| {row['payload']:,} B | {base:,.0f} | {cells} |"
        yield ""


def _machine(facts: dict[str, Any]) -> str:
    words = []
    for name, value in facts.items():
        shown = " ".join(str(one) for one in value) if isinstance(value, list) else str(value)
        words.append(f"{name.replace('_', ' ')} {shown}")
    return f"Machine: {'; '.join(words)}."


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def _megabytes(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} MB"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)

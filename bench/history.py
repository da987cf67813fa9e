"""Every measurement that was kept, one after the other, and the change between two: python -m bench.history [PART]...

`python -m bench` appends a record for each part it measures to bench/results/history.jsonl: the commit, whether the
sources differed from it, the machine, and the numbers of every row. `make bench-compare` shows, for each part, the last
record against the one before it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measure import RESULTS, ROOT

HISTORY = RESULTS / "history.jsonl"
LISTS = ("rows", "results", "live", "tls")
"""Where the parts keep their rows."""
NAMES = ("what", "job", "scene", "system", "size", "payload", "processes")
"""What tells a row from the others; everything else in it that is a number was measured."""
SET = ("runs", "turns", "publications", "target_s", "target_mb")
"""Numbers that were given."""
TIMES = ("wall_s", "processor_s", "seconds", "rate", "peak_mb")
"""Shown whether they changed or not."""

Numbers = dict[str, float]
Rows = dict[str, Numbers]


def rows_of(found: dict[str, Any]) -> Rows:
    """The numbers of every row that a part keeps, by what tells the row from the others."""
    listed = [row for name in LISTS for row in found.get(name, ())]
    listed += [row for rows in found.get("parts", {}).values() for row in rows]
    return {
        ", ".join(f"{row[name]:,}" if isinstance(row[name], int) else row[name] for name in NAMES if name in row): {
            name: value
            for name, value in {**row, **row.get("details", {})}.items()
            if isinstance(value, int | float) and not isinstance(value, bool) and name not in (*NAMES, *SET)
        }
        for row in listed
    }


def read_part(part: str) -> dict[str, Any]:
    """What is kept of a part; nothing if it was never measured."""
    path = RESULTS / f"{part}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def code_now() -> tuple[str, bool]:
    """The commit that is measured, and whether the sources differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True, text=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD"), bool(git("status", "--porcelain", "--", "src", "bench/*.py"))
    except (OSError, subprocess.CalledProcessError):
        return "unknown", True


def append_record(
    part: str, before: dict[str, Any], code: tuple[str, bool], path: Path = HISTORY
) -> dict[str, Any] | None:
    """Keep what this run measured. A row that is exactly as it was `before` was not measured again, and is left out."""
    found = read_part(part)
    known = rows_of(before)
    rows = {what: numbers for what, numbers in rows_of(found).items() if known.get(what) != numbers}
    if not rows:
        return None
    machine = {name: value for name, value in found["machine"].items() if name not in ("date", "code")}
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    record = {"part": part, "date": moment, "commit": code[0], "dirty": code[1], "machine": machine, "rows": rows}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return record


def records(path: Path = HISTORY) -> list[dict[str, Any]]:
    """All that was kept, oldest first."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def compare(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, str, float, float]]:
    """What each row of the later record was and is: its times, and whatever else changed."""
    for what, numbers in after["rows"].items():
        former = before["rows"].get(what, {})
        for name, value in numbers.items():
            if name in former and (name in TIMES or former[name] != value):
                yield what, name, former[name], value


def told(part: str, kept: Sequence[dict[str, Any]], against: str | None) -> Iterator[str]:
    """The comparison of one part, line by line."""
    *earlier, after = [record for record in kept if record["part"] == part]
    if against is not None:
        earlier = [record for record in earlier if record["commit"].startswith(against)]
    if not earlier:
        yield f"{part}: {_shown(after)}, and nothing to compare it with"
        return
    before = earlier[-1]
    yield f"{part}: {_shown(after)} against {_shown(before)}"
    machines = [{name: record["machine"].get(name) for name in ("processor", "cores")} for record in (before, after)]
    if machines[0] != machines[1]:
        yield "  measured on different machines: ratios compare those too"
    lines = list(compare(before, after))
    if len(lines) == 0:
        yield "  no row is in both"
        return
    width = max(len(what) for what, *_ in lines)
    names = max(len(name) for _, name, *_ in lines)
    for what, name, old, new in lines:
        ratio = f"{new / old:8.2f}" if old else "       -"
        yield f"  {what:{width}}  {name:{names}}  {old:12.6g}  {new:12.6g}  {ratio}"
    if fresh := after["rows"].keys() - before["rows"].keys():
        yield f"  new: {', '.join(sorted(fresh))}"


def _shown(record: dict[str, Any]) -> str:
    return f"{record['commit'][:9]}{' with changes' if record['dirty'] else ''} ({record['date'][:10]})"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.history", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="to compare (all that were measured)")
    parser.add_argument("--against", metavar="COMMIT", help="the last record of this commit, not the one before")
    arguments = parser.parse_args()
    kept = records()
    parts = list(dict.fromkeys(record["part"] for record in kept))
    if unknown := [part for part in arguments.parts if part not in parts]:
        parser.error(f"no record of {unknown[0]!r} (there are {', '.join(parts) or 'none'})")
    for part in arguments.parts or parts:
        print(*told(part, kept, arguments.against), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

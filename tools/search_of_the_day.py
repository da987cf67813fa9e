"""Search worlds whose seeds come from the date: python -m tools.search_of_the_day [--within N] [--beyond N] [--warn]

Worlds that run every day are worlds that the code has been fixed for. These are others each day, and anybody can run
them again: the seeds of a day are its date with three digits behind it, and they are printed. With `--warn` a world
that fails is a scenario file and a warning, and the command succeeds: a change is not to blame for what its day drew.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from omen.cli.main import main as omen

SEEDS_OF_A_DAY = 1000


def seeds_of(day: str, count: int) -> str:
    """The first seeds of a day, as `omen simulate --search` takes them."""
    first = int(day) * SEEDS_OF_A_DAY
    return f"{first}..{first + count - 1}"


def search(worlds: str, day: str, count: int, folder: Path, words: Sequence[str] = ()) -> bool:
    """Whether all went well. What fails otherwise than by a world that was written down, ends this process."""
    seeds = seeds_of(day, count)
    print(f"worlds of {day}: omen simulate --search --worlds {worlds} --seeds {seeds}", flush=True)
    status = omen(["simulate", "--search", "--worlds", worlds, "--seeds", seeds, "--failures", str(folder), *words])
    if status and not (status == 1 and any(folder.glob("*.toml"))):
        sys.exit(status)
    return status == 0


def day_of(text: str) -> str:
    if not re.fullmatch(r"\d{8}", text):
        raise argparse.ArgumentTypeError(f"must be a date as in 20260131, not {text!r}")
    return text


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.search_of_the_day", description=__doc__)
    parser.add_argument("--day", metavar="YYYYMMDD", type=day_of, default=f"{datetime.now(UTC):%Y%m%d}")
    parser.add_argument("--within", metavar="N", type=int, default=100, help="worlds within L")
    parser.add_argument("--beyond", metavar="N", type=int, default=20, help="worlds beyond L")
    parser.add_argument("--workers", metavar="N", default="1")
    parser.add_argument("--failures", metavar="DIR", type=Path, default=Path("build/search-of-the-day"))
    parser.add_argument("--warn", action="store_true", help="a world that fails is a warning")
    arguments = parser.parse_args(argv)
    folder = arguments.failures / arguments.day
    words = ["--workers", arguments.workers]
    counts = {"within": arguments.within, "beyond": arguments.beyond}
    well = [search(worlds, arguments.day, count, folder, words) for worlds, count in counts.items() if count]
    if all(well):
        return 0
    for path in sorted(folder.glob("*.toml")):
        print(f"{'warning' if arguments.warn else 'failed'}: a world of {arguments.day} fails, its scenario: {path}")
    return 0 if arguments.warn else 1


if __name__ == "__main__":
    sys.exit(main())

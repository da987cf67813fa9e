"""Measure a part and write docs/benchmarks.md: python -m bench [PART]... (all). `page` only writes it.

Each part that is measured also becomes a record in bench/results/history.jsonl.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable

from bench import design, mend, reliability, sim, spidercast
from bench.history import append_record, code_now, read_part
from bench.measure import RESULTS, ROOT
from bench.page import write_page


def measure_pipeline() -> None:
    """On Spark: minutes, and gigabytes of memory."""
    RESULTS.mkdir(exist_ok=True)
    command = [sys.executable, "bench/pipeline.py", "--json", str(RESULTS / "pipeline.json")]
    subprocess.run(command, check=True, cwd=ROOT)


def measure_net() -> None:
    """Live nodes, next to the servers that are installed: minutes."""
    for part in ("bench.net", "bench.net_tls"):
        subprocess.run([sys.executable, "-m", part], check=True, cwd=ROOT)


PARTS: dict[str, Callable[[], None]] = {
    "design": design.measure,
    "mend": mend.measure,
    "pipeline": measure_pipeline,
    "net": measure_net,
    "reliability": lambda: reliability.measure([]),
    "sim": sim.measure,
    "spidercast": spidercast.measure,
    "page": lambda: None,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (all)")
    wanted = parser.parse_args().parts or [name for name in PARTS if name != "page"]
    if unknown := [name for name in wanted if name not in PARTS]:
        parser.error(f"there is no {unknown[0]!r} (there are {', '.join(PARTS)})")
    for name in wanted:
        before, code = read_part(name), code_now()
        PARTS[name]()
        append_record(name, before, code)
    write_page()
    return 0


if __name__ == "__main__":
    sys.exit(main())

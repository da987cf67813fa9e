"""Cases in which a cluster did not come together, or did not say how it is: what a version makes of each.

    python -m tests.network.before                                  # this version
    python -m tests.network.before --src OLD/src                    # another one, from its sources
    python -m tests.network.before --case mutual_seeds --case name_twice

Everything is seen from outside: processes of `omen node`, their pages, their logs, their exit codes. So the same lines
can be run against a version that knows nothing of the tests. Exit code 1: a case does not hold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from . import before_joining as joining
from . import before_running as running
from .lab import Found, Lab

ROOT = Path(__file__).parents[2]
CASES: tuple[Callable[[Lab], Found], ...] = (
    joining.mutual_seeds,
    joining.seeds_with_themselves,
    joining.own_spelling,
    joining.began_apart,
    joining.bad_seed,
    joining.http_seed,
    joining.silent_seed,
    joining.refused_at_once,
    joining.dead_seed,
    joining.join_timeout,
    joining.seeds_in_a_file,
    joining.name_twice,
    joining.names_that_meet,
    joining.expired_certificate,
    joining.missing_certificate,
    joining.foreign_certificate,
    joining.default_name,
    joining.unreachable_address,
    joining.every_address,
    running.full_disk,
    running.unread_log,
    running.cancelled_stop,
    running.no_state_folder,
    running.second_signal,
    running.frozen_node,
    running.dates_in_logs,
    running.health_pages,
    running.metrics_names,
    running.reload_topics,
    running.reload_bad_keys,
    running.service_manager,
    running.uvloop_certificates,
    running.first_start,
    running.repaired_memory,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", type=Path, default=ROOT / "src")
    parser.add_argument("--case", action="append", choices=[case.__name__ for case in CASES])
    told = parser.parse_args()
    failed = 0
    for case in CASES:
        if told.case and case.__name__ not in told.case:
            continue
        with tempfile.TemporaryDirectory() as folder:
            lab = Lab(Path(folder), told.src.resolve())
            try:
                holds, words = case(lab)
            finally:
                lab.end()
        failed += not holds
        print(f"{'holds' if holds else 'FAILS'}  {case.__name__}: {words}  ({case.__doc__})", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

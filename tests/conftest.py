"""How hypothesis draws, and, at the end of a run, the papers' numbers next to those measured in it."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings

# A busy machine is no failure, and what CI finds it must find again.
settings.register_profile(
    "omen", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("omen")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    # This file rather than tests/paper: a run over several processes collects, and reads conftest there, in the others.
    found = sorted(
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in getattr(report, "user_properties", [])
        if name == "claim"
    )
    if not found:
        return
    terminalreporter.section("the papers' claims, measured at small sizes")
    for claim_id, paper, ours, verdict, note in found:
        terminalreporter.write_line(f"{claim_id:5} paper {paper:14} ours {ours:14} {verdict}  ({note})"[:200])


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what comes out into tests/scripts, to be reviewed")

"""What certificates cost a live overlay: the same load with and without them, by turns.

python -m bench.net_tls [--scene chain] [--payload 100] [--turns 2]: added to bench/results/net.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from statistics import median
from typing import Any

from bench.measure import RESULTS, machine_facts
from bench.net import SCENES, TLS, measure


def compare(scene: str, payload: int, turns: int) -> dict[str, Any]:
    """Medians over turns; each turn measures both, so that whatever else the machine does hits both."""
    rows: dict[str, list[dict[str, Any]]] = {"omen": [], TLS: []}
    for _ in range(turns):
        for system, measured in rows.items():
            row = measure(scene, system, payload)
            assert row is not None
            measured.append(row)
    rates, times = (
        {system: median(row[what] for row in measured) for system, measured in rows.items()}
        for what in ("deliveries_per_s", "processor_us")
    )
    return {
        "scene": rows["omen"][0]["scene"],
        "payload": payload,
        "turns": turns,
        "plain_per_s": rates["omen"],
        "tls_per_s": rates[TLS],
        "plain_us": times["omen"],
        "tls_us": times[TLS],
        "load_average": machine_facts()["load_average"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", action="append", choices=SCENES)
    parser.add_argument("--payload", action="append", type=int)
    parser.add_argument("--turns", type=int, default=2)
    told = parser.parse_args()
    path = RESULTS / "net.json"
    for scene in told.scene or ("chain",):
        for payload in told.payload or (100, 10_000):
            found = compare(scene, payload, told.turns)
            print(json.dumps(found), flush=True)
            kept = json.loads(path.read_text())
            key = (found["scene"], found["payload"])
            others = [row for row in kept.get("tls", []) if (row["scene"], row["payload"]) != key]
            kept["tls"] = sorted([*others, found], key=lambda row: (row["scene"], row["payload"]))
            path.write_text(json.dumps(kept, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

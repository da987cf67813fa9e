"""Real data for experiments: graphs and traces made into workloads once, next to the results; or their stand-ins."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omen.errors import InvalidInput
from omen.pipeline.session import SparkOptions, require_spark, spark_session
from omen.sweep.table import CellTable

GRAPHS = {
    "fb1k": ("facebook_combined.txt.gz", False, 1000),
    "tw1k": ("higgs-social_network.prefix.edgelist.gz", True, 1000),
    "sd10k": ("soc-Slashdot0902.txt.gz", False, 10_000),
}
SMALL = ("fb1k", "tw1k")
MACHINES = "google2011_machine_events.csv.gz"
SEED = 7


@dataclass(frozen=True)
class Inputs:
    """Workload folders and traces made from real data, by name; both empty where no data was given."""

    workloads: dict[str, str]
    traces: dict[str, str]


NO_DATA = Inputs({}, {})


def prepare_inputs(
    data: str | Path | None,
    out: str | Path,
    options: SparkOptions | None = None,
    names: Collection[str] = tuple(GRAPHS),
) -> Inputs:
    """Make those that are not there yet from the files in `data`, with Spark. Files that are absent are left out."""
    if data is None:
        return NO_DATA
    folder = Path(data)
    if not folder.is_dir():
        raise InvalidInput(f"--data {data}: there is no such folder")
    present = {name: row for name, row in GRAPHS.items() if name in names and (folder / row[0]).is_file()}
    if not present or not (folder / MACHINES).is_file():
        wanted = ", ".join([*(row[0] for row in GRAPHS.values()), MACHINES])
        raise InvalidInput(f"--data {data}: holds none of the files experiments read ({wanted})")
    made = {name: Path(out) / "inputs" / name for name in present}
    traces = {name: Path(out) / "inputs" / f"{name}-churn" for name in present}
    if not all(path.exists() for path in (*made.values(), *traces.values())):
        require_spark()
        # Inputs are written before the sweep's first cell: without the mark of a sweep it would refuse its own folder.
        with CellTable(out).opened(alone=False), spark_session(options) as spark:
            for name, (file, directed, nodes) in present.items():
                _make(spark, folder / file, directed, nodes, folder / MACHINES, made[name], traces[name])
    return Inputs({name: str(path) for name, path in made.items()}, {name: str(path) for name, path in traces.items()})


def _make(spark: Any, edges: Path, directed: bool, nodes: int, machines: Path, workload: Path, trace: Path) -> None:
    from omen.pipeline.churn_google import write_google_churn
    from omen.pipeline.social import sample_social
    from omen.workloads.social import SocialRequest

    workload.parent.mkdir(parents=True, exist_ok=True)
    if not workload.exists():
        asked = SocialRequest(edges=str(edges), directed=directed, nodes=nodes, seed=SEED, subscribers_only=directed)
        sample_social(spark, asked, str(workload))
    if not trace.exists():
        write_google_churn(spark, str(machines), str(workload), SEED, str(trace))

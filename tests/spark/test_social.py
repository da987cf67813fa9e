from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from omen.errors import InvalidInput
from omen.pipeline.degrees import sum_degrees
from omen.pipeline.ingest import Ingested, ingest_edges
from omen.pipeline.social import edges_among, sample_social, sample_users, subscriptions
from omen.tables import read_workload
from omen.workloads.edge_files import LabelKind
from omen.workloads.social import SocialRequest, sample_locally

FACEBOOK = "facebook_combined.txt.gz"
HIGGS = "higgs-social_network.prefix.edgelist.gz"
SLASHDOT = "soc-Slashdot0902.txt.gz"


@cache
def slowly_read(path: Path) -> tuple[tuple[int, int], ...]:
    """Every line as the format's page describes it, independent of the pipeline."""
    with gzip.open(path, "rt") as lines:
        pairs = [line.split() for line in lines if not line.startswith("#")]
    return tuple((int(source), int(target)) for source, target in pairs)


class Graphs:
    """Each edge list read once, for all its samples."""

    def __init__(self, spark: SparkSession, data: Path) -> None:
        self._spark, self._data, self._read = spark, data, {}

    def read(self, name: str, directed: bool) -> tuple[Ingested, DataFrame, Path]:
        if name not in self._read:
            read = ingest_edges(self._spark, str(self._data / name), either_way=not directed)
            self._read[name] = (read, sum_degrees(read.pairs, directed).persist(), self._data / name)
        return self._read[name]


@pytest.fixture(scope="module")
def graphs(spark: SparkSession, data: Path) -> Graphs:
    return Graphs(spark, data)


def users_in(frame: DataFrame) -> set[object]:
    return set(frame.toArrow()["user"].to_pylist())


def pairs_in(frame: DataFrame) -> list[tuple[object, object]]:
    table = frame.toArrow()
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


@pytest.mark.parametrize(
    ("name", "directed", "wanted"),
    [
        (FACEBOOK, False, 1000),
        (FACEBOOK, False, 4000),
        (HIGGS, True, 1000),
        (HIGGS, True, 5000),
        (SLASHDOT, False, 1000),
        (SLASHDOT, False, 10_000),
    ],
)
def test_a_sample_holds_every_edge_among_its_users_and_no_other(
    graphs: Graphs, name: str, directed: bool, wanted: int
) -> None:
    read, degrees, path = graphs.read(name, directed)
    users = sample_users(read.pairs, wanted, seed=7, degrees=degrees, subscribers_only=directed)
    chosen = users_in(users)
    assert len(chosen) == wanted
    source = slowly_read(path)
    expected = {(a, b) for a, b in source if a != b and a in chosen and b in chosen}
    if not directed:
        expected |= {(b, a) for a, b in expected}
    found = pairs_in(subscriptions(edges_among(read.pairs, users), directed))
    assert len(found) == len(set(found))
    assert set(found) == expected
    if directed:
        assert chosen <= {a for a, b in source if a != b}


def test_graphs_have_the_sizes_their_readme_gives(graphs: Graphs) -> None:
    sizes = {FACEBOOK: (88_234, 4039), HIGGS: (355_074, 76_851), SLASHDOT: (948_464, 82_168)}
    for name, (rows, users) in sizes.items():
        read, degrees, _ = graphs.read(name, name == HIGGS)
        assert (read.counts.rows, degrees.count()) == (rows, users)
        assert read.counts.kept + read.counts.duplicates + read.counts.rejects == rows
    assert graphs.read(SLASHDOT, False)[0].counts.rejected == {"self-loop": 78_303}
    assert graphs.read(HIGGS, True)[1].filter("followees > 0").count() == 5395


def test_a_sample_is_the_same_whatever_the_partitions(spark: SparkSession) -> None:
    draws = np.random.default_rng(3).integers(0, 400, (1500, 2))
    edges = sorted({(int(a), int(b)) for a, b in draws if a != b})
    samples = []
    for partitions in (1, 3, 16):
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        frame = spark.createDataFrame(edges, "source long, target long").repartition(partitions)
        samples.append(users_in(sample_users(frame, 120, seed=5, seeds=2)))
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert samples[0] == samples[1] == samples[2]
    assert len(samples[0]) == 120


def test_a_sample_is_reached_from_its_seeds_level_by_level(spark: SparkSession) -> None:
    path = [(n, n + 1) if n % 2 else (n + 1, n) for n in range(30)]  # walked against half of its edges
    frame = spark.createDataFrame(path, "source long, target long")
    chosen = sorted(users_in(sample_users(frame, 7, seed=1, seeds=1)))
    assert len(chosen) == 7
    assert chosen == list(range(chosen[0], chosen[0] + 7))


def test_another_user_is_drawn_where_the_walk_runs_dry(spark: SparkSession) -> None:
    crumbs = [(2 * n, 2 * n + 1) for n in range(10)]
    frame = spark.createDataFrame(crumbs, "source long, target long")
    assert len(users_in(sample_users(frame, 13, seed=1, seeds=3))) == 13
    with pytest.raises(InvalidInput, match="--nodes 21 is more than its 20 users"):
        sample_users(frame, 21, seed=1)
    with pytest.raises(InvalidInput, match="more than its 10 users that follow another"):
        sample_users(frame, 11, seed=1, subscribers_only=True)


def test_a_workload_is_written_with_what_it_was_made_of(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "edges.tsv").write_text("b\ta\nc\ta\nd\tb\nd\td\nb\ta\n")
    asked = SocialRequest(str(tmp_path / "edges.tsv"), directed=True, nodes=4, follower_second=True, seed=2)
    sampled = sample_social(spark, asked, str(tmp_path / "w"))
    workload = read_workload(tmp_path / "w")
    assert workload.interests.pairs() == [("a", "b"), ("a", "c"), ("b", "d")]
    assert workload.interests.nodes.tolist() == ["a", "b", "c", "d"]
    assert workload.info["rejected"] == {"self-loop": 1}
    assert workload.info["duplicates"] == 1
    assert sampled.info["distance"]["followers"] == {"degree": 0.0, "shape": 0.0}
    with pytest.raises(InvalidInput, match="--subscribers-only has no meaning"):
        sample_social(spark, SocialRequest("x", directed=False, nodes=1, subscribers_only=True), str(tmp_path / "v"))


ODD_EDGES = b"""\
# a comment
source,target
b,a
c , "a"
d,b
d,d
b,a
\xff,a
one

zo\xc3\xab,a
source,target
a-user-whose-name-is-longer-than-thirty-two-bytes,d
"""


def test_one_machine_draws_the_same_sample_of_words(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_bytes(ODD_EDGES)
    asked = SocialRequest(str(tmp_path / "edges.csv"), directed=False, nodes=6, seed=3, seeds=1)
    require_same(spark, asked, tmp_path)


@pytest.mark.parametrize(("labels", "only"), [("auto", True), ("integer", False)])
def test_one_machine_draws_the_same_sample_of_numbers(
    spark: SparkSession, tmp_path: Path, labels: LabelKind, only: bool
) -> None:
    draws = np.random.default_rng(3).integers(-40, 400, (500, 2)).tolist()
    lines = [f"{a}\t{b}" for a, b in draws] + ["+5 6", "5 06", "7 x" if labels == "integer" else "7 8", "1 2 word"]
    edges = tmp_path / "edges"
    edges.write_bytes("\r\n".join(lines).encode())
    asked = SocialRequest(str(edges), True, 90, 2**63 + 5, subscribers_only=only, follower_second=only, labels=labels)
    require_same(spark, asked, tmp_path)


def require_same(spark: SparkSession, asked: SocialRequest, folder: Path) -> None:
    """Interests, nodes, description, distributions and rejected rows."""
    there, here = sample_social(spark, asked, str(folder / "there")), sample_locally(asked, str(folder / "here"))
    assert (here.info, here.counts) == (there.info, there.counts)
    one, other = read_workload(folder / "here"), read_workload(folder / "there")
    assert one.interests == other.interests
    assert one.info == other.info
    assert [(c.graph, c.count_of, c.degree.tolist(), c.users.tolist()) for c in here.ccdfs] == [
        (c.graph, c.count_of, c.degree.tolist(), c.users.tolist()) for c in there.ccdfs
    ]
    if here.info["rejected"]:
        rows = [pq.read_table(next(iter((folder / at).glob("rejected*")))).to_pylist() for at in ("here", "there")]
        assert rows[0] == sorted(rows[1], key=lambda row: row["row"])

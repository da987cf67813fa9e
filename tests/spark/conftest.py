"""One session for all Spark tests: starting one costs seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from pyspark.sql import SparkSession

from omen.errors import MissingDependency
from omen.pipeline.session import SparkOptions, spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        with spark_session(
            SparkOptions(master="local[2]", partitions=2, driver_memory="1g", quick_start=True)
        ) as session:
            yield session
    except MissingDependency as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data sets; tests that need it skip where it is absent."""
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("OMEN_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the real data sets are not in {folder}: set OMEN_DATA to where they are")
    return folder

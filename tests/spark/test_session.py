from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from omen.cli.main import main
from omen.errors import InvalidInput, MissingDependency
from omen.interests import Interests
from omen.pipeline import java
from omen.pipeline.java import find_java_home
from omen.pipeline.reaching import require_reachable
from omen.pipeline.session import configured, spark_session
from omen.tables import read_workload, write_workload

ROOT = Path(__file__).parents[2]
SPARK_BIN, JARS = Path(pyspark.__file__).parent / "bin", Path(pyspark.__file__).parent / "jars"
SUBMIT = (str(SPARK_BIN / "spark-submit"), "--master", "local[1]", "--conf", "spark.ui.enabled=false")
SUBMIT += ("--conf", "spark.sql.shuffle.partitions=2", "--driver-memory", "1g")
SUBMIT += ("--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC")  # a faster start, a slower peak
EDGES = "1 2\n2 3\n3 1\n4 4\n"
CONNECT_PARTS = ("grpc", "grpc_status", "google", "zstandard")


def environment(**more: str) -> dict[str, str]:
    left_out = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE")
    clean = {name: value for name, value in os.environ.items() if name not in left_out}
    return clean | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"} | more


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def social(tmp_path: Path, *more: str) -> list[str]:
    (tmp_path / "edges.txt").write_text(EDGES)
    words = ["workload", "social", "--edges", str(tmp_path / "edges.txt"), "--directed", "--nodes", "3"]
    return [*words, "--seeds", "3", "--seed", "1", "--out", str(tmp_path / "w"), *more]


def test_what_the_user_configured_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# ours\nspark.master  spark://host:7077\nspark.driver.memory=3g\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.delenv("MASTER", raising=False)
    assert configured("spark.master") == "spark://host:7077"
    assert configured("spark.ui.enabled") is None
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn --conf spark.ui.enabled=true pyspark-shell")
    assert configured("spark.master") == "yarn"
    assert configured("spark.ui.enabled") == "true"
    assert configured("spark.driver.memory") == "3g"


def test_a_session_that_is_there_is_used_and_left_running(spark: SparkSession) -> None:
    with spark_session() as session:
        assert session is spark
    assert spark.range(3).count() == 3


def test_a_machine_without_java_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "_wheel_java", lambda: None)
    with pytest.raises(MissingDependency, match="Java 17 or newer") as raised:
        java.prepare_java()
    assert "\n" not in str(raised.value)
    with pytest.raises(MissingDependency, match="which pins it, is not here"):
        java.ensure_java(tmp_path / "absent.lock")


def test_the_java_of_the_wheel_runs_without_the_module_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wheel = tmp_path / "wheel java"
    wheel.write_text('#!/bin/sh\nfor word do echo "$word"; done\n')
    wheel.chmod(0o755)
    monkeypatch.setattr(java.tempfile, "gettempdir", lambda: str(tmp_path))
    shim = java.shim_home(wheel) / "bin" / "java"
    said = subprocess.run(
        [shim, "-Da=b c", "--add-modules=jdk.incubator.vector", "Main"], capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines() == ["-Da=b c", "Main"]


@pytest.mark.parametrize(("banner", "version"), [('openjdk version "17.0.15"', 17), ('java version "1.8.0_1"', 8)])
def test_the_version_of_a_java_is_read(tmp_path: Path, banner: str, version: int) -> None:
    fake = tmp_path / "java"
    fake.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    fake.chmod(0o755)
    assert java.java_version(fake) == version
    assert java.java_version(tmp_path / "none") == 0


def test_bad_input_is_one_line_and_exit_code_2(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    fine = social(tmp_path)
    cases = [
        (social(tmp_path, "--edges", str(tmp_path / "absent")), "no such file"),
        (social(tmp_path, "--nodes", "9"), "--nodes 9 is more than its 3 users"),
        (social(tmp_path, "--max-rejected", "0"), "1 rows rejected"),
        (social(tmp_path, "--out", str(tmp_path / "file" / "w")), "cannot be written"),
        ([word if word != "--directed" else "--undirected" for word in fine] + ["--subscribers-only"], "no meaning"),
    ]
    for words, message in cases:
        assert main(words) == 2
        said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("omen: ")]
        assert len(said) == 1
        assert message in said[0]
    assert not (tmp_path / "w").exists()


def test_the_sample_is_written_with_its_degrees(spark: SparkSession, tmp_path: Path) -> None:
    assert main([*social(tmp_path), "--json"]) == 0
    assert read_workload(tmp_path / "w").interests.pairs() == [(1, 2), (2, 3), (3, 1)]
    assert (tmp_path / "w" / "ccdf.parquet").is_file()
    assert (tmp_path / "w" / "ccdf.svg").is_file() == (importlib.util.find_spec("matplotlib") is not None)


def test_master_and_remote_exclude_each_other() -> None:
    code = "from omen.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"
    words = ["workload", "social", "--edges", __file__, "--directed", "--nodes", "1", "--out", "w"]
    words += ["--master", "local", "--remote", "sc://localhost"]
    said = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, env=environment(), check=False
    )
    assert said.returncode == 2
    assert said.stderr.splitlines() == [
        "omen: --master and --remote exclude each other: a cluster is reached in one way"
    ]


@pytest.mark.slow
def test_the_same_command_runs_under_spark_submit(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    shown = (ROOT / "docs" / "pipeline.md").read_text()
    lines = re.search(r"^```python\n(.*?)^```", shown, re.MULTILINE | re.DOTALL)
    assert lines is not None
    script.write_text(lines[1])
    words = ["workload", "import", "--table", str(tmp_path / "t.csv"), "--out", str(tmp_path / "w"), "--json"]
    command = [*SUBMIT, str(script), *words]
    (tmp_path / "t.csv").write_text("node,topic\n1,2\n2,3\n3,1\n")
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["engine"] == "spark"
    assert read_workload(tmp_path / "w").interests.pairs() == [(1, 2), (2, 3), (3, 1)]


@pytest.fixture
def connect_server(tmp_path: Path) -> Iterator[str]:
    missing = [name for name in CONNECT_PARTS if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"Spark Connect needs {', '.join(missing)}: pip install 'pyspark[connect]'")
    port = free_port()
    command = [*SUBMIT]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["--conf", f"spark.connect.grpc.binding.port={port}", "spark-internal"]
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment(), stdout=log, stderr=log, start_new_session=True)
    try:
        for _ in range(240):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if server.poll() is not None:
                pytest.skip(f"the server did not start: {(tmp_path / 'server.log').read_text()[-300:]}")
            time.sleep(0.5)
        else:
            pytest.skip("the server did not start within two minutes")
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@pytest.mark.slow
def test_the_same_command_runs_against_a_connect_server(connect_server: str, tmp_path: Path) -> None:
    code = "from omen.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *social(tmp_path, "--remote", connect_server)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert read_workload(tmp_path / "w").interests.pairs() == [(1, 2), (2, 3), (3, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("secret", ["", "-Dspark.authenticate=true -Dspark.authenticate.secret=s"])
def test_a_real_master_answers_what_it_is_asked(tmp_path: Path, secret: str) -> None:
    port = free_port()
    command = [str(find_java_home() / "bin" / "java"), *secret.split(), "-Xmx128m", "-cp", str(JARS / "*")]
    command += ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "master.log").open("wb") as log:
        master = subprocess.Popen([*command, "--webui-port", "0"], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                require_reachable(f"spark://127.0.0.1:{port}")
                break
            except InvalidInput as error:
                assert "Connection refused" in str(error), "it listens, and is to answer"
                assert time.monotonic() < deadline, (tmp_path / "master.log").read_text()[-500:]
                time.sleep(0.3)
    finally:
        master.kill()
        master.wait()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_command_leaves_the_previous_output_whole_and_nothing_behind(
    tmp_path: Path, stop: signal.Signals
) -> None:
    folder = tmp_path / "w"
    write_workload(folder, Interests.from_pairs([(1, 2)]), {})
    code = "from omen.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"
    words = ["workload", "synth", "--nodes", "100000000", "--topics", "1000", "--sizes", "20", "--engine", "spark"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words, "--partitions", "200", "--out", str(folder)],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        for _ in range(600):
            if any(tmp_path.glob(".w.new-*/interests/_temporary/**/*.parquet")) or process.poll() is not None:
                break
            time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(stop)
        said = process.communicate(timeout=120)[1]
        assert is_gone(process.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert read_workload(folder).interests.pairs() == [(1, 2)]
    if stop == signal.SIGINT:
        assert process.returncode == 130
        assert said == ""
        assert not list(tmp_path.glob(".w.*"))


def is_gone(group: int) -> bool:
    """Whether every process of the group, Spark's among them, ends within some seconds."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.2)
    return False

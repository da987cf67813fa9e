"""A Spark session: local unless the user says otherwise, quiet, and stopped again whatever happens.

What the user configured (spark-submit, PYSPARK_SUBMIT_ARGS, spark-defaults.conf, SPARK_REMOTE) is never overruled: a
setting of ours is given only where there is none of theirs. The same code runs on classic Spark and on Spark Connect.
"""

from __future__ import annotations

import importlib.util
import itertools
import logging
import os
import shlex
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from omen.errors import InvalidInput, MissingDependency
from omen.pipeline.failures import first_line, spark_failures
from omen.pipeline.java import prepare_java
from omen.pipeline.progress import stage_progress
from omen.pipeline.reaching import require_reachable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_PARTITIONS_A_CORE = 8
_CANCEL_S = 10.0


@dataclass(frozen=True)
class SparkOptions:
    """What a user can say about the session; None leaves it to what is configured, or else to us."""

    master: str | None = None
    remote: str | None = None
    driver_memory: str | None = None
    partitions: int | None = None  # of a shuffle
    verbose: bool = False  # lets Spark's own messages through
    quick_start: bool = False  # a faster start and a slower peak: for tests and tiny inputs
    shows_stages: bool = True  # a progress line of stages; off where the caller has one of its own


@contextmanager
def spark_session(options: SparkOptions | None = None) -> Iterator[SparkSession]:
    """A session for the block. One that is already active is used and left running; one started here is stopped.

    Spark's own errors inside the block come out as one of `omen.errors`, in one line.
    """
    options = options or SparkOptions()
    active = _active_session()
    with spark_failures():
        if active is not None:
            yield active
            return
        with ExitStack() as stack:
            stack.enter_context(_keeping_interrupts())
            session = _start(options, stack)
            _interrupt_quietly()
            stack.callback(_stop, session)
            with stage_progress(session) if options.shows_stages else nullcontext():
                yield session


def require_spark() -> None:
    """Refuse, in one line, where pyspark is not installed; the modules that read and write need it to be imported."""
    if importlib.util.find_spec("pyspark") is None:
        raise MissingDependency("this needs Spark: install it with pip install 'omen-overlay[spark]'")


def cancel_jobs(session: SparkSession) -> None:
    """Ends what an interrupted session still runs, and waits for it some seconds: tasks would go on writing files.

    From a thread of its own: the interrupted call still waits for its answer on the connection of this one.
    """
    canceller = threading.Thread(target=_cancel, args=(session,))
    canceller.start()
    canceller.join()


def is_connect(session: SparkSession) -> bool:
    """Whether the session talks to a Spark Connect server; there is no driver JVM of ours then."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def configured(key: str) -> str | None:
    """What the user's own configuration says of a Spark setting, None where it is silent."""
    from_arguments = _submit_arguments().get(key)
    return from_arguments if from_arguments is not None else _defaults_file().get(key)


def under_spark_submit() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _active_session() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _start(options: SparkOptions, stack: ExitStack) -> SparkSession:
    require_spark()
    from pyspark.sql import SparkSession

    if options.master and options.remote:
        raise InvalidInput("--master and --remote exclude each other: a cluster is reached in one way")
    if not options.remote and not options.master and "SPARK_REMOTE" in os.environ:
        options = SparkOptions(**{**vars(options), "remote": os.environ["SPARK_REMOTE"]})
    builder = SparkSession.builder.appName("omen")
    if not under_spark_submit():
        require_reachable(options.remote or options.master or configured("spark.master") or "")
    if options.remote:
        return _connect(builder.remote(options.remote), options)
    for key, value in _own_settings(options, stack).items():
        builder = builder.config(key, value)
    if under_spark_submit():
        return _create(builder, "as spark-submit set it up")
    prepare_java()
    chosen = options.master or configured("spark.master")
    if options.master or not chosen:
        builder = builder.master(options.master or "local[*]")
    with _start_up_noise(options.verbose) as noise:
        return _create(builder, f"with master {chosen or 'local[*]'}", noise)


def _connect(builder: Any, options: SparkOptions) -> SparkSession:
    if importlib.util.find_spec("grpc") is None:
        raise MissingDependency("--remote needs Spark Connect: install it with pip install 'pyspark[connect]'")
    if options.driver_memory:
        raise InvalidInput("--driver-memory has no meaning with --remote: the server's driver is running already")
    session = _create(builder, f"at {options.remote}")
    if options.partitions:
        session.conf.set("spark.sql.shuffle.partitions", str(options.partitions))
    return session


def _create(builder: Any, where: str, noise: BinaryIO | None = None) -> SparkSession:
    try:
        session: SparkSession = builder.getOrCreate()
        session.conf.get("spark.sql.shuffle.partitions")  # a Connect session meets its server at the first question
    except KeyboardInterrupt:
        raise
    except Exception as error:
        said = first_line(error)
        if noise is not None and "gateway" in said.lower():
            noise.seek(0)
            lines = noise.read().decode(errors="replace").strip().splitlines()
            said = next((line for line in lines if "rror" in line or "xception" in line), lines[-1] if lines else said)
        raise InvalidInput(f"Spark did not start {where}: {said}") from error
    return session


def _own_settings(options: SparkOptions, stack: ExitStack) -> dict[str, str]:
    """What we ask for: the user's options always, our preferences where nothing is configured."""
    asked = {
        "spark.driver.memory": options.driver_memory,
        "spark.sql.shuffle.partitions": str(options.partitions) if options.partitions else None,
    }
    settings = {key: value for key, value in asked.items() if value is not None}
    if under_spark_submit():
        return settings
    preferred = {"spark.ui.showConsoleProgress": "false", "spark.ui.enabled": "false"}
    master = options.master or configured("spark.master") or "local[*]"
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        preferred |= {
            "spark.driver.memory": f"{_local_memory_mib()}m",
            "spark.sql.shuffle.partitions": str(_PARTITIONS_A_CORE * (os.cpu_count() or 1)),
            "spark.sql.warehouse.dir": stack.enter_context(tempfile.TemporaryDirectory(prefix="omen-warehouse-")),
            "spark.driver.extraJavaOptions": _java_options(options),
        }
    free = {key: value for key, value in preferred.items() if configured(key) is None}
    return free | settings


def _java_options(options: SparkOptions) -> str:
    words = ["-XX:+UseParallelGC"]
    if options.quick_start:
        words.append("-XX:TieredStopAtLevel=1")
    if not options.verbose:
        words.append(f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}")
    return " ".join(words)


def _local_memory_mib() -> int:
    """Half of the machine, at most 4 GiB: what the largest of our own jobs needs on one machine."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 2048
    return max(1024, min(4096, machine // 2 // 2**20))


@contextmanager
def _start_up_noise(verbose: bool) -> Iterator[BinaryIO | None]:
    """Keeps what the launcher and the JVM print while they start (and the JVM after it) out of the user's terminal."""
    if verbose:
        yield None
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as noise:
        kept = os.dup(2)
        os.dup2(noise.fileno(), 2)
        try:
            yield noise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _stop(session: SparkSession) -> None:
    """Stops the session, as `cancel_jobs` does; a second Ctrl-C cannot leave a half-stopped JVM behind."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not in the main thread
        before = None
    try:
        stopper = threading.Thread(target=_cancel_and_stop, args=(session,))
        stopper.start()
        stopper.join()
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _cancel_and_stop(session: SparkSession) -> None:
    _cancel(session)
    with suppress(Exception):  # a server or JVM that is gone already is stopped
        session.stop()


def _cancel(session: SparkSession) -> None:
    with suppress(Exception):
        if is_connect(session):
            session.interruptAll()
            return
        session.sparkContext.cancelAllJobs()
        tracker = session.sparkContext._jsc.sc().statusTracker()
        patience = time.monotonic() + _CANCEL_S
        while time.monotonic() < patience and any(one.numRunningTasks() for one in tracker.getExecutorInfos()):
            time.sleep(0.05)


@contextmanager
def _keeping_interrupts() -> Iterator[None]:
    """Puts back what Ctrl-C did, and what is logged, before the session."""
    before, disabled = signal.getsignal(signal.SIGINT), logging.root.manager.disable
    try:
        yield
    finally:
        logging.disable(disabled)
        with suppress(ValueError, TypeError):  # not in the main thread; not set from Python
            signal.signal(signal.SIGINT, before)


def _interrupt_quietly() -> None:
    """Takes back pyspark's own answer to Ctrl-C, which calls the JVM amid another call.

    py4j logs every call that is interrupted with all its frames: a user who presses Ctrl-C did not ask for them.
    """

    def interrupt(*_: object) -> None:
        logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    with suppress(ValueError):  # not in the main thread
        if callable(signal.getsignal(signal.SIGINT)):
            signal.signal(signal.SIGINT, interrupt)


def _submit_arguments() -> dict[str, str]:
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    found: dict[str, str] = {}
    for word, value in itertools.pairwise(words):
        if word == "--master":
            found["spark.master"] = value
        elif word == "--driver-memory":
            found["spark.driver.memory"] = value
        elif word == "--driver-java-options":
            found["spark.driver.extraJavaOptions"] = value
        elif word in ("--conf", "-c") and "=" in value:
            key, _, setting = value.partition("=")
            found[key] = setting
    if "MASTER" in os.environ:
        found.setdefault("spark.master", os.environ["MASTER"])
    return found


def _defaults_file() -> dict[str, str]:
    folder = os.environ.get("SPARK_CONF_DIR") or (
        str(Path(os.environ["SPARK_HOME"]) / "conf") if os.environ.get("SPARK_HOME") else None
    )
    path = Path(folder) / "spark-defaults.conf" if folder else None
    if path is None or not path.is_file():
        return {}
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.strip().replace("=", " ", 1).split(None, 1)
        if len(words) == 2 and not words[0].startswith("#"):
            found[words[0]] = words[1].strip()
    return found

"""Spark's errors as one line each."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from omen.errors import CannotWrite, InvalidInput, InvalidTable, OmenError

_MARKS = (
    "An error occurred while calling",
    "Caused by: ",
    "JVM stacktrace:",
    "at org.",
    "at java.",
    "at scala.",
    "\tat ",
)
_FILE = re.compile(r"(?:file:|hdfs:|s3a?:|gs:|abfss?:)[^\s,'\"`\])]+")


@contextmanager
def spark_failures() -> Iterator[None]:
    """Turns an error of Spark's into one of ours; everything else passes."""
    try:
        yield
    except OmenError:
        raise
    except Exception as error:
        if not _is_spark_error(error):
            raise
        raise explain(error) from error


def explain(error: BaseException) -> OmenError:
    """What a failed Spark job means to the user."""
    text = str(error)
    found = _FILE.search(text)
    where = _plain_path(found[0].rstrip(".")) if found else "the input"
    if "PATH_NOT_FOUND" in text or "FileNotFoundException" in text or "does not exist" in text:
        return InvalidTable(f"{where}: there is no such file")
    if "EOFException" in text or "Unexpected end of input stream" in text:
        return InvalidTable(f"{where}: the compressed file is cut short; fetch it again")
    if "incorrect header check" in text or "not a gzip file" in text or "incorrect data check" in text:
        return InvalidTable(f"{where}: not a whole gzip file, although it is named like one")
    if "is not a Parquet file" in text or "CANNOT_READ_FILE_FOOTER" in text:
        return InvalidTable(f"{where}: not a Parquet file")
    if "No space left on device" in text:
        return CannotWrite(f"no space left on the device while Spark was writing: {first_line(error)}")
    if "OutOfMemoryError" in text:
        return InvalidInput("Spark ran out of memory: give it more, for example with --driver-memory 8g")
    return InvalidInput(f"Spark failed: {first_line(error)}")


def first_line(error: BaseException) -> str:
    """The line of a Spark error that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line.lstrip(": ") for line in lines if not line.startswith(_MARKS)]
    return (telling or lines or [type(error).__name__])[0][:300]


def _plain_path(address: str) -> str:
    return re.sub(r"^file:/*", "/", address) if address.startswith("file:") else address


def _is_spark_error(error: BaseException) -> bool:
    modules = {cls.__module__.split(".")[0] for cls in type(error).__mro__}
    return bool(modules & {"pyspark", "py4j", "grpc"}) and "pyspark" in sys.modules

"""The log of a node: one line per event, an event name and key=value fields, as text or JSON."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO

LOGGER = "omen.node"
logging.getLogger(LOGGER).addHandler(logging.NullHandler())  # silent, unless an application or a command wants it


class Log:
    """Goes through `logging`, so that an application may route it: the message of a record is the event's name."""

    def __init__(self, node: str) -> None:
        self._logger = logging.getLogger(LOGGER)
        self._node = node

    def info(self, event: str, /, **fields: Any) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: Any) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, error: BaseException, /, **fields: Any) -> None:
        if self._logger.isEnabledFor(logging.ERROR):
            self._logger.error(event, exc_info=error, extra={"node": self._node, "fields": fields})

    def _write(self, level: int, event: str, fields: dict[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={"node": self._node, "fields": fields})


class TextLines(logging.Formatter):
    """Text for people and for `grep`: time, level, node, event, fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={_quoted(value)}" for name, value in getattr(record, "fields", {}).items())
        stamp = time.strftime("%H:%M:%S", time.localtime(record.created))
        node = getattr(record, "node", "-")
        line = f"{stamp}.{int(record.msecs):03d} {record.levelname.lower()} {node}: {record.getMessage()}{fields}"
        return line + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


class JsonLines(logging.Formatter):
    """One object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": round(record.created, 6),
            "level": record.levelname.lower(),
            "node": getattr(record, "node", None),
            "event": record.getMessage(),
            **{name: _plain(value) for name, value in getattr(record, "fields", {}).items()},
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _quoted(value: Any) -> str:
    """A value with blanks or quotes in it, or none at all, stands in quotes."""
    text = str(value)
    return text if text and text.isprintable() and not any(char in ' "=' for char in text) else json.dumps(text)


def write_log(style: str, stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Have this process write the log of its nodes to a stream (stderr)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    logger = logging.getLogger(LOGGER)
    for former in list(logger.handlers):
        logger.removeHandler(former)
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False

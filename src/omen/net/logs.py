"""The log of a node: what happened, a line each, for people or (JSON) for machines."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO

LOGGER = "omen.node"
logging.getLogger(LOGGER).addHandler(logging.NullHandler())  # silent, unless an application or a command wants it


class Log:
    """Says what happened with facts beside it; goes through `logging`, so that an application may route it."""

    def __init__(self, node: str) -> None:
        self._logger = logging.getLogger(LOGGER)
        self._node = node

    def info(self, what: str, **facts: Any) -> None:
        self._say(logging.INFO, what, facts)

    def warning(self, what: str, **facts: Any) -> None:
        self._say(logging.WARNING, what, facts)

    def error(self, what: str, error: BaseException, **facts: Any) -> None:
        if self._logger.isEnabledFor(logging.ERROR):
            self._logger.error(what, exc_info=error, extra={"node": self._node, "facts": facts})

    def _say(self, level: int, what: str, facts: dict[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, what, extra={"node": self._node, "facts": facts})


class Lines(logging.Formatter):
    """Text for people: time, level, node, what, facts."""

    def format(self, record: logging.LogRecord) -> str:
        facts = " ".join(f"{name}={value}" for name, value in getattr(record, "facts", {}).items())
        stamp = time.strftime("%H:%M:%S", time.localtime(record.created))
        node = getattr(record, "node", "-")
        line = f"{stamp}.{int(record.msecs):03d} {record.levelname.lower()} {node}: {record.getMessage()} {facts}"
        return line.rstrip() + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


class JsonLines(logging.Formatter):
    """An object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": round(record.created, 6),
            "level": record.levelname.lower(),
            "node": getattr(record, "node", None),
            "what": record.getMessage(),
            **{name: _plain(value) for name, value in getattr(record, "facts", {}).items()},
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def write_log(style: str, stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Have this process write the log of its nodes to a stream (stderr)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if style == "json" else Lines())
    logger = logging.getLogger(LOGGER)
    for former in list(logger.handlers):
        logger.removeHandler(former)
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False

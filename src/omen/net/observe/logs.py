"""The log of a node: one line per event, an event name and key=value fields, as text or JSON.

What comes from outside (names, addresses, reasons) may hold any character: whatever is not printable is escaped, so
that a field never becomes a line. Each event may write so many lines at once and per second; the next line says how
many were skipped. No error in here reaches the caller, and nothing in here waits: neither a full disk nor a pipe that
no process reads may touch the protocol.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TextIO

from omen.net.observe.log_writer import LineWriter

LOGGER = "omen.node"
LOOP_LOGGER = "asyncio"
LINES_DROPPED = "log_lines_dropped"
LINES_AT_ONCE, LINES_PER_S = 50.0, 2.0
logging.getLogger(LOGGER).addHandler(logging.NullHandler())  # silent, unless an application or a command wants it


class EventLimit:
    """How many lines of one event may be written: a few at once, then so many per second."""

    __slots__ = ("_at", "_left", "_skipped")

    def __init__(self, now: float) -> None:
        self._left = LINES_AT_ONCE
        self._at = now
        self._skipped = 0

    def take(self, now: float) -> int | None:
        """How many lines were skipped before this one; None: skip this one too."""
        self._left = min(LINES_AT_ONCE, self._left + (now - self._at) * LINES_PER_S)
        self._at = now
        if self._left < 1:
            self._skipped += 1
            return None
        self._left -= 1
        skipped, self._skipped = self._skipped, 0
        return skipped


class Log:
    """Goes through `logging`, so that an application may route it: the message of a record is the event's name.

    `topics`: the names of topics by their keys, as far as this node knows them; others are shown by key.
    """

    def __init__(self, node: str, topics: Mapping[int, str] | None = None) -> None:
        self._logger = logging.getLogger(LOGGER)
        self.node = node
        self._topics = topics if topics is not None else {}
        self._limits: dict[str, EventLimit] = {}
        self.skipped = 0

    def topic(self, key: int) -> str:
        """A topic as the log shows it."""
        return self._topics.get(key) or f"{key:016x}"

    def debug(self, event: str, /, **fields: Any) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: Any) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: Any) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, error: BaseException, /, **fields: Any) -> None:
        self._write(logging.ERROR, event, fields, error)

    def _write(self, level: int, event: str, fields: dict[str, Any], error: BaseException | None = None) -> None:
        if not self._logger.isEnabledFor(level):
            return
        now = time.monotonic()
        limit = self._limits.get(event)
        if limit is None:
            limit = self._limits[event] = EventLimit(now)
        skipped = limit.take(now)
        if skipped is None:
            self.skipped += 1
            return
        if skipped:
            fields["skipped"] = skipped
        self._logger.log(level, event, exc_info=error, extra={"node": self.node, "fields": fields})


class TextLines(logging.Formatter):
    """Text for people and for `grep`: time in UTC, level, node, event, fields. Tracebacks are indented."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={_quoted(value)}" for name, value in getattr(record, "fields", {}).items())
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        node = _quoted(getattr(record, "node", "-"))
        event = _escaped(record.getMessage())
        line = f"{stamp}.{int(record.msecs):03d}Z {record.levelname.lower()} {node}: {event}{fields}"
        if record.exc_info:
            line += "".join(f"\n    {_escaped(part)}" for part in self.formatException(record.exc_info).splitlines())
        return line


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
        return _escaped(json.dumps(line, ensure_ascii=False))


class RecentLines(logging.Handler):
    """The last lines of one node's log, as text, for those who may see them."""

    def __init__(self, node: str, count: int = 200) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(TextLines())
        self._node = node
        self._lines: deque[str] = deque(maxlen=count)
        logging.getLogger(LOGGER).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "node", None) == self._node:
            self._lines.append(self.format(record))

    def lines(self) -> list[str]:
        return list(self._lines)

    def close(self) -> None:
        logging.getLogger(LOGGER).removeHandler(self)
        super().close()


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _quoted(value: Any) -> str:
    """A value with blanks or quotes in it, or none at all, stands in quotes."""
    text = str(value)
    is_plain = text and text.isprintable() and not any(char in ' "=' for char in text)
    return text if is_plain else _escaped(json.dumps(text, ensure_ascii=False))


def _escaped(text: str) -> str:
    """Whatever is not printable as JSON writes it: other line ends than newline, marks that turn text around."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


class LineHandler(logging.Handler):
    """Hands lines to a thread that writes them to a stream. `dropped`: how many could not be written."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.stream = stream
        self._node = "-"
        self._writer = LineWriter(stream.fileno(), self._tell_dropped)

    @property
    def dropped(self) -> int:
        return self._writer.dropped

    @property
    def is_behind(self) -> bool:
        """Whether lines were dropped, and it could not be said yet."""
        return self._writer.is_behind

    def is_for(self, stream: TextIO) -> bool:
        """Whether it writes to a stream of this process; what was forked from it may have turned its streams around."""
        return self.stream is stream and self._writer.is_own

    def emit(self, record: logging.LogRecord) -> None:
        self._node = getattr(record, "node", self._node)
        try:
            line = self.format(record)
        except Exception as error:  # no error of a log may reach its caller
            line = f"{record.msg}: cannot be written: {type(error).__name__}"
        self._writer.put(_line(line))

    def _tell_dropped(self, count: int) -> bytes:
        facts = {"name": LOGGER, "levelno": logging.WARNING, "levelname": "WARNING", "msg": LINES_DROPPED}
        record = logging.makeLogRecord({**facts, "node": self._node, "fields": {"count": count}})
        return _line(self.format(record))

    def flush(self) -> None:
        """Wait for what is not written yet, for a moment at most."""
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
        super().close()


def _line(text: str) -> bytes:
    return f"{text}\n".encode(errors="backslashreplace")


def write_log(style: str, stream: TextIO | None = None, level: str = "info") -> None:
    """Have this process write the log of its nodes to a stream (stderr), and what its event loop complains of."""
    stream = stream or sys.stderr
    logger = logging.getLogger(LOGGER)
    handler = next((one for one in line_handlers() if one.is_for(stream)), None) or _handler_for(stream)
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    for former in list(logger.handlers):
        if not isinstance(former, RecentLines):
            logger.removeHandler(former)
            logging.getLogger(LOOP_LOGGER).removeHandler(former)
    logger.addHandler(handler)
    logging.getLogger(LOOP_LOGGER).addHandler(handler)
    logger.propagate = False
    set_level(level)


def _handler_for(stream: TextIO) -> logging.Handler:
    """A stream in memory never waits: it is written to at once."""
    with suppress(OSError, AttributeError):
        return LineHandler(stream)
    return logging.StreamHandler(stream)


def line_handlers() -> list[LineHandler]:
    """Those that write the log of this process's nodes."""
    return [one for one in logging.getLogger(LOGGER).handlers if isinstance(one, LineHandler)]


def flush_log() -> None:
    """Before a process ends, or says something beside its log: wait a moment for lines that are not written yet."""
    for handler in line_handlers():
        handler.flush()


def set_level(level: str) -> None:
    """Write lines of this level and above from now on."""
    logging.getLogger(LOGGER).setLevel(level.upper())

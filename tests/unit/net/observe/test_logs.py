"""Log lines: an event name and fields, as text and as JSON."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from omen.net.observe.logs import LOGGER, Log, write_log


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    logger = logging.getLogger(LOGGER)
    before = (list(logger.handlers), logger.level, logger.propagate)
    yield io.StringIO()
    logger.handlers[:], logger.level, logger.propagate = before[0], before[1], before[2]


def test_a_text_line_is_an_event_and_fields_that_can_be_searched_for(stream: io.StringIO) -> None:
    write_log("text", stream)
    Log("n1").warning("peer_declared_failed", peer="n4", incarnation=1, cause="no route to host")
    pattern = r'\d\d:\d\d:\d\d\.\d{3} warning n1: peer_declared_failed peer=n4 incarnation=1 cause="no route to host"\n'
    assert re.fullmatch(pattern, stream.getvalue())


@pytest.mark.parametrize("value", ["", "a b", 'say "x"', "a=b", "two\nlines"])
def test_a_value_that_would_not_read_as_one_stands_in_quotes(stream: io.StringIO, value: str) -> None:
    write_log("text", stream)
    Log("n1").info("node_started", what=value)
    assert stream.getvalue().count("\n") == 1
    assert json.loads(stream.getvalue().partition("what=")[2]) == value


def test_a_json_line_has_the_same_event_and_fields(stream: io.StringIO) -> None:
    write_log("json", stream)
    Log("n1").info("repair_finished", kind="leave", links=2, cause=ValueError("odd"))
    line = json.loads(stream.getvalue())
    assert (line["level"], line["node"], line["event"]) == ("info", "n1", "repair_finished")
    assert (line["kind"], line["links"], line["cause"]) == ("leave", 2, "odd")


def test_an_error_comes_with_its_traceback(stream: io.StringIO) -> None:
    write_log("json", stream)
    Log("n1").error("core_error", ValueError("odd"), input="Publication")
    line = json.loads(stream.getvalue())
    assert (line["event"], line["input"]) == ("core_error", "Publication") and "ValueError: odd" in line["error"]

"""Log lines: an event name and fields, as text and as JSON."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from omen.net.observe.logs import LINES_DROPPED, LOGGER, LOOP_LOGGER, Log, line_handlers, set_level, write_log


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    logger, loop = logging.getLogger(LOGGER), logging.getLogger(LOOP_LOGGER)
    before = (list(logger.handlers), logger.level, logger.propagate, list(loop.handlers))
    yield io.StringIO()
    logger.handlers[:], logger.level, logger.propagate, loop.handlers[:] = before


def test_a_text_line_is_an_event_and_fields_that_can_be_searched_for(stream: io.StringIO) -> None:
    write_log("text", stream)
    Log("n1").warning("peer_declared_failed", peer="n4", incarnation=1, cause="no route to host")
    pattern = (
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warning n1: "
        r'peer_declared_failed peer=n4 incarnation=1 cause="no route to host"\n'
    )
    assert re.fullmatch(pattern, stream.getvalue())


ODD = ["", "a b", 'say "x"', "a=b", "two\nlines", "a\u2028b", "a\x85b", "\u202eright to left", "\x1b[2J", "\udc80"]


@pytest.mark.parametrize("value", ODD)
def test_a_value_that_would_not_read_as_one_stands_in_quotes(stream: io.StringIO, value: str) -> None:
    write_log("text", stream)
    Log("n1").info("node_started", what=value)
    assert len(stream.getvalue().splitlines()) == 1 and stream.getvalue()[:-1].isprintable()
    assert json.loads(stream.getvalue().partition("what=")[2]) == value


@pytest.mark.parametrize("value", ODD)
def test_a_json_line_is_one_line_whatever_a_field_holds(stream: io.StringIO, value: str) -> None:
    write_log("json", stream)
    Log("n1").info("node_started", what=value)
    assert len(stream.getvalue().splitlines()) == 1 and stream.getvalue()[:-1].isprintable()
    assert json.loads(stream.getvalue())["what"] == value


def test_neither_a_node_s_name_nor_a_traceback_forges_a_line(stream: io.StringIO) -> None:
    write_log("text", stream)
    forged = "x\n2026-01-01T00:00:00.000Z info n9: node_left"
    Log(forged).error("core_error", ValueError(forged))
    lines = stream.getvalue().splitlines()
    assert [line for line in lines if not line.startswith("    ")] == [lines[0]]


def test_lines_below_the_level_are_not_written(stream: io.StringIO) -> None:
    write_log("text", stream, "warning")
    log = Log("n1")
    log.info("node_started")
    log.warning("slow_consumer")
    set_level("debug")
    log.debug("link_up")
    assert [line.split(": ")[1] for line in stream.getvalue().splitlines()] == ["slow_consumer", "link_up"]


def test_one_event_fills_no_log_and_keeps_no_other_out(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("omen.net.observe.logs.time.monotonic", lambda: now)
    write_log("json", stream)
    log = Log("n1")
    for _ in range(1000):
        log.warning("gap_told")
    log.info("peer_left")
    now = 101.0
    log.warning("gap_told")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["gap_told"] * 50 + ["peer_left", "gap_told"]
    assert (lines[-1]["skipped"], log.skipped) == (950, 950)


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


def test_every_event_is_documented_and_no_other() -> None:
    root = Path(__file__).parents[4]
    rooms = (root / "src/omen/net", root / "src/omen/cli")
    written = "".join(path.read_text() for room in rooms for path in sorted(room.rglob("*.py")))
    events = set(re.findall(r'\b_?(?:log|Log\([^)]*\))\.(?:debug|info|warning|error)\(\s*"(\w+)"', written))
    events.add(LINES_DROPPED)
    table = (root / "docs/operations.md").read_text().partition("| event |")[2].partition("\n\n")[0]
    assert events == {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.partition(" | ")[0])}


@pytest.mark.usefixtures("stream")
def test_lines_go_to_a_file_in_order_and_another_style_takes_over_there(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        write_log("text", file)
        (handler,) = line_handlers()
        Log("n1").info("node_started", what="\udc80")
        write_log("json", file)
        assert line_handlers() == [handler], "what it counted goes on"
        Log("n1").info("node_left")
        handler.flush()
        first, second = (tmp_path / "log").read_text().splitlines()
        handler.close()
    assert "node_started" in first and json.loads(second)["event"] == "node_left"


def test_what_the_event_loop_complains_of_is_a_line_too(stream: io.StringIO) -> None:
    """It goes past the log otherwise, to the same pipe, and waits there."""
    write_log("text", stream)
    logging.getLogger(LOOP_LOGGER).error("Task exception was never retrieved\nfuture: %s", "x")
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(r"error -: Task exception was never retrieved\nfuture: x")

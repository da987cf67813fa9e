"""Tables of nodes that went up and down, made into traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from omen.churn import Crash, Join, Leave
from omen.errors import InvalidTable
from omen.interests import Interests
from omen.tables.churn_import import import_events, import_intervals

WORKLOAD = Interests.from_pairs([(node, "t") for node in "abcd"])


def table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return path


def test_events_count_from_the_earliest_and_who_comes_up_later_leaves_at_first(tmp_path: Path) -> None:
    path = table(tmp_path, "node,time_s,event\na,100,up\nb,105,down\nc,110,UP\nb,120,join\na,130,leave\nd,90,up\n")
    made = import_events(path, WORKLOAD)
    assert made.trace.events == (
        Leave(0.0, "a"),
        Leave(0.0, "c"),
        Join(10.0, "a"),
        Crash(15.0, "b"),
        Join(20.0, "c"),
        Join(30.0, "b"),
        Leave(40.0, "a"),
    )
    assert (made.rows, made.strangers, made.repeated, made.late) == (6, 0, 0, 2)


def test_units_columns_and_what_down_means_can_be_told(tmp_path: Path) -> None:
    path = table(tmp_path, "host,ms,what,more\na,0,down,x\na,1500,up,y\n")
    made = import_events(path, WORKLOAD, ("host", "ms", "what"), "ms", Leave)
    assert made.trace.events == (Leave(0.0, "a"), Join(1.5, "a"))


def test_what_changes_nothing_and_strangers_are_left_out_and_counted(tmp_path: Path) -> None:
    path = table(tmp_path, "node,time_s,event\na,0,up\na,1,up\na,2,crash\na,3,fail\nzoe,4,up\nzoe,5,down\n")
    made = import_events(path, WORKLOAD)
    assert made.trace.events == (Crash(2.0, "a"),)
    assert (made.rows, made.strangers, made.repeated) == (6, 1, 2)


def test_intervals_that_touch_are_one_and_empty_cells_are_open(tmp_path: Path) -> None:
    path = table(tmp_path, "node,up_s,down_s\na,,10\na,30,\nb,10,20\nb,20,25\nc,5,40\nc,12,60\n")
    made = import_intervals(path, WORKLOAD)
    assert made.trace.events == (
        Leave(0.0, "b"),
        Crash(5.0, "a"),
        Join(5.0, "b"),
        Crash(20.0, "b"),
        Join(25.0, "a"),
        Crash(55.0, "c"),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("node,time_s,event\na,soon,up\n", "time_s 'soon' is not a number"),
        ("node,time_s,event\na,inf,up\n", "time_s 'inf' is not a number"),
        ("node,time_s,event\na,1,sleeps\n", "event 'sleeps' is not one of add, crash"),
        ("node,time_s,event\nzoe,1,up\n", "none of its 1 rows is about a node of the workload"),
        ("node,time_s\na,1\n", "event"),
        ("node,time_s,event\na,,up\n", "time_s"),
    ],
)
def test_bad_events_are_refused_in_words(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InvalidTable, match=complaint):
        import_events(table(tmp_path, text), WORKLOAD)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("node,up_s,down_s\na,10,5\n", "row 1: it ends at 5 s, before it begins at 10 s"),
        ("node,up_s,down_s\na,x,5\n", "up_s 'x' is not a number"),
        ("node,up_s\na,1\n", "down_s"),
    ],
)
def test_bad_intervals_are_refused_in_words(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InvalidTable, match=complaint):
        import_intervals(table(tmp_path, text), WORKLOAD)


def test_names_of_another_encoding_are_found_where_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("node,time_s,event\nzoë,1,crash\n".encode("cp1252"))
    made = import_events(path, Interests.from_pairs([("zoë", "tea"), ("ann", "tea")]), encoding="cp1252")
    assert [event.node for event in made.trace] == ["zoë"]

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import omen
from omen.errors import CannotWrite, InvalidInput
from omen.interests import Interests
from omen.overlay import Overlay
from omen.tables import (
    RejectedRow,
    read_overlay,
    read_record,
    read_table,
    read_workload,
    replace_file,
    replace_folder,
    write_overlay,
    write_rejected,
    write_table,
    write_text,
    write_workload,
)

SMALL = Interests.from_pairs([("b", 2), ("a", 10), ("b", 1)], nodes=["a", "b", "lonely"])
OTHER = Interests.from_pairs([(1, "x")])
LINKS = Overlay.from_links(["a", "b", "lonely"], [("lonely", "a"), ("b", "a")])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_workload_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    for interests in (SMALL, OTHER, Interests.from_pairs([]), Interests.from_pairs([], nodes=["only"])):
        write_workload(tmp_path / "w", interests, {"seed": 3})
        workload = read_workload(tmp_path / "w")
        assert workload.interests == interests
        assert workload.info["seed"] == 3
        assert workload.info["counts"] == {
            "nodes": interests.node_count,
            "topics": interests.topic_count,
            "subscriptions": interests.subscription_count,
        }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w"]


@pytest.mark.parametrize("name", ["o", "o.parquet", "o.csv", "o.csv.gz"])
def test_an_overlay_is_read_back_as_it_was_written(tmp_path: Path, name: str) -> None:
    write_overlay(tmp_path / "new" / name, LINKS)
    assert read_overlay(tmp_path / "new" / name, SMALL) == LINKS
    assert [path.name for path in (tmp_path / "new").iterdir()] == [name]


def test_written_tables_are_sorted_by_label(tmp_path: Path) -> None:
    write_workload(tmp_path / "w", SMALL, {})
    table = pq.read_table(tmp_path / "w" / "interests.parquet")
    assert table.to_pydict() == {"node": ["a", "b", "b"], "topic": [10, 1, 2]}
    write_overlay(tmp_path / "o", LINKS)
    assert pq.read_table(tmp_path / "o").to_pydict() == {"u": ["a", "a"], "v": ["b", "lonely"]}


def test_equal_contents_give_equal_bytes(tmp_path: Path) -> None:
    again = Interests.from_pairs([("b", 1), ("b", 2), ("b", 2), ("a", 10)], nodes=["lonely", "b", "a"])
    write_workload(tmp_path / "one", SMALL, {"b": 1, "a": 2})
    write_workload(tmp_path / "two", again, {"a": 2, "b": 1})
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    for name in ("o", "o.csv", "o.csv.gz"):
        write_overlay(tmp_path / name, LINKS)
        before = (tmp_path / name).read_bytes()
        write_overlay(tmp_path / name, LINKS)
        assert (tmp_path / name).read_bytes() == before
    assert gzip.decompress((tmp_path / "o.csv.gz").read_bytes()) == (tmp_path / "o.csv").read_bytes()


def test_rejected_rows_stand_beside_the_workload(tmp_path: Path) -> None:
    rows = [RejectedRow("f.csv", 3, "no node", ",x"), RejectedRow("f\udcff.csv", 9, "no node", "\ud800")]
    write_workload(tmp_path / "w", SMALL, {}, rows)
    table = pq.read_table(tmp_path / "w" / "rejected.parquet").to_pylist()
    assert table[0] == {"source_file": "f.csv", "row": 3, "reason": "no node", "text": ",x"}
    assert read_workload(tmp_path / "w").info["rejected"] == {"no node": 2}
    write_rejected(tmp_path / "r.csv", rows[:1])
    assert (tmp_path / "r.csv").read_text() == '"source_file","row","reason","text"\n"f.csv",3,"no node",",x"\n'
    write_workload(tmp_path / "w", SMALL, {}, [])
    assert not (tmp_path / "w" / "rejected.parquet").exists()


def test_an_existing_output_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    write_workload(tmp_path / "w", OTHER, {})
    (tmp_path / "w" / "interests.csv").write_text("stale")
    (tmp_path / "w" / "mine.txt").write_text("precious")
    (tmp_path / "w" / "overlay.parquet").write_text("precious too")
    write_workload(tmp_path / "w", SMALL, {})
    assert read_workload(tmp_path / "w").interests == SMALL
    assert (tmp_path / "w" / "mine.txt").read_text() == "precious"
    assert (tmp_path / "w" / "overlay.parquet").read_text() == "precious too"
    assert [path.name for path in tmp_path.iterdir()] == ["w"]


def test_an_empty_folder_may_be_written_to_and_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_workload(tmp_path / "link", SMALL, {})
    assert (tmp_path / "link").is_symlink() and read_workload(tmp_path / "real").interests == SMALL


def test_a_folder_that_is_not_ours_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years")
    with pytest.raises(CannotWrite, match=r"not empty and has no workload\.json"):
        write_workload(tmp_path / "home", SMALL, {})
    assert contents(tmp_path / "home") == {"thesis.txt": b"years"}
    with pytest.raises(CannotWrite, match="is a folder"):
        write_overlay(tmp_path / "home", LINKS)


def test_places_that_cannot_be_written_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for target in (tmp_path / "file" / "below", tmp_path / ("x" * 300), "/", "", "a\0b", "/dev/null"):
        for write in (lambda: write_overlay(target, LINKS), lambda: write_workload(target, SMALL, {})):  # noqa: B023
            with pytest.raises(CannotWrite) as caught:
                write()
            assert "\n" not in str(caught.value)
    with pytest.raises(CannotWrite, match="is a file"):
        write_workload(tmp_path / "file", SMALL, {})
    assert (tmp_path / "file").read_text() == "x"
    assert not Path("/dev/null").is_file()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(CannotWrite, match="Permission denied"):
        write_overlay(tmp_path / "o", LINKS)


def test_an_error_while_writing_leaves_the_previous_output(tmp_path: Path) -> None:
    write_workload(tmp_path / "w", OTHER, {})
    write_text(tmp_path / "t", ["before"])

    def fail(aside: Path) -> None:
        (aside / "interests.parquet").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_folder(tmp_path / "w", "workload.json", ("interests",), fail)
    with pytest.raises(KeyboardInterrupt), replace_file(tmp_path / "t") as aside:
        aside.write_text("half")
        raise KeyboardInterrupt
    assert read_workload(tmp_path / "w").interests == OTHER
    assert (tmp_path / "t").read_text() == "before\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t", "w"]


def test_a_kill_in_the_middle_of_a_write_leaves_the_previous_output(tmp_path: Path) -> None:
    write_workload(tmp_path / "w", OTHER, {})
    script = (
        "import os, sys, signal\n"
        "from pathlib import Path\n"
        "from omen.tables.replacing import replace_folder\n"
        "def fill(aside):\n"
        "    (aside / 'interests.parquet').write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "replace_folder(sys.argv[1], 'workload.json', ('interests',), fill)\n"
    )
    source = str(Path(omen.__file__).parent.parent)
    killed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "w")], env={**os.environ, "PYTHONPATH": source}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert read_workload(tmp_path / "w").interests == OTHER


def test_folders_are_swapped_also_where_the_system_cannot_exchange_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omen.tables.replacing._exchange", lambda one, other: False)
    for interests in (OTHER, SMALL, OTHER):
        write_workload(tmp_path / "w", interests, {})
        (tmp_path / "w" / "note").write_text("kept")
        assert read_workload(tmp_path / "w").interests == interests
    assert [path.name for path in tmp_path.iterdir()] == ["w"]


def test_any_table_can_be_written(tmp_path: Path) -> None:
    write_table(tmp_path / "t.parquet", {"n": [3, 4], "w": ["x", "y"], "d": SMALL.node_offsets[:2], "l": [[1], None]})
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == {
        "n": [3, 4],
        "w": ["x", "y"],
        "d": [0, 1],
        "l": [[1], None],
    }
    assert read_table(tmp_path / "t", ("n",))["n"].labels.tolist() == [3, 4]


def test_labels_that_no_file_can_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="surrogate"):
        write_workload(tmp_path / "w", Interests.from_pairs([("\ud800", "x")]), {})
    with pytest.raises(InvalidInput, match="JSON"):
        write_workload(tmp_path / "w", SMALL, {"x": object()})
    assert list(tmp_path.iterdir()) == []


def test_reading_and_writing_leave_pandas_alone(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from omen.tables import *\n"
        "from omen.interests import Interests\n"
        "interests = Interests.from_pairs([('a', 1), ('b', 1)])\n"
        "write_workload(sys.argv[1], interests, {})\n"
        "assert read_workload(sys.argv[1]).interests == interests\n"
        "assert 'pandas' not in sys.modules\n"
    )
    source = str(Path(omen.__file__).parent.parent)
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "w")], env={**os.environ, "PYTHONPATH": source}, check=True
    )


def test_the_former_name_of_write_repaired_works_and_warns() -> None:
    from omen import tables

    with pytest.deprecated_call(match="write_repaired"):
        assert tables.write_mended is tables.write_repaired


@pytest.mark.parametrize("name", ["o.json", "o.txt", "o.parquet.gz", "o.csv.zip"])
def test_a_name_that_promises_another_format_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match=r"tables are written as \.parquet, \.csv, \.csv\.gz"):
        write_overlay(tmp_path / name, LINKS)
    assert list(tmp_path.iterdir()) == []


def test_a_name_without_an_ending_becomes_parquet(tmp_path: Path) -> None:
    write_overlay(tmp_path / "o", LINKS)
    assert pq.read_table(tmp_path / "o").num_rows == 2


def test_parquet_keeps_the_record_of_how_an_overlay_was_made(tmp_path: Path) -> None:
    for name in ("o.parquet", "o.csv"):
        write_overlay(tmp_path / name, LINKS, {"algorithm": "gm2", "k": 2})
        assert read_overlay(tmp_path / name, SMALL).links() == LINKS.links()
    assert read_record(tmp_path / "o.parquet") == {"algorithm": "gm2", "k": 2}
    assert read_record(tmp_path / "o.csv") == {}

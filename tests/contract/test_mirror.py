"""Unit tests stand where the code they test stands: tests/unit/<package>/test_<module>.py.

`test_<module>_<aspect>.py` is one of several files about a module; a package's own names are tested beside its folder,
in `test_<package>.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "unit"
PLACES = {"bench": ROOT / "bench", "tools": ROOT / "tools"}
"""Where folders of tests/unit belong that are no rooms of src/omen."""


def modules_for(test: Path) -> set[str]:
    """The names a test in this folder may carry: the modules and packages of the folder it mirrors."""
    first, *rest = (*test.parent.relative_to(TESTS).parts, "")
    folder = PLACES.get(first, ROOT / "src" / "omen" / first).joinpath(*rest)
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    return modules | ({"omen"} if test.parent == TESTS else set())


def is_mirrored(test: Path) -> bool:
    name = test.stem.removeprefix("test_")
    return any(name == module or name.startswith(f"{module}_") for module in modules_for(test))


def test_every_unit_test_stands_where_its_module_stands() -> None:
    tests = sorted(TESTS.rglob("test_*.py"))
    assert len(tests) > 100
    assert [test.relative_to(TESTS).as_posix() for test in tests if not is_mirrored(test)] == []


@pytest.mark.parametrize(
    ("test", "mirrored"),
    [
        ("protocol/repair/test_coordinator.py", True),
        ("protocol/repair/test_coordinator_under_load.py", True),
        ("protocol/test_repair.py", True),
        ("test_omen.py", True),
        ("bench/test_house.py", True),
        ("protocol/repair/test_gossip.py", False),
        ("protocol/test_everything.py", False),
        ("rooms/test_closets.py", False),
    ],
)
def test_the_check_sees_what_it_is_there_to_see(test: str, mirrored: bool) -> None:
    assert is_mirrored(TESTS / test) is mirrored

"""The count of duplicated code."""

from __future__ import annotations

from tools.duplicates import allowed_pairs, counted_lines, find_pairs

BODY = "".join(f"    value{number} = call({number})\n" for number in range(6))
FUNCTION = f"def one():\n{BODY}"


def test_six_lines_that_stand_twice_are_one_pair() -> None:
    (pair,) = find_pairs({"a.py": FUNCTION, "b.py": "import os\n\n\n" + FUNCTION.replace("one", "two")})
    assert (pair.first, pair.first_line, pair.second, pair.second_line, pair.lines) == ("a.py", 2, "b.py", 5, 6)
    (pair,) = find_pairs({"a.py": FUNCTION + FUNCTION.replace("one", "two")})
    assert (pair.first, pair.second) == ("a.py", "a.py")


def test_a_longer_run_is_still_one_pair() -> None:
    longer = FUNCTION + "    return value0\n"
    (pair,) = find_pairs({"a.py": longer, "b.py": longer})
    assert pair.lines == 7


def test_the_same_lines_at_three_places_are_three_pairs() -> None:
    assert len(find_pairs(dict.fromkeys(("a.py", "b.py", "c.py"), FUNCTION))) == 3


def test_five_lines_are_no_pair() -> None:
    shorter = "\n".join(FUNCTION.splitlines()[:-1]) + "\n"
    assert find_pairs({"a.py": shorter, "b.py": shorter}) == []


def test_comments_docstrings_imports_signatures_and_brackets_do_not_count() -> None:
    source = '''"""Of a module,
over two lines."""
import os
from sys import (
    argv,
    path,
)

def function(
    one: int,
    two: int,
) -> None:
    """Of a function."""
    # why
    call(
        one,  # which
    )
'''
    assert [line.text for line in counted_lines(source)] == ["call (", "one ,"]


def test_a_comment_or_another_indentation_hides_nothing() -> None:
    indented = "if True:\n" + "".join(f"    {line}\n" for line in FUNCTION.splitlines())
    assert len(find_pairs({"a.py": FUNCTION, "b.py": indented.replace("call(3)", "call(3)  # why")})) == 1


def test_the_allowed_number_is_in_pyproject() -> None:
    assert allowed_pairs() >= 0

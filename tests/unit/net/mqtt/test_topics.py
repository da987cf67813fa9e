"""Names, filters and the tree of filters, against the rules of MQTT 5.0, section 4.7."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omen.net.mqtt.topics import FilterTree, is_valid_filter, is_valid_name, matches

LEVELS = st.lists(st.sampled_from(["a", "b", "", "$x"]), min_size=1, max_size=4)
FILTERS = st.lists(st.sampled_from(["a", "b", "", "+", "$x"]), min_size=1, max_size=4)


def as_expression(pattern: str) -> re.Pattern[str]:
    """An independent reading of a filter, as a regular expression."""
    parts = ["[^/]*" if level == "+" else re.escape(level) for level in pattern.split("/")]
    if pattern == "#":
        return re.compile(r"[^$].*|", re.DOTALL)
    if pattern.endswith("/#"):
        parts[-1] = ""
        text = "/".join(parts)[:-1] + "(/.*)?"
    else:
        text = "/".join(parts)
    return re.compile(("(?![$])" if pattern[0] == "+" else "") + text, re.DOTALL)


@given(LEVELS, FILTERS, st.booleans())
def test_a_filter_matches_what_the_standard_says(levels: list[str], filters: list[str], rest: bool) -> None:
    name, pattern = "/".join(levels), "/".join([*filters, "#"] if rest else filters)
    if not name or not pattern:
        return
    assert matches(pattern, name) == bool(as_expression(pattern).fullmatch(name))


@given(st.lists(st.tuples(FILTERS, st.booleans()), max_size=8), LEVELS, st.data())
def test_the_tree_finds_what_each_filter_matches(
    filters: list[tuple[list[str], bool]], levels: list[str], data: st.DataObject
) -> None:
    name = "/".join(levels)
    patterns = ["/".join([*parts, "#"] if rest else parts) for parts, rest in filters]
    patterns = [pattern for pattern in patterns if pattern]
    tree: FilterTree[int, str] = FilterTree()
    for number, pattern in enumerate(patterns):
        tree.add(pattern, number, pattern)
    tree.match(name)
    gone = data.draw(st.sets(st.integers(0, len(patterns))))
    for number in gone:
        if number < len(patterns):
            tree.remove(patterns[number], number)
    expected = {n for n, pattern in enumerate(patterns) if n not in gone and name and matches(pattern, name)}
    if name:
        assert {number for number, _ in tree.match(name)} == expected


@pytest.mark.parametrize(
    ("text", "name", "pattern"),
    [
        ("a/b", True, True),
        ("/", True, True),
        ("", False, False),
        ("a/+", False, True),
        ("a/#", False, True),
        ("#/a", False, False),
        ("a+", False, False),
        ("a#", False, False),
        ("a\0b", False, False),
        ("/".join("a" * 200), False, False),
    ],
)
def test_what_is_valid(text: str, name: bool, pattern: bool) -> None:
    assert is_valid_name(text) is name
    assert is_valid_filter(text) is pattern

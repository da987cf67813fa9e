"""Queue groups: every node makes the same choice."""

from __future__ import annotations

from collections import Counter

from omen.net.groups import GroupTable, Member


def table(**members: str) -> GroupTable:
    found = GroupTable()
    for node, names in members.items():
        found.tell(node, "g", tuple(Member(name) for name in names))
    return found


def test_all_nodes_choose_the_same_member_and_members_get_about_as_much() -> None:
    one, other = table(n1="ab", n2="c"), table(n2="c", n1="ab")
    choices = [one.choose("g", str(number)) for number in range(300)]
    assert choices == [other.choose("g", str(number)) for number in range(300)]
    counts = Counter(choices)
    assert counts.keys() == {"a", "b", "c"} and min(counts.values()) > 60


def test_a_member_that_goes_leaves_its_share_alone_to_the_others() -> None:
    before, after = table(n1="ab", n2="c"), table(n1="ab")
    for number in range(100):
        was = before.choose("g", str(number))
        assert was == "c" or was == after.choose("g", str(number))


def test_members_that_are_not_ready_are_chosen_where_no_other_is() -> None:
    groups = GroupTable()
    groups.tell("n1", "g", (Member("a", is_ready=False),))
    assert groups.choose("g", "1") == "a"
    groups.tell("n2", "g", (Member("b"),))
    assert {groups.choose("g", str(number)) for number in range(20)} == {"b"}
    groups.drop("n2")
    groups.tell("n1", "g", ())
    assert groups.choose("g", "1") is None and len(groups) == 0

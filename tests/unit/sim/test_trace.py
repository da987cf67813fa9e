"""Lines of a trace name nodes and topics, whatever they are about."""

from __future__ import annotations

from omen.protocol.events import ContactsFound, NameFree
from omen.protocol.messages.base import Ref
from omen.protocol.messages.publications import Announce, StreamMark
from omen.sim.trace import TraceWriter

TRACE = TraceWriter({5: "n5", 6: "n6"}, {7: "tea", 8: "jazz"})


def test_how_far_a_node_is_says_in_which_topic_and_of_which_publisher() -> None:
    mark = StreamMark(publisher=5, incarnation=1, opened=1, first=1, last=4, yours=2, idle=3)
    said = TRACE.message(Announce(((7, (mark,)), (8, (mark, mark)))))
    assert said.startswith(
        "Announce topics=[tea:[StreamMark publisher=n5 incarnation=1 opened=1 first=1 last=4 yours=2"
    )
    assert said.count("publisher=n5") == 3
    assert " jazz:[StreamMark " in said


def test_a_node_that_is_told_of_others_names_them() -> None:
    assert TRACE.describe(6, ContactsFound((Ref(5, 2, ""),))) == "finds n5/2 alive"


def test_an_input_without_words_of_its_own_is_shown_like_a_message() -> None:
    assert TRACE.describe(6, NameFree(3)) == "NameFree incarnation=3"

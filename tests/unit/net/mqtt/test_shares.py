"""Which member of a shared subscription gets a message, while members and their nodes come and go."""

from __future__ import annotations

from omen.net.groups import ORPHANED_S, Member
from omen.net.mqtt.shares import MOST_BYTES, Shares

GROUP = "$share/g/a/+"


def test_one_member_of_each_share_that_a_topic_matches_is_chosen() -> None:
    shares = Shares()
    assert shares.choose_all("a/b", "1") == ()
    shares.tell("n1", GROUP, (Member("ann"),))
    shares.tell("n2", "$share/h/a/b", (Member("bob"),))
    shares.tell("n2", "$share/h/c", (Member("bob"),))
    assert sorted(shares.choose_all("a/b", "1")) == [(GROUP, "ann"), ("$share/h/a/b", "bob")]
    shares.tell("n1", GROUP, ())
    assert shares.choose_all("a/b", "1") == (("$share/h/a/b", "bob"),)


def test_a_member_that_lasts_is_chosen_after_its_node_is_lost_until_it_ends() -> None:
    shares = Shares()
    shares.tell("n1", GROUP, (Member("lasting", is_lasting=True), Member("fleeting")))
    shares.lose("n1", 0.0)
    assert {shares.choose(GROUP, str(number)) for number in range(20)} == {"lasting"}
    shares.tell("n2", GROUP, (Member("ready"),))
    assert {shares.choose(GROUP, str(number)) for number in range(20)} == {"ready"}
    shares.tell("n2", GROUP, ())
    shares.forget("lasting")
    assert shares.choose_all("a/b", "1") == () and len(shares) == 0


def test_a_member_that_another_node_has_is_no_longer_of_the_node_that_was_lost() -> None:
    for is_told_first in (True, False):
        shares = Shares()
        shares.tell("n1", GROUP, (Member("ann", is_lasting=True),))
        for step in ("tell", "lose") if is_told_first else ("lose", "tell"):
            if step == "tell":
                shares.tell("n2", GROUP, (Member("ann", is_lasting=True),))
            else:
                shares.lose("n1", 0.0)
        shares.tell("n2", GROUP, ())
        assert len(shares) == 0


def test_choices_that_would_be_too_much_for_a_message_are_left_to_those_who_get_it() -> None:
    shares = Shares()
    for number in range(1000):
        shares.tell("n1", f"$share/{number:0100}/a", (Member("ann"),))
    chosen = shares.choose_all("a", "1")
    assert 0 < sum(len(group) + len(name) for group, name in chosen) <= MOST_BYTES


def test_a_member_that_is_nobody_s_for_long_is_nowhere() -> None:
    """Its session has ended with its node, or its subscription was never stored: no door will say so."""
    shares = Shares()
    shares.tell("n1", GROUP, (Member("gone", is_lasting=True),))
    shares.tell("n2", GROUP, (Member("offline", is_ready=False, is_lasting=True),))
    shares.lose("n1", 100.0)
    shares.expire(100.0 + ORPHANED_S - 1)
    assert {shares.choose(GROUP, str(number)) for number in range(20)} == {"gone", "offline"}
    shares.expire(100.0 + ORPHANED_S)
    assert {shares.choose(GROUP, str(number)) for number in range(20)} == {"offline"}


def test_a_client_that_begins_anew_elsewhere_is_no_member_where_it_was() -> None:
    shares = Shares()
    shares.tell("n1", GROUP, (Member("ann"), Member("bob")))
    shares.tell("n2", GROUP, (Member("ann"),))
    shares.forget("ann", but_of="n2")
    assert shares.of("n1") == {GROUP: (Member("bob"),)} and shares.of("n2") == {GROUP: (Member("ann"),)}
    shares.forget("ann")
    assert shares.members == 1 and shares.nodes == {"n1"}


def test_members_that_do_not_last_are_told_when_their_node_is_lost() -> None:
    shares = Shares()
    shares.tell("n1", GROUP, (Member("lasting", is_lasting=True), Member("fleeting"), Member("moved")))
    shares.tell("n2", GROUP, (Member("moved"),))
    assert shares.lose("n1", 0.0) == {GROUP: (Member("fleeting"),)}

"""Which nodes may publish and subscribe, topic by topic."""

from __future__ import annotations

import pytest

from omen.errors import Denied
from omen.net.names import topic_key
from omen.net.security.access import Access
from omen.net.security.config import Rule
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.publications import Announce, StreamMark, make_publication, stream_key

RULES = (
    Rule(("prices/*",), ("ann", "trader-*"), ("bob", "ann")),
    Rule(("news",), ("ann",), ("*",)),
)


def test_the_first_rule_for_a_topic_decides_and_a_topic_without_one_is_closed_to_all() -> None:
    access = Access(RULES, "bob")
    access.check_subscribe(["prices/tea", "news"])
    with pytest.raises(
        Denied, match=r"'bob' may not publish on 'prices/tea': the rule for prices/\* lets ann, trader-\*"
    ):
        access.check_publish("prices/tea")
    with pytest.raises(Denied, match="no access rule is for this topic"):
        access.check_subscribe(["weather"])
    assert access.denied == {"publish": 1, "subscribe": 1}
    Access((), "bob").check_publish("weather")


def test_publications_are_taken_only_from_nodes_that_may_publish_or_carry_them() -> None:
    access = Access(RULES, "bob")
    for topic in ("prices/tea", "news"):
        access.know_topic(topic_key(topic), topic)

    def takes(sender: str, topic: str, publisher: str) -> bool:
        key = stream_key(topic_key(topic), place_of(publisher), 1)
        return access.takes(sender, make_publication(key, 1, b"", opening=True))

    assert takes("ann", "prices/tea", "ann")
    assert not takes("bob2", "prices/tea", "bob2")
    assert not takes("cid", "prices/tea", "ann"), "cid may not carry it"
    assert takes("ann", "prices/tea", "trader-7"), "ann has checked, and any trader may"
    assert takes("cid", "news", "ann")
    assert not takes("cid", "news", "dan"), "only ann may, and this is not her place"
    assert access.denied == {"received": 3}
    access.know_peer("eve")
    assert not takes("ann", "prices/tea", "eve"), "eve has been met, and is no trader"


def test_streams_of_a_topic_are_told_to_no_node_that_may_not_carry_it() -> None:
    """Before: one that others took for a subscriber heard how far its streams were, and since when they were silent."""
    rules = (Rule(("prices/*",), ("ann",), ("bob",)), Rule(("*",), ("*",), ("*",)))
    access = Access(rules, "ann")
    secret, free = topic_key("prices/tea"), topic_key("news")
    access.know_topic(secret, "prices/tea")
    access.know_topic(free, "news")
    mark = (StreamMark(1, 1, 1, 1, 9, 0, 5),)
    whole = Announce(((secret, mark), (free, mark)), room=((secret, 5), (free, 5)))
    assert access.visible_to("bob", whole) is whole
    assert access.visible_to("eve", whole) == Announce(((free, mark),), room=((free, 5),))
    assert access.visible_to("eve", Announce(((secret, mark),))) is None
    assert access.visible_to("eve", Announce(((secret, mark),), answers=3)) == Announce((), answers=3)
    assert access.denied["sent"] == 3

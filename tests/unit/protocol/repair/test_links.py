"""Links: both ends agree before either counts them."""

from __future__ import annotations

from omen.protocol.config import Config, Remedies
from omen.protocol.context import Outbox
from omen.protocol.events import SetTimer
from omen.protocol.messages.overlay import LinkClose, LinkOk, LinkOpen, LinkSeen
from omen.protocol.repair.links import ACCEPTED, OPENING, PLANNED, UP, Links, LinkTimer
from unit.protocol.contexts import describe, make_context, ref, sent


def pair(**remedies: bool) -> tuple[Links, Outbox, Links, Outbox]:
    """The two ends of a link to be: node 1 and node 2."""
    low, high = (make_context(node, (1, 2), remedies=Remedies(**remedies)) for node in (1, 2))
    return Links(low), low.out, Links(high), high.out


def test_both_ends_agree_before_either_counts_the_link() -> None:
    low, low_out, high, high_out = pair()
    low.plan(ref(2))
    high.plan(ref(1))
    ((to, opening),) = sent(low_out)
    assert (to, low.links[2].state, high.links[1].state) == (2, OPENING, PLANNED)
    assert isinstance(opening, LinkOpen)
    high.on_open(1, opening)
    assert high.links[1].state == ACCEPTED
    assert not low.up()
    assert not high.up()
    ((_, agreed),) = sent(high_out)
    assert isinstance(agreed, LinkOk)
    low.on_ok(2, agreed)
    assert low.up() == [2]
    high.on_seen(1, LinkSeen())
    assert high.up() == [1]
    assert [type(message) for _, message in sent(low_out)] == [LinkSeen]


def test_planned_links_count_as_neighbours_at_once() -> None:
    low, _, _, _ = pair()
    low.plan(ref(2))
    assert low.neighbours() == (ref(2),)
    assert low.changed


def test_without_the_remedy_the_opener_counts_it_alone() -> None:
    low, _, high, _ = pair(links_agreed_by_both=False)
    low.plan(ref(2))
    assert low.up() == [2]
    assert not high.up()


def test_an_opening_is_repeated_and_then_given_up() -> None:
    low, out, _, _ = pair()
    low.plan(ref(2))
    for _ in range(Config().attempts):
        low.on_timer(LinkTimer(2))
    kinds = [type(message) for _, message in sent(out)]
    assert kinds == [LinkOpen] * Config().attempts + [LinkClose]
    assert not low.links


def test_the_higher_end_waits_for_the_lower_and_then_gives_up() -> None:
    _, _, high, out = pair()
    high.plan(ref(1))
    outputs = out.take()
    assert [type(output) for output in outputs] == [SetTimer]
    high.on_timer(LinkTimer(1))
    assert not high.links


def test_a_repeated_opening_of_a_link_that_is_up_is_answered_and_changes_nothing() -> None:
    _, _, high, out = pair()
    high.preset(ref(1), ())
    high.on_open(1, LinkOpen(describe(1), ()))
    assert high.up() == [1]
    assert [type(message) for _, message in sent(out)] == [LinkOk]


def test_an_agreement_that_was_not_asked_for_is_closed() -> None:
    low, out, _, _ = pair()
    low.on_ok(2, LinkOk(describe(2), ()))
    assert [type(message) for _, message in sent(out)] == [LinkClose]
    assert not low.links


def test_a_close_for_another_incarnation_is_ignored() -> None:
    low, _, _, _ = pair()
    low.preset(ref(2, incarnation=2), ())
    low.on_close(2, LinkClose(1))
    assert low.up() == [2]
    low.on_close(2, LinkClose(2))
    assert not low.up()


def opened_twice() -> tuple[Links, Outbox, LinkOpen, LinkOpen]:
    """Node 1 opens a link, gives it up, and opens it again."""
    low, out, _, _ = pair()
    low.plan(ref(2))
    ((_, first),) = sent(out)
    low.close(2)
    low.plan(ref(2))
    _, (_, second) = sent(out)
    assert isinstance(first, LinkOpen) and isinstance(second, LinkOpen)
    return low, out, first, second


def test_a_close_of_a_former_link_does_not_close_the_one_that_followed() -> None:
    """World 4031324: it was overtaken by the next opening, and one end alone had the link."""
    _, _, first, second = opened_twice()
    _, _, high, _ = pair()
    high.on_open(1, first)
    high.on_open(1, second)
    high.on_seen(1, LinkSeen(second.number))
    high.on_close(1, LinkClose(1, first.number))
    assert high.up() == [1]
    high.on_close(1, LinkClose(1, second.number))
    assert not high.links


def test_a_farewell_that_the_link_has_overtaken_ends_it_at_both_ends() -> None:
    """The higher end had planned the link, and given that up; then the lower end's opening came."""
    low, low_out, high, _ = pair()
    low.plan(ref(2))
    ((_, opening),) = sent(low_out)
    assert isinstance(opening, LinkOpen)
    high.on_open(1, opening)
    high.on_seen(1, LinkSeen(opening.number))
    low.on_ok(2, LinkOk(describe(2), (), opening.number))
    sent(low_out)
    low.on_close(2, LinkClose(1))
    ((_, echo),) = sent(low_out)
    assert isinstance(echo, LinkClose)
    high.on_close(1, echo)
    assert not low.links and not high.links


def test_a_close_of_a_former_link_does_not_end_the_next_that_is_planned() -> None:
    _, _, high, _ = pair()
    high.plan(ref(1))
    high.on_close(1, LinkClose(1, 7))
    assert high.links[1].state == PLANNED
    high.on_close(1, LinkClose(1))
    assert not high.links


def test_an_agreement_to_a_former_link_is_none_to_the_one_that_followed() -> None:
    low, _, first, second = opened_twice()
    low.on_ok(2, LinkOk(describe(2), (), first.number))
    assert low.links[2].state == OPENING
    low.on_ok(2, LinkOk(describe(2), (), second.number))
    assert low.up() == [2]


def test_a_link_that_its_opener_opens_anew_is_agreed_on_anew() -> None:
    """The farewell was lost: this end has a link that the other has given up."""
    _, _, first, second = opened_twice()
    _, _, high, out = pair()
    high.on_open(1, first)
    high.on_seen(1, LinkSeen(first.number))
    high.on_open(1, second)
    assert high.links[1].state == ACCEPTED
    high.on_seen(1, LinkSeen(first.number))
    assert high.links[1].state == ACCEPTED
    high.on_open(1, first)
    assert [message.number for _, message in sent(out) if isinstance(message, LinkOk)] == [first.number, second.number]
    high.on_seen(1, LinkSeen(second.number))
    assert high.up() == [1]


def test_an_older_version_that_does_not_number_its_links_is_linked_as_before() -> None:
    low, out, high, _ = pair()
    low.plan(ref(2))
    sent(out)
    low.on_ok(2, LinkOk(describe(2), ()))
    assert low.up() == [2]
    high.on_open(1, LinkOpen(describe(1), ()))
    high.on_seen(1, LinkSeen())
    assert high.up() == [1]
    low.on_close(2, LinkClose(1))
    high.on_close(1, LinkClose(1))
    assert not low.links and not high.links


def test_a_later_incarnation_replaces_the_link_to_the_former() -> None:
    _, _, high, _ = pair()
    high.preset(ref(1), ())
    high.on_open(1, LinkOpen(describe(1, incarnation=2), ()))
    assert high.links[1].ref.incarnation == 2
    assert high.links[1].state != UP


def test_no_link_to_a_failed_node_or_to_the_node_itself() -> None:
    context = make_context(1)
    context.peer_table.declare_failed(2, 1, now=0)
    low = Links(context)
    low.plan(ref(2))
    low.plan(ref(1))
    low.on_open(2, LinkOpen(describe(2), ()))
    assert not low.links
    assert not sent(context.out)


def test_a_node_with_all_the_links_it_may_have_takes_no_spare_one_and_the_other_end_hears_of_it_at_once() -> None:
    low, high = make_context(1), make_context(2, max_links=1)
    one, other = Links(low), Links(high)
    other.preset(ref(3), ())
    one.plan(ref(2), spare=True)
    ((_, opening),) = sent(low.out)
    assert isinstance(opening, LinkOpen)
    other.on_open(1, opening)
    ((to, close),) = sent(high.out)
    assert isinstance(close, LinkClose)
    assert to == 1
    assert set(other.links) == {3}
    one.on_close(2, close)
    assert not one.links


def test_a_repair_exceeds_the_limit_also_where_the_link_was_to_be_a_spare_one() -> None:
    low, high = make_context(1), make_context(2, max_links=1)
    one, other = Links(low), Links(high)
    other.preset(ref(3), ())
    one.plan(ref(2), spare=True)
    one.plan(ref(2))
    one.on_timer(LinkTimer(2))
    _, (_, opening) = sent(low.out)
    assert isinstance(opening, LinkOpen)
    other.on_open(1, opening)
    assert set(other.links) == {1, 3}


def test_a_forbidden_link_is_refused_at_either_step() -> None:
    context = make_context(2, (1,), forbid=(1, 3))
    links = Links(context)
    links.plan(ref(1))
    links.plan(ref(3))
    assert not links.links and not sent(context.out)
    links.on_open(1, LinkOpen(describe(1, (1,)), ()))
    assert not links.links
    ((to, refusal),) = sent(context.out)
    assert (to, type(refusal)) == (1, LinkClose)
    links.plan(ref(4))
    assert list(links.links) == [4]

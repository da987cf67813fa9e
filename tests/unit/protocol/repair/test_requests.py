"""Whom a node asks to be linked, and when again."""

from __future__ import annotations

from omen.protocol.events import Send, SetTimer, Time
from omen.protocol.membership.connections import OwnDescriptor
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.messages.overlay import Ref, RepairRequest
from omen.protocol.repair.coordinator import Coordinator
from omen.protocol.repair.links import Links
from omen.protocol.repair.loss_reports import LossReports
from omen.protocol.repair.requests import SOONER, Requests, RequestTimer
from omen.protocol.repair.views import Views
from unit.protocol.contexts import make_context, ref

ME, TOPIC = 10, 70


class Asking:
    """A node that asks to be linked in its topic."""

    def __init__(self, *members: int) -> None:
        self.context = context = make_context(ME, (TOPIC,))
        self.ring, views, lookup, links = Ring(context), Views(context, None), RingLookup(context), Links(context)
        for node in members:
            self.meet(ref(node))
        reports = LossReports(context, self.ring, lookup, Coordinator(context, self.ring, views, lookup))
        self.requests = Requests(context, self.ring, links, views, OwnDescriptor(context, links, reports))
        self.requests.join()

    def meet(self, peer: Ref) -> None:
        self.ring.consider(peer)
        self.ring.settle()

    def take(self) -> tuple[list[int], list[Time]]:
        """Who was asked, and in how long the timer of the request is due."""
        outputs = self.context.out.take()
        asked = [one.to for one in outputs if isinstance(one, Send) and isinstance(one.message, RepairRequest)]
        return asked, [
            one.delay for one in outputs if isinstance(one, SetTimer) and isinstance(one.timer, RequestTimer)
        ]

    def fire(self) -> tuple[list[int], list[Time]]:
        (event,) = self.requests.open
        self.requests.on_timer(RequestTimer(event))
        return self.take()


def test_a_request_is_repeated_soon_at_first_and_then_once_per_standby_time() -> None:
    asking = Asking(20, 30)
    standby = asking.context.config.standby_timeout
    found = [asking.take(), *(asking.fire() for _ in range(SOONER))]
    assert [asked for asked, _ in found] == [[20]] * (1 + SOONER)
    assert [delay for _, (delay,) in found] == [standby // SOONER] * SOONER + [standby]


def test_when_another_is_the_successor_it_is_asked_after_a_moment() -> None:
    asking = Asking(20, 30)
    asking.take()
    asking.requests.follow_ring()
    assert asking.take() == ([], []), "nothing has changed"
    asking.meet(ref(15))
    asking.requests.follow_ring()
    assert asking.take() == ([], [2 * asking.context.config.answer_timeout])
    asking.requests.follow_ring()
    assert asking.take() == ([], []), "the moment is not put off"
    assert asking.fire()[0] == [15]


def test_one_that_has_rejoined_is_asked_again() -> None:
    asking = Asking(20)
    asking.take()
    asking.meet(Ref(20, 2, ref(20).address))
    asking.requests.follow_ring()
    assert asking.take()[1]
    assert asking.fire()[0] == [20]


def test_a_node_that_is_left_alone_ends_what_it_asked_for() -> None:
    """World 40032144, shrunk: the only other one crashed before it heard that a topic is given up."""
    asking = Asking(20)
    (joined,) = asking.requests.open
    asking.requests.on_handled(joined, ())
    asking.requests.resubscribe((), (TOPIC,))
    (event,) = asking.requests.open
    asking.ring.drop(20)
    asking.requests.on_timer(RequestTimer(event))
    assert not asking.requests.open
    assert TOPIC not in asking.context.peer_table.me.topics

"""The failure detector by itself: what it sends, when it suspects, and what makes it think again."""

from __future__ import annotations

from omen.protocol.events import (
    SECOND,
    Notification,
    Notify,
    PeerSuspected,
    Send,
    SetTimer,
    StoodStill,
    SuspicionRefuted,
    Time,
    Timer,
)
from omen.protocol.membership.failure_detector import HEALTH_AT_MOST, FailureDetector, PeerState, ProbeTimer
from omen.protocol.messages.overlay import Heartbeat, IndirectPing, Message, Ping, Pong, Ref
from unit.protocol.contexts import make_context, ref

ME = 1000
SUSPECTED = PeerState.SUSPECTED


class Driven:
    """A detector with a clock of its own: timers fire when `pass_time` reaches them."""

    def __init__(self, *peers: int) -> None:
        self.context = make_context(ME, detector=True)
        self.out = self.context.out
        self.detector = FailureDetector(self.context)
        self.now: Time = 0
        self.timers: dict[Timer, Time] = {}
        self.sent: list[tuple[Time, int, Message]] = []
        self.failed: list[tuple[Time, Ref]] = []
        self.notified: list[Notification] = []
        self.detector.watch({peer: ref(peer) for peer in peers}, 0)
        self.detector.start()
        self.take()

    def take(self) -> None:
        for output in self.out.take():
            if isinstance(output, Send):
                self.sent.append((self.now, output.to, output.message))
            elif isinstance(output, SetTimer):
                self.timers[output.timer] = self.now + output.delay
            elif isinstance(output, Notify):
                self.notified.append(output.notification)
        self.failed += [(self.now, lost) for lost in self.detector.take_failed()]

    def pass_time(self, until: Time, alive: tuple[int, ...] = ()) -> None:
        """Let time pass; those alive send a heartbeat per second."""
        while self.now < until:
            if self.now % SECOND == 0:
                for peer in alive:
                    self.detector.hear(peer, self.now)
                    self.detector.on_heartbeat(peer, Heartbeat(1), self.now)
            self.context.clock.now = self.now
            for timer in sorted((timer for timer, at in self.timers.items() if at <= self.now), key=str):
                del self.timers[timer]
                if isinstance(timer, ProbeTimer):
                    self.detector.on_probe_timer(timer)
                else:
                    self.detector.timers()[type(timer)](timer)
            self.take()
            self.now += SECOND // 100

    def kinds(self, to: int | None = None) -> list[type]:
        return [type(message) for _, other, message in self.sent if to in (None, other)]


def test_while_all_is_well_there_is_one_heartbeat_per_peer_and_period_and_nothing_else() -> None:
    driven = Driven(1, 2, 3)
    driven.pass_time(20 * SECOND, alive=(1, 2, 3))
    assert set(driven.kinds()) == {Heartbeat}
    assert 57 <= len(driven.sent) <= 60
    assert not driven.failed


def test_a_silent_peer_is_probed_then_through_others_then_declared_failed() -> None:
    driven = Driven(1, 2, 3)
    driven.pass_time(10 * SECOND, alive=(1, 2, 3))
    driven.pass_time(30 * SECOND, alive=(2, 3))
    assert [lost.id for _, lost in driven.failed] == [1]
    when = driven.failed[0][0] - 9 * SECOND
    assert 4 * SECOND < when < 10 * SECOND
    kinds = driven.kinds()
    assert kinds.index(Ping) < kinds.index(IndirectPing)
    assert {to for _, to, message in driven.sent if isinstance(message, IndirectPing)} <= {2, 3}


def test_no_loss_is_noticed_later_than_it_says() -> None:
    driven = Driven(1, 2)
    driven.detector.health = HEALTH_AT_MOST
    driven.pass_time(90 * SECOND, alive=(2,))
    assert driven.failed
    assert driven.failed[0][0] <= driven.detector.longest_silence() + driven.detector.longest_suspicion()


def test_an_answer_through_another_ends_the_suspicion() -> None:
    driven = Driven(1, 2, 3)
    driven.pass_time(10 * SECOND, alive=(1, 2, 3))
    while driven.detector.peers[1].state != SUSPECTED:
        driven.pass_time(driven.now + SECOND // 10, alive=(2, 3))
    nonce = driven.detector.peers[1].nonce
    assert driven.detector.on_pong(Pong(nonce, ref(1)), driven.now)
    assert driven.detector.peers[1].state != SUSPECTED
    assert driven.detector.refuted == 1
    assert driven.detector.health > 0, "who suspects wrongly is less sure next time"


def test_an_answer_not_asked_for_or_of_another_incarnation_proves_nothing() -> None:
    driven = Driven(1, 2)
    driven.pass_time(10 * SECOND, alive=(1, 2))
    while driven.detector.peers[1].state != SUSPECTED:
        driven.pass_time(driven.now + SECOND // 10, alive=(2,))
    nonce = driven.detector.peers[1].nonce
    assert not driven.detector.on_pong(Pong(nonce + 1000, ref(1)), driven.now)
    assert driven.detector.on_pong(Pong(nonce, ref(1, incarnation=2)), driven.now)
    assert driven.detector.peers[1].state == SUSPECTED


def test_the_more_nodes_suspect_a_peer_the_sooner_it_is_declared_failed() -> None:
    def time_until_failed(doubters: int) -> Time:
        driven = Driven(1, 2, 3, 4, 5)
        driven.pass_time(10 * SECOND, alive=(1, 2, 3, 4, 5))
        while driven.detector.peers[1].state != SUSPECTED:
            driven.pass_time(driven.now + SECOND // 10, alive=(2, 3, 4, 5))
        for doubter in range(2, 2 + doubters):
            driven.detector.on_indirect_ping(doubter, IndirectPing(7, ref(doubter), ref(1)))
        driven.pass_time(60 * SECOND, alive=(2, 3, 4, 5))
        return driven.failed[0][0]

    assert time_until_failed(4) < time_until_failed(1) < time_until_failed(0)


def test_a_node_that_stood_still_itself_suspects_no_peer() -> None:
    driven = Driven(1, 2, 3)
    driven.pass_time(10 * SECOND, alive=(1, 2, 3))
    driven.now += 60 * SECOND
    driven.pass_time(driven.now + SECOND // 2)
    assert not driven.failed
    assert not any(peer.state == SUSPECTED for peer in driven.detector.peers.values())
    assert driven.detector.health > 0


def test_a_peer_that_was_always_slow_is_given_more_time() -> None:
    driven = Driven(1, 2)
    for second in range(2, 80, 4):
        driven.detector.hear(1, second * SECOND)
        driven.detector.on_heartbeat(1, Heartbeat(1), second * SECOND)
    for second in range(1, 80):
        driven.detector.hear(2, second * SECOND)
        driven.detector.on_heartbeat(2, Heartbeat(1), second * SECOND)
    driven.now = 80 * SECOND
    driven.pass_time(90 * SECOND)
    probed = {to: at for at, to, message in reversed(driven.sent) if isinstance(message, Ping)}
    assert probed[1] > probed[2]


def test_a_probe_for_another_is_passed_on_and_its_answer_back() -> None:
    driven = Driven(1, 2)
    driven.detector.on_indirect_ping(2, IndirectPing(77, ref(2), ref(1)))
    driven.take()
    (_, to, ping), *_ = [entry for entry in driven.sent if isinstance(entry[2], Ping)]
    assert to == 1 and isinstance(ping, Ping)
    driven.detector.on_pong(Pong(ping.nonce, ref(1)), driven.now)
    driven.take()
    assert driven.sent[-1][1:] == (2, Pong(77, ref(1)))


def test_word_from_the_driver_is_only_a_reason_to_probe() -> None:
    driven = Driven(1, 2)
    driven.pass_time(5 * SECOND, alive=(1, 2))
    assert driven.detector.suspect(1, driven.now)
    assert not driven.detector.suspect(99, driven.now)
    driven.pass_time(20 * SECOND, alive=(1, 2))
    assert not driven.failed


def test_suspicions_and_what_refutes_them_are_notified_of() -> None:
    driven = Driven(1, 2)
    driven.pass_time(10 * SECOND, alive=(1, 2))
    assert driven.notified == []
    while not driven.detector.suspected():
        driven.pass_time(driven.now + SECOND, alive=(2,))
    driven.pass_time(driven.now + SECOND, alive=(1, 2))
    assert [type(heard) for heard in driven.notified] == [PeerSuspected, SuspicionRefuted]
    suspected, refuted = driven.notified
    assert isinstance(suspected, PeerSuspected) and suspected.peer == ref(1)
    assert isinstance(refuted, SuspicionRefuted) and (refuted.peer, refuted.suspected_for > 0) == (ref(1), True)


def test_a_node_that_stood_still_says_for_how_long() -> None:
    driven = Driven(1)
    driven.pass_time(5 * SECOND, alive=(1,))
    driven.now += 12 * SECOND
    driven.pass_time(driven.now + SECOND, alive=(1,))
    (heard,) = driven.notified
    assert isinstance(heard, StoodStill) and 11 * SECOND < heard.period <= 12 * SECOND


def test_a_node_knows_for_a_while_that_it_stood_still_also_before_its_first_heartbeat() -> None:
    driven = Driven(1)
    assert not driven.detector.has_stood_still()
    driven.now = driven.context.clock.now = 12 * SECOND
    assert driven.detector.has_stood_still()
    driven.pass_time(13 * SECOND, alive=(1,))
    assert driven.detector.has_stood_still()
    driven.pass_time(60 * SECOND, alive=(1,))
    assert not driven.detector.has_stood_still()


def test_a_heartbeat_and_its_echo_tell_how_long_a_round_trip_takes() -> None:
    driven = Driven(1)
    assert driven.detector.longest_round_trip([1]) == 0
    for second in range(1, 30):
        heartbeat = Heartbeat(1, 7 * second, (second - 1) * SECOND + 1, SECOND - 4_001)
        driven.detector.on_heartbeat(1, heartbeat, second * SECOND)
    assert driven.detector.peers[1].round_trip == 4_000
    assert driven.detector.longest_round_trip([1, 2]) == 4_000
    driven.now = 29 * SECOND
    driven.pass_time(31 * SECOND)
    sent = [message for _, _, message in driven.sent if isinstance(message, Heartbeat)]
    assert sent[-1].echo == 7 * 29
    assert sent[-1].held == sent[-1].sent - 29 * SECOND


def test_what_was_slow_once_is_forgotten_after_a_few_heartbeats() -> None:
    """As while nodes begin together on a busy machine: a node waited twenty seconds longer for what it lacked."""
    driven = Driven(1)
    longest = []
    for second, took in enumerate([100_000, 1_000, 1_000, 1_000, 1_000], start=1):
        now = second * SECOND
        driven.detector.on_heartbeat(1, Heartbeat(1, 7, now - took - 10, 10), now)
        longest.append(driven.detector.longest_round_trip([1]))
    assert longest == [100_000] * 4 + [1_000]


def test_an_echo_from_the_future_is_not_measured() -> None:
    driven = Driven(1)
    driven.detector.on_heartbeat(1, Heartbeat(1, 5, 2 * SECOND, 0), SECOND)
    driven.detector.on_heartbeat(1, Heartbeat(1, 5, SECOND, 5 * SECOND), 2 * SECOND)
    assert driven.detector.longest_round_trip([1]) == 0

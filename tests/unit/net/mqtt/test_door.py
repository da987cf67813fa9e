"""The state machine without a socket: clients are numbers, packets go in, packets come out."""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from mqtt5 import (
    ConnAckPacket,
    ConnAckReasonCode,
    ConnectPacket,
    DisconnectPacket,
    DisconnectReasonCode,
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    RetainHandling,
    SubAckPacket,
    SubAckReasonCode,
    SubscribePacket,
    TopicFilter,
    UnsubAckPacket,
    UnsubscribePacket,
    Will,
)

from omen.net.mqtt.codec import V5
from omen.net.mqtt.door import Door
from omen.net.mqtt.outputs import (
    Carry,
    Claim,
    Close,
    DoorLimits,
    Forget,
    GiveUp,
    Publish,
    Retained,
    Rights,
    Save,
    Write,
)
from omen.net.mqtt.session import ApplicationMessage, SessionLimits
from omen.net.mqtt.stored import Change, StoredSession, head_key, read_session, segment_key
from omen.protocol.messages.records import Record


class Harness:
    """A door whose wishes are granted at once, unless `grants` is False: publications come back to its own clients."""

    def __init__(self, limits: DoorLimits | None = None, rights: Rights | None = None) -> None:
        free = Rights(lambda *_: ConnAckReasonCode.SUCCESS, lambda *_: True, lambda *_: True)
        self.door = Door(limits or DoorLimits(), rights or free)
        self.now = 1000.0
        self.grants = True
        self.got: dict[int, list[Any]] = {}
        self.closed: set[int] = set()
        self.published: list[ApplicationMessage] = []
        self.carried: set[str] = set()
        self.claims: list[Claim] = []
        self.tokens: list[int] = []

    def settle(self) -> None:
        while outputs := self.door.take():
            for output in outputs:
                self._do(output)

    def _do(self, output: Any) -> None:
        match output:
            case Write(number, data):
                view = memoryview(data)
                while view:
                    packet, size = mqtt5.read(view)
                    self.got.setdefault(number, []).append(packet)
                    view = view[size:]
            case Close(number):
                self.closed.add(number)
            case Publish(_, token, message):
                self.published.append(message)
                self.tokens.append(token)
                if self.grants:
                    if message.topic in self.carried:
                        self.door.deliver(message, self.now)
                    if message.retain:
                        self.door.retain(Retained((len(self.published), "n"), message))
                    self.door.acknowledged(token, True, self.now)
            case Carry(token, topics):
                self.carried.update(topics)
                self.door.linked(token, self.now)
            case GiveUp(topics):
                self.carried.difference_update(topics)
            case Claim() as claim:
                self.claims.append(claim)
                if claim.wants_session:
                    self.door.claimed(claim.token, None, self.now)

    def connect(self, number: int, client_id: str = "", **settings: Any) -> Any:
        self.door.open(number, self.now)
        clean = settings.pop("clean_start", True)
        self.send(number, ConnectPacket(client_id or f"c{number}", clean_start=clean, **settings))
        return self.take(number)[0]

    def send(self, number: int, packet: Any) -> None:
        self.door.receive(number, packet, V5, self.now)
        self.settle()

    def take(self, number: int) -> list[Any]:
        return self.got.pop(number, [])

    def subscribe(self, number: int, pattern: str, qos: int = 2, **options: Any) -> list[Any]:
        identifier = options.pop("identifier", None)
        asked = TopicFilter(pattern, max_qos=QoS(qos), **options)
        self.send(number, SubscribePacket(9, [asked], subscription_id=identifier))
        return self.take(number)

    def publish(self, number: int, topic: str, payload: bytes = b"x", qos: int = 0, **more: Any) -> list[Any]:
        packet_id = more.pop("packet_id", 5 if qos else None)
        self.send(number, PublishPacket(topic, payload, qos=QoS(qos), packet_id=packet_id, **more))
        return self.take(number)


def payloads(packets: list[Any]) -> list[tuple[bytes, int, bool]]:
    return [(one.payload, int(one.qos), one.retain) for one in packets if isinstance(one, PublishPacket)]


def test_connect_subscribe_publish() -> None:
    world = Harness()
    hello = world.connect(1)
    assert isinstance(hello, ConnAckPacket)
    assert not hello.session_present
    world.connect(2)
    (answer,) = world.subscribe(2, "room/+", qos=1)
    assert isinstance(answer, SubAckPacket)
    assert answer.reason_codes == [SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE]
    world.subscribe(2, "room/tea", qos=0)
    (ack,) = world.publish(1, "room/tea", qos=1)
    assert isinstance(ack, PubAckPacket)
    # two of its subscriptions match: one copy, with the highest QoS that was granted
    assert payloads(world.take(2)) == [(b"x", 1, False)]


def test_an_assigned_client_id_is_told_and_a_second_connect_is_an_error() -> None:
    world = Harness()
    world.door.open(1, world.now)
    world.send(1, ConnectPacket("", clean_start=True))
    (hello,) = world.take(1)
    assert hello.assigned_client_id
    world.send(1, ConnectPacket("a", clean_start=True))
    assert world.take(1)[-1].reason_code == DisconnectReasonCode.PROTOCOL_ERROR
    assert world.closed == {1}


def test_qos_1_waits_for_other_nodes() -> None:
    world = Harness()
    world.grants = False
    world.connect(1)
    assert world.publish(1, "a", qos=1) == []
    world.door.acknowledged(world.tokens[0], True, world.now)
    world.settle()
    assert isinstance(world.take(1)[0], PubAckPacket)
    assert world.publish(1, "a", qos=1) == []
    world.door.acknowledged(world.tokens[1], False, world.now)
    world.settle()
    assert world.take(1) == []  # not acknowledged: the client sends it again


def test_qos_2_is_published_once_however_often_it_is_sent() -> None:
    world = Harness()
    world.connect(1)
    (received,) = world.publish(1, "a", qos=2, packet_id=7)
    assert isinstance(received, PubRecPacket)
    (again,) = world.publish(1, "a", qos=2, packet_id=7, duplicate=True)
    assert isinstance(again, PubRecPacket)
    assert len(world.published) == 1
    world.send(1, PubRelPacket(7))
    assert isinstance(world.take(1)[0], PubCompPacket)
    world.publish(1, "a", qos=2, packet_id=7)
    assert len(world.published) == 2


def test_qos_2_to_a_client_and_again_after_a_break() -> None:
    world = Harness()
    world.connect(1)
    world.connect(2, "me", clean_start=False, session_expiry_interval=100)
    world.subscribe(2, "a", qos=2)
    world.publish(1, "a", b"1", qos=2, packet_id=1)
    (first,) = world.take(2)
    world.door.lost(2, world.now)
    world.settle()
    world.publish(1, "a", b"2", qos=2, packet_id=2)  # while it is away
    hello = world.connect(3, "me", clean_start=False, session_expiry_interval=100)
    assert hello.session_present
    assert world.take(3) == []  # all is in the first write
    world.door.lost(3, world.now)
    world.settle()
    world.door.open(4, world.now)
    world.send(4, ConnectPacket("me", clean_start=False, session_expiry_interval=100))
    hello, resent, second = world.take(4)
    assert (resent.payload, resent.duplicate, resent.packet_id) == (b"1", True, first.packet_id)
    assert (second.payload, second.duplicate) == (b"2", True)
    world.send(4, PubRecPacket(resent.packet_id))
    assert isinstance(world.take(4)[0], PubRelPacket)
    world.send(4, PubCompPacket(resent.packet_id))
    assert world.door.sessions["me"].in_flight == 1


def test_receive_maximum_is_kept_and_the_queue_is_bounded() -> None:
    world = Harness(DoorLimits(session=SessionLimits(queue_messages=3)))
    world.connect(1)
    world.connect(2, "me", receive_max=2, session_expiry_interval=50)
    world.subscribe(2, "a", qos=1)
    for number in range(1, 6):
        world.publish(1, "a", b"%d" % number, qos=1, packet_id=number)
    sent = world.take(2)
    assert payloads(sent) == [(b"1", 1, False), (b"2", 1, False)]
    world.send(2, PubAckPacket(sent[0].packet_id))
    assert payloads(world.take(2)) == [(b"3", 1, False)]
    world.publish(1, "a", b"6", qos=1)
    world.publish(1, "a", b"7", qos=1)
    assert world.take(2)[-1].reason_code == DisconnectReasonCode.QUOTA_EXCEEDED
    assert world.door.sessions["me"].dropped == 1


def test_retained_messages_come_with_a_subscription_and_go_with_an_empty_one() -> None:
    world = Harness()
    world.connect(1)
    world.publish(1, "a/b", b"old", qos=1, retain=True)
    world.publish(1, "a/b", b"kept", qos=1, retain=True)
    world.connect(2)
    assert payloads(world.subscribe(2, "a/#", qos=1)) == [(b"kept", 1, True)]
    handling = RetainHandling.SEND_IF_SUBSCRIPTION_NOT_EXISTS
    assert payloads(world.subscribe(2, "a/#", qos=1, retain_handling=handling)) == []
    assert payloads(world.subscribe(2, "a/b", qos=1, retain_handling=handling)) == [(b"kept", 1, True)]
    assert payloads(world.subscribe(2, "a/+", retain_handling=RetainHandling.SEND_NEVER)) == []
    world.publish(1, "a/b", b"", qos=1, retain=True)
    world.connect(3)
    assert payloads(world.subscribe(3, "a/b", qos=1)) == []
    assert not world.door.retain(Retained((1, "n"), ApplicationMessage("a/b", b"late", retain=True)))


def test_options_of_a_subscription() -> None:
    world = Harness()
    world.connect(1)
    world.subscribe(1, "own", no_local=True)
    world.subscribe(1, "flag", retain_as_published=True, identifier=11)
    world.subscribe(1, "plain", retain_as_published=False)
    assert world.publish(1, "own") == []
    (flagged,) = world.publish(1, "flag", retain=True)
    assert flagged.retain
    assert flagged.subscription_ids == [11]
    assert payloads(world.publish(1, "plain", retain=True)) == [(b"x", 0, False)]


def test_properties_go_through() -> None:
    world = Harness()
    world.connect(1)
    world.subscribe(1, "a")
    (got,) = world.publish(
        1,
        "a",
        content_type="text/plain",
        response_topic="r",
        correlation_data=b"\x00\x01",
        payload_format_indicator=1,
        user_properties=[("k", "1"), ("k", "2")],
        message_expiry_interval=30,
    )
    assert (got.content_type, got.response_topic, got.correlation_data) == ("text/plain", "r", b"\x00\x01")
    assert got.user_properties == [("k", "1"), ("k", "2")]
    assert (got.payload_format_indicator, got.message_expiry_interval) == (1, 30)


def test_an_expired_message_is_not_delivered_and_what_is_left_of_its_time_is_told() -> None:
    world = Harness()
    world.connect(1)
    world.connect(2, "me", session_expiry_interval=100)
    world.subscribe(2, "a", qos=1)
    world.door.lost(2, world.now)
    world.settle()
    world.publish(1, "a", b"short", qos=1, message_expiry_interval=5)
    world.publish(1, "a", b"long", qos=1, message_expiry_interval=50)
    world.now += 20
    world.door.open(3, world.now)
    world.send(3, ConnectPacket("me", session_expiry_interval=100))
    _, got = world.take(3)
    assert (got.payload, got.message_expiry_interval) == (b"long", 30)


def test_topic_aliases() -> None:
    world = Harness()
    world.connect(1)
    world.subscribe(1, "a")
    assert payloads(world.publish(1, "a", b"1", topic_alias=4)) == [(b"1", 0, False)]
    assert payloads(world.publish(1, "", b"2", topic_alias=4)) == [(b"2", 0, False)]
    assert world.publish(1, "", b"3", topic_alias=5)[-1].reason_code == DisconnectReasonCode.PROTOCOL_ERROR
    world.connect(2)
    last = world.publish(2, "a", topic_alias=10_000)[-1]
    assert last.reason_code == DisconnectReasonCode.TOPIC_ALIAS_INVALID


def test_a_will_is_published_when_the_client_is_lost_and_not_when_it_says_goodbye() -> None:
    world = Harness()
    will = Will("w", payload=b"gone", qos=QoS.AT_LEAST_ONCE)
    world.connect(1, will=will)
    world.send(1, DisconnectPacket())
    assert world.published == []
    world.connect(2, will=will)
    world.send(2, DisconnectPacket(reason_code=DisconnectReasonCode.DISCONNECT_WITH_WILL_MESSAGE))
    world.connect(3, will=will)
    world.door.lost(3, world.now)
    world.settle()
    assert [one.payload for one in world.published] == [b"gone", b"gone"]


def test_a_will_with_a_delay_waits_and_a_client_that_comes_back_takes_it_back() -> None:
    world = Harness()
    will = Will("w", payload=b"gone", will_delay_interval=10)
    for back in (True, False):
        world.connect(1, "me", will=will, session_expiry_interval=60)
        world.door.lost(1, world.now)
        world.settle()
        if back:
            world.connect(2, "me", session_expiry_interval=60)
            world.send(2, DisconnectPacket())
        world.now += 11
        world.door.tick(world.now)
        world.settle()
    assert len(world.published) == 1


def test_a_client_that_falls_silent_is_closed() -> None:
    world = Harness()
    world.connect(1, keep_alive=10)
    world.now += 14
    world.door.tick(world.now)
    world.settle()
    assert not world.closed
    world.now += 2
    world.door.tick(world.now)
    world.settle()
    assert world.take(1)[-1].reason_code == DisconnectReasonCode.KEEP_ALIVE_TIMEOUT
    assert world.closed == {1}


def test_a_connection_on_which_nobody_connects_is_closed() -> None:
    world = Harness()
    world.door.open(1, world.now)
    world.now += 11
    world.door.tick(world.now)
    world.settle()
    assert world.closed == {1}


def test_a_session_ends_when_it_expires_and_its_topics_are_given_up() -> None:
    world = Harness()
    world.connect(1, "me", session_expiry_interval=10)
    world.subscribe(1, "a")
    assert world.carried == {"a"}
    world.door.lost(1, world.now)
    world.settle()
    assert world.carried == {"a"}
    world.now += 11
    world.door.tick(world.now)
    world.settle()
    assert world.carried == set()
    assert not world.connect(2, "me", clean_start=False).session_present


def test_a_clean_start_ends_the_former_session() -> None:
    world = Harness()
    world.connect(1, "me", session_expiry_interval=10)
    world.subscribe(1, "a")
    world.send(1, DisconnectPacket())
    assert not world.connect(2, "me", clean_start=True).session_present
    assert world.carried == set()


def test_a_client_id_is_taken_over() -> None:
    world = Harness()
    world.connect(1, "me", session_expiry_interval=10)
    world.subscribe(1, "a")
    hello = world.connect(2, "me", clean_start=False, session_expiry_interval=10)
    assert hello.session_present
    assert world.take(1)[-1].reason_code == DisconnectReasonCode.SESSION_TAKEN_OVER
    assert world.closed == {1}
    world.connect(3)
    world.publish(3, "a")
    assert payloads(world.take(2)) == [(b"x", 0, False)]


class Stored(Harness):
    """A door whose sessions are stored, in `records`; `holds`: what is to be stored waits."""

    def __init__(self, records: dict[bytes, bytes] | None = None) -> None:
        super().__init__()
        self.door.owner = f"door{id(self)}"
        self.records = {} if records is None else records
        self.holds = False
        self.waiting: list[str] = []

    def _do(self, output: Any) -> None:
        match output:
            case Save(client_id):
                self.waiting.append(client_id)
                if not self.holds:
                    self.store()
            case Forget(client_id, segments):
                for key in (head_key(client_id), *(segment_key(client_id, number) for number in segments)):
                    self.records.pop(key, None)
            case _:
                super()._do(output)

    def store(self) -> None:
        for client_id in self.waiting:
            while (changes := self.door.begin_save(client_id, self.now)) is not None:
                self.write(changes)
                self.door.saved(client_id)
        self.waiting.clear()
        self.settle()

    def write(self, changes: list[Change]) -> None:
        self.records.update({one.key: one.value for one in changes})

    def crash(self) -> Stored:
        """Another node, with nothing but what was stored."""
        return Stored(self.records)

    def stored(self, client_id: str) -> StoredSession | None:
        return read_session(client_id, [Record(0, key, 1, 0, value, 1) for key, value in self.records.items() if value])

    def come(self, number: int, client_id: str, **settings: Any) -> list[Any]:
        """A client connects, and its session is brought."""
        self.door.open(number, self.now)
        self.door.receive(number, ConnectPacket(client_id, session_expiry_interval=10, **settings), V5, self.now)
        (claim,) = self.door.take()
        assert isinstance(claim, Claim) and claim.wants_session
        self.door.claimed(claim.token, self.stored(client_id), self.now)
        self.settle()
        return self.take(number)


def offline_with_one_message() -> Stored:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.subscribe(1, "a", qos=2)
    here.send(1, DisconnectPacket())
    here.connect(2)
    here.publish(2, "a", b"owed", qos=1)
    here.door.save_soon()
    here.settle()
    return here


def test_a_session_moves_to_another_node() -> None:
    here = offline_with_one_message()
    here.write(here.door.release("me", here.now) or [])
    here.settle()
    assert here.carried == set()
    there = here.crash()
    hello, owed = there.come(1, "me")
    assert hello.session_present
    assert owed.payload == b"owed"
    assert there.carried == {"a"}


def test_a_session_survives_the_crash_of_its_node_with_its_queue_and_subscriptions() -> None:
    there = offline_with_one_message().crash()
    hello, owed = there.come(1, "me")
    assert hello.session_present and owed.payload == b"owed"
    there.send(1, PubAckPacket(owed.packet_id))
    there.door.save_soon()
    there.settle()
    (hello,) = there.crash().come(1, "me")
    assert hello.session_present, "what the client has acknowledged does not come again"


def test_suback_comes_when_the_subscription_is_stored() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.holds = True
    assert here.subscribe(1, "a") == []
    here.store()
    assert [type(packet) for packet in here.take(1)] == [SubAckPacket]
    assert [one.pattern for one in here.stored("me").head.subscriptions] == ["a"]  # type: ignore[union-attr]


def test_a_message_with_qos_2_comes_once_however_often_nodes_crash() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.subscribe(1, "a", qos=2)
    here.connect(2)
    here.publish(2, "a", b"once", qos=2)
    (first,) = here.take(1)
    there = here.crash()  # the client has received it, and its PUBREC was lost
    _, again = there.come(1, "me")
    assert again.duplicate and again.packet_id == first.packet_id
    there.send(1, PubRecPacket(first.packet_id))
    assert [type(packet) for packet in there.take(1)] == [PubRelPacket]
    third = there.crash()  # the client was told to release it
    _, release = third.come(1, "me")
    assert isinstance(release, PubRelPacket) and release.packet_id == first.packet_id


def test_a_message_that_came_twice_over_a_crash_is_queued_once_and_one_that_was_missed_is_queued() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.subscribe(1, "a", qos=1)
    here.send(1, DisconnectPacket())
    stream = ("a", 7, 1)
    here.door.deliver(ApplicationMessage("a", b"one", qos=1), here.now, stream, 1)
    here.door.save_soon()
    here.settle()
    here.door.deliver(ApplicationMessage("a", b"two", qos=1), here.now, stream, 2)  # not stored before the crash
    there = here.crash()
    there.door.remember(ApplicationMessage("a", b"one", qos=1), stream, 1, there.now)
    there.door.remember(ApplicationMessage("a", b"two", qos=1), stream, 2, there.now)
    _, *owed = there.come(1, "me")
    assert [packet.payload for packet in owed] == [b"one", b"two"]
    there.door.deliver(ApplicationMessage("a", b"two", qos=1), there.now, stream, 2)  # from a window
    there.settle()
    assert there.take(1) == []


def test_a_crashed_node_s_client_has_its_will_published_and_its_session_queues_on() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10, will=Will("w", payload=b"gone"))
    here.subscribe(1, "a", qos=1)
    there = here.crash()
    stored = there.stored("me")
    assert stored is not None
    there.door.adopt(stored, there.now)
    there.settle()
    assert [message.payload for message in there.published] == [b"gone"]
    there.connect(2)
    there.publish(2, "a", b"later", qos=1)
    assert there.door.sessions["me"].queued == 1
    there.now += 11
    there.door.tick(there.now)
    there.settle()
    assert there.door.sessions.keys() == {"c2"} and there.stored("me") is None


def test_a_client_without_a_session_but_with_a_will_leaves_nothing_behind() -> None:
    here = Stored()
    here.connect(1, "me", will=Will("w", payload=b"gone"))
    assert here.stored("me") is not None
    here.send(1, DisconnectPacket())
    assert here.records == {}


@pytest.mark.parametrize("topic", ["$SYS/x", "$omen/mqtt/topics", "a" * 300])
def test_names_that_cannot_be_published_on(topic: str) -> None:
    world = Harness()
    world.connect(1)
    assert world.publish(1, topic)[-1].reason_code == DisconnectReasonCode.TOPIC_NAME_INVALID
    assert world.published == []


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("$omen/#", SubAckReasonCode.TOPIC_FILTER_INVALID),
        ("$share/g", SubAckReasonCode.TOPIC_FILTER_INVALID),
        ("$share//a", SubAckReasonCode.TOPIC_FILTER_INVALID),
    ],
)
def test_filters_that_are_refused(pattern: str, code: SubAckReasonCode) -> None:
    world = Harness()
    world.connect(1)
    (answer,) = world.subscribe(1, pattern)
    assert answer.reason_codes == [code]
    assert world.carried == set()


def test_who_may_what() -> None:
    def authenticate(client: str, user: str | None, password: bytes | None) -> ConnAckReasonCode:
        return ConnAckReasonCode.SUCCESS if password == b"right" else ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD

    rights = Rights(authenticate, lambda user, topic: topic == user, lambda user, pattern: pattern != "secret")
    world = Harness(rights=rights)
    refused = world.connect(1, username="ann", password=b"wrong")
    assert refused.reason_code == ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD
    assert world.closed == {1}
    world.connect(2, username="ann", password=b"right")
    (denied,) = world.publish(2, "bob", qos=1)
    assert int(denied.reason_code) == 0x87
    (taken,) = world.publish(2, "ann", qos=1)
    assert int(taken.reason_code) == 0
    (answer,) = world.subscribe(2, "secret")
    assert answer.reason_codes == [SubAckReasonCode.NOT_AUTHORIZED]
    assert len(world.published) == 1


def test_wildcards_follow_the_directory() -> None:
    world = Harness()
    world.connect(1)
    world.subscribe(1, "a/+")
    world.door.learn_topics(["a/b", "c", "$x"], fresh=True)
    world.settle()
    assert world.carried == {"a/b"}
    world.connect(2)
    world.subscribe(2, "#")
    assert world.carried == {"a/b", "c"}
    world.send(2, UnsubscribePacket(3, ["#", "no"]))
    (answer,) = world.take(2)
    assert isinstance(answer, UnsubAckPacket)
    assert [int(code) for code in answer.reason_codes] == [0, 17]
    assert world.carried == {"a/b"}


def test_wildcards_match_no_more_than_the_limit() -> None:
    world = Harness(DoorLimits(wildcard_matches=2))
    world.connect(1)
    world.subscribe(1, "#")
    world.door.learn_topics(["a", "b", "c"], fresh=False)
    world.settle()
    assert len(world.carried) == 2
    assert world.door.wishes.beyond == 1


def test_a_client_that_does_not_read_misses_qos_0_and_keeps_qos_1() -> None:
    world = Harness()
    world.connect(1)
    world.connect(2)
    world.subscribe(2, "a", qos=1)
    world.door.pause(2, True, world.now)
    world.publish(1, "a", b"lost")
    world.publish(1, "a", b"kept", qos=1)
    assert world.take(2) == []
    world.door.pause(2, False, world.now)
    world.settle()
    assert payloads(world.take(2)) == [(b"kept", 1, False)]


def test_more_than_the_receive_maximum_is_an_error() -> None:
    world = Harness(DoorLimits(receive_max=2))
    world.grants = False
    world.connect(1)
    for number in (1, 2):
        assert world.publish(1, "a", qos=1, packet_id=number) == []
    assert world.publish(1, "a", qos=1, packet_id=3)[-1].reason_code == DisconnectReasonCode.RECEIVE_MAX_EXCEEDED


def test_a_packet_larger_than_the_client_takes_is_left_out() -> None:
    world = Harness()
    world.connect(1)
    world.connect(2, max_packet_size=60)
    world.subscribe(2, "a", qos=1)
    world.publish(1, "a", b"x" * 100, qos=1)
    world.publish(1, "a", b"small", qos=1)
    assert payloads(world.take(2)) == [(b"small", 1, False)]


def shared(members: int = 3) -> Harness:
    world = Harness()
    for number in range(1, members + 1):
        world.connect(number)
        assert isinstance(world.subscribe(number, "$share/g/a/b", qos=1)[0], SubAckPacket)
    world.connect(9)
    return world


def test_of_a_shared_subscription_one_member_gets_each_message() -> None:
    world = shared()
    world.publish(9, "a/b")
    for _ in range(60):
        world.publish(9, "a/b", qos=1)
    counts = [sum(isinstance(packet, PublishPacket) for packet in world.take(number)) for number in (1, 2, 3)]
    assert sum(counts) == 61 and min(counts) > 5
    assert world.carried == {"a/b"}


def test_members_that_are_not_connected_get_messages_only_where_none_is() -> None:
    world = Harness()
    world.connect(1, "away", session_expiry_interval=100)
    world.subscribe(1, "$share/g/a", qos=1)
    world.send(1, DisconnectPacket())
    world.connect(2)
    world.subscribe(2, "$share/g/a", qos=1)
    world.connect(9)
    for _ in range(10):
        world.publish(9, "a", qos=1)
    assert len(world.take(2)) == 10 and world.door.sessions["away"].queued == 0
    world.door.lost(2, world.now)
    world.publish(9, "a", qos=1)
    assert world.door.sessions["away"].queued == 1


def test_shared_and_own_subscriptions_of_a_client_are_apart_and_shared_ones_bring_nothing_retained() -> None:
    world = Harness()
    world.connect(1)
    world.publish(1, "a", b"kept", retain=True)
    assert len(world.subscribe(1, "$share/g/a", qos=0)) == 1
    assert payloads(world.subscribe(1, "a", qos=0)[1:]) == [(b"kept", 0, True)]
    assert payloads(world.publish(1, "a")) == [(b"x", 0, False), (b"x", 0, False)]
    world.send(1, UnsubscribePacket(3, ["$share/g/a"]))
    world.take(1)
    assert payloads(world.publish(1, "a")) == [(b"x", 0, False)]
    assert len(world.door.groups) == 0


def test_a_shared_subscription_with_no_local_is_a_protocol_error() -> None:
    world = Harness()
    world.connect(1)
    assert world.subscribe(1, "$share/g/a", no_local=True)[-1].reason_code == DisconnectReasonCode.PROTOCOL_ERROR


def test_subscriptions_and_connections_of_a_node_are_bounded_and_others_are_unaffected() -> None:
    world = Harness(DoorLimits(all_subscriptions=3, connections=2))
    world.connect(1)
    for pattern in ("a/+", "b/#", "c"):
        assert world.subscribe(1, pattern, qos=0)[0].reason_codes == [SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE]
    assert world.subscribe(1, "d/+")[0].reason_codes == [SubAckReasonCode.QUOTA_EXCEEDED]
    assert world.subscribe(1, "c", qos=0)[0].reason_codes == [SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE]
    world.connect(2)
    assert world.connect(3).reason_code == ConnAckReasonCode.SERVER_BUSY
    assert world.subscribe(2, "e")[0].reason_codes == [SubAckReasonCode.QUOTA_EXCEEDED]
    world.send(1, UnsubscribePacket(3, ["a/+"]))
    assert world.subscribe(2, "e", qos=0)[0].reason_codes == [SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE]


@pytest.mark.parametrize("more", [{"duplicate": True}, {"subscription_ids": [3]}])
def test_a_client_that_breaks_the_rules_of_publish_is_disconnected(more: dict[str, Any]) -> None:
    world = Harness()
    world.connect(1)
    assert world.publish(1, "a", **more)[-1].reason_code == DisconnectReasonCode.PROTOCOL_ERROR
    assert world.published == []


def test_only_a_normal_disconnection_keeps_a_will_from_being_published() -> None:
    for reason, wills in ((DisconnectReasonCode.NORMAL_DISCONNECTION, 0), (DisconnectReasonCode.UNSPECIFIED_ERROR, 1)):
        world = Harness()
        world.connect(1, will=Will("w", payload=b"gone"))
        world.send(1, DisconnectPacket(reason_code=reason))
        assert len(world.published) == wills

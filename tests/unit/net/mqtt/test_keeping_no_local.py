"""No-local and retain-as-published where a session moves: what comes from windows is held to its options too."""

from __future__ import annotations

from mqtt5 import PublishPacket
from tests.unit.net.mqtt.doors import Stored, payloads

from omen.net.inbox import Message
from omen.net.mqtt.records import CLIENT, fields_of_message, message_from
from omen.net.mqtt.session import ApplicationMessage
from omen.protocol.messages.publications import write_fields


def over_the_overlay(message: ApplicationMessage, names_client: bool) -> ApplicationMessage:
    """As another node gets it."""
    fields = fields_of_message(message, names_client)
    assert fields is not None
    item = Message(message.topic, message.payload, "n1", 1, 1, fields=write_fields(fields))
    return message_from(item, "")


def test_a_client_gets_nothing_of_its_own_at_the_node_that_it_comes_to() -> None:
    """MQTT-3.8.3-3: also of what its former node had published, and the windows of the next one have."""
    here = Stored()
    here.connect(1, "me", session_expiry_interval=60)
    here.subscribe(1, "a/+", no_local=True)
    here.publish(1, "a/b", b"mine", qos=1)
    (mine,) = here.published
    assert here.door.is_not_for_its_client(mine)
    assert not here.door.is_not_for_its_client(ApplicationMessage("b", b"", client="me"))
    there = here.crash()
    for sequence, one in enumerate((mine, ApplicationMessage("a/b", b"of others", 1, client="you")), 1):
        message = over_the_overlay(one, names_client=one is mine)
        assert CLIENT not in dict(message.user_properties)
        there.door.remember(message, ("a/b", 1, 1), sequence, there.now)
    got = there.come(1, "me", clean_start=False)
    assert [payload for payload, _, _ in payloads(got)] == [b"of others"]
    here.subscribe(1, "a/+", no_local=False)
    assert not here.door.is_not_for_its_client(mine)


def test_what_comes_from_a_window_is_retained_as_published() -> None:
    """MQTT-3.3.1-13."""
    here = Stored()
    here.connect(1, "me", session_expiry_interval=60)
    here.subscribe(1, "a", retain_as_published=True, identifier=3)
    there = here.crash()
    there.door.remember(ApplicationMessage("a", b"x", 1, retain=True), ("a", 1, 1), 1, there.now)
    (one,) = [one for one in there.come(1, "me", clean_start=False) if isinstance(one, PublishPacket)]
    assert one.retain and one.subscription_ids == [3]

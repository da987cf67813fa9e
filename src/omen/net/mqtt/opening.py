"""The front door of a node as its settings say: where it listens, who may come in, what they may do."""

from __future__ import annotations

import ssl
from ipaddress import ip_address
from typing import TYPE_CHECKING

from mqtt5 import ConnAckReasonCode

from omen.errors import InvalidInput
from omen.net.mqtt.door import Door
from omen.net.mqtt.facts import facts_of
from omen.net.mqtt.listener import FrontDoor
from omen.net.mqtt.outputs import DoorLimits, Rights
from omen.net.mqtt.users import Users
from omen.net.names import split_address
from omen.net.security.access import Access

if TYPE_CHECKING:
    from omen.net.broker import Broker
    from omen.net.settings import NodeConfig


async def open_front_door(broker: Broker) -> FrontDoor:
    """Listen for MQTT clients; the broker has joined. InvalidInput: the settings do not allow it."""
    config = broker.config
    rights = _rights(config, broker.admission.access)
    limits = DoorLimits(packet_bytes=min(config.limits.payload_bytes + (64 << 10), config.limits.frame_bytes))
    front = FrontDoor(broker, Door(limits, rights))
    contexts: list[tuple[str, ssl.SSLContext | None]] = [(config.mqtt, None)] if config.mqtt else []
    if config.mqtts:
        contexts.append((config.mqtts, _tls(config)))
    await front.open(contexts)
    if config.mqtt_ws:
        origins = config.mqtt_ws_origins if not config.mqtt_users or config.mqtt_anonymous else ("*",)
        await front.open_websocket(config.mqtt_ws, origins)
    broker.mqtt_addresses = front.addresses
    broker.front_door = lambda: facts_of(front)
    return front


def check_settings(config: NodeConfig) -> None:
    """What can be said before the node joins. InvalidInput: the settings do not allow it."""
    _rights(config, Access((), config.name))
    if config.mqtts:
        _tls(config)


def _rights(config: NodeConfig, access: Access) -> Rights:
    users = Users(config.mqtt_users) if config.mqtt_users else None
    addresses = [address for address in (config.mqtt, config.mqtts, config.mqtt_ws) if address]
    is_open = config.mqtt_anonymous or all(map(_is_loopback, addresses))
    if users is None and not is_open and not config.mqtt_authority:
        raise InvalidInput(
            f"mqtt {addresses[0]}: beyond this machine clients need a password or a certificate: name a file of users "
            "in `mqtt_users` (omen keys user) or of authorities in `mqtt_authority`, or set `mqtt_anonymous = true`"
        )
    if config.mqtt_authority and not config.mqtts:
        raise InvalidInput("mqtt_authority: certificates are shown at `mqtts`, which is not set")

    def authenticate(_: str, username: str | None, password: bytes | None) -> ConnAckReasonCode:
        if users is not None and username is not None and users.knows(username, password or b""):
            return ConnAckReasonCode.SUCCESS
        if username is None and (is_open if users is None else config.mqtt_anonymous):
            return ConnAckReasonCode.SUCCESS
        if users is None and is_open:
            return ConnAckReasonCode.SUCCESS
        return ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD

    def may_publish(user: str, topic: str) -> bool:
        return not config.access or access.may_publish(user, topic)

    def may_subscribe(user: str, pattern: str) -> bool:
        return not config.access or access.may_subscribe(user, pattern)

    return Rights(authenticate, may_publish, may_subscribe)


def _is_loopback(address: str) -> bool:
    host, _ = split_address(address, "mqtt")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(config: NodeConfig) -> ssl.SSLContext:
    """Clients see the certificate of the node; one of their own is verified where they show it."""
    security = config.security
    if not security.certificate or not security.key:
        raise InvalidInput("mqtts: needs `certificate` and `key` in [security]")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(security.certificate, security.key)
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(f"mqtts: {security.certificate}: {error}") from None
    if config.mqtt_authority:
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(config.mqtt_authority)
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(f"mqtt_authority: {config.mqtt_authority}: {error}") from None
    return context

"""What tools that watch MQTT servers expect under `$SYS/broker/`."""

from __future__ import annotations

from omen.net.mqtt.door import Door
from omen.net.observe.node_metrics import build_facts


def sys_facts(door: Door, uptime_s: float) -> dict[str, str]:
    """What stands under `$SYS/broker/`."""
    return {
        "version": f"OMen {build_facts()['version']}",
        "uptime": f"{uptime_s:.0f} seconds",
        "clients/connected": str(len(door.clients)),
        "clients/total": str(len(door.sessions)),
        "messages/received": str(door.received),
        "messages/sent": str(door.sent),
        "publish/messages/dropped": str(door.dropped),
        "retained messages/count": str(sum(bool(kept.message.payload) for kept in door.retained.values())),
    }

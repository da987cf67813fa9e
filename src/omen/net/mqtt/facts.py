"""What a front door says of itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from omen.net.observe.front_door import FrontDoorFacts

if TYPE_CHECKING:
    from omen.net.mqtt.listener import FrontDoor


def facts_of(front: FrontDoor) -> FrontDoorFacts:
    """How it is just now."""
    door, keeper, publisher = front.door, front.keeper, front.publisher
    sessions = door.sessions.values()
    return FrontDoorFacts(
        clients=len(door.clients),
        sessions=len(sessions),
        subscriptions=door.subscriptions,
        wildcard_topics=door.wishes.matched,
        wildcard_topics_left_out=door.wishes.beyond,
        retained=sum(bool(kept.message.payload) for name, kept in door.retained.items() if name[0] != "$"),
        retained_bytes=door.retained_bytes,
        queued=sum(one.queued for one in sessions),
        queued_bytes=sum(one.queued_bytes for one in sessions),
        marks=sum(one.marks for one in sessions),
        busy_topics=len(door.busy_topics(time.time())),
        waiting_wills=door.waiting_wills,
        shares=len(door.groups),
        share_members=door.groups.members,
        received=door.received,
        sent=door.sent,
        dropped=door.dropped,
        repeated=door.repeated,
        failed=publisher.failed,
        unheld=keeper.unheld,
        unstored=keeper.unstored,
        held_back=publisher.held_back,
        shared=door.shared,
        chosen_again=door.chosen_again,
        wills=door.wills,
        adopted=keeper.adopted,
        recovered=keeper.recovered,
    )

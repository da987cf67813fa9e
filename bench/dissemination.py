"""How fast one node takes publications in, without any network: what the core costs a delivery.

    python bench/dissemination.py

Four neighbours, all on the tree: each publication that comes in goes on to three and to the application.
"""

from __future__ import annotations

import time

from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.dissemination.plumtree import Dissemination
from omen.protocol.events import Received
from omen.protocol.messages import wire
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import make_publication, stream_key

COUNT = 200_000
TOPICS = 10


def build_part() -> Dissemination:
    me = Ref(1, 1, "")
    part = Dissemination(me, Config(), Outbox(me.id))
    topics = frozenset(range(TOPICS))
    part.refresh(topics, topics, frozenset(), {peer: (Ref(peer, 1, ""), topics) for peer in range(2, 6)}, 0)
    return part


def measure(payload_bytes: int, decode: bool) -> float:
    """Seconds of processor time a publication."""
    part = build_part()
    payload = bytes(payload_bytes)
    keys = [stream_key(topic, 99, 1) for topic in range(TOPICS)]
    made = [make_publication(keys[n % TOPICS], 1 + n // TOPICS, payload, n < TOPICS) for n in range(COUNT)]
    data = [publication.frame for publication in made]
    outputs = 0
    started = time.process_time()
    if decode:
        for now, frame in enumerate(data):
            event = Received(2, wire.decode(frame))
            outputs += len(part.receive(event.sender, event.message, now))
    else:
        for now, publication in enumerate(made):
            outputs += len(part.receive(2, publication, now))
    seconds = time.process_time() - started
    assert outputs >= 2 * COUNT
    return seconds / COUNT


def main() -> None:
    for payload_bytes in (100, 10_000):
        for decode in (False, True):
            each = min(measure(payload_bytes, decode) for _ in range(3))
            what = "frame to outputs" if decode else "publication to outputs"
            print(f"{payload_bytes:6d} B  {what:24s} {each * 1e6:5.2f} us, {1 / each:9,.0f} per processor-second")


if __name__ == "__main__":
    main()

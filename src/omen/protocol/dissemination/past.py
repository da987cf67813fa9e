"""Streams whose publisher has been silent for long: nothing of them is kept but how far they were.

That is enough for two things: what comes of such a stream again is put in its place, and a neighbour that is not as far
is told so. Without it, a node that missed the last publications before a silence would hear of that only with the next.
"""

from __future__ import annotations

from collections.abc import Iterator

from omen.protocol.dissemination.stream import Stream
from omen.protocol.events import Time, Topic
from omen.protocol.messages.publications import StreamKey, StreamMark, read_key

FORMER_AT_MOST = 1 << 16
"""Of all topics together; those that came first make way."""


class Former:
    """How far one stream was. `opened`: where its last run began; `heard`: when something of it came last.

    `passed`: the highest sequence that may never have come. `silent_until`: nothing up to there was delivered.
    """

    __slots__ = ("heard", "key", "last", "opened", "passed", "silent_until")

    def __init__(self, key: StreamKey, last: int, opened: int, heard: Time, passed: int) -> None:
        self.key = key
        self.last = last
        self.opened = opened
        self.heard = heard
        self.passed = passed
        self.silent_until = 0

    def mark(self, yours: int, now: Time) -> StreamMark:
        """Nothing of it is kept, and nothing awaited."""
        _, publisher, incarnation = read_key(self.key)
        idle = max(0, now - self.heard) // 1000
        last = self.last
        return StreamMark(publisher, incarnation, self.opened, last + 1, last, yours, idle, last, passed=self.passed)


class Past:
    """All streams that a node tells of no more by itself, found by key and by topic."""

    def __init__(self) -> None:
        self._streams: dict[StreamKey, Former] = {}
        self._topics: dict[Topic, dict[StreamKey, Former]] = {}

    def get(self, key: StreamKey) -> Former | None:
        return self._streams.get(key)

    def note(self, key: StreamKey, last: int, opened: int, heard: Time, passed: int) -> Former:
        self.forget(key)
        former = Former(key, last, opened, heard, passed)
        self._streams[key] = former
        self._topics.setdefault(read_key(key)[0], {})[key] = former
        if len(self._streams) > FORMER_AT_MOST:
            self.forget(next(iter(self._streams)))
        return former

    def note_stream(self, stream: Stream) -> None:
        """Where nothing was ever delivered there is nothing to remember."""
        if stream.is_determined and stream.last:
            last = max(stream.last, stream.silent_until)
            former = self.note(stream.key, last, stream.opened, stream.heard, stream.passed)
            former.silent_until = stream.silent_until

    def forget(self, key: StreamKey) -> None:
        """It goes on, or is not known any more."""
        if self._streams.pop(key, None) is not None:
            topic = read_key(key)[0]
            of_topic = self._topics[topic]
            del of_topic[key]
            if not of_topic:
                del self._topics[topic]

    def forget_topic(self, topic: Topic) -> None:
        """It is carried no more: what is published until it is taken up again is not missed."""
        for key in list(self._topics.get(topic, ())):
            self.forget(key)

    def of(self, topic: Topic) -> Iterator[Former]:
        """The streams of one topic, the latest first."""
        return reversed(self._topics.get(topic, {}).values())

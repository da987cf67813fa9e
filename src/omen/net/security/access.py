"""Which certificates may publish and subscribe, topic by topic.

The first rule with a pattern for a topic decides; where there are rules, a topic without one is closed to all. Inside,
topics and publishers are numbers: a node knows the names of the topics it carries, and publications come on no others.

A node that may publish a topic may carry it, as one that may subscribe does; its application is handed nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from omen.errors import Denied
from omen.net.names import topic_key
from omen.net.security.config import Rule
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.overlay import Descriptor, Descriptors, LinkOk, LinkOpen, RepairRequest
from omen.protocol.messages.publications import Announce, Publication, StreamKey, read_key

REMEMBERED = 1 << 14
WILD = "*?["


class Access:
    """The rules as one node applies them, to itself and to its peers.

    `denied`: how often, by action: `publish` and `subscribe` by the application here; `received`, a publication by a
    node that may not; `sent`, one withheld from a neighbour that may not have it; `claimed`, an interest in a topic
    that a neighbour may not carry.
    """

    def __init__(self, rules: Sequence[Rule], own_name: str) -> None:
        self._own_name = own_name
        self.denied: Counter[str] = Counter()
        self._names: dict[int, str] = {}
        self._may_pass: dict[tuple[str, StreamKey], bool] = {}
        self._may_carry: dict[tuple[str, int], bool] = {}
        self._peer_names: dict[int, str] = {}
        self.set_rules(rules)

    def set_rules(self, rules: Sequence[Rule]) -> None:
        """Go by these from now on."""
        self.rules = tuple(rules)
        self._may_pass.clear()
        self._may_carry.clear()
        for rule in self.rules:
            for topic in rule.topics:
                if not any(char in WILD for char in topic):
                    self._names[topic_key(topic)] = topic

    def know_topic(self, key: int, name: str) -> None:
        """This node has a part in the topic."""
        if key not in self._names:
            self._names[key] = name
            self._may_pass.clear()
            self._may_carry.clear()

    def name_of(self, key: int) -> str | None:
        """The name of a topic that this node has a part in, or that a rule names without patterns."""
        return self._names.get(key)

    def know_peer(self, name: str) -> None:
        """A peer has shown a certificate for this name."""
        place = place_of(name)
        if self._peer_names.get(place) != name:
            if len(self._peer_names) >= REMEMBERED:
                self._peer_names.clear()
            self._peer_names[place] = name
            self._may_pass.clear()

    def may_publish(self, name: str, topic: str) -> bool:
        rule = self._rule_for(topic)
        return rule is not None and _matches(name, rule.publish)

    def may_subscribe(self, name: str, topic: str) -> bool:
        rule = self._rule_for(topic)
        return rule is not None and _matches(name, rule.subscribe)

    def _rule_for(self, topic: str) -> Rule | None:
        return next((rule for rule in self.rules if _matches(topic, rule.topics)), None)

    def check_publish(self, topic: str) -> None:
        """Raises Denied where this node may not publish a topic."""
        if self.rules and not self.may_publish(self._own_name, topic):
            self.denied["publish"] += 1
            raise Denied(f"{self._own_name!r} may not publish on {topic!r}: {self._who(topic, 'publish')}")

    def check_subscribe(self, topics: Iterable[str]) -> None:
        """Raises Denied where this node may not subscribe to one of the topics."""
        for topic in topics:
            if self.rules and not self.may_subscribe(self._own_name, topic):
                self.denied["subscribe"] += 1
                raise Denied(f"{self._own_name!r} may not subscribe to {topic!r}: {self._who(topic, 'subscribe')}")

    def _who(self, topic: str, what: str) -> str:
        rule = self._rule_for(topic)
        if rule is None:
            return "no access rule is for this topic"
        return f"the rule for {', '.join(rule.topics)} lets {', '.join(getattr(rule, what)) or 'no node'} {what}"

    def may_carry(self, name: str, key: int) -> bool:
        """Whether publications on a topic may go to this peer. Topics this node has no part in pass."""
        known = self._may_carry.get((name, key))
        if known is None:
            topic = self._names.get(key)
            is_open = topic is None or not self.rules
            known = is_open or self.may_publish(name, topic or "") or self.may_subscribe(name, topic or "")
            if len(self._may_carry) >= REMEMBERED:
                self._may_carry.clear()
            self._may_carry[name, key] = known
        return known

    def may_pass(self, sender: str, stream: StreamKey) -> bool:
        """Whether a publication of this stream is taken from this peer."""
        known = self._may_pass.get((sender, stream))
        if known is None:
            known = self._judge(sender, *read_key(stream)[:2])
            if len(self._may_pass) >= REMEMBERED:
                self._may_pass.clear()
            self._may_pass[sender, stream] = known
        return known

    def _judge(self, sender: str, key: int, publisher: int) -> bool:
        topic = self._names.get(key)
        if topic is None or not self.rules:
            return True  # nothing is done here with what comes on a topic that this node has no part in
        rule = self._rule_for(topic)
        if rule is None:
            return False
        if publisher == place_of(sender):
            return _matches(sender, rule.publish)
        if not self.may_carry(sender, key):
            return False
        name = self._own_name if publisher == place_of(self._own_name) else self._peer_names.get(publisher)
        if name is not None:
            return _matches(name, rule.publish)
        exact = not any(char in WILD for pattern in rule.publish for char in pattern)
        return not exact or any(place_of(pattern) == publisher for pattern in rule.publish)

    def takes(self, sender: str, publication: Publication) -> bool:
        """Whether a publication is taken from this peer; counted where it is not."""
        if not self.rules or self.may_pass(sender, publication.key):
            return True
        self.denied["received"] += 1
        return False

    def gives(self, name: str, publication: Publication) -> bool:
        """Whether a publication goes to this peer; counted where it does not."""
        if not self.rules or self.may_carry(name, publication.topic):
            return True
        self.denied["sent"] += 1
        return False

    def visible_to(self, name: str, message: Announce) -> Announce | None:
        """What a peer may hear of streams: nothing of topics that it may not carry, whichever way it came to be taken
        for one that does. None: nothing is left to say.
        """
        topics = tuple(entry for entry in message.topics if self.may_carry(name, entry[0]))
        room = tuple(entry for entry in message.room if self.may_carry(name, entry[0]))
        if len(topics) == len(message.topics) and len(room) == len(message.room):
            return message
        self.denied["sent"] += 1
        return Announce(topics, message.compare, message.answers, room) if topics or room or message.answers else None

    def is_claim_allowed(self, name: str, message: Any) -> bool:
        """Whether a peer, in what it says of itself, lays claim only to topics that it may carry."""
        if not self.rules:
            return True
        place = place_of(name)
        allowed = all(
            self.may_carry(name, key)
            for descriptor in _descriptors_in(message)
            if descriptor.digest.ref.id == place
            for key in descriptor.topics
        )
        self.denied["claimed"] += not allowed
        return allowed


def _descriptors_in(message: Any) -> tuple[Descriptor, ...]:
    kind = type(message)
    if kind is LinkOpen or kind is LinkOk or kind is RepairRequest:
        return (message.descriptor,)
    return message.descriptors if kind is Descriptors else ()


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

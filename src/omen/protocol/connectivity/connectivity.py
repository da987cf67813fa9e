"""The search of a node for a way round itself, in each of its topics: see the package."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from omen.protocol.connectivity.answers import Answers, digest_of
from omen.protocol.connectivity.surroundings import NOTHING, Pair, Seen, Surroundings, pair_of
from omen.protocol.context import NodeContext
from omen.protocol.events import Handlers, NodeId, Time, Timer, TimerHandlers, Topic
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import (
    EventId,
    LinkProposal,
    NearbyChanged,
    NearbyQuery,
    NearbyReply,
    Ref,
)
from omen.protocol.repair.link_pruning import LinkPruning
from omen.protocol.repair.links import Links
from omen.protocol.repair.requests import Requests

HOPS = 8
"""How far a search goes; ways round are this long at most."""
ASKED_AT_MOST = 256
"""Nodes of one search; more where more than half as many are neighbours, for all of those have to be asked. Fewer make
links where there is a way that was not seen: 800 nodes with 10 to 70 of 150 topics have 13.5 on average with 128, and
11.2 with 256 or 512, for fewer messages.
"""
TRIES = 3
IN_VAIN = 3
"""So often a link is proposed that does not come up; then another one, as one end may not reach the other."""
VAIN_RECHECKS = 6
KEPT_AT_MOST = 256
WATCHERS_AT_MOST = 256
WIDEST = 512
"""Topics of one search; the others come next."""


class SearchTimer(Timer, frozen=True):
    """A search may begin."""


class NearbyTimer(Timer, frozen=True):
    """Those asked have had their time to answer."""

    nonce: int


class Kept(msgspec.Struct):
    """The last answer of a node, and to which question. `digest`: 0 until it is asked the same again."""

    topics: tuple[Topic, ...]
    reply: NearbyReply
    digest: int = 0


class Watcher(msgspec.Struct):
    """A node that has asked, and counts on what it was told of these topics."""

    ref: Ref
    until: Time
    topics: set[Topic] = msgspec.field(default_factory=set)


class Search(msgspec.Struct):
    """The one under way. `asked`: for what each node was asked; `silent`: those that have not answered yet.
    `furthest`, `most`: how far it goes, and how many it asks.
    """

    nonce: int
    around: Surroundings
    furthest: int
    most: int
    asked: dict[NodeId, tuple[Ref, tuple[Topic, ...]]] = msgspec.field(default_factory=dict)
    silent: set[NodeId] = msgspec.field(default_factory=set)
    tries: int = 0
    hops: int = 0


class Connectivity:
    """`due`: the topics to be searched. `cut`: those in which this node is still a cut node, as far as it has seen."""

    def __init__(self, context: NodeContext, links: Links, requests: Requests, link_pruning: LinkPruning) -> None:
        self._context = context
        self._peer_table = context.peer_table
        self._config = context.config
        self._out = context.out
        self._clock = context.clock
        self._links = links
        self._requests = requests
        self._link_pruning = link_pruning
        self._answers = Answers(context, links, requests)
        self.due: set[Topic] = set()
        self.cut: set[Topic] = set()
        self.search: Search | None = None
        self.searches = 0
        self.links_version = -1
        self._up: dict[NodeId, frozenset[Topic]] = {}
        self._kept: dict[NodeId, Kept] = {}
        self._watchers: dict[NodeId, Watcher] = {}
        self._certified_at: dict[Topic, Time] = {}
        self._proposed: dict[Pair, tuple[int, Time]] = {}
        self._nonce = 0
        self._last: Topic = -1

    def handlers(self) -> Handlers:
        return {NearbyQuery: self.on_query, NearbyReply: self.on_reply, NearbyChanged: self.on_changed}

    def timers(self) -> TimerHandlers:
        return {SearchTimer: self.on_search_timer, NearbyTimer: self.on_nearby_timer}

    @property
    def is_wanted(self) -> bool:
        return self._config.connectivity > 1

    def start(self) -> None:
        """Begin at a random time of the period, so that searches are spread."""
        if self.is_wanted:
            self._set_timer()

    def _set_timer(self) -> None:
        period = self._config.connectivity_period
        self._out.set_timer(SearchTimer(), period // 2 + self._context.random.randrange(period))

    # What has changed

    def follow_links(self) -> None:
        """Links have come up or gone: search the topics concerned; those that count on lost ones are told."""
        self.links_version = self._links.version
        before, self._up = self._up, {node: self._shared(node) for node in self._links.up()}
        lost: set[Topic] = set()
        for node in before.keys() | self._up.keys():
            changed = before.get(node, frozenset()) ^ self._up.get(node, frozenset())
            if self.is_wanted:
                self.due.update(changed)
            lost |= before.get(node, frozenset()) - self._up.get(node, frozenset())
        if lost:
            self._tell_watchers(lost)

    def _shared(self, node: NodeId) -> frozenset[Topic]:
        return self._links.count_on(node) & self._peer_table.topics_of(self._peer_table.id)

    def _tell_watchers(self, lost: set[Topic]) -> None:
        """Those that have asked for a topic in which a link is lost. They ask again, and then watch it again."""
        now, me = self._clock.now, self._peer_table.ref
        self._watchers = {node: watcher for node, watcher in self._watchers.items() if watcher.until > now}
        for watcher in self._watchers.values():
            concerned = watcher.topics & lost
            if concerned:
                watcher.topics -= concerned
                self._out.send(watcher.ref, NearbyChanged(me, tuple(sorted(concerned))))

    def on_changed(self, sender: NodeId, message: NearbyChanged) -> None:
        """A node that a way round may lead through has lost a link."""
        kept = self._kept.get(sender)
        if kept is None or not self.is_wanted:
            return
        self.due.update(self._peer_table.topics_of(self._peer_table.id).intersection(message.topics or kept.topics))

    # A search

    def on_search_timer(self, _: SearchTimer) -> None:
        if not self.is_wanted:
            return
        self._set_timer()
        requests = self._requests
        if not self._links.links:  # who is alone cuts nothing
            self.cut.clear()
        if self.search is not None or requests.departing or requests.joining or not self._links.links:
            return
        if any(link.state.value in ("planned", "opening", "accepted") for link in self._links.links.values()):
            return  # what is being linked may join what seems apart
        self.follow_links()
        mine = self._peer_table.topics_of(self._peer_table.id)
        self.due &= mine
        self.cut &= mine
        furthest = HOPS if self.due - self.cut else 2 * HOPS
        wanted = self.due | self._old()
        if wanted:
            self._begin(wanted, furthest)

    def _old(self) -> set[Topic]:
        """All topics are searched again after a while: what was told may have been lost. Where one is due, those that
        are half as old come along: one search of many topics asks far fewer than many of one each.
        """
        now, recheck = self._clock.now, self._config.connectivity_recheck
        mine = {topic for topics in self._up.values() for topic in topics}
        self._certified_at = {topic: at for topic, at in self._certified_at.items() if topic in mine}
        if all(self._certified_at.get(topic, -recheck) > now - recheck for topic in mine):
            return set()
        return {topic for topic in mine if self._certified_at.get(topic, -recheck) <= now - recheck // 2}

    def _begin(self, wanted: set[Topic], furthest: int) -> None:
        """`furthest`: without news a search goes further, so that no link is made because another way was found."""
        topics = self._next_of(wanted)
        self.due -= topics
        near = {node: shared & topics for node, shared in self._up.items() if shared & topics}
        several = {topic for topic in topics if sum(topic in shared for shared in near.values()) > 1}
        self._certify(topics - several)
        if not several:
            return
        self._nonce += 1
        self.searches += 1
        near = {node: shared & several for node, shared in near.items() if shared & several}
        most = max(ASKED_AT_MOST, 2 * len(near))
        self.search = Search(self._nonce, Surroundings(self._peer_table.id, several, near), furthest, most)
        self._ask({node: (self._links.links[node].ref, shared) for node, shared in near.items()})

    def _next_of(self, wanted: set[Topic]) -> frozenset[Topic]:
        """Those with news first; the others in turn, so that none waits for ever for those that are old again."""
        due, last = self.due, self._last
        taken = sorted(wanted, key=lambda topic: (topic not in due, topic <= last, topic))[:WIDEST]
        self._last = taken[-1]
        return frozenset(taken)

    def _certify(self, topics: Iterable[Topic]) -> None:
        for topic in topics:
            self._certified_at[topic] = self._clock.now
            self.cut.discard(topic)

    def _ask(self, nodes: dict[NodeId, tuple[Ref, frozenset[Topic]]]) -> None:
        search = self.search
        assert search is not None
        search.tries = 0
        search.hops += 1
        for node in sorted(nodes)[: search.most - len(search.asked)]:
            ref, topics = nodes[node]
            search.asked[node] = (ref, tuple(sorted(topics)))
            search.silent.add(node)
        self._ask_silent(search)

    def _ask_silent(self, search: Search) -> None:
        search.tries += 1
        for node in sorted(search.silent):
            ref, topics = search.asked[node]
            kept = self._kept.get(node)
            digest = 0
            if kept is not None and kept.topics == topics:
                digest = kept.digest = kept.digest or digest_of(kept.reply)
            self._out.send(ref, NearbyQuery(self._peer_table.ref, search.nonce, topics, digest))
        self._out.set_timer(NearbyTimer(search.nonce), self._config.answer_timeout)

    def on_nearby_timer(self, timer: NearbyTimer) -> None:
        search = self.search
        if search is None or search.nonce != timer.nonce or not search.silent:
            return
        if search.tries < TRIES:
            self._ask_silent(search)
            return
        for node in sorted(search.silent):
            if node in self._up:
                search.around.add(self._as_described(search.around, *search.asked[node]))
        search.silent.clear()
        self._go_on(search)

    def _as_described(self, around: Surroundings, ref: Ref, topics: Iterable[Topic]) -> Seen:
        """A neighbour that does not answer: it has failed, or is of a version that knows no such question. What it
        last said of its links counts, else links that exist would be proposed again and again.
        """
        known, table = self._peer_table.known.get(ref.id), self._peer_table
        asked, neighbours = frozenset(topics), known.neighbours if known is not None else ()
        links = {other.id: (other, around.bits_of(asked & table.topics_of(other.id))) for other in neighbours}
        rules = known.rules if known is not None else None
        return Seen(
            ref, around.bits_of(asked), links, len(neighbours), forbid=rules.forbid if rules is not None else ()
        )

    def on_reply(self, sender: NodeId, message: NearbyReply) -> None:
        search = self.search
        if search is None or search.nonce != message.nonce or sender not in search.silent:
            return
        _, topics = search.asked[sender]
        kept = self._kept.get(sender)
        if message.same:
            if kept is None or kept.topics != topics:
                return
            said = msgspec.structs.replace(kept.reply, me=message.me)  # it may have begun anew, with the same links
        else:
            said = message
        seen = _seen(said, topics, search.around)
        if seen is None:
            return
        if not message.same:
            self._keep(sender, Kept(topics, message))
        search.silent.discard(sender)
        search.around.add(seen)
        if not search.silent:
            self._go_on(search)

    def _keep(self, node: NodeId, kept: Kept) -> None:
        self._kept.pop(node, None)
        while len(self._kept) >= KEPT_AT_MOST:
            del self._kept[next(iter(self._kept))]
        self._kept[node] = kept

    def _go_on(self, search: Search) -> None:
        """All have answered: further outwards where pieces are apart, or the end."""
        apart = search.around.apart()
        barred = search.around.barred(self._in_vain()) if apart else NOTHING
        if apart and search.hops < search.furthest and len(search.asked) < search.most:
            frontier = search.around.frontier(apart, barred).items()
            further = {node: ref for node, ref in frontier if node not in search.asked}
            if further:  # for all topics: a node is asked once, and ways in other topics may lead through it too
                everything = frozenset(search.around.topics)
                self._ask({node: (ref, everything) for node, ref in further.items()})
                return
        self.search = None
        self._certify(topic for topic in search.around.topics if topic not in apart)
        if apart:
            self.cut.update(apart)
            pairs = search.around.plan(apart, self._context.engine, self._config.repair_rho, barred)
            self._propose(search, pairs)
            if pairs:
                self.due.update(apart)
            else:  # no node takes another link, or none can be made: look again after a while
                self._certified_at.update(dict.fromkeys(apart, self._clock.now))

    def _in_vain(self) -> frozenset[Pair]:
        """The links that were proposed lately, again and again. Later they are tried once more."""
        oldest = self._clock.now - VAIN_RECHECKS * self._config.connectivity_recheck
        self._proposed = {pair: (times, at) for pair, (times, at) in self._proposed.items() if at > oldest}
        return frozenset(pair for pair, (times, _) in self._proposed.items() if times >= IN_VAIN)

    def _note_proposed(self, pair: Pair) -> None:
        times, _ = self._proposed.pop(pair, (0, 0))
        if len(self._proposed) >= KEPT_AT_MOST:
            del self._proposed[next(iter(self._proposed))]
        self._proposed[pair] = (times + 1, self._clock.now)

    def _propose(self, search: Search, pairs: Iterable[tuple[Ref, Ref]]) -> None:
        me = self._peer_table.ref
        event = EventId(me.id, me.incarnation, EventKind.AUDIT, search.nonce)
        for one, other in pairs:
            self._note_proposed(pair_of(one.id, other.id))
            self._out.send(one, LinkProposal(me, event, 0, other, lasting=True))
            self._out.send(other, LinkProposal(me, event, 0, one, lasting=True))

    # The other side

    def on_query(self, _: NodeId, message: NearbyQuery) -> None:
        """Say which links carry these topics; the asker counts on them for a while."""
        until = self._clock.now + 2 * self._config.connectivity_recheck
        self._link_pruning.count_on_all(until)
        self._watch(message, until)
        self._out.send(message.asker, self._answers.answer(message))

    def _watch(self, message: NearbyQuery, until: Time) -> None:
        asker, mine = message.asker, self._peer_table.topics_of(self._peer_table.id)
        watcher = self._watchers.get(asker.id)
        if watcher is None or watcher.ref != asker:
            if watcher is None and len(self._watchers) >= WATCHERS_AT_MOST:
                del self._watchers[next(iter(self._watchers))]
            watcher = self._watchers[asker.id] = Watcher(asker, until)
        watcher.until = until
        watcher.topics.update(mine.intersection(message.topics))


def _seen(message: NearbyReply, asked: tuple[Topic, ...], around: Surroundings) -> Seen | None:
    """What an answer says, in the bits of the search. None: it speaks of topics that it was not asked for."""
    mine = int.from_bytes(message.mine, "little")
    bits = [int.from_bytes(bits, "little") for _, bits in message.links]
    if max(bits, default=0) >> len(asked) or mine >> len(asked):
        return None
    if asked != around.topics:
        read = around.reader_of(asked)
        mine, bits = read(mine), [read(each) for each in bits]
    links = {ref.id: (ref, each) for (ref, _), each in zip(message.links, bits, strict=True)}
    return Seen(message.me, mine, links, message.degree, message.full, message.forbid)

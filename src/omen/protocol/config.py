"""The settings of a node, each with the default the experiments led to."""

from __future__ import annotations

from dataclasses import dataclass, field

from omen.protocol.events import MILLISECOND, SECOND, NodeId, Time
from omen.protocol.messages.base import LinkRules


@dataclass(frozen=True, slots=True)
class Remedies:
    """The four holes in the paper that are closed here; tests open one at a time to show that it matters."""

    linked_losses_as_one: bool = True
    redo_unconfirmed: bool = True
    former_neighbours_report: bool = True
    links_agreed_by_both: bool = True
    holes_end: bool = True
    """Beyond the paper: a hole in a stream ends after its time, and is told as a gap."""


@dataclass(frozen=True, slots=True)
class Dissemination:
    """How publications spread, and what is kept of them."""

    total_window_bytes: int = 64 << 20
    """Memory for the windows of all topics together: frames, and what keeping them costs. Above it the largest window
    loses its oldest. The default covers `window_age` of 2,300 publications per second of 1 KB."""
    window_age: Time = 20 * SECOND
    """How long publications are kept."""
    stream_memory: Time = 60 * SECOND
    """A publisher silent for so long, and for twice `window_age`, is compared no more."""
    repair_time: Time = 6 * SECOND
    """What a repair takes at most, as a rule: a window that bytes cut below it is told once."""
    largest_payload: int = 1 << 20
    """Bytes a publication may carry."""
    announce_period: Time = 200 * MILLISECOND
    """Neighbours tell each other how far they are, once in each such interval in which something came."""
    retell_period: Time = 200 * MILLISECOND
    """Of a stream that goes on, its publisher apart, they are told no more often than this."""
    graft_delay: Time = 100 * MILLISECOND
    """How long an announced publication may take to come by itself before it is requested."""
    pull_retry: Time = 250 * MILLISECOND
    """After twice this time without an answer a request is given up, and made to another neighbour where there is
    one; later where the answers of the neighbour take longer."""
    hole_patience: Time = 5 * SECOND
    """A hole that nothing fills ends so long after it was noticed, or after the last new link in its topic."""
    hole_limit: Time = 7 * SECOND
    """A hole ends after this even while it is being filled."""
    reorder_bytes: int = 32 << 20
    """What waits behind the holes of a stream, at most; beyond it they end."""
    credits: int = 4
    """Requests under way to one neighbour at first; up to 32 where its answers do not take longer for it."""
    batch_count: int = 256
    """Publications asked for by one request at most."""
    batch_bytes: int = 256 << 10
    """Bytes sent for one request at most."""
    prune_pause: Time = 50 * MILLISECOND
    """A neighbour is told of its duplicates once in this time."""
    pace_time: Time = 2 * SECOND
    """The tree of a topic follows one stream, the lowest of those heard of within this time."""
    streams: int = 4096
    """Streams kept for each topic; above it the one silent for longest is forgotten."""

    @property
    def memory(self) -> Time:
        """How long a silent publisher is compared."""
        return max(self.stream_memory, 2 * self.window_age)


@dataclass(frozen=True, slots=True)
class Config:
    """One node's settings."""

    resilience: int = 3
    """L: how many concurrent churn events are survived; predecessors and successors kept (omen 3.3)."""
    coverage: int = 5
    """lambda: how often a backup set covers each topic of its node (omen 4.2)."""
    backups: str = "pd-weight"
    """Which rule builds backup sets: pd-weight, pd-cover, greedy-weight, greedy-cover."""
    rho: float = 3.0
    """Low-ODA's trade-off between average and maximum degree, where a newcomer is linked."""
    repair_rho: float = 10.0
    """The same where a loss is repaired. Higher: in a shadow set the busiest node would be taken again and again, since
    it shares most topics, and no redesign of the overlay follows."""
    halo_hops: int = 2
    """How far around the shadow set the coordinator sees; 0 is the paper's literal reading.

    Further than one hop only where a topic seems to be split: that saves more messages than it costs.
    """
    gossip_period: Time = SECOND
    """T_wait: one gossip exchange at a random time in each such interval (omen Alg. 3)."""
    ready_rounds: int = 10
    """A backup set that covers less is still ready once this many gossip rounds brought no further subscriber."""
    sample_size: int = 20
    """Entries in the peer sampling view."""
    shuffle_size: int = 8
    """Entries swapped in one shuffle."""
    grace: Time = 40 * MILLISECOND
    """How long a coordinator waits for former neighbours it did not know of."""
    answer_timeout: Time = 60 * MILLISECOND
    """After this a question is asked again."""
    attempts: int = 4
    """After so many of these times its addressee counts as lost."""
    standby_timeout: Time = 4 * SECOND
    """After this a successor takes over an event whose handling it has not heard of (omen Alg. 5)."""
    tombstone_life: Time = 60 * SECOND
    """How long a lost node's name is refused when gossip brings it back."""
    detector: bool = False
    """Whether nodes watch each other by heartbeats. Otherwise the driver's word that a peer is lost counts at once."""
    heartbeat_period: Time = SECOND
    """One heartbeat per peer in each such interval."""
    suspicion_time: Time = 2 * SECOND
    """How long a peer that does not answer is suspected at least before it is declared failed."""
    refusal_gap: Time = 100 * MILLISECOND
    """A peer that refuses connections twice, so long apart at least, is declared failed without a suspicion."""
    refusal_memory: Time = 600 * SECOND
    """A peer is declared failed in that way at most once in this time."""
    indirect_probes: int = 3
    """Through how many others a silent peer is asked."""
    audit: bool = False
    """Whether nodes look for topics that are split although everything that happened was handled."""
    audit_period: Time = 20 * SECOND
    """One digest a link, and one report from each piece of a topic, in each such interval."""
    label_refresh: int = 60
    """After so many audit periods the leader of a piece renews its label; three times that, and it expires."""
    lost_retry: Time = 10 * SECOND
    """The longest pause until the next of the lost peers is tried again, so that the halves of a network that was cut
    find each other; longer in a large cluster, where others try too."""
    redundant_removals: int = 5
    """Links inside the shadow set that a repair may remove when another path is verified."""
    offence_limit: int = 10
    """A peer that has broken rules so often, beyond what was forgiven, is dropped. 0: none is."""
    offence_memory: Time = 6 * SECOND
    """How long one offence counts, after those before it."""
    ban_time: Time = 60 * SECOND
    """How long a peer is dropped; each time twice as long, up to 32 times."""
    connectivity: int = 1
    """2: this node sees to it that its topics stay connected when it is lost. 1: it helps those that do."""
    connectivity_period: Time = SECOND
    """One search for ways round this node per such interval at most."""
    connectivity_recheck: Time = 10 * SECOND
    """After so long a topic is searched again although no change was heard of."""
    storage_bytes: int = 128 << 20
    """Memory for stored records; half of it at most for those of one writer."""
    max_links: int = 0
    """The most links of this node. 0: any number. A repair exceeds it only where a topic would stay split, and by as
    little as will do; connectivity 2 never does."""
    zone: str = ""
    """Where this node stands: links within a zone are cheap, links between zones dear."""
    forbid: tuple[NodeId, ...] = ()
    """The nodes that this one is never linked to."""
    sigma: float = 2.0
    """In the repairs that this node coordinates: how many times as much a link between zones must contribute."""
    global_view: bool = False
    """OMen-G: the driver hands every node all descriptors (omen 6.1)."""
    remedies: Remedies = field(default_factory=Remedies)
    dissemination: Dissemination = field(default_factory=Dissemination)

    @property
    def link_rules(self) -> LinkRules | None:
        """What this node tells others of its links; None where there is nothing to say."""
        rules = LinkRules(self.max_links, self.zone, self.forbid)
        return rules if rules != LinkRules() else None

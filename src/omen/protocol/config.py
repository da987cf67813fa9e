"""The settings of a node, each with the default the experiments led to."""

from __future__ import annotations

from dataclasses import dataclass, field

from omen.protocol.events import MILLISECOND, SECOND, Time


@dataclass(frozen=True, slots=True)
class Remedies:
    """The four holes in the paper that are closed here; tests open one at a time to show that it matters."""

    linked_losses_as_one: bool = True
    redo_unconfirmed: bool = True
    former_neighbours_report: bool = True
    links_agreed_by_both: bool = True


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
    """Low-ODA's trade-off between average and maximum degree."""
    halo_hops: int = 1
    """How far around the shadow set the coordinator sees; 0 is the paper's literal reading."""
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
    """How often a question is asked before its addressee counts as lost."""
    standby_timeout: Time = 4 * SECOND
    """After this a successor takes over an event whose handling it has not heard of (omen Alg. 5)."""
    tombstone_life: Time = 60 * SECOND
    """How long a lost node's name is refused when gossip brings it back."""
    redundant_removals: int = 0
    """Links inside the shadow set that a repair may remove when another path is verified."""
    global_view: bool = False
    """OMen-G: the driver hands every node all descriptors (omen 6.1)."""
    remedies: Remedies = field(default_factory=Remedies)

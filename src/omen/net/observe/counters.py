"""What the parts of a node count. Everything here only grows; `node_metrics` gives each a name."""

from __future__ import annotations

import msgspec


class TransportCounters(msgspec.Struct):
    """Connections and frames. Frames are dropped for a slow consumer, or while there is no connection to a peer."""

    dials: int = 0
    dial_failures: int = 0
    connections_broken: int = 0
    reconnects: int = 0
    dropped_slow_consumer: int = 0
    dropped_queue_full: int = 0
    dropped_unreachable: int = 0
    dropped_unpaid: int = 0


class DriverCounters(msgspec.Struct):
    """What happened between a core and its peers."""

    rejoins: int = 0
    peers_banned: int = 0
    suspicions: int = 0
    refutations: int = 0
    declared_failed: int = 0
    split_topics: int = 0
    stood_still: int = 0
    peers_lost: int = 0
    peers_refused: int = 0
    slow_consumers: int = 0
    unreadable_frames: int = 0
    core_errors: int = 0
    recording_errors: int = 0


class AdmissionCounters(msgspec.Struct):
    """Rate limits that took effect, and keys that were renewed."""

    throttled_reads: int = 0
    key_renewals: int = 0
    key_renewal_failures: int = 0

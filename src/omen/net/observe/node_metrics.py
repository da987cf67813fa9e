"""The metrics of one node, named by Prometheus's conventions: base units, `_total` for what only grows, `_info`."""

from __future__ import annotations

import platform
from collections import Counter
from typing import TYPE_CHECKING

from omen.net.observe.front_door import write_front_door
from omen.net.observe.health import WARNINGS, readiness_of
from omen.net.observe.logs import line_handlers
from omen.net.observe.metrics import Page
from omen.net.observe.process import write_process

if TYPE_CHECKING:
    from omen.net.broker import Broker
    from omen.net.driver import Driver
    from omen.protocol.status import NodeStatus


def metrics_of(broker: Broker, openmetrics: bool = False) -> str:
    """All that is counted, as Prometheus reads it, or as OpenMetrics."""
    page = Page(openmetrics)
    write_process(page)
    page.info("omen_build_info", "Version of OMen and of Python.", build_facts())
    driver = broker.driver
    if driver is None or driver.core is None:
        page.gauge("omen_node_joined", "1 while the node is part of the cluster.", 0)
        return page.text()
    status = driver.status()
    identity = {"name": broker.name, "cluster": broker.config.cluster, "incarnation": str(status.ref.incarnation)}
    page.info("omen_node_info", "Name, cluster and incarnation of the node.", identity)
    page.gauge("omen_node_joined", "1 while the node is part of the cluster.", broker.is_joined)
    page.gauge("omen_node_ready", "1 while /readyz says so.", readiness_of(broker)["status"] == "ok")
    _write_overlay(page, broker, status)
    _write_detector(page, driver, status)
    _write_repairs(page, driver, status)
    _write_publications(page, broker, status)
    _write_traffic(page, driver)
    _write_connections(page, driver)
    _write_admission(page, broker, driver)
    _write_faults(page, driver, status)
    if broker.front_door is not None:
        write_front_door(page, broker.front_door())
    return page.text()


def build_facts() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version  # late: a tenth of the time to import a broker

    try:
        release = version("omen-overlay")
    except PackageNotFoundError:
        release = "unknown"
    return {"version": release, "python": platform.python_version()}


def _write_overlay(page: Page, broker: Broker, status: NodeStatus) -> None:
    states = Counter(link.state.value for link in status.links.values())
    page.gauges("omen_links", "Links, by state; `up`: both ends agreed on it.", "state", {"up": 0, **states}.items())
    page.gauge("omen_topics", "Topics carried.", len(status.topics))
    page.gauge("omen_subscriptions", "Topics delivered to the application.", len(broker.subscribed_keys))
    page.gauge("omen_ring_members", "Nodes known near this one on the ring.", len(status.membership.ring))
    page.gauge("omen_estimated_nodes", "Size of the cluster by the spacing of the ring.", broker.health.size.mean)
    page.gauge("omen_estimated_nodes_peak", "The largest it was lately.", broker.health.size.peak)
    present = broker.health.warnings()
    found = [(warning, float(warning in present)) for warning in WARNINGS]
    page.gauges("omen_health_warning", "1 while there is this warning.", "warning", found)
    page.counter(
        "omen_name_conflicts_total", "Other processes refused that went by this node's name.", broker.guard.conflicts
    )
    page.gauge("omen_split_topics", "Topics reported to this node in several pieces now.", status.split_topics)
    page.gauge("omen_links_above_max", "Links beyond max_links, for a topic would be split.", status.links_above_max)
    page.gauge("omen_cut_topics", "Topics that the loss of this node would split, as far as seen.", status.cut_topics)


def _write_detector(page: Page, driver: Driver, status: NodeStatus) -> None:
    counters = driver.counters
    page.gauge("omen_suspected_peers", "Peers that this node suspects now.", len(status.membership.suspected))
    page.counter("omen_suspicions_total", "How often a peer was suspected.", counters.suspicions)
    page.counter("omen_refutations_total", "Suspicions that were refuted.", counters.refutations)
    page.counter(
        "omen_peers_declared_failed_total", "Peers declared failed, here or by others.", counters.declared_failed
    )
    page.gauge("omen_banned_peers", "Peers that broke rules too often, and are dropped now.", len(status.bans))
    page.counter("omen_peers_banned_total", "How often a peer was dropped for that.", counters.peers_banned)
    page.gauge("omen_offence_points", "The most points that a peer has now.", max(status.offences.values(), default=0))
    page.counter("omen_standstills_total", "How often this node itself stood still.", counters.stood_still)
    page.counter("omen_rejoins_total", "How often the node was declared failed and rejoined.", counters.rejoins)


def _write_repairs(page: Page, driver: Driver, status: NodeStatus) -> None:
    predecessors = status.membership.predecessors
    ready = sum(place in status.backup_sets and status.backup_sets[place].ready for place in predecessors)
    page.gauge("omen_backup_sets", "Predecessors whose loss this node would repair or stand by for.", len(predecessors))
    page.gauge("omen_backup_sets_ready", "Those whose backup sets are ready.", ready)
    page.gauge("omen_node_busy", "1 while there is something to repair, to link or to report.", status.busy)
    page.histogram(
        "omen_repair_duration_seconds",
        "From taking an event up to its end, at its coordinator.",
        driver.events.repairs,
    )
    page.histogram("omen_engine_duration_seconds", "Time in the greedy engine per call.", driver.engine_times)
    page.counter(
        "omen_split_topics_linked_total",
        "Split topics that the audit at this node has had linked.",
        driver.counters.split_topics,
    )


def _write_publications(page: Page, broker: Broker, status: NodeStatus) -> None:
    inbox, spread = broker.inbox, status.dissemination
    page.counter("omen_publications_total", "Publications accepted from the application.", broker.published)
    page.counter("omen_deliveries_total", "Publications delivered to the application.", broker.delivered)
    page.counters("omen_gaps_total", "Gaps delivered to the application, by reason.", "reason", inbox.gaps.items())
    page.gauge("omen_inbox_messages", "Messages the application has not taken yet.", len(inbox))
    page.counter(
        "omen_inbox_dropped_total", "Publications dropped because the application was too slow.", inbox.overflowed
    )
    page.counter("omen_duplicate_publications_total", "Publications received before, and dropped.", spread.duplicates)
    page.counter("omen_evicted_streams_total", "Streams that made way, as a topic had too many.", spread.evictions)
    page.gauge("omen_waiting_streams", "Streams subscribed to that wait for a hole.", spread.waiting)
    page.gauge("omen_missing_publications", "Publications known of that these streams lack.", spread.lacking)
    page.gauge("omen_stream_wait_seconds", "How long the oldest hole has been there.", spread.waits / 1e6)
    page.counter("omen_windows_cut_total", "Windows that bytes cut below the time a repair takes.", spread.cuts)
    page.counter("omen_late_publications_total", "Publications that came after their gap, and dropped.", spread.late)
    page.counter("omen_unheld_publications_total", "Publications that some neighbour never had.", spread.not_held)
    page.gauge("omen_records", "Stored records kept for the cluster.", status.storage.records)
    page.gauge("omen_record_bytes", "What stored records take.", status.storage.bytes)
    page.counter("omen_records_refused_total", "Stored records there was no room for.", status.storage.refused)
    page.gauge("omen_window_bytes", "What the windows of all topics hold.", spread.bytes)
    page.gauge("omen_window_limit_bytes", "What they may hold.", status.config.dissemination.total_window_bytes)
    page.gauge("omen_window_publications", "Publications in the windows.", spread.publications)
    page.histogram(
        "omen_delivery_latency_seconds",
        "From `publish` to the inbox, by the clocks of both nodes; of publications that were stamped.",
        broker.latency.times,
    )
    page.histogram("omen_publish_wait_seconds", "How long `publish` waited for others.", broker.publish_waits)


def _write_traffic(page: Page, driver: Driver) -> None:
    page.counters("omen_messages_sent_total", "Messages sent, by kind.", "kind", driver.sender.messages.items())
    page.counters("omen_messages_received_total", "Messages received, by kind.", "kind", driver.received.items())
    page.counters("omen_sent_bytes_total", "Bytes sent, by kind of message.", "kind", driver.sender.bytes.items())
    page.counters(
        "omen_received_bytes_total", "Bytes received, by kind of message.", "kind", driver.bytes_received.items()
    )


def _write_connections(page: Page, driver: Driver) -> None:
    peers, counters = driver.peers, driver.peers.counters
    connections = peers.connections()
    queued = [connection.bulk_bytes + connection.urgent_bytes for connection in connections]
    page.gauge("omen_connections", "Open connections to peers.", len(connections))
    page.gauge("omen_send_queue_bytes", "Bytes waiting to be written, all peers together.", sum(queued))
    page.gauge("omen_send_queue_largest_bytes", "Bytes waiting for the slowest peer.", max(queued, default=0))
    page.gauge("omen_slow_consumers", "Peers that are slow consumers now.", len(peers.queues.slow_consumers()))
    page.counter(
        "omen_slow_consumer_events_total", "How often a peer became a slow consumer.", driver.counters.slow_consumers
    )
    dropped = {
        "slow_consumer": counters.dropped_slow_consumer,
        "queue_full": counters.dropped_queue_full,
        "unreachable": counters.dropped_unreachable,
        "unpaid": counters.dropped_unpaid,
    }
    page.counters("omen_frames_dropped_total", "Frames not sent, by cause.", "cause", dropped.items())
    page.counter("omen_dials_total", "Connections tried.", counters.dials)
    page.counter("omen_dial_failures_total", "Connections tried in vain.", counters.dial_failures)
    page.counter("omen_connections_broken_total", "Connections that broke.", counters.connections_broken)
    page.counter("omen_reconnects_total", "Broken connections that were made again.", counters.reconnects)
    page.counter("omen_peers_lost_total", "Peers that could not be reached again.", driver.counters.peers_lost)
    page.counter(
        "omen_peers_refused_total",
        "Peers declared failed at once: no process listened there any more.",
        driver.counters.peers_refused,
    )


def _write_admission(page: Page, broker: Broker, driver: Driver) -> None:
    admission = broker.admission
    refused, denied = admission.refused.items(), admission.access.denied.items()
    page.counters("omen_connections_refused_total", "Connections refused, by reason.", "reason", refused)
    page.counters("omen_access_denied_total", "Denied by access rules, by action.", "action", denied)
    page.gauge(
        "omen_half_open_connections", "Connections whose handshake has not ended.", len(admission.inbound.half_open)
    )
    page.gauge("omen_bans", "Addresses and nodes that are banned now.", admission.banned())
    counters = admission.counters
    page.counter("omen_throttled_reads_total", "Reads put off by a rate limit.", counters.throttled_reads)
    verified = admission.signatures.counts.items() if admission.signatures is not None else ()
    page.counters("omen_publications_verified_total", "Signatures looked at, by verdict.", "verdict", verified)
    page.counter("omen_key_renewals_total", "How often other keys came into force.", counters.key_renewals)
    page.counter("omen_key_renewal_failures_total", "Keys that could not be read again.", counters.key_renewal_failures)


def _write_faults(page: Page, driver: Driver, status: NodeStatus) -> None:
    rejected = {**status.refused, "sequence": status.dissemination.refused}
    page.counters(
        "omen_messages_rejected_total", "Messages rejected by validation, by reason.", "reason", rejected.items()
    )
    page.counter("omen_unreadable_frames_total", "Frames that are no message.", driver.counters.unreadable_frames)
    page.counter("omen_core_errors_total", "Errors of the protocol core.", driver.counters.core_errors)
    page.counter("omen_recording_errors_total", "Recordings that an error ended.", driver.counters.recording_errors)
    page.counter("omen_log_lines_skipped_total", "Log lines that a rate limit left out.", driver.log.skipped)
    dropped = sum(handler.dropped for handler in line_handlers())
    page.counter("omen_log_lines_dropped_total", "Log lines of this process that could not be written.", dropped)

"""The text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from omen.net.observe.metrics import Histogram, Page


def test_a_page_holds_each_metric_with_its_help_and_type() -> None:
    page = Page()
    page.gauge("omen_topics", "Topics carried.", 3)
    page.counters("omen_gaps_total", "Gaps.", "reason", {"window": 2, "inbox": 0.5}.items())
    page.info("omen_node_info", "The node.", {"name": 'a"b\\c'})
    assert page.text().splitlines() == [
        "# HELP omen_topics Topics carried.",
        "# TYPE omen_topics gauge",
        "omen_topics 3",
        "# HELP omen_gaps_total Gaps.",
        "# TYPE omen_gaps_total counter",
        'omen_gaps_total{reason="inbox"} 0.5',
        'omen_gaps_total{reason="window"} 2',
        "# HELP omen_node_info The node.",
        "# TYPE omen_node_info gauge",
        'omen_node_info{name="a\\"b\\\\c"} 1',
    ]


def test_the_buckets_of_a_histogram_add_up() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(value)
    page = Page()
    page.histogram("omen_repair_duration_seconds", "Repairs.", histogram)
    assert [line.partition("seconds")[2] for line in page.text().splitlines()[2:]] == [
        '_bucket{le="0.1"} 2',
        '_bucket{le="1.0"} 3',
        '_bucket{le="+Inf"} 4',
        "_sum 7.65",
        "_count 4",
    ]


def filled(openmetrics: bool) -> str:
    """One of each kind."""
    page = Page(openmetrics)
    page.info("omen_node_info", "The node.", {"name": 'a"b\\c\nd'})
    page.gauge("omen_window_bytes", "Windows.", 7)
    page.gauges("omen_links", "Links.", "state", {"up": 2}.items())
    page.counter("omen_rejoins_total", "Rejoins.", 3)
    page.counters("omen_gaps_total", "Gaps.", "reason", {"window": 1, "inbox": 0}.items())
    histogram = Histogram((0.1, 1.0))
    histogram.observe(0.5)
    page.histogram("omen_publish_wait_seconds", "Waits.", histogram)
    return page.text()


@pytest.mark.parametrize(("openmetrics", "parse"), [(False, text_string_to_metric_families), (True, parse_openmetrics)])
def test_both_formats_are_read_by_their_parsers(openmetrics: bool, parse: Callable[[str], Iterable[Metric]]) -> None:
    families = {family.name: family for family in parse(filled(openmetrics))}
    samples = {(sample.name, *sample.labels.values()): sample.value for f in families.values() for sample in f.samples}
    assert samples["omen_node_info", 'a"b\\c\nd'] == 1
    assert samples["omen_rejoins_total",] == 3 and samples["omen_gaps_total", "window"] == 1
    assert samples["omen_publish_wait_seconds_bucket", "1.0"] == 1
    if openmetrics:
        assert {name: family.type for name, family in families.items() if family.type in ("info", "counter")} == {
            "omen_node": "info",
            "omen_rejoins": "counter",
            "omen_gaps": "counter",
        }
        assert families["omen_window_bytes"].unit == "bytes" and families["omen_publish_wait_seconds"].unit == "seconds"

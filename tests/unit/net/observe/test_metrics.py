"""The text that Prometheus reads."""

from __future__ import annotations

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
        '_bucket{le="1"} 3',
        '_bucket{le="+Inf"} 4',
        "_sum 7.65",
        "_count 4",
    ]

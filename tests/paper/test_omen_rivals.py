"""O25, O26 and O30-O32 in direction, on a small social graph; in size: python -m tests.paper.measure omen-rivals."""

# ruff: noqa: N802 - claims are called what the table calls them

from __future__ import annotations

from .omen_rivals import DEVIATIONS, MEASURES, QUICK


def test_O25_spidercasts_highest_degree_is_far_above_omens() -> None:
    assert MEASURES["O25"](QUICK).ours > 20


def test_O26_and_the_more_so_the_larger_the_overlay() -> None:
    assert MEASURES["O26"](QUICK).ours > 1.5 * MEASURES["O25"](QUICK).ours


def test_O30_O31_topics_are_longer_with_omen() -> None:
    assert MEASURES["O30"](QUICK).ours > 1
    assert MEASURES["O31"](QUICK).ours > 0.5


def test_O32_without_heartbeats_spidercast_sends_less() -> None:
    assert DEVIATIONS["O32"].low < MEASURES["O32"](QUICK).ours < DEVIATIONS["O32"].high

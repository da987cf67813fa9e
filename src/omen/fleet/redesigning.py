"""A better overlay by few changes: what the rules and topics need, then links led around the busiest nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from omen.fleet.certificates import split_topics
from omen.fleet.designing import FleetDesign, design_within_caps, join, without_forbidden
from omen.fleet.rerouting import links_of, one_less
from omen.interests import Codes, Interests
from omen.overlay import Overlay
from omen.rules import FleetRules

MOST_TRIES = 2000


@dataclass(frozen=True, slots=True)
class Point:
    """Where a redesign stood: links made and dropped so far, and what they had come to."""

    changes: int
    max_degree: int
    links: int


@dataclass(frozen=True)
class Redesigned:
    """The overlay, and the curve that led to it: the maximum degree after so many changes."""

    overlay: Overlay
    curve: tuple[Point, ...]

    @property
    def changes(self) -> int:
        """Links made and dropped."""
        return self.curve[-1].changes


def redesign(
    interests: Interests, rules: FleetRules, design: FleetDesign, start: Overlay, changes: int | None = None
) -> Redesigned:
    """From an overlay that is there: first what must change, then what lowers the maximum degree.

    Forbidden links go, required ones come, and split topics are connected, as `design_fleet` does. Then, as long as
    changes are left, a link of a node above its cap, then of one of the highest degree, is taken away, and what that
    splits is linked among others.
    The first part may take more changes than are allowed: it is needed.
    """
    overlay = _what_must_be(interests, rules, design, start)
    curve = [_point(start, overlay)]
    left = MOST_TRIES
    while left > 0:
        lowered = None
        for caps, reduced in _relieved(interests, rules, overlay):
            left -= 1
            linked = design_within_caps(interests, rules, design, reduced, caps)
            fits = changes is None or count_changes(start, linked) <= changes
            if fits and not split_topics(interests, linked):
                lowered = linked
                break
            if left <= 0:
                break
        if lowered is None:
            break
        overlay = lowered
        point = _point(start, overlay)
        if point.max_degree < curve[-1].max_degree:
            curve.append(point)
    if curve[-1] != _point(start, overlay):
        curve.append(_point(start, overlay))
    return Redesigned(overlay, tuple(curve))


def _relieved(interests: Interests, rules: FleetRules, overlay: Overlay) -> Iterator[tuple[Codes, Overlay]]:
    """The overlay without a link of a busy node, and what each node may then have.

    Busy are the nodes above their caps; where there is none, those of the highest degree.
    """
    above = rules.exceeding(overlay.degrees)
    most = rules.caps if above.size else np.minimum(rules.caps, overlay.degrees.max(initial=0) - 1)
    busy = above if above.size else np.flatnonzero(overlay.degrees == overlay.degrees.max(initial=0))
    for _, reduced in one_less(interests, rules, overlay, busy):
        yield np.maximum(most, reduced.degrees).astype(np.int32), reduced


def count_changes(start: Overlay, overlay: Overlay) -> int:
    """Links that are in one of both alone."""
    return len(links_of(start) ^ links_of(overlay))


def _point(start: Overlay, overlay: Overlay) -> Point:
    return Point(count_changes(start, overlay), int(overlay.degrees.max(initial=0)), overlay.link_count)


def _what_must_be(interests: Interests, rules: FleetRules, design: FleetDesign, start: Overlay) -> Overlay:
    allowed = join(without_forbidden(start, rules), rules.held)
    return design_within_caps(interests, rules, design, allowed, np.maximum(rules.caps, allowed.degrees))

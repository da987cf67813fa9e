"""An overlay designed against the clock, judged and described."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from omen.design import Algorithm
from omen.design.polishing import polish_overlay
from omen.design.rounds import Rounds, RoundsDone, design_in_rounds
from omen.design.schedule import RoundFacts, rho_of
from omen.fleet import (
    FleetDesign,
    describe_violations,
    design_within,
    find_certificates,
    find_relaxation,
    find_violations,
)
from omen.fleet.bypassing import short_topics
from omen.fleet.certificates import split_topics
from omen.fleet.redesigning import Redesigned, redesign
from omen.interests import Interests
from omen.overlay import Overlay
from omen.quality import check_overlay, degree_summary, per_topic_mesh_links
from omen.rules import FleetRules, no_rules


@dataclass(frozen=True)
class Fleet:
    """The rules that an overlay was designed under."""

    rules: FleetRules
    design: FleetDesign


@dataclass(frozen=True)
class Start:
    """An overlay to begin with, and how many links may be made and dropped; None: as many as help."""

    overlay: Overlay
    changes: int | None = None


@dataclass(frozen=True)
class Designed:
    """What an algorithm built; `seconds` are those in the algorithm alone."""

    algorithm: Algorithm
    options: Mapping[str, Any]
    interests: Interests
    overlay: Overlay
    seconds: float
    rounds: RoundsDone | None = None  # None: the exact algorithm of the paper ran
    fleet: Fleet | None = None  # None: there are no rules
    redesigned: Redesigned | None = None  # None: from scratch
    unpolished: Overlay | None = None  # as it was before the local search; None: there was none

    def record(self) -> dict[str, Any]:
        """What the file of the overlay says of how it was made; `k` is the connectivity to keep."""
        options = {name: str(value) for name, value in self.options.items()}
        made = {"algorithm": self.algorithm.name, "options": options, "k": self.algorithm.promise(self.options)}
        if self.fleet is not None:
            made |= {"sigma": str(self.fleet.design.sigma)}
        if self.unpolished is not None:
            made |= {"polished": True}
        return made if self.rounds is None else made | {"rounds": schedule_text(self.rounds.rounds)}

    def summary(self) -> dict[str, Any]:
        """What `design --json` prints of it. Asks the judge."""
        degrees = degree_summary(self.overlay)
        return {
            "algorithm": self.algorithm.name,
            "options": dict(self.options),
            "nodes": self.interests.node_count,
            "topics": self.interests.topic_count,
            "edges": self.overlay.link_count,
            "avg_degree": degrees.average,
            "max_degree": degrees.maximum,
            "topic_connected": check_overlay(self.interests, self.overlay).topic_connected,
            "per_topic_mesh_links": per_topic_mesh_links(self.interests).links,
            "k_promised": self.algorithm.promise(self.options),
            "design_s": self.seconds,
            "rounds": None if self.rounds is None else describe_rounds(self.rounds.rounds, self.rounds.last),
            "fleet": None
            if self.fleet is None
            else describe_fleet(self.interests, self.overlay, self.fleet, self.redesigned),
            "from": None if self.redesigned is None else describe_changes(self.redesigned),
            "polished": None if self.unpolished is None else describe_unpolished(self.unpolished),
        }


def describe_unpolished(overlay: Overlay) -> dict[str, Any]:
    """What the design had come to before the local search."""
    degrees = degree_summary(overlay)
    return {
        "edges_before": overlay.link_count,
        "avg_degree_before": degrees.average,
        "max_degree_before": degrees.maximum,
    }


def polish_timed(designed: Designed) -> Designed:
    """The design after a local search, whose time is added."""
    started = time.perf_counter()
    polished = polish_overlay(designed.interests, designed.overlay)
    seconds = designed.seconds + time.perf_counter() - started
    return replace(designed, overlay=polished, unpolished=designed.overlay, seconds=seconds)


def schedule_text(rounds: Sequence[RoundFacts]) -> str:
    """The steps that were taken, as `--rounds` reads them; auto where none was needed."""
    return ",".join(str(facts.step) for facts in rounds) or "auto"


def describe_rounds(rounds: Sequence[RoundFacts], last: Sequence[RoundFacts]) -> dict[str, Any]:
    """What `design --json` prints of rounds. `schedule` can be given back as `--rounds`."""
    return {
        "schedule": schedule_text(rounds),
        "links": [facts.new_links for facts in rounds],
        "removed": [facts.removed for facts in rounds],
        "last_stage_links": sum(facts.new_links for facts in last),
        "sub_rounds": len(last),
        "last_cap": last[-1].step.cap if last else None,
    }


def design_rounds_timed(
    algorithm: Algorithm,
    interests: Interests,
    options: Mapping[str, Any],
    settings: Rounds,
    schedule: str,
    tell: Callable[[RoundFacts], None] = lambda facts: None,
) -> Designed:
    """Build an overlay in rounds. The kernels are loaded before the clock starts."""
    design_in_rounds(Interests.from_pairs([(0, 0), (1, 0)]), settings)
    started = time.perf_counter()
    done = design_in_rounds(interests, settings, schedule, tell)
    return Designed(algorithm, options, interests, done.overlay, time.perf_counter() - started, done)


def design_fleet_timed(
    algorithm: Algorithm,
    interests: Interests,
    options: Mapping[str, Any],
    rules: FleetRules,
    sigma: float,
    start: Start | None = None,
) -> Designed:
    """Build an overlay under the rules of a fleet, or from one there is. Kernels are loaded before the clock starts."""
    design = _fleet_design(algorithm, options, sigma)
    two = Interests.from_pairs([(0, 0), (1, 0)])
    design_within(two, no_rules(two.nodes), design)
    started = time.perf_counter()
    redesigned = redesign(interests, rules, design, start.overlay, start.changes) if start else None
    overlay = redesigned.overlay if redesigned else design_within(interests, rules, design)
    seconds = time.perf_counter() - started
    fleet = None if rules.is_empty else Fleet(rules, design)
    return Designed(algorithm, options, interests, overlay, seconds, fleet=fleet, redesigned=redesigned)


def _fleet_design(algorithm: Algorithm, options: Mapping[str, Any], sigma: float) -> FleetDesign:
    if algorithm.name == "low-oda-2":
        return FleetDesign(float(options["rho"]), sigma, k=2)
    return FleetDesign(rho_of(algorithm.name, options), sigma)


def describe_changes(redesigned: Redesigned) -> dict[str, Any]:
    """What `design --json` prints of an overlay that was begun with another."""
    return {"changes": redesigned.changes, "curve": [asdict(point) for point in redesigned.curve]}


def describe_fleet(
    interests: Interests, overlay: Overlay, fleet: Fleet, start: Redesigned | None = None
) -> dict[str, Any]:
    """What `design --json` prints of rules: what links cost, and, where topics stay split, why and what would do.

    `cut_topics` are those that a single loss would split, of a design that promises that there are none.

    An overlay that was begun with another may be outside the rules only for want of changes.
    """
    rules = fleet.rules
    violations = find_violations(overlay, rules)
    split = split_topics(interests, overlay)
    cut = sorted(set(short_topics(interests, overlay, fleet.design.k)) - set(split))
    told: dict[str, Any] = {
        "sigma": fleet.design.sigma,
        "cost": float(rules.costs_of(overlay.u, overlay.v).sum()),
        "links_between_zones": int((rules.zones[overlay.u] != rules.zones[overlay.v]).sum()),
        "within_rules": not violations,
        "violations": describe_violations(overlay, rules),
        "split_topics": interests.topics[split].tolist(),
        "cut_topics": interests.topics[cut].tolist(),
        "certificates": [],
        "enough": None,
    }
    if not split and not cut and (not violations or start is not None):
        return told
    proofs = find_certificates(interests, rules, split)
    relaxation = find_relaxation(interests, rules, fleet.design)
    told["certificates"] = [{"kind": type(one).__name__, **asdict(one), "text": str(one)} for one in proofs]
    if relaxation is not None:
        told["enough"] = {"caps": relaxation.caps, "pairs": relaxation.pairs, "text": relaxation.lines()}
    return told


def design_timed(algorithm: Algorithm, interests: Interests, options: Mapping[str, Any]) -> Designed:
    """Build an overlay. The kernels are loaded before the clock starts, by a workload of two nodes."""
    algorithm.build(Interests.from_pairs([(0, 0), (1, 0)]), **options)
    started = time.perf_counter()
    overlay = algorithm.build(interests, **options)
    return Designed(algorithm, options, interests, overlay, time.perf_counter() - started)

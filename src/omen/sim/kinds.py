"""The kinds of population a scenario can be run with: which cores, and what is watched about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from omen.interests import Label
from omen.maintain.choosing import choose_links
from omen.protocol.events import NodeId
from omen.sim.monitors import Monitors
from omen.sim.population import Population
from omen.sim.scenario import Scenario
from omen.sim.spider_watch import SpiderMonitors, build_spiders
from omen.sim.watch import Bounds
from omen.sim.world import World


@dataclass(frozen=True, slots=True)
class Kind:
    """`build` makes a population in a world, places given for the names in the scenario; `watch` its monitors."""

    name: str
    build: Callable[[World, Scenario, Mapping[Label, NodeId]], Any]
    watch: Callable[[Any, Bounds], Any]


def _build_omen(world: World, scenario: Scenario, places: Mapping[Label, NodeId]) -> Population:
    config = scenario.protocol_config()
    contacts = config.resilience + 1  # one of them is there, however the losses of a burst fall
    return Population(world, config, choose_links, places, contacts)


OMEN = Kind("omen", _build_omen, Monitors)
SPIDERCAST = Kind("spidercast", build_spiders, SpiderMonitors)
KINDS: dict[str, Kind] = {kind.name: kind for kind in (OMEN, SPIDERCAST)}
"""Another core takes part by an entry here."""

"""Random worlds in which all nodes publish while others join, leave and crash: is anything lost or delivered twice?

`python -m omen.sim.publishing --worlds 100` runs them; `--world N` one, `--trace` tells it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import msgspec

from omen.protocol.events import MILLISECOND, SECOND, Publish, Time
from omen.sim.deliveries import Deliveries, Tally
from omen.sim.running import Outcome, Run, ToMember
from omen.sim.scenario import Action, EventSpec, Name, Scenario
from omen.sim.search import draw_scenario
from omen.sim.world import generator_for

EVERY = 20 * MILLISECOND
AUDIT_MS = 3000.0
LAST_LOOK = 15 * SECOND


class PublishingRun(Run):
    """A scenario with publications all the time, on all topics, from all members. `tally`: what came of them."""

    def __init__(
        self, scenario: Scenario, seed: int = 0, write: Callable[[str], None] | None = None, every: Time = EVERY
    ) -> None:
        super().__init__(scenario, seed, write)
        self.deliveries = Deliveries(self.population)
        self.tally = Tally()
        self._every = every
        self._publishers = generator_for(seed, "publishers")
        self._is_publishing = True
        self.world.call(0, self._begin)

    def _begin(self) -> None:
        self.deliveries.begin()
        self._publish()

    def _publish(self) -> None:
        """A node publishes on one of its topics, and another will in a while."""
        if not self._is_publishing:
            return
        members, draw = self.population.members(), self._publishers
        node = members[draw.randrange(len(members))] if members else 0
        topics = sorted(self.population.cores[node].wanted) if members else []
        if topics and not self.population.cores[node].is_leaving:
            topic = topics[draw.randrange(len(topics))]
            self.world.tell(node, Publish(topic, b"%d" % self.world.now))
        self.world.call(draw.randrange(1, 2 * self._every), self._publish)

    def _do_to_member(self, action: ToMember, name: Name, event: EventSpec) -> None:
        if action is Action.RESUBSCRIBE:
            topics = self.population.topic_labels
            wanted = {key for key, label in topics.items() if label in (event.topics or ())}
            self.deliveries.note_topics(self.population.place(name), wanted)
        super()._do_to_member(action, name, event)

    def _conclude(self) -> Outcome:
        """Give what is still missing time to be found, then count."""
        self._run_to(self.world.now + 2 * SECOND)
        self._is_publishing = False
        self._run_to(self.world.now + LAST_LOOK)
        outcome = super()._conclude()
        self.tally = self.deliveries.conclude()
        outcome.failures += self.tally.complaints()
        return outcome


def run_world(number: int, write: Callable[[str], None] | None = None, every: Time = EVERY) -> tuple[Outcome, Tally]:
    """World `number` of the search, as nodes live: with the audit, so that a topic that stays split is found."""
    scenario = draw_scenario(number)
    config = msgspec.structs.replace(scenario.config, audit=True, audit_ms=AUDIT_MS)
    run = PublishingRun(msgspec.structs.replace(scenario, config=config), number, write, every)
    return run.go(), run.tally


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m omen.sim.publishing", description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=20, help="how many worlds (20)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (0)")
    parser.add_argument("--world", type=int, help="only this one")
    parser.add_argument("--every-ms", type=float, default=20.0, help="a publication so often, on average (20)")
    parser.add_argument("--trace", action="store_true", help="tell it line by line")
    arguments = parser.parse_args(argv)
    first, count = (arguments.first, arguments.worlds) if arguments.world is None else (arguments.world, 1)
    total, troubled = Tally(), 0
    for number in range(first, first + count):
        outcome, tally = run_world(number, print if arguments.trace else None, int(arguments.every_ms * MILLISECOND))
        troubled += not outcome.went_well
        for complaint in outcome.complaints()[:10]:
            print(f"world {number}: {complaint}")
        for name in Tally.__dataclass_fields__:
            setattr(total, name, getattr(total, name) + getattr(tally, name))
    print(
        f"{total.published} publications, {total.delivered} deliveries, {total.expected} owed: lost {len(total.lost)}, "
        f"duplicated {len(total.duplicated)}, out of order {len(total.disordered)}, in silence {len(total.silent)}, "
        f"gaps told {total.gaps}, duplicates per delivery {total.duplicates_per_delivery:.3f}"
    )
    return 1 if troubled else 0


if __name__ == "__main__":
    sys.exit(main())

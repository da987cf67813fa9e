"""Scripts of interactions: commands, and after each block of them the trace that is expected (docs/simulator.md).

    nodes n1:{a,b} n2:{a} n3:{b}
    links n1-n2 n1-n3
    ----
    links: n1-n2 n1-n3

    crash n1
    run 1s
    ----
    1.000000  n1 crashes
    ...

A block ends with a blank line. Nodes stand on the ring in the order of the numbers in their names, so that the
coordinator of what happens to n3 is n4. Modelled on the interaction tests of etcd's raft.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from omen.interests import Interests, Label
from omen.maintain.choosing import choose_links
from omen.overlay import Overlay
from omen.protocol.events import (
    MILLISECOND,
    SECOND,
    Core,
    Input,
    NodeId,
    Output,
    PeerLost,
    Received,
    RepairStage,
    RepairStageEntered,
    Send,
    Time,
)
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import EventId
from omen.quality import check_overlay
from omen.sim.population import Population
from omen.sim.scenario import ConfigSpec, NetworkSpec, Scenario
from omen.sim.trace import TraceWriter
from omen.sim.world import Dropped, Heard, World

STEP = 1 << 56
DEFAULTS: dict[str, Any] = {"resilience": 2, "coverage": 1, "redundant_removals": 0}
UNITS = {"s": SECOND, "ms": MILLISECOND}


class BadScript(ValueError):
    """A command that makes no sense."""


@dataclass(slots=True)
class Block:
    """Commands, and what they are expected to lead to. `comment`: what stands before them."""

    comment: list[str]
    commands: list[str]
    expected: list[str]

    def text(self, output: Sequence[str]) -> str:
        return "\n".join([*self.comment, *self.commands, "----", *output]) + "\n"


def parse(text: str) -> list[Block]:
    """The blocks of a script."""
    blocks: list[Block] = []
    comment: list[str] = []
    commands: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line == "----":
            expected = []
            for line in lines:
                if not line:
                    break
                expected.append(line)
            blocks.append(Block(comment, commands, expected))
            comment, commands = [], []
        elif commands:
            commands.append(line)
        elif not line or line.startswith("#"):
            comment.append(line)
        else:
            commands.append(line)
    if commands:
        raise BadScript(f"the last commands lack ----: {commands}")
    return blocks


@dataclass(slots=True)
class Rule:
    """Messages to lose or to send twice: the next `count` of this kind."""

    sender: NodeId
    to: NodeId
    kind: str
    count: int
    twice: bool


@dataclass(slots=True)
class Faulty:
    """A core some of whose messages get lost, or arrive twice."""

    core: Core
    node: NodeId
    script: Script

    def start(self, now: Time) -> Sequence[Output]:
        return list(self._through(self.core.start(now)))

    def handle(self, event: Input, now: Time) -> Sequence[Output]:
        return list(self._through(self.core.handle(event, now)))

    def _through(self, outputs: Sequence[Output]) -> Iterator[Output]:
        for output in outputs:
            rule = self.script.rule_for(self.node, output) if isinstance(output, Send) else None
            if rule is None:
                yield output
                continue
            rule.count -= 1
            if rule.twice:
                yield from (output, output)
            else:
                self.script.note_lost(self.node, output)


@dataclass(slots=True)
class Script:
    """One script under way."""

    topics: dict[str, tuple[str, ...]] = field(default_factory=dict)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    network: dict[str, Any] = field(default_factory=dict)
    seed: int = 1
    lines: list[str] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    rules: list[Rule] = field(default_factory=list)
    triggers: list[tuple[RepairStage, NodeId]] = field(default_factory=list)
    places: dict[Label, NodeId] = field(default_factory=dict)
    _population: Population | None = None

    def run(self, commands: Sequence[str]) -> list[str]:
        """What a block of commands leads to."""
        for command in commands:
            word, *arguments = command.split()
            action = getattr(self, f"do_{word}", None)
            if action is None:
                raise BadScript(f"there is no command {word!r}")
            action(*arguments)
        lines, self.lines = self.lines, []
        return lines

    # Set-up

    def do_nodes(self, *specs: str) -> None:
        for spec in specs:
            name, _, topics = spec.partition(":")
            self.topics[name] = _set(topics)
            self.places[name] = place_of(name)

    def do_links(self, *pairs: str) -> None:
        self.pairs += [_pair(pair) for pair in pairs]

    def do_config(self, *settings: str) -> None:
        self.config |= dict(map(_setting, settings))

    def do_network(self, *settings: str) -> None:
        self.network |= dict(map(_setting, settings))

    def do_hide(self, *kinds: str) -> None:
        """Leave messages of these kinds out of the trace, as routine ones are."""
        self.hidden |= {*kinds}

    def do_seed(self, seed: str) -> None:
        self.seed = int(seed)

    @property
    def population(self) -> Population:
        if self._population is None:
            self._population = self._build()
        return self._population

    def _build(self) -> Population:
        scenario = Scenario(
            config=msgspec.convert(DEFAULTS | self.config, ConfigSpec),
            network=msgspec.convert(self.network, NetworkSpec),
        )
        names: dict[NodeId, Label] = {}
        topics: dict[int, Label] = {}
        writer = TraceWriter(names, topics, lambda line: self.lines.append(line.strip()))

        def trace(time: Time, node: NodeId, what: object) -> None:
            message = what.message if isinstance(what, Received | Dropped) else None
            if type(message).__name__ not in self.hidden:
                writer(time, node, what)

        world = World(self.seed, scenario.network_model({}), trace)
        population = Population(world, scenario.protocol_config(), choose_links, self.places)
        population.topic_labels, population.labels = topics, names
        pairs = [(name, topic) for name, topics in self.topics.items() for topic in topics]
        interests = Interests.from_pairs(pairs, nodes=list(self.topics))
        population.set_up(interests, Overlay.from_links(interests.nodes, self.pairs))
        world.listeners.append(self._hear)
        for node in world.places:
            self._wrap(world, node)
        world.run_until(0)
        self.lines.clear()
        return population

    def _wrap(self, world: World, node: NodeId) -> None:
        place = world.places[node]
        place.core = Faulty(place.core, node, self)

    @property
    def world(self) -> World:
        return self.population.world

    # What happens

    def do_run(self, time: str) -> None:
        self.world.run_until(self.world.now + _time(time))

    def do_crash(self, *names: str) -> None:
        for name in names:
            self.population.crash(name)

    def do_leave(self, name: str) -> None:
        self.population.leave(name)

    def do_join(self, name: str, topics: str, through: str | None = None) -> None:
        self.places[name] = place_of(name)
        contact = through.removeprefix("through=") if through is not None else None
        node = self.population.join(name, _set(topics), contact, place=place_of(name))
        self._wrap(self.world, node)

    def do_begin(self, name: str, topics: str) -> None:
        """A node begins a cluster of its own."""
        self.places[name] = place_of(name)
        self.population.begin_alone(name, _set(topics))
        self._wrap(self.world, place_of(name))

    def do_meet(self, name: str, other: str) -> None:
        """A node's driver finds another alive, as by a seed."""
        self.population.meet(name, other)

    def do_add(self, name: str, topics: str) -> None:
        self._resubscribe(name, {*self._topics_of(name), *_set(topics)})

    def do_drop(self, name: str, topics: str) -> None:
        self._resubscribe(name, {*self._topics_of(name)} - {*_set(topics)})

    def _topics_of(self, name: str) -> list[str]:
        labels = self.population.topic_labels
        return [str(labels[topic]) for topic in self.population.wanted(place_of(name))]

    def _resubscribe(self, name: str, topics: set[str]) -> None:
        self.population.resubscribe(name, sorted(topics))

    def do_suspect(self, name: str, by: str) -> None:
        """A node is told that its connection to a peer is lost, which is not so."""
        node = place_of(name)
        incarnation = self.world.places[node].incarnation
        self.world.tell(place_of(by.removeprefix("by=")), PeerLost(node, incarnation))

    def do_pause(self, name: str) -> None:
        self.world.pause(place_of(name))

    def do_resume(self, name: str) -> None:
        self.world.resume(place_of(name))

    def do_cut(self, *sides: str) -> None:
        """Messages pass inside a side only: cut n1,n2 n3,n4."""
        self.world.partition([[place_of(name) for name in side.split(",")] for side in sides])

    def do_mute(self, *pairs: str) -> None:
        """Messages between these two vanish, either way, and neither is told: mute n1-n2."""
        self.world.mute((place_of(one), place_of(other)) for one, other in map(_pair, pairs))

    def do_heal(self) -> None:
        self.world.heal()

    def do_unlink(self, *pairs: str) -> None:
        """Both ends forget a link without a word, as no protocol would."""
        for pair in pairs:
            one, other = map(place_of, _pair(pair))
            self.population.cores[one].drop_link(other)
            self.population.cores[other].drop_link(one)

    def do_lose(self, way: str, kind: str, count: str = "1") -> None:
        """The next messages of this kind get lost: lose n4->n1 ShadowQuery."""
        self._add_rule(way, kind, count, twice=False)

    def do_duplicate(self, way: str, kind: str, count: str = "1") -> None:
        """The next messages of this kind arrive twice."""
        self._add_rule(way, kind, count, twice=True)

    def _add_rule(self, way: str, kind: str, count: str, twice: bool) -> None:
        sender, to = map(place_of, way.split("->"))
        self.rules.append(Rule(sender, to, kind, int(count), twice))

    def rule_for(self, node: NodeId, output: Send) -> Rule | None:
        kind = type(output.message).__name__
        matching = (rule for rule in self.rules if (rule.sender, rule.to, rule.kind) == (node, output.to, kind))
        return next((rule for rule in matching if rule.count), None)

    def note_lost(self, node: NodeId, output: Send) -> None:
        assert self.world.tracer is not None
        self.world.tracer(self.world.now, node, Dropped(output.to, output.message, "lost"))

    def do_on(self, stage: str, of: str, crash: str) -> None:
        """The node that coordinates crashes when its repair enters a stage: on linking of=n3 crash."""
        if crash != "crash":
            raise BadScript(f"on ... crash, not {crash!r}")
        self.triggers.append((RepairStage(stage), place_of(of.removeprefix("of="))))

    def _hear(self, node: NodeId, heard: Heard, _: Time) -> None:
        if isinstance(heard, RepairStageEntered):
            trigger = (heard.stage, heard.event.node)
            if trigger in self.triggers:
                self.triggers.remove(trigger)
                self.world.crash(node)

    # What is to be seen

    def do_show(self) -> None:
        """The overlay as it is: links that both ends agree on, and whether each topic is connected."""
        population = self.population
        links = sorted(sorted(map(self._name, pair), key=place_of) for pair in population.links())
        self.lines.append("links: " + (" ".join("-".join(pair) for pair in sorted(links, key=_pair_places)) or "none"))
        interests, overlay = population.snapshot()
        split = sorted(str(topic.topic) for topic in check_overlay(interests, overlay).failing)
        connected = sorted({*map(str, interests.topics.tolist())} - {*split})
        self.lines.append("connected topics: " + (" ".join(connected) or "none"))
        if split:
            self.lines.append("split topics: " + " ".join(split))

    def do_status(self, name: str) -> None:
        """What one node has to do, and how it sees its peers."""
        status = self.population.cores[place_of(name)].status()
        repair = status.repairs.current
        events = [("queued", status.repairs.queued), ("standby", status.repairs.standby)]
        told = [f"repairs {self._event(repair.event)}: {repair.stage}"] if repair is not None else []
        told += [f"{what}: {' '.join(map(self._event, found))}" for what, found in events if found]
        told += [f"suspects: {' '.join(map(self._name, status.membership.suspected))}"] * bool(
            status.membership.suspected
        )
        self.lines.append(f"{name}: " + ("; ".join(told) or "idle"))

    def _event(self, event: EventId) -> str:
        kind = "loss" if event.kind == EventKind.LEAVE else event.kind
        return f"{kind}({self._name(event.node)})"

    def _name(self, node: NodeId) -> str:
        return str(self.population.labels.get(node, node))


def place_of(name: str) -> NodeId:
    """Nodes stand in the order of the numbers in their names; n3x stands between n3 and n4."""
    found = re.fullmatch(r"[a-z]+(\d+)(x?)", name)
    if found is None:
        raise BadScript(f"{name!r} is no name of a node: a letter and a number")
    return int(found[1]) * STEP + (STEP // 2 if found[2] else 0)


def _pair_places(pair: Sequence[str]) -> tuple[NodeId, NodeId]:
    return place_of(pair[0]), place_of(pair[1])


def _set(words: str) -> tuple[str, ...]:
    if not (words.startswith("{") and words.endswith("}")):
        raise BadScript(f"{words!r} is no set of topics: {{a,b}}")
    return tuple(word for word in words[1:-1].split(",") if word)


def _pair(words: str) -> tuple[str, str]:
    one, _, other = words.partition("-")
    return one, other


def _setting(words: str) -> tuple[str, Any]:
    name, _, value = words.partition("=")
    return name, msgspec.json.decode(value) if value else True


def _time(words: str) -> Time:
    found = re.fullmatch(r"([\d.]+)(s|ms)", words)
    if found is None:
        raise BadScript(f"{words!r} is no time: 5s or 200ms")
    return round(float(found[1]) * UNITS[found[2]])


def play(text: str) -> str:
    """A script with what its commands lead to in place of what was expected."""
    script = Script()
    return "\n".join(block.text(script.run(block.commands)) for block in parse(text))


def scripts(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.txt"))

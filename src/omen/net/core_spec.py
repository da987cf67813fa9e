"""All that a core is made from, so that a recording can make the same one again."""

from __future__ import annotations

import random

import msgspec

from omen.net.engine import choose_links
from omen.protocol.config import Config
from omen.protocol.events import Engine, Topic
from omen.protocol.messages.overlay import Descriptor, Ref
from omen.protocol.node import OmenNode


class Preset(msgspec.Struct, frozen=True, array_like=True):
    """Where a node of a designed overlay begins: the nodes near it, its links (with their successors), its sample."""

    near: tuple[Descriptor, ...]
    neighbours: tuple[tuple[Ref, tuple[Ref, ...]], ...]
    sample: tuple[Ref, ...]


class CoreSpec(msgspec.Struct, frozen=True, array_like=True):
    """One incarnation of a node as it begins."""

    ref: Ref
    topics: tuple[Topic, ...]
    config: Config
    seed: int
    contacts: tuple[Ref, ...] = ()
    preset: Preset | None = None


def make_core(spec: CoreSpec, engine: Engine = choose_links) -> OmenNode:
    """A fresh core."""
    generator = random.Random(spec.seed)
    core = OmenNode(spec.ref, spec.topics, spec.config, generator, engine, spec.contacts)
    if spec.preset is not None:
        core.preset(spec.preset.near, spec.preset.neighbours, spec.preset.sample)
    return core

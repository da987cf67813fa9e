"""All that a core is made from, so that a recording can make the very same one again."""

from __future__ import annotations

import random

import msgspec

from omen.maintain.choosing import choose_links
from omen.protocol.config import Config
from omen.protocol.events import Engine, Topic
from omen.protocol.messages.overlay import Descriptor, Ref
from omen.protocol.node import OmenNode


class Preset(msgspec.Struct, frozen=True, array_like=True):
    """Where a node of a designed overlay begins: who is around it, its links (with their successors), its sample."""

    near: tuple[Descriptor, ...]
    neighbours: tuple[tuple[Ref, tuple[Ref, ...]], ...]
    sample: tuple[Ref, ...]


class Birth(msgspec.Struct, frozen=True, array_like=True):
    """One life of a node."""

    ref: Ref
    topics: tuple[Topic, ...]
    config: Config
    seed: int
    contacts: tuple[Ref, ...] = ()
    preset: Preset | None = None


def make_core(birth: Birth, engine: Engine = choose_links) -> OmenNode:
    """A fresh core; compiled code is loaded when it first mends."""
    generator = random.Random(birth.seed)
    core = OmenNode(birth.ref, birth.topics, birth.config, generator, engine, birth.contacts)
    if birth.preset is not None:
        core.preset(birth.preset.near, birth.preset.neighbours, birth.preset.sample)
    return core

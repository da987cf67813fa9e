"""Nodes as children of one process that has everything loaded: little memory each, and a quick start."""

from __future__ import annotations

import gc
import os
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from omen.errors import InvalidInput
from omen.net.broker import Origin
from omen.net.core_spec import Preset
from omen.net.local.cuts import ignore_cuts, obey_cuts
from omen.net.names import join_address, next_incarnation, topic_key
from omen.net.observe.logs import flush_log, write_log
from omen.net.running import run_node
from omen.net.settings import NodeConfig
from omen.net.transport.accepting import listen_on
from omen.protocol.membership.ring import SPARE, nearest_after, nearest_before, place_of
from omen.protocol.messages.overlay import Descriptor, Digest, Ref

if TYPE_CHECKING:
    from omen.overlay import Overlay


def preload() -> None:
    """What is loaded stays where it is, so that children share it."""
    gc.collect()
    gc.freeze()


def plan_presets(overlay: Overlay, configs: Sequence[NodeConfig]) -> list[Origin]:
    """Where each node of a designed overlay begins; configs in the order of its nodes.

    Sockets are bound first, so that all addresses are known.
    """
    listeners = [listen_on(config.listen) for config in configs]
    incarnations = [next_incarnation() for _ in configs]
    refs = [
        Ref(place_of(config.name), incarnation, config.advertise or join_address(*listener.getsockname()[:2]))
        for config, listener, incarnation in zip(configs, listeners, incarnations, strict=True)
    ]
    rows: list[list[int]] = [[] for _ in configs]
    for u, v in zip(overlay.u.tolist(), overlay.v.tolist(), strict=True):
        rows[u].append(v)
        rows[v].append(u)
    descriptors = [
        Descriptor(
            Digest(refs[code], 1, 1),
            tuple(sorted(topic_key(topic) for topic in config.topics)),
            tuple(sorted((refs[other] for other in rows[code]), key=lambda ref: ref.id)),
            config.protocol.link_rules,
        )
        for code, config in enumerate(configs)
    ]
    by_place = {ref.id: code for code, ref in enumerate(refs)}
    if len(by_place) < len(refs):
        raise InvalidInput("two nodes of the cluster have the same name")
    presets = [_preset(code, refs, rows, descriptors, by_place, configs[code]) for code in range(len(configs))]
    return [Origin(*parts) for parts in zip(presets, incarnations, listeners, strict=True)]


def _preset(
    code: int,
    refs: list[Ref],
    rows: list[list[int]],
    descriptors: list[Descriptor],
    by_place: dict[int, int],
    config: NodeConfig,
) -> Preset:
    protocol = config.protocol
    room = protocol.resilience + SPARE
    place = refs[code].id
    near = {*nearest_after(place, by_place, room), *nearest_before(place, by_place, room)}
    near |= {refs[other].id for other in rows[code]}
    links = []
    for other in sorted(rows[code], key=lambda other: refs[other].id):
        after = nearest_after(refs[other].id, by_place, protocol.resilience)
        links.append((refs[other], tuple(refs[by_place[node]] for node in after)))
    others = [ref for ref in refs if ref.id != place]
    sample = random.Random(place).sample(others, min(protocol.sample_size, len(others)))
    return Preset(tuple(descriptors[by_place[node]] for node in sorted(near)), tuple(links), tuple(sample))


def fork_node(config: NodeConfig, origin: Origin | None, log_to: Path, origins: Sequence[Origin] = ()) -> int:
    """A child that is this node until a signal ends it; its process number. `origins`: those of all children."""

    def be_node() -> None:
        write_log(config.log)
        ignore_cuts()
        state = Path(config.state)
        when_up = partial(obey_cuts, state.parent, state) if config.state else lambda broker: None
        run_node(config, when_up, origin=origin)

    return fork(be_node, log_to, origin, origins)


def fork(be: Callable[[], None], log_to: Path, origin: Origin | None = None, origins: Sequence[Origin] = ()) -> int:
    """A child in a session of its own that does one thing and ends; what it prints is appended to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _be_child(be, log_to, [other for other in origins if other is not origin])
    if origin is not None:
        origin.socket.close()
    return child


def _be_child(be: Callable[[], None], log_to: Path, strangers: Sequence[Origin]) -> NoReturn:
    """Never returns into what the parent was about to do."""
    status = 1
    try:
        os.setsid()
        for stranger in strangers:
            stranger.socket.close()
        stream = os.open(log_to, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        be()
        status = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        flush_log()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

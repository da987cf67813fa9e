"""An overlay as bridges between Mosquitto brokers: for each topic along a tree of its links, so that nothing loops."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from omen.errors import InvalidInput
from omen.interests import Interests, Label
from omen.overlay import Overlay
from omen.tables import replace_folder, require_replaceable

MARKER = "bridges.json"
SUFFIX = ".conf"

_LONGEST_TOPIC = 65_535
_NOT_IN_A_BRIDGE = re.compile(r"[\s\x00-\x1f\x7f]")
_ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.%]+\])(?::([0-9]{1,5}))?")

NOT_CARRIED = "$omen/not-carried/"
"""Where a bridge looks for what it must not carry: names that begin with $ are no topics of a workload."""

Trees = dict[tuple[int, int], list[int]]


@dataclass(frozen=True)
class Written:
    """What an export wrote: the brokers whose file is new, differs, or is there no more."""

    brokers: int
    bridges: int
    changed: tuple[Label, ...]
    removed: tuple[str, ...]


def topic_trees(interests: Interests, overlay: Overlay) -> Trees:
    """The topics that each link carries: those in whose tree it stands. A link that no tree needs carries nothing.

    A tree is searched from the lowest node, breadth first, so that a topic that does not change keeps its tree.
    """
    trees: Trees = {}
    near = [set(overlay.neighbours_of(node).tolist()) for node in range(overlay.node_count)]
    for topic in range(interests.topic_count):
        members = interests.subscribers_of(topic).tolist()
        left = set(members[1:])
        waiting = members[:1]
        for node in waiting:
            for other in sorted(near[node] & left):
                left.discard(other)
                waiting.append(other)
                trees.setdefault((min(node, other), max(node, other)), []).append(topic)
        if left:
            raise InvalidInput(f"topic {_label(interests, topic)!r} is split: no tree connects its subscribers")
    return trees


def fault_of_topic(topic: Label) -> str | None:
    """What is wrong with a topic's name, as MQTT and a bridge's configuration have it; None where nothing is."""
    name = str(topic)
    if not name or name == '""':  # a bridge's configuration takes two quotes for nothing
        return "is empty: MQTT forbids it"
    if "+" in name or "#" in name:
        return "holds + or #: MQTT forbids it in names"
    if name.startswith("$"):
        return "begins with $: such topics are the broker's own"
    if _NOT_IN_A_BRIDGE.search(name):
        return "holds a blank or a control character: a bridge's configuration cannot"
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST_TOPIC:
        return f"is longer than {_LONGEST_TOPIC:,} bytes: MQTT forbids it"
    return None


def fault_of_address(address: str) -> str | None:
    """What is wrong with HOST or HOST:PORT; None where nothing is."""
    found = _ADDRESS.fullmatch(address)
    if not found or not 0 < int(found[1] or 1883) < 65_536:
        return "is not HOST or HOST:PORT"
    return None


def bridge_files(interests: Interests, overlay: Overlay, addresses: Mapping[int, str]) -> dict[int, list[str]]:
    """The configuration of each broker by node code, line by line. The lower end of a link keeps the connection."""
    lines = {node: [f"# Bridges of broker {_label_of(overlay, node)}"] for node in range(overlay.node_count)}
    for (node, other), topics in sorted(topic_trees(interests, overlay).items()):
        if other not in addresses:
            raise InvalidInput(f"broker {_label_of(overlay, other)!r} has no address")
        lines[node] += ["", *_connection(file_name(overlay, node), file_name(overlay, other), addresses[other])]
        lines[node] += _subscriptions(interests, node, other, topics)
    return lines


def _subscriptions(interests: Interests, node: int, other: int, carried: list[int]) -> list[str]:
    """What a bridge carries, and that it does not carry any of the other topics that both ends want.

    A session that persists keeps its subscriptions at the other end, also to topics that went another way since: they
    would go in a circle. Mosquitto takes back those alone that the file names as going out; these go out from where
    nothing is published.
    """
    shared = set(interests.topics_of(node).tolist()) & set(interests.topics_of(other).tolist())
    names = sorted(str(_label(interests, topic)) for topic in carried)
    others = sorted(str(_label(interests, topic)) for topic in shared - set(carried))
    return [f"topic {name} both 2" for name in names] + [f'topic {name} out 2 {NOT_CARRIED} ""' for name in others]


def _connection(node: str, other: str, address: str) -> list[str]:
    """Sessions that outlive a restart on both sides keep what the other end has not got yet."""
    return [
        f"connection {node}_{other}",
        f"address {address}",
        f"local_clientid omen_local_{node}_{other}",
        f"remote_clientid omen_{node}_{other}",
        "bridge_protocol_version mqttv311",
        "try_private true",
        "cleansession false",
        "notifications false",
        "restart_timeout 1 30",
    ]


def file_name(overlay: Overlay, node: int) -> str:
    """The label of a broker as part of names: what file systems or brokers might not take is written as %XX."""
    return quote(str(_label_of(overlay, node)), safe="").replace("%", "=")


def write_bridges(folder: str | Path, interests: Interests, overlay: Overlay, addresses: Mapping[int, str]) -> Written:
    """One file for each broker, and `bridges.json`, which lists them."""
    require_replaceable(folder, MARKER)
    contents = {
        file_name(overlay, node) + SUFFIX: "\n".join(lines) + "\n"
        for node, lines in bridge_files(interests, overlay, addresses).items()
    }
    before = _files_before(Path(folder))
    labels = overlay.nodes.tolist()
    listed = [{"broker": label, "file": name} for label, name in zip(labels, contents, strict=True)]

    def fill(aside: Path) -> None:
        for name, text in contents.items():
            (aside / name).write_text(text, encoding="utf-8")
        (aside / MARKER).write_text(json.dumps({"brokers": listed}, indent=1) + "\n", encoding="utf-8")

    replace_folder(folder, MARKER, before, fill)
    return Written(
        len(contents),
        sum(text.count("\nconnection ") for text in contents.values()),
        tuple(label for label, (name, text) in zip(labels, contents.items(), strict=True) if before.get(name) != text),
        tuple(sorted(set(before) - set(contents))),
    )


def _files_before(folder: Path) -> dict[str, str]:
    """The files that an export wrote there before."""
    try:
        listed = json.loads((folder / MARKER).read_text(encoding="utf-8"))["brokers"]
        names = [str(entry["file"]) for entry in listed]
        return {name: (folder / name).read_text(encoding="utf-8") for name in names if (folder / name).is_file()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _label(interests: Interests, topic: int) -> Label:
    label: Label = interests.topics[[topic]].tolist()[0]
    return label


def _label_of(overlay: Overlay, node: int) -> Label:
    label: Label = overlay.nodes[[node]].tolist()[0]
    return label

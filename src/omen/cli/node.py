"""omen node, omen pub, omen sub: one node over TCP."""

from __future__ import annotations

import argparse
import base64
import io
import json
import sys
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, at_least, seconds
from omen.cli.output import print_facts, print_json, say
from omen.cli.progress import working
from omen.errors import InvalidInput

if TYPE_CHECKING:
    from omen.net.broker import Broker
    from omen.net.inbox import Gap, Message
    from omen.net.settings import NodeConfig

NODE_EPILOG = """\
example:
  omen node --example > node.toml
  omen node --config node.toml
  omen node --mqtt 1883

SIGTERM or Ctrl-C: leave in good order; twice, or SIGQUIT: stop at once. SIGHUP: read settings and keys again.

exit codes: 0 done, 1 a recording differs, or neighbours did not hold all that this node had accepted when it left, 2
bad input
"""
PUB_EPILOG = """\
example:
  omen pub prices "tea 3.20" --join 127.0.0.1:7070
  omen pub prices - --join 127.0.0.1:7070

For scripts: with - one node joins once and publishes each line of standard input as it comes, so that only the first
has to wait for the join; omen sub --json prints one object per publication.

exit codes: 0 a neighbour holds it, 1 no node wanted the topic or held it in time, 2 bad input, 130 SIGTERM or Ctrl-C:
it left in good order, and what was said until then may be held or not
"""
SUB_EPILOG = """\
example:
  omen sub prices weather --join 127.0.0.1:7070
  omen sub prices weather --join 127.0.0.1:7070 --json

For scripts: --json prints one object per publication, and one for a gap, each on a line of its own as it comes.
"""


def add_parser(commands: Any) -> None:
    _add_node(commands)
    _add_pub(commands)
    _add_sub(commands)


def _add_node(commands: Any) -> None:
    parser = commands.add_parser(
        "node",
        help="run a node of a live cluster until a signal ends it",
        description="Run a node of a live cluster, over TCP, until a signal ends it.",
        epilog=NODE_EPILOG,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--config", metavar="FILE", help="the node's settings, as TOML (not needed with --mqtt)")
    what.add_argument("--example", action="store_true", help="print a settings file with every setting explained")
    what.add_argument(
        "--replay", metavar="FILE", help="run a recording through a fresh node; exit code 1 if it answers otherwise"
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        help="write lines of this level and above (default: log_level)",
    )
    parser.add_argument("--mqtt", metavar="[HOST:]PORT", help="serve MQTT clients there (host: 127.0.0.1)")
    _add_join_timeout(parser)
    add_json(parser)
    parser.set_defaults(handler=run_node)


def _add_pub(commands: Any) -> None:
    parser = commands.add_parser(
        "pub",
        help="publish to a live cluster: join, publish, leave",
        description="Publish to a live cluster, as a node of its own that leaves once its neighbours hold it.",
        epilog=PUB_EPILOG,
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("message", metavar="MESSAGE", help="what to say; -: each line of standard input")
    add_joining(parser)
    parser.add_argument(
        "--patience",
        metavar="SECONDS",
        type=seconds,
        default=10.0,
        help="how long neighbours may take to hold it, once joined (10)",
    )
    add_json(parser)
    parser.set_defaults(handler=publish)


def _add_sub(commands: Any) -> None:
    parser = commands.add_parser(
        "sub",
        help="subscribe to topics of a live cluster and print what comes",
        description="Subscribe to topics of a live cluster as a node of its own, and print what comes, a line each.",
        epilog=SUB_EPILOG,
    )
    parser.add_argument("topics", metavar="TOPIC", nargs="+")
    add_joining(parser)
    parser.add_argument("--count", metavar="N", type=at_least(1), help="leave after so many messages")
    parser.add_argument("--replay", action="store_true", help="print also what neighbours still keep")
    add_json(parser)
    parser.set_defaults(handler=subscribe)


def add_joining(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--join", metavar="HOST:PORT", action="append", help="the address of a member (a seed); may be repeated"
    )
    parser.add_argument("--config", metavar="FILE", help="settings of a node, for its keys and members to join through")
    parser.add_argument("--cluster", metavar="NAME", help="the cluster's name (omen)")
    parser.add_argument("--name", metavar="NAME", help="of this node (made up)")
    _add_join_timeout(parser)


def _add_join_timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--join-timeout",
        metavar="SECONDS",
        type=seconds,
        help="end if no member was found by then (limits.join_timeout_s, 30); 0: go on trying",
    )


def _with_join_timeout(config: NodeConfig, arguments: argparse.Namespace) -> NodeConfig:
    from dataclasses import replace

    if arguments.join_timeout is None:
        return config
    return replace(config, limits=replace(config.limits, join_timeout_s=arguments.join_timeout))


def config_for_joining(arguments: argparse.Namespace, topics: tuple[str, ...]) -> NodeConfig:
    from dataclasses import replace

    from omen.net.settings import NodeConfig, read_node_config

    config = read_node_config(arguments.config) if arguments.config else NodeConfig()
    told = {"name": arguments.name, "cluster": arguments.cluster, "join": tuple(arguments.join or ())}
    config = replace(
        config, topics=topics, http="", state="", record="", **{name: value for name, value in told.items() if value}
    )
    if not config.join and not config.join_file:
        raise InvalidInput("--join: which member to join through? HOST:PORT, or `join` in the file of --config")
    return _with_join_timeout(config, arguments)


def run_node(arguments: argparse.Namespace) -> int:
    if arguments.example:
        from importlib.resources import files

        print(files("omen.net").joinpath("node.toml").read_text(), end="")
        return 0
    if arguments.replay:
        return _replay(arguments)
    from dataclasses import replace

    from omen.net.errors import NotHeld
    from omen.net.reload import SettingsFile
    from omen.net.running import prepare_node, run_node

    if not arguments.config and not arguments.mqtt:
        raise InvalidInput("which node? --config FILE, or --mqtt PORT for one with default settings")
    settings = SettingsFile(arguments.config or "", arguments.log_level or "")
    config = _with_join_timeout(prepare_node(settings), arguments)
    if arguments.mqtt:
        address = arguments.mqtt if ":" in arguments.mqtt else f"127.0.0.1:{arguments.mqtt}"
        config = replace(config, mqtt=address)

    def when_up(broker: Broker) -> None:
        try:
            _tell_addresses(broker, arguments.json)
        except (OSError, ValueError, AttributeError) as error:  # a full disk, a closed pipe, no output at all
            broker.log.warning("addresses_not_printed", cause=str(error))
            sys.stdout = io.StringIO()  # what is left in the former would fail again at the end

    try:
        run_node(config, when_up, settings=settings)
    except NotHeld as error:
        say(str(error))
        return 1
    return 0


def _tell_addresses(broker: Broker, as_json: bool) -> None:
    from omen.net.running import has_room

    if not has_room(sys.stdout):
        raise BlockingIOError("no process reads the output")
    facts = {"name": broker.name, "address": broker.address, "http": broker.http_address}
    mqtt = broker.mqtt_addresses
    with redirect_stdout(io.StringIO()) as lines:
        if as_json:
            print_json({**facts, "mqtt": mqtt} if mqtt else facts)
        else:
            print_facts([(name, value or None) for name, value in {**facts, "mqtt": ", ".join(mqtt)}.items()])
    sys.stdout.write(lines.getvalue())  # at once: the log may go to the same place
    sys.stdout.flush()


def _replay(arguments: argparse.Namespace) -> int:
    from omen.net.recording import replay_recording

    replayed = replay_recording(arguments.replay)
    same = replayed.differs_at is None
    facts = {"inputs": replayed.steps, "outputs": replayed.outputs, "seconds": replayed.seconds, "same": same}
    if arguments.json:
        print_json({**facts, "differs_at": replayed.differs_at})
    else:
        print_facts([*facts.items(), ("differs at input", replayed.differs_at)])
    return 0 if same else 1


def publish(arguments: argparse.Namespace) -> int:
    from omen.net.running import lines_of, only, publish_once

    if arguments.message == "-":
        payloads = partial(lines_of, sys.stdin.fileno())
    else:
        payloads = partial(only, arguments.message.encode("utf-8", "surrogateescape"))
    with working(f"publishing on {arguments.topic}"):
        published = publish_once(config_for_joining(arguments, ()), arguments.topic, payloads, arguments.patience)
    if arguments.json:
        facts = {"topic": arguments.topic, "published": len(published.sequences)}
        print_json({**facts, "wanted": published.wanted, "held": published.held})
    elif not published.held and not published.wanted:
        say(f"no other node in the cluster wants {arguments.topic!r}: the publication reached none")
    elif not published.held:
        say(f"no neighbour held it within {arguments.patience:g} s: it may be lost; --patience waits longer")
    return 0 if published.held else 1


def subscribe(arguments: argparse.Namespace) -> int:
    from omen.net.running import follow

    left = arguments.count or -1

    def consume(item: Message | Gap) -> bool:
        nonlocal left
        print(_as_json(item) if arguments.json else _as_line(item, len(arguments.topics) > 1), flush=True)
        left -= 1
        return left == 0

    topics = tuple(arguments.topics)
    say(f"subscribing to {', '.join(topics)}")
    follow(config_for_joining(arguments, ()), topics, arguments.replay, consume)
    return 0


def _as_line(item: Message | Gap, with_topic: bool) -> str:
    from omen.net.inbox import Gap

    head = f"{item.topic}: " if with_topic else ""
    if isinstance(item, Gap):
        return f"{head}[{item.last - item.first + 1} messages are missing: {item.reason}]"
    return head + item.payload.decode(errors="backslashreplace")


def _as_json(item: Message | Gap) -> str:
    from omen.net.inbox import Gap

    facts: dict[str, Any] = {
        "topic": item.topic,
        "publisher": item.publisher,
        "incarnation": item.incarnation,
    }
    if isinstance(item, Gap):
        facts |= {"gap": item.reason, "first": item.first, "last": item.last}
    else:
        facts["sequence"] = item.sequence
        try:
            facts["payload"] = item.payload.decode()
        except UnicodeDecodeError:
            facts["payload_base64"] = base64.b64encode(item.payload).decode()
    return json.dumps(facts, ensure_ascii=False)

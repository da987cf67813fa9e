"""omen keys: what protects a live cluster."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from omen.cli.arguments import add_json, at_least
from omen.cli.output import print_facts, print_json

FOLDER = "keys"
EPILOG = """\
example:
  omen keys ca --cluster shop
  omen keys node n1 n2 n3 'client-*' --cluster shop
  omen keys secret
  omen keys show keys/n1.pem
  omen keys user ann --out keys/users
  omen keys revoke keys/n3.pem

Keep keys/ca.key away from the nodes: its owner decides who is a member.
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "keys",
        help="make what protects a live cluster: an authority, certificates, a secret",
        description="Make what protects a live cluster: an authority, certificates for nodes, a secret.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, title="actions")
    _add_ca(actions)
    _add_node(actions)
    _add_secret(actions)
    _add_show(actions)
    _add_user(actions)
    _add_revoke(actions)


def _add_ca(actions: Any) -> None:
    text = "make an authority for a cluster"
    example = "example:\n  omen keys ca --cluster shop\n  omen keys ca --cluster shop --name ca2\n"
    action = actions.add_parser("ca", help=text, description=text.capitalize() + ".", epilog=example)
    _add_common(action, 3650)
    action.add_argument("--name", metavar="NAME", default="ca", help="of its files (ca); another one to replace it")
    action.set_defaults(handler=make_ca)


def _add_node(actions: Any) -> None:
    text = "make certificates for nodes"
    example = "example:\n  omen keys node n1 n2 'client-*' --cluster shop\n"
    action = actions.add_parser("node", help=text, description=text.capitalize() + ".", epilog=example)
    action.add_argument("nodes", metavar="NODE", nargs="+", help="a node's name; * stands for anything")
    _add_common(action, 365)
    action.add_argument("--ca", metavar="NAME", default="ca", help="the authority, in the same folder (ca)")
    action.add_argument("--ca-from", metavar="DIR", help="the authority's folder, where it is another")
    action.set_defaults(handler=make_nodes)


def _add_secret(actions: Any) -> None:
    text = "make a secret, for a cluster without certificates"
    example = "example:\n  omen keys secret --out keys/secret\n"
    action = actions.add_parser("secret", help=text, description=text.capitalize() + ".", epilog=example)
    action.add_argument("--out", metavar="FILE", default=f"{FOLDER}/secret", help=f"its file ({FOLDER}/secret)")
    add_json(action)
    action.set_defaults(handler=make_secret)


def _add_show(actions: Any) -> None:
    text = "show which nodes certificates are for, and until when"
    example = "example:\n  omen keys show keys/n1.pem\n"
    action = actions.add_parser("show", help=text, description=text.capitalize() + ".", epilog=example)
    action.add_argument("files", metavar="FILE", nargs="+")
    add_json(action)
    action.set_defaults(handler=show)


def _add_user(actions: Any) -> None:
    text = "add a user of MQTT, or change its password"
    about = f"{text.capitalize()}. The password is asked for, or read from standard input; only its hash is kept."
    example = "example:\n  omen keys user ann --out keys/users\n"
    action = actions.add_parser("user", help=text, description=about, epilog=example)
    action.add_argument("name", metavar="NAME")
    action.add_argument("--out", metavar="FILE", default=f"{FOLDER}/users", help=f"the file ({FOLDER}/users)")
    add_json(action)
    action.set_defaults(handler=add_user)


def _add_revoke(actions: Any) -> None:
    text = "add certificates to the list of those that are good no longer"
    example = "example:\n  omen keys revoke keys/n3.pem\n  omen keys revoke --ca ca2\n"
    action = actions.add_parser("revoke", help=text, description=text.capitalize() + ".", epilog=example)
    action.add_argument("files", metavar="FILE", nargs="*", help="certificates; none: the list anew, or an empty one")
    action.add_argument("--days", metavar="N", type=at_least(1), default=3650, help="how long the list is good (3650)")
    action.add_argument("--out", metavar="DIR", default=FOLDER, help=f"folder ({FOLDER})")
    action.add_argument("--ca", metavar="NAME", default="ca", help="the authority, in the same folder (ca)")
    add_json(action)
    action.set_defaults(handler=revoke)


def _add_common(action: argparse.ArgumentParser, days: int) -> None:
    action.add_argument("--cluster", metavar="NAME", default="omen", help="the cluster's name (omen)")
    action.add_argument("--days", metavar="N", type=at_least(1), default=days, help=f"how long they are good ({days})")
    action.add_argument("--out", metavar="DIR", default=FOLDER, help=f"folder ({FOLDER})")
    action.add_argument("--kind", choices=("p256", "ed25519"), default="p256", help="of the key (p256)")
    add_json(action)


def make_ca(arguments: argparse.Namespace) -> int:
    from omen.net.security.key_files import make_authority

    pair = make_authority(arguments.out, arguments.cluster, arguments.days, arguments.name, arguments.kind)
    _tell(arguments, {"certificate": str(pair.certificate), "key": str(pair.key)})
    return 0


def make_nodes(arguments: argparse.Namespace) -> int:
    from omen.net.security.key_files import authority_in, make_node

    authority = authority_in(arguments.ca_from or arguments.out, arguments.ca)
    made = {
        name: make_node(arguments.out, authority, arguments.cluster, name, arguments.days, arguments.kind)
        for name in arguments.nodes
    }
    if arguments.json:
        files = {name: {"certificate": str(pair.certificate), "key": str(pair.key)} for name, pair in made.items()}
        print_json({"authority": str(authority.certificate), "nodes": files})
    else:
        print_facts([(name, f"{pair.certificate}, {pair.key}") for name, pair in made.items()])
    return 0


def make_secret(arguments: argparse.Namespace) -> int:
    from omen.net.security.key_files import make_secret

    _tell(arguments, {"secret": str(make_secret(arguments.out))})
    return 0


def add_user(arguments: argparse.Namespace) -> int:
    from omen.net.mqtt.users import write_user

    if sys.stdin.isatty():
        from getpass import getpass

        password = getpass(f"password of {arguments.name}: ")
    else:
        password = sys.stdin.readline().rstrip("\n")
    write_user(arguments.out, arguments.name, password)
    _tell(arguments, {"user": arguments.name, "file": arguments.out})
    return 0


def revoke(arguments: argparse.Namespace) -> int:
    from omen.net.security.key_files import authority_in, revoke

    authority = authority_in(arguments.out, arguments.ca)
    path = revoke(arguments.out, authority, arguments.files, arguments.days)
    _tell(arguments, {"revoked": str(path), "added": len(arguments.files)})
    return 0


def show(arguments: argparse.Namespace) -> int:
    from omen.net.security.key_files import describe, read_certificate

    found = [dict(describe(path, read_certificate(path))) for path in arguments.files]
    if arguments.json:
        print_json({"certificates": found})
        return 0
    for number, facts in enumerate(found):
        if number:
            print()
        print_facts(list(facts.items()))
    return 0


def _tell(arguments: argparse.Namespace, facts: dict[str, Any]) -> None:
    if arguments.json:
        print_json(facts)
    else:
        print_facts(list(facts.items()))

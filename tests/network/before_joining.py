"""What a version makes of seeds, names, addresses and certificates: cases of coming together, for `before.py`."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

from .cold_starts import free_ports
from .lab import PATIENCE_S, Found, Lab, linked, told, wait


def mutual_seeds(lab: Lab) -> Found:
    """Three nodes, each lists the other two."""
    ports = free_ports(3)
    nodes = []
    for number, port in enumerate(ports):
        others = [f"127.0.0.1:{other}" for other in ports if other != port]
        nodes.append(lab.start(f"n{number}", listen=f"127.0.0.1:{port}", join=others))
    took = [node.seconds_until_up() for node in nodes]
    return all(took) and linked(nodes), "up after " + ", ".join(map(told, took))


def seeds_with_themselves(lab: Lab) -> Found:
    """Three nodes, each lists all three."""
    ports = free_ports(3)
    seeds = [f"127.0.0.1:{port}" for port in ports]
    alone = lab.start("n9").seconds_until_up() or 0.0
    nodes = [lab.start(f"n{number}", listen=seed, join=seeds) for number, seed in enumerate(seeds)]
    took = [node.seconds_until_up() for node in nodes]
    is_one = wait(lambda: linked(nodes), 20.0) is not None
    words = "up after " + ", ".join(map(told, took)) + (", one cluster" if is_one else ", not one cluster")
    return is_one and all(one is not None and one < alone + 5.0 for one in took), words


def own_spelling(lab: Lab) -> Found:
    """A first node lists itself as localhost, and a seed that is silent."""
    alone = lab.start("n0").seconds_until_up() or 0.0
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (port,) = free_ports(1)
        join = [f"localhost:{port}", f"127.0.0.1:{silent.getsockname()[1]}"]
        took = lab.start("n1", listen=f"127.0.0.1:{port}", join=join).seconds_until_up()
    return took is not None and took < alone + 3.0, f"up after {told(took)}, without seeds {alone:.1f} s"


def began_apart(lab: Lab) -> Found:
    """Two nodes of one cluster: one lists the other, which was not there yet."""
    (port,) = free_ports(1)
    (own,) = free_ports(1)
    seeds = [f"127.0.0.1:{port}", f"127.0.0.1:{own}"]
    second = lab.start("n2", listen=f"127.0.0.1:{own}", join=seeds)
    second.seconds_until_up()
    first = lab.start("n1", listen=f"127.0.0.1:{port}")
    first.seconds_until_up()
    took = wait(lambda: linked([first, second]), 30.0)
    return took is not None, f"one cluster after {told(took)}"


def bad_seed(lab: Lab) -> Found:
    """One of two seeds is a node of another cluster."""
    good, other = lab.start("n1"), lab.start("x1", cluster="other")
    good.seconds_until_up()
    other.seconds_until_up()
    third = lab.start("n3", join=[other.address, good.address])
    took = third.seconds_until_up()
    return took is not None, f"up after {told(took)}, exit code {third.process.poll()}"


def http_seed(lab: Lab) -> Found:
    """One of two seeds is an HTTP server."""
    good = lab.start("n1")
    alone = good.seconds_until_up() or 0.0
    third = lab.start("n3", join=[good.address, f"127.0.0.1:{good.page_port}"])
    took = third.seconds_until_up()
    words = f"up after {told(took)}, without it {alone:.1f} s, exit code {third.process.poll()}"
    return took is not None and took < alone + 3.0 and linked([good, third]), words


def silent_seed(lab: Lab) -> Found:
    """The first of two seeds takes connections and says nothing."""
    good = lab.start("n1")
    alone = good.seconds_until_up() or 0.0
    with socket.create_server(("127.0.0.1", 0)) as silent:
        node = lab.start("n2", join=[f"127.0.0.1:{silent.getsockname()[1]}", good.address])
        took = node.seconds_until_up()
    return took is not None and took < alone + 2.0, f"up after {told(took)}, without it {alone:.1f} s"


def refused_at_once(lab: Lab) -> Found:
    """The only seed belongs to another cluster."""
    other = lab.start("x1", cluster="other")
    other.seconds_until_up()
    node = lab.start("n1", join=[other.address])
    took = node.seconds_until_ended()
    return took is not None and took < 5.0 and "belongs to cluster" in node.said(), f"ended after {told(took)}"


def dead_seed(lab: Lab) -> Found:
    """No process listens at the only seed: is there a word of it before the node gives up?"""
    (port,) = free_ports(1)
    node = lab.start("n1", join=[f"127.0.0.1:{port}"])
    took = wait(lambda: f"127.0.0.1:{port}" in node.said() or node.process.poll() is not None, 40.0)
    return took is not None and took < 10.0, f"the first word after {told(took)}"


def join_timeout(lab: Lab) -> Found:
    """How long a node looks for others can be said."""
    (port,) = free_ports(1)
    took = lab.start("n1", "--join-timeout", "1", join=[f"127.0.0.1:{port}"])
    ended = took.seconds_until_ended()
    said = "within 1 s" in took.said()
    return (
        said and ended is not None and ended < 10.0,
        f"ended after {told(ended)}, {'with' if said else 'without'} why",
    )


def seeds_in_a_file(lab: Lab) -> Found:
    """Seeds stand in a file, which names a living one later."""
    first = lab.start("n1")
    first.seconds_until_up()
    file = lab.folder / "seeds"
    file.write_text("127.0.0.1:1\n")
    node = lab.start("n2", join_file=str(file))
    time.sleep(2.0)
    file.write_text(f"127.0.0.1:1\n{first.address}\n")
    took = node.seconds_until_up(20.0)
    return took is not None, f"up after {told(took)}, exit code {node.process.poll()}"


def name_twice(lab: Lab) -> Found:
    """A second node takes the name of one that is alive."""
    first, _ = lab.pair()
    again = lab.start("n2", join=[first.address])
    code = again.process.wait(PATIENCE_S) if again.seconds_until_ended(20.0) else None
    return code == 2 and "taken" in again.said(), f"the second {'is up' if code is None else f'ends with {code}'}"


def names_that_meet(lab: Lab) -> Found:
    """Two clusters, each with a living node n2, meet by a node that lists both."""
    left, right = lab.start("n1"), lab.start("n3")
    for node in (left, right):
        node.seconds_until_up()
    twins = []
    for node in (left, right):
        twins.append(lab.start("n2", join=[node.address]))
        twins[-1].seconds_until_up()  # one after the other: the later has the higher incarnation
    lab.start("n4", join=[left.address, right.address]).seconds_until_up()
    wait(lambda: any("n2: name_taken" in twin.said() for twin in twins), 20.0)
    time.sleep(3.0)
    told_so = sum("n2: name_taken" in twin.said() for twin in twins)
    return told_so == 1, f"{told_so} of the two were told"


def expired_certificate(lab: Lab) -> Found:
    """A node whose own certificate has expired."""
    from omen.net.security.key_files import authority_in, make_authority, make_node

    keys = lab.folder / "keys"
    make_authority(keys, "omen", 30)
    for name in ("n1", "n2"):
        make_node(keys, authority_in(keys), "omen", name, 30 if name == "n1" else 0)
    first = lab.start("n1", security=keys_in(keys, "n1"))
    first.seconds_until_up()
    late = lab.start("n2", join=[first.address], security=keys_in(keys, "n2"))
    took = late.seconds_until_ended()
    return took is not None and took < 5.0 and "expired" in late.said(), f"ended after {told(took)}"


def missing_certificate(lab: Lab) -> Found:
    """The cluster has certificates, and a newcomer none: does it hear that?"""
    from omen.net.security.key_files import make_cluster_keys

    keys = lab.folder / "keys"
    make_cluster_keys(keys, "omen", ["n1"], 30)
    first = lab.start("n1", security=keys_in(keys, "n1"))
    first.seconds_until_up()
    bare = lab.start("n2", join=[first.address])
    took = bare.seconds_until_ended()
    said = "certificate" in bare.said()
    return said and took is not None and took < 5.0, f"ended after {told(took)}, {'with' if said else 'without'} why"


def foreign_certificate(lab: Lab) -> Found:
    """A node whose certificate the others do not believe: it hears that, and not only that something is wrong."""
    from omen.net.security.key_files import make_cluster_keys

    ours, theirs = lab.folder / "ours", lab.folder / "theirs"
    make_cluster_keys(ours, "omen", ["n1"], 30)
    make_cluster_keys(theirs, "omen", ["n2"], 30)
    both = theirs / "both.pem"
    both.write_text((ours / "ca.pem").read_text() + (theirs / "ca.pem").read_text())
    first = lab.start("n1", security=keys_in(ours, "n1"))
    first.seconds_until_up()
    other = lab.start("n2", join=[first.address], security=keys_in(theirs, "n2") | {"authorities": [str(both)]})
    took = other.seconds_until_ended()
    said = "does not believe the authority" in other.said()
    return took is not None and took < 5.0 and said, f"ended after {told(took)}, {'with' if said else 'without'} why"


def keys_in(folder: Path, name: str) -> dict[str, Any]:
    """Of a node, as settings name them."""
    parts = {"certificate": str(folder / f"{name}.pem"), "key": str(folder / f"{name}.key")}
    return {"authorities": [str(folder / "ca.pem")], **parts}


def default_name(lab: Lab) -> Found:
    """Beyond loopback, with the default cluster name and no keys."""
    node = lab.start("n1", listen="0.0.0.0:0", advertise="127.0.0.1:7", security={"open": True})
    took = node.seconds_until_up(15.0)
    return took is None and node.process.poll() == 2, "starts" if took else "does not start"


def unreachable_address(lab: Lab) -> Found:
    """A node gives an address at which it cannot be reached."""
    first = lab.start("n1")
    first.seconds_until_up()
    node = lab.start("n2", join=[first.address], advertise="127.0.0.1:9")
    took = node.seconds_until_ended(15.0)
    return took is not None and "cannot be reached" in node.said(), "joins" if took is None else "is told"


def every_address(lab: Lab) -> Found:
    """A node gives 0.0.0.0 for its address."""
    node = lab.start("n1", advertise="0.0.0.0:7070")
    took = node.seconds_until_up(10.0)
    return took is None and node.process.poll() == 2, "starts" if took else f"exit code {node.process.poll()}"

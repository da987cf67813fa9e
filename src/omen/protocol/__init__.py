"""Overlays kept alive by the nodes themselves (omen 3 to 6): a node without clock, socket or randomness of its own.

`node.OmenNode` is the core. A driver tells it what happened (`events.Input`) and does what it asks for
(`events.Output`); the simulator and the network drive the same code. A node is made of parts, one package each:

    messages/        everything on the wire
    membership/      failure detector, gossip, peer sampling, ring, peer table, join and leave
    repair/          coordinator, repair, shadow members, loss reports, backups and views, links and their pruning
    dissemination/   Plumtree, anti-entropy, retransmission, windows
    audit/           split topics are found from any state
    spidercast/      the rival, a second core

`parts.build_parts` makes them in the order in which they rely on each other. Each is handed a `context.NodeContext` and
returns what it found out; the node decides which part hears of it. `status.NodeStatus` is all that the outside sees.
"""

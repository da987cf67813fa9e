"""How a node gathers what all nodes say of themselves, for the live page. Only while a page is open.

The node with the page (the viewer) floods a `Watch` over the connections that nodes keep anyway, to neighbours and on
the ring. Each node takes the peer that it came from first for the one nearer to the viewer, and tells that peer what
has changed of itself; what it hears from others for this viewer it passes on. So there is no central store and no new
connection, a node talks to its peers alone, and what is told takes as many hops as the viewer is away.

- `messages`: what is said, with its bounds. Nodes of an older revision are not sent it.
- `digests`: what a node says of itself, and what happened to it lately.
- `gathering`: told by others, telling others, passing on.
- `feed`: what the viewer has gathered, as the page gets it; the last minutes of it stay.
- `page`: the page itself and its stream of events.

Bounds: eight viewers at a node, 5,000 nodes at a viewer, 64 kB for what a node says of itself at once, a flood of at
most one frame per connection and second.
"""

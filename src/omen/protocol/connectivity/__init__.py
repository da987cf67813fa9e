"""Every node dispensable: 2-topic-connected overlays, kept by the nodes themselves.

A topic's overlay stays connected whichever node is lost if and only if for every node the neighbours it has in the
topic reach each other without it. So each node sees to it by itself, and needs no coordinator. This is not in the
papers: kTCO is a static design problem there.

- `surroundings.py`: what a search has seen, the pieces it consists of without the node that searches, and the links
  that would join them.
- `connectivity.py`: the search itself, when it is due, and what comes of it.
- `answers.py`: what a node that is asked says of its links.

A search asks the neighbours (`NearbyQuery`) which of their links carry the topics concerned, and goes on outwards from
the smaller pieces, up to HOPS links and ASKED_AT_MOST nodes, until all are joined or nothing is left to ask. What is
apart then is joined by the greedy rule, for several topics at once, low degrees first; both ends of a link are told
(`LinkProposal`) to keep it. Its topics are searched again.

Messages: `NearbyQuery`, `NearbyReply`, `NearbyChanged`; out `LinkProposal`. Timers: `SearchTimer`, `NearbyTimer`.

Invariants: one search at a time, and a pause between two. A node that was asked prunes no links for a while, and tells
its askers when it has lost one. A link is never proposed beyond `max_links`.

Promise: at rest no topic has a cut node, as far as `max_links` allows; what is cut is counted (`cut`). Only topics
whose surroundings changed are searched, and all of them again after `connectivity_recheck`: then answers that are as
before are a digest each.
"""

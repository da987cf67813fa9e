"""Publications over the links of the overlay, to all who want the topic and nobody else.

    plumtree          Leitao, Pereira, Rodrigues: Epidemic Broadcast Trees. The tree of each topic, and `Dissemination`,
                      the part that a node holds. Publication, Prune, Graft; SweepTimer
    anti_entropy      neighbours compare how far they are in each stream. Announce; AnnounceTimer
    retransmission    holes: requested from neighbours, told as a gap in the end. RetransmissionRequest;
                      RetransmissionTimer
    backpressure      how much a topic can still take, told upstream. Announce
    stream            what came of one publisher on one topic, what is missing, how far neighbours are
    window            the newest publications of each topic, the numbers of own ones, the bytes all of it may take

A stream is what one incarnation of a publisher publishes on one topic, numbered one after the other.
In: Publish, Replay, LinkSlow, LinkReady, and which links and topics there are. Out: Deliver, Gap, Held.

Invariants: an application is given a stream in order and once; no sequence between two it was given is passed over
without a Gap; windows stay within their bytes; what a node announces it keeps.
Promise: what is published reaches every subscriber, as long as its topic is connected again while windows keep it.
"""

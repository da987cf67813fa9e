"""Which nodes are there, and which of them a node knows (omen 3.3, 4.3).

    peer_table         descriptors of peers, tombstones of incarnations that have ended
    peer_sampling      Cyclon: a small random view of all nodes. Shuffle, ShuffleReply
    gossip             omen Alg. 3: digests, then what the other lacks. DigestOffer, Descriptors, DescriptorRequest,
                       Status; RoundTimer
    doubts             peers in views that may have ended, and that nothing but gossip would notice
    ring               L predecessors and L successors on the identifier ring, by T-Man's ranking
    ring_lookup        the successor of any place on the ring. Locate, Located; LookupTimer
    ring_merge         notices that another ring has come in, and greets its nodes
    join_leave         a node's own place: found, taken, given up. Leaving; JoinTimer
    failure_detector   SWIM with Lifeguard's suspicion. Heartbeat, Ping, IndirectPing, Pong; HeartbeatTimer, ProbeTimer
    lost_peers         peers declared failed that may be there after all. FailureNotice, Refutation;
                       RetryTimer
    refusals           proof that a peer's process has ended
    conduct            peers that break rules again and again, and are dropped for a while
    connections        to which peers connections are kept, and what they are told

Invariants: the ring holds no incarnation that has a tombstone; a declaration of failure is final for its incarnation,
unless the node itself refutes it before a link was given up; the tables are bounded whatever peers say.
Promise to the others: once nothing more happens, the L successors and predecessors of each node are the true ones.
"""

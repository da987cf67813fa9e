"""Split topics are found and joined from any state, whatever led to it. No paper has this.

    labels           each node's label of its piece in each topic. LabelDigest, LabelBuckets, LabelUpdate;
                     LabelSpreadTimer
    leader_reports   the leader of a piece tells the topic's rendezvous. PieceReport, PieceReportAck; LeaderReportTimer
    rendezvous       the node that hears of several pieces of a topic has them linked. PieceQuery, PieceReply,
                     LinkProposal; RendezvousTimer, PieceQueryTimer
    audit            the three together, once per audit period; AuditPeriodTimer

Invariant: two pieces of a topic have different labels, and a piece has one. Promise: once nothing more happens and the
ring is one ring, every topic is connected after a few audit periods.
"""

"""Links are made after every event so that each topic is connected again (omen 3.2, 4, 5; Algs. 1, 2, 4 to 6).

    links           both ends agree on a link. LinkOpen, LinkOk, LinkSeen, LinkClose; LinkTimer
    requests        a node that joins, leaves or changes its topics asks its successor. RepairRequest, Handled;
                    RequestTimer, DepartTimer
    loss_reports    former neighbours report a loss to the successor of the lost node. LossReport, LossReportAck;
                    LossReportTimer
    event_queue     exeQ and standbyL
    coordinator     Algs. 5 and 6: which events this node handles, in which order, which it stands by for; StandbyTimer
    repair          Alg. 1, step by step: RepairStage WAITING, GATHERING, ASKING, LINKING, CHECKING, FINISHING.
                    RingWalk, ShadowQuery, RelayedQuery, LinkedLossQuery
    timers          what a repair waits for: RepairTimer, UnreachedTimer, LinkedLossLookup
    proposals       ends of planned links hear of these as fast as they may act on them. LinkProposal
    led_walk        a ring walk that its origin leads, where one that was passed on did not come back
    shadow_set      the state of one repair, and the pieces that the greedy engine joins
    around          a plan around links that do not come about
    join_check      the links a repair counts on, asked for again before it ends
    shadow_member   a member of another node's shadow set. ShadowReply, LinkConfirmed, RingWalkReply
    backups         the four rules by which backup sets are chosen
    views           Algs. 2 and 4: the backup sets of the predecessors, and whether they are ready
    link_pruning    redundant links are taken down where another path is verified. PruneHint, PathProbe, PathReply,
                    PruneRequest, PruneReply, PruneDone; TrialTimer, FadingTimer
    path_probes     probes of other nodes that pass through this one: each passes once, and few for one neighbour

Invariants: a link counts only when both ends agreed on it; a node handles one repair at a time; what a repair was told
of is not taken down while it runs. Promise: up to L concurrent losses, once handled, leave every topic connected.
"""

"""SpiderCast: a second core, for comparison (Chockler, Melamed, Tock, Vitenberg, DEBS 2007).

Each node covers each of its topics K times by its neighbours: K_g times by a greedy choice of neighbours, K_r times by
a random one. Two tasks, the greedy and the random one, each with neighbours of its own, run the same code:

    node.py         the node: both tasks, heartbeats, the adaptive K_r (3.3.1), leave and change of interest (2.4)
    task.py         Figs. 2 to 4: the maintenance loop and its handlers; where they cannot be followed as printed
    neighbours.py   Figs. 1 and 3: neighbours, how often they cover each topic; Fig. 5 as a request to the membership
                    service (2.2), which the driver hands in
    messages.py     Fig. 4's messages, their wire form, and their validation
    config.py       settings, of SpiderCast and of the rivals of 3.9.1

Messages in and out: Connect, ConnectOk, Redirect, Disconnect, DisconnectOk, Leave, Heartbeat; each names its task.
Timers: MaintainTimer (one per task, the loop of Fig. 2), HeartbeatTimer (news for neighbours, and signs of life).
Invariants: a task accepts no neighbour at L^max + Margin; redirections and quarantine are bounded; a link that only one
end counts ends with the next heartbeat. Promise: none. Topics are connected with high probability.
"""

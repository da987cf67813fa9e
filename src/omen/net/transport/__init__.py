"""Connections to peers.

- `accepting`: sockets that listen, and what comes in: admitted by count, then encrypted.
- `dialler`: makes connections, with growing, jittered pauses after failures.
- `connection`: one TCP connection: a handshake, then frames. Two queues, one write per tick.
- `peer`: what is known of one peer; `peers`: all of them: wanted connections are kept, others close when idle.
- `send_queues`: what waits to be written on all connections, backpressure, slow consumers.
- `call_back`: whether a node that joins can be reached where it says.

Invariants: one connection per peer; reading never stops because another peer reads slowly (in a cyclic overlay that
would be a deadlock). A slow consumer has its queue of publications emptied; the core finds out later what it missed.
"""

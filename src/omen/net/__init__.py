"""Protocol nodes over TCP: the same cores that the simulator drives, with sockets, clocks and an application.

A way through the room, from the application down:

- `broker`: what an application embeds; `inbox`: what has arrived for it; `requests`: requests and replies; `errors`:
  what it is told. `former_names` keeps names of the last release working.
- `member`: what the broker is to other nodes: incarnations, names, leaving. `joining` finds members to join through.
- `driver`: runs one core. It tells the core what happened, and does what the core asks for. `core_spec` is all that a
  core is made from; `recording` writes down what a core was told, and replays it; `engine` is the
  greedy rule that it repairs by.
- `sending`: how messages go out: encoded once, to those who may have them, as they know them.
- `transport`: connections to peers: accept, dial, queue, flush, drop.
- `security`: who may connect, and what one peer may use up: certificates, secrets, admission control, access rules.
- `observe`: logs, counters, metrics and the HTTP pages; the client that asks for these pages.
- `settings`: what a settings file may say (`node.toml` explains each setting); `names`: names and addresses; `state`:
  what outlives a process.
- `running`: nodes as commands run them; `local`: clusters of local processes.

Imports point down this list: broker > member > driver > sending > transport > security > observe (logs and counters) >
settings > names.
Nothing above the driver touches a core; everything else sees `NodeStatus`.
"""

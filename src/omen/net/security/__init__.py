"""Who may connect to a node, and what one peer may use up.

- `config`: what a settings file says: certificates, secrets, refused names, access rules.
- `credentials`: the keys in force now, read again when their files change. `key_files` makes such files.
- `hello`: the first thing each end of a connection says; `handshake`: how each makes sure of the other.
- `admission`: admission control. It counts connections, refuses, bans, limits rates, and outlasts incarnations.
  `rate_limits`: the buckets, bans and counts it is made of.
- `access`: which node may publish and subscribe, topic by topic.

Invariant: no frame is interpreted before the handshake has ended, and a refusal is counted once, by its `Reason`.
"""

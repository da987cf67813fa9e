"""Versioned records on the L successors of a place on the ring, for what must outlive the node that wrote it.

Consistent hashing with successor lists as in Chord and DHash (Dabek et al., SOSP 2001); versions are chosen by the
writer, the higher one counts. None of the papers has this.

- `store.py`: the records of one node, bounded in bytes in all and per writer. Outlasts incarnations.
- `storage.py`: writing, reading and moving them.

A writer keeps its record itself and sends it to the first L other nodes after its place, which it knows from the ring
or looks up; `Stored` says how many of them have it. A node that does not answer is passed over for the next. A reader
asks the first L + 1 nodes after the place, and takes the highest version of each key. When the ring changes, and once
in a while, every holder offers what is new to those that should hold it too (anti-entropy), and gives up what is no
longer its own. A removed record stays as an empty one until its life ends.

In: Store, Fetch, LoadRecords. Out: Stored, Fetched, RecordKept, RecordDropped (for a disk). Messages: `RecordPut`,
`RecordAck`, `RecordQuery`, `RecordReply`, `RecordOffer`, `RecordWant`. Timers: `WriteTimer`, `ReadTimer`, `SyncTimer`.

Invariants: a node never replaces a record by a lower version. A message causes one answer at most, to its sender.

Promise: what was `Stored` with L copies is found as long as one of L + 1 nodes, the writer among them, lives, and
within its life. Two writers of one key on both sides of a cut both succeed; when it heals the higher version counts.
"""

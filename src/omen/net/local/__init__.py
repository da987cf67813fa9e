"""Clusters of local processes.

- `cluster`: brought up, killed, brought back and taken down, found again by a folder (`omen cluster`).
- `totals`: what its nodes say of themselves, added up (`omen status`).
- `forking`: nodes as children of one process that has everything loaded.
- `trial`: a cluster put to the test: publish, kill, repair, count (`omen demo`).
"""

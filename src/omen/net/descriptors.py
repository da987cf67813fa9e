"""File descriptors: as many as the settings may need, and none of them for a peer alone to use up."""

from __future__ import annotations

import resource

RESERVED = 96  # the log, pages, listening sockets, files that are read again, what the interpreter opens


def make_room(wanted: int) -> int:
    """Have this process open as many files as wanted, where it may; how many connections there can be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if raised > soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
        except (ValueError, OSError):
            pass
    return max(1, soft - RESERVED)

"""Whether this node may go by its name: of two living nodes of one name, one gives way and its application is told."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from omen.net.errors import NameTaken
from omen.net.observe.logs import Log
from omen.net.security.hello import Hello, Reason, Refused, gives_way

CONFLICT_S = 120.0  # a claimant that has not tried for so long, and tries again, is another conflict
CLAIMANTS = 256
PATIENCE_S = 5.0  # a node that crashed a moment ago passes for alive so long at most: its next incarnation waits


class NameGuard:
    """`conflicts`: how many others went by this node's name. `error`: why this node has to give way.

    One that is refused tries again, and each neighbour it asks tells of it: that is one conflict for as long as it goes
    on.

    `unreachable`: what a member said of the address this node gives. `holder`: where the node listens that this one
    gave way to, if it was met.
    """

    def __init__(self, name: str, log: Log, news: Callable[[], None]) -> None:
        self.conflicts = 0
        self.error: NameTaken | None = None
        self.unreachable = ""
        self.holder = ""
        self._name = name
        self._log = log
        self._news = news
        self._refused_since: float | None = None
        self._claimed: OrderedDict[str, float] = OrderedDict()

    def begin(self) -> None:
        """Another incarnation tries."""
        self.error, self.unreachable, self._refused_since = None, "", None

    def meet(self, own: Hello, other: Hello) -> None:
        """Another process of this node's name was met."""
        if gives_way(own, other):
            self.holder = other.address
            where = f"a node at {other.address}, in incarnation {other.incarnation}"
            self._give_way(f"the name {self._name!r} is taken by {where}")
        else:
            self.note_conflict(other.address, other.incarnation)

    def note_conflict(self, address: str, incarnation: int) -> None:
        """Another process goes by this node's name, and gives way. It is known by where it listens."""
        now = asyncio.get_running_loop().time()
        last = self._claimed.pop(address, None)
        self._claimed[address] = now
        if len(self._claimed) > CLAIMANTS:
            self._claimed.popitem(last=False)
        if last is not None and now - last < CONFLICT_S:
            return
        self.conflicts += 1
        self._log.warning("name_conflict", address=address, incarnation=incarnation, count=self.conflicts)

    def on_refused(self, refusal: Refused, is_member: bool) -> None:
        """A peer has refused this node. A newcomer waits: the one it takes for alive may have crashed just now."""
        if refusal.said is Reason.UNREACHABLE:
            self.unreachable = str(refusal)
        elif refusal.said is Reason.NAME_TAKEN:
            now = asyncio.get_running_loop().time()
            if self._refused_since is None:
                self._refused_since = now
            if is_member or now - self._refused_since >= PATIENCE_S:
                self._give_way(str(refusal))

    def _give_way(self, why: str) -> None:
        if self.error is None:
            self.error = NameTaken(why)
            self._log.warning("name_taken", cause=why)
        self._news()

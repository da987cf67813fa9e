"""What a core is told (past tense) and what it asks for (imperative). Both drivers speak exactly these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import msgspec

from omen.protocol.messages.base import EventId, Ref
from omen.protocol.messages.records import Record

Time = int  # microseconds
NodeId = int  # a node's place on the identifier ring
Topic = int  # a topic's key

PLENTY = 1 << 40  # bytes: more than any queue holds
MILLISECOND = 1_000
SECOND = 1_000_000

Item = TypeVar("Item")


class Timer(msgspec.Struct, frozen=True, gc=False):
    """Base of all timers. Each part defines its own kinds; two equal ones are the same timer."""


class Received(msgspec.Struct, frozen=True, gc=False):
    """A message came in. `sender`: the peer that the driver has authenticated. One per message: a struct is made
    fastest.
    """

    sender: NodeId
    message: Any


class TimerFired(msgspec.Struct, frozen=True, gc=False):
    timer: Timer


class PeerLost(msgspec.Struct, frozen=True):
    """The connection to a peer is lost. `incarnation` None: whichever was known."""

    peer: NodeId
    incarnation: int | None = None


class PeerRefused(msgspec.Struct, frozen=True):
    """An attempt to reach a peer again, whose connection was up and has broken, was refused where it listens itself.

    `later`: not refused, but answered by this later incarnation.
    """

    peer: NodeId
    later: int | None = None


class PeerUnreached(msgspec.Struct, frozen=True):
    """A message to a peer without a connection is dropped: nobody listens at this address, said to be its own."""

    peer: NodeId
    address: str = ""


class Offence(StrEnum):
    """A rule that a peer has broken, which no honest node does. In status, logs and metrics by these names."""

    MALFORMED = "malformed"
    FALSE_SENDER = "false_sender"
    IMPOSSIBLE = "impossible"
    FORGED = "forged"
    OVER_BUDGET = "over_budget"


class PeerOffended(msgspec.Struct, frozen=True):
    """The driver has seen itself how a peer broke a rule."""

    peer: NodeId
    offence: Offence


class ContactsFound(msgspec.Struct, frozen=True):
    """The driver has found these nodes of the cluster alive, as its seeds. They may belong to another ring."""

    peers: tuple[Ref, ...]


class NameFree(msgspec.Struct, frozen=True):
    """No living process has the later incarnation of this node that was seen: it was one that has ended."""

    incarnation: int


class Subscribe(msgspec.Struct, frozen=True):
    """Change the node's own topics: what is added and what is dropped."""

    added: tuple[Topic, ...] = ()
    dropped: tuple[Topic, ...] = ()


class Depart(msgspec.Struct, frozen=True):
    """Leave in good order. `is_brief`: at once, where no topic is connected through this node.

    For nodes that come to say something and go: the gap is repaired after they left, and no publication needs them.
    """

    is_brief: bool = False


class Publish(msgspec.Struct, frozen=True):
    """Publish to all subscribers of the topic; it joins the node's interest. InvalidInput: it is too large."""

    topic: Topic
    payload: bytes
    fields: bytes = b""


class Replay(msgspec.Struct, frozen=True):
    """Deliver what the neighbours still keep of a topic too, not only what comes next. Say it before `Subscribe`."""

    topic: Topic


class Store(msgspec.Struct, frozen=True):
    """Store records of one place, at the first L nodes after it; `Stored` answers."""

    token: int
    records: tuple[Record, ...]


class Fetch(msgspec.Struct, frozen=True):
    """Read the records of a place; `Fetched` answers."""

    token: int
    place: int


class LoadRecords(msgspec.Struct, frozen=True):
    """Records that a disk had kept for this node."""

    records: tuple[Record, ...]


class LinkSlow(msgspec.Struct, frozen=True):
    """The driver has no more room for publications to this peer: give it none until `LinkReady`."""

    peer: NodeId


class LinkBroken(msgspec.Struct, frozen=True):
    """The connection to a peer is down. It is being made again: then `LinkReady` follows, else the peer is lost."""

    peer: NodeId


class LinkReady(msgspec.Struct, frozen=True):
    """There is room again, or the connection to a neighbour is back: what the peer has missed is found out and sent."""

    peer: NodeId


class LinkRoom(msgspec.Struct, frozen=True):
    """So many bytes may still be queued for this peer; said whenever that changes by much."""

    peer: NodeId
    room: int


Command = Subscribe | Depart | Publish | Replay | Store | Fetch | LoadRecords
PeerInput = PeerLost | PeerRefused | PeerUnreached | PeerOffended
RarerInput = PeerInput | ContactsFound | NameFree | LinkBroken | LinkSlow | LinkReady | LinkRoom | Command
Input = Received | TimerFired | RarerInput


class Send(msgspec.Struct, frozen=True, gc=False):
    to: NodeId
    address: str
    message: Any


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    """Fire `timer` after `delay`; setting an equal one again replaces it."""

    timer: Timer
    delay: Time


class Connect(msgspec.Struct, frozen=True):
    """Keep a connection to this peer, and say so when it is lost."""

    peer: NodeId
    address: str


class Disconnect(msgspec.Struct, frozen=True):
    peer: NodeId


class RepairStage(StrEnum):
    """How far a repair is (omen Alg. 1): in this order, from ASKING on again where members are lost or not joined."""

    WAITING = "waiting"
    GATHERING = "gathering"
    ASKING = "asking"
    LINKING = "linking"
    CHECKING = "checking"
    FINISHING = "finishing"


class RepairStageEntered(msgspec.Struct, frozen=True, gc=False):
    """This node coordinates a repair, and it has come to this stage. `members`: the shadow set so far."""

    event: EventId
    stage: RepairStage
    members: tuple[NodeId, ...]


class RepairFinished(msgspec.Struct, frozen=True, gc=False):
    """This node has coordinated a repair. `events`: all it covers, `event` among them; `members`: how many it asked.

    `heard`: the former neighbours that were heard, and so are joined.
    """

    event: EventId
    links: tuple[tuple[NodeId, NodeId], ...]
    members: int
    events: tuple[EventId, ...]
    heard: tuple[NodeId, ...] = ()


class RepairOutcome(StrEnum):
    """How a repair ended at this node that it did not finish."""

    LEFT_TO_ANOTHER = "left_to_another"
    PUT_OFF = "put_off"
    ABANDONED = "abandoned"


class RepairStopped(msgspec.Struct, frozen=True, gc=False):
    """This node coordinates a repair no longer: another does, it has to wait, or the node that asked is silent."""

    event: EventId
    outcome: RepairOutcome


class RequestHandled(msgspec.Struct, frozen=True, gc=False):
    """What this node asked its successor for (to join, to leave, other topics) is done."""

    event: EventId


class PeerSuspected(msgspec.Struct, frozen=True, gc=False):
    """A peer has not answered: unless something is heard of it, it is declared failed in a while."""

    peer: Ref
    refused: bool = False


class SuspicionRefuted(msgspec.Struct, frozen=True, gc=False):
    """A peer that was suspected for so long has been heard of."""

    peer: Ref
    suspected_for: Time


class StoodStill(msgspec.Struct, frozen=True, gc=False):
    """This node itself stood still for so long: that it heard nothing meanwhile is held against no peer."""

    period: Time


class PeerDeclaredFailed(msgspec.Struct, frozen=True, gc=False):
    """A peer is declared failed, `by` this node or by the one that says so. `refused`: its process has ended."""

    peer: Ref
    by: NodeId
    refused: bool = False


class PeerLeft(msgspec.Struct, frozen=True, gc=False):
    """A peer says that this incarnation of it ends; `repaired`: and that nothing is left to repair."""

    peer: Ref
    repaired: bool


class PeerBanned(msgspec.Struct, frozen=True, gc=False):
    """A peer has broken rules too often, this last: for so long it counts as lost and is not listened to."""

    peer: NodeId
    offence: Offence
    lasts: Time


class Rejoined(msgspec.Struct, frozen=True, gc=False):
    """Others had declared this node failed: it goes on under a higher incarnation, and has joined again."""

    incarnation: int


class NameConflict(msgspec.Struct, frozen=True, gc=False):
    """Another process goes by this node's name: it was refused, for this node is alive."""

    claimant: Ref


class OwnNameSeen(msgspec.Struct, frozen=True, gc=False):
    """Others know a later incarnation of this node, at another address: one that has ended, or another process.

    The driver finds out which. It answers `NameFree`, or has this node give way.
    """

    ref: Ref


class SplitTopicsLinked(msgspec.Struct, frozen=True, gc=False):
    """The audit has seen that these topics are split, and has had their pieces linked."""

    links: tuple[tuple[NodeId, NodeId], ...]
    topics: tuple[Topic, ...]


class LinkUp(msgspec.Struct, frozen=True, gc=False):
    """A link is up: both ends have agreed on it."""

    peer: NodeId


class LinkPruned(msgspec.Struct, frozen=True, gc=False):
    """A redundant link was taken down."""

    peer: NodeId


class WindowCut(msgspec.Struct, frozen=True, gc=False):
    """Bytes have cut the window of a topic below the time a repair takes: it covers `span` with `size` bytes."""

    topic: Topic
    span: Time
    size: int


class Left(msgspec.Struct, frozen=True, gc=False):
    """This node has left in good order; its core does nothing any more."""


Notification = (
    RepairStageEntered
    | RepairFinished
    | RepairStopped
    | RequestHandled
    | PeerSuspected
    | SuspicionRefuted
    | StoodStill
    | PeerDeclaredFailed
    | PeerLeft
    | PeerBanned
    | Rejoined
    | NameConflict
    | OwnNameSeen
    | SplitTopicsLinked
    | LinkUp
    | LinkPruned
    | WindowCut
    | Left
)


class Notify(msgspec.Struct, frozen=True, gc=False):
    """Something that the world around the node may want to know."""

    notification: Notification


class Multicast(msgspec.Struct, frozen=True, gc=False):
    """The same message to several peers this node keeps connections to: encode it once. `to` is never empty."""

    to: tuple[NodeId, ...]
    message: Any


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """A publication, to the application: in order and once for each (topic, publisher, incarnation)."""

    topic: Topic
    publisher: NodeId
    incarnation: int
    sequence: int
    payload: bytes
    fields: bytes = b""


class Gap(msgspec.Struct, frozen=True, gc=False):
    """To the application: these sequences, both ends included, can no longer be had; what follows comes next."""

    topic: Topic
    publisher: NodeId
    incarnation: int
    first: int
    last: int


class Held(msgspec.Struct, frozen=True, gc=False):
    """To the publishing application: every neighbour on the topic's tree, at least one, has all up to `sequence`.

    `passed`: of what was not held before, some up to there never came to some neighbour, and can no longer be had.
    """

    topic: Topic
    sequence: int
    passed: int = 0


class Stored(msgspec.Struct, frozen=True, gc=False):
    """So many other nodes have what was to be stored; more are not waited for."""

    token: int
    copies: int


class Fetched(msgspec.Struct, frozen=True, gc=False):
    """The latest records of a place, removed ones apart. `is_sure`: another node has answered, or there is none."""

    token: int
    records: tuple[Record, ...]
    is_sure: bool


class RecordKept(msgspec.Struct, frozen=True, gc=False):
    """This node keeps a record now, for a disk. It comes before the answer that says so."""

    record: Record


class RecordDropped(msgspec.Struct, frozen=True, gc=False):
    """This node keeps a record no longer."""

    place: int
    key: bytes


OfRecords = Stored | Fetched | RecordKept | RecordDropped
Output = Send | SetTimer | Connect | Disconnect | Notify | Multicast | Deliver | Gap | Held | OfRecords


class Core(Protocol):
    """A node without I/O."""

    def start(self, now: Time) -> Sequence[Output]: ...

    def handle(self, event: Input, now: Time) -> Sequence[Output]: ...


class Randomness(Protocol):
    """What a core draws from: the driver hands in one generator a node, derived from (seed, node)."""

    def randrange(self, stop: int, /) -> int: ...

    def sample(self, population: Sequence[Item], k: int, /) -> list[Item]: ...

    def shuffle(self, x: list[Any], /) -> None: ...

    def random(self) -> float: ...


Handlers = dict[type, Callable[[NodeId, Any], object]]
TimerHandlers = dict[type[Timer], Callable[[Any], object]]
"""What a part handles: by the type of the message or timer."""

Engine = Callable[
    [Sequence[Sequence[int]], Sequence[Sequence[int]], Sequence[int], float, int],
    list[tuple[int, int]],
]
"""The greedy engine as a node sees it: (topics of each node, its component label in each, degrees, rho, centre or -1)
-> new links as pairs of positions. Handed in by the driver: a node loads compiled code only when it first repairs."""

"""OMen: topic-connected overlays for publish/subscribe.

    >>> import omen
    >>> interests = omen.Interests.from_pairs([("ann", "tea"), ("bob", "tea"), ("bob", "jazz"), ("cid", "jazz")])
    >>> overlay = omen.design_overlay(interests, "low-oda", rho=3)
    >>> overlay.links()
    [('ann', 'bob'), ('bob', 'cid')]
    >>> omen.check_overlay(interests, overlay, k=1).holds
    True

Names are loaded when first asked for, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omen.churn import Crash, Join, Leave, Resubscribe, Trace
    from omen.errors import CannotWrite, Denied, InvalidInput, InvalidTable, MissingDependency, OmenError
    from omen.interests import Interests
    from omen.maintain import start_maintainer
    from omen.net.broker import Broker
    from omen.net.inbox import Gap, Message
    from omen.net.security.config import Rule, Security
    from omen.net.settings import NodeConfig
    from omen.overlay import Overlay
    from omen.quality import Check, check_overlay
    from omen.systems import ALGORITHMS, SYSTEMS, design_overlay
    from omen.systems.replay import replay
    from omen.tables import read_churn, read_overlay, read_workload, write_churn, write_overlay, write_workload

    __version__: str

_HOMES = {
    "ALGORITHMS": "omen.systems",
    "Broker": "omen.net.broker",
    "CannotWrite": "omen.errors",
    "Check": "omen.quality",
    "Crash": "omen.churn",
    "Denied": "omen.errors",
    "Gap": "omen.net.inbox",
    "Interests": "omen.interests",
    "InvalidInput": "omen.errors",
    "InvalidTable": "omen.errors",
    "Join": "omen.churn",
    "Leave": "omen.churn",
    "Message": "omen.net.inbox",
    "MissingDependency": "omen.errors",
    "NodeConfig": "omen.net.settings",
    "OmenError": "omen.errors",
    "Overlay": "omen.overlay",
    "Resubscribe": "omen.churn",
    "Rule": "omen.net.security.config",
    "SYSTEMS": "omen.systems",
    "Security": "omen.net.security.config",
    "Trace": "omen.churn",
    "check_overlay": "omen.quality",
    "design_overlay": "omen.systems",
    "read_churn": "omen.tables",
    "read_overlay": "omen.tables",
    "read_workload": "omen.tables",
    "replay": "omen.systems.replay",
    "start_maintainer": "omen.maintain",
    "write_churn": "omen.tables",
    "write_overlay": "omen.tables",
    "write_workload": "omen.tables",
}

__all__ = [
    "ALGORITHMS",
    "SYSTEMS",
    "Broker",
    "CannotWrite",
    "Check",
    "Crash",
    "Denied",
    "Gap",
    "Interests",
    "InvalidInput",
    "InvalidTable",
    "Join",
    "Leave",
    "Message",
    "MissingDependency",
    "NodeConfig",
    "OmenError",
    "Overlay",
    "Resubscribe",
    "Rule",
    "Security",
    "Trace",
    "__version__",
    "check_overlay",
    "design_overlay",
    "read_churn",
    "read_overlay",
    "read_workload",
    "replay",
    "start_maintainer",
    "write_churn",
    "write_overlay",
    "write_workload",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("omen-overlay")
    if name not in _HOMES:
        raise AttributeError(f"module 'omen' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

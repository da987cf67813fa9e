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
    from omen.errors import CannotWrite, InvalidInput, InvalidTable, MissingDependency, OmenError
    from omen.interests import Interests
    from omen.overlay import Overlay
    from omen.quality import Check, check_overlay
    from omen.runs import ALGORITHMS, design_overlay
    from omen.tables import read_overlay, read_workload, write_overlay, write_workload

    __version__: str

_HOMES = {
    "ALGORITHMS": "omen.runs",
    "CannotWrite": "omen.errors",
    "Check": "omen.quality",
    "Interests": "omen.interests",
    "InvalidInput": "omen.errors",
    "InvalidTable": "omen.errors",
    "MissingDependency": "omen.errors",
    "OmenError": "omen.errors",
    "Overlay": "omen.overlay",
    "check_overlay": "omen.quality",
    "design_overlay": "omen.runs",
    "read_overlay": "omen.tables",
    "read_workload": "omen.tables",
    "write_overlay": "omen.tables",
    "write_workload": "omen.tables",
}

__all__ = [
    "ALGORITHMS",
    "CannotWrite",
    "Check",
    "Interests",
    "InvalidInput",
    "InvalidTable",
    "MissingDependency",
    "OmenError",
    "Overlay",
    "__version__",
    "check_overlay",
    "design_overlay",
    "read_overlay",
    "read_workload",
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

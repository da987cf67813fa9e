"""Workloads and churn made here (synthetic), or workloads brought in (subscription tables)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omen.workloads.churning import Distribution, lifetimes, origin, random_rounds
    from omen.workloads.importing import Imported, import_subscriptions, require_few_rejected
    from omen.workloads.specs import Popularity, Sizes
    from omen.workloads.synthetic import generate_interests, generate_named_interests, generate_rows

__all__ = [
    "Distribution",
    "Imported",
    "Popularity",
    "Sizes",
    "generate_interests",
    "generate_named_interests",
    "generate_rows",
    "import_subscriptions",
    "lifetimes",
    "origin",
    "random_rounds",
    "require_few_rejected",
]


_MODULES = {
    "churning": ("Distribution", "lifetimes", "origin", "random_rounds"),
    "importing": ("Imported", "import_subscriptions", "require_few_rejected"),
    "specs": ("Popularity", "Sizes"),
    "synthetic": ("generate_interests", "generate_named_interests", "generate_rows"),
}


def __getattr__(name: str) -> Any:
    """Drawing loads kernels, reading tables loads Arrow. A command that needs one of them does not wait for the other,
    and live nodes are forked from a process without Arrow.
    """
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"omen.workloads.{module}"), name)
    raise AttributeError(f"module 'omen.workloads' has no attribute {name!r}")

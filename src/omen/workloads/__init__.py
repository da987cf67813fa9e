"""Workloads and churn made here (synthetic), or workloads brought in (subscription tables)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omen.workloads.churning import Distribution, lifetimes, origin, random_rounds
from omen.workloads.specs import Popularity, Sizes
from omen.workloads.synthetic import generate_interests, generate_named_interests, generate_rows

if TYPE_CHECKING:
    from omen.workloads.importing import Imported, import_subscriptions, require_few_rejected

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


def __getattr__(name: str) -> Any:
    """Reading tables loads Arrow. A process that only draws workloads does without: live nodes are forked from one."""
    if name not in ("Imported", "import_subscriptions", "require_few_rejected"):
        raise AttributeError(f"module 'omen.workloads' has no attribute {name!r}")
    from omen.workloads import importing

    return getattr(importing, name)

"""Workloads and churn made here (synthetic), or workloads brought in (subscription tables)."""

from __future__ import annotations

from omen.workloads.churning import Distribution, lifetimes, random_rounds
from omen.workloads.importing import Imported, import_subscriptions
from omen.workloads.specs import Popularity, Sizes
from omen.workloads.synthetic import generate_interests, generate_rows

__all__ = [
    "Distribution",
    "Imported",
    "Popularity",
    "Sizes",
    "generate_interests",
    "generate_rows",
    "import_subscriptions",
    "lifetimes",
    "random_rounds",
]

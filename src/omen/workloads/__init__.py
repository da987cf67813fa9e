"""Workloads made here (synthetic) or brought in (subscription tables)."""

from __future__ import annotations

from omen.workloads.specs import Popularity, Sizes
from omen.workloads.synthetic import generate_interests, generate_rows

__all__ = ["Popularity", "Sizes", "generate_interests", "generate_rows"]

"""The greedy engine as simulated nodes call it: plain lists in, pairs out; loads compiled code when first called."""

from __future__ import annotations

from omen.kernels.engine import choose_pairs as choose_links

__all__ = ["choose_links"]

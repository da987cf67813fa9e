"""Who backs up whom in the claims on fairness (omen Figs. 3-6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from omen.mend import start_maintainer

from .shadows import EXPO, NODES, UNIF, ZIPF, workload

POPULARITIES = {"Unif": UNIF, "Zipf": ZIPF, "Expo": EXPO}


@dataclass(frozen=True)
class BackupSets:
    """Who has whom as a backup, before any churn: lambda 3, over a global view."""

    primary: np.ndarray
    backup: np.ndarray

    @property
    def in_degrees(self) -> np.ndarray:
        return np.bincount(self.backup, minlength=NODES)

    @property
    def out_degrees(self) -> np.ndarray:
        return np.bincount(self.primary, minlength=NODES)

    @property
    def share_served_by_few(self) -> float:
        """The share of all nodes that have one of in-degree over 100 among their backups."""
        return float(np.unique(self.primary[(self.in_degrees > 100)[self.backup]]).size / NODES)

    @property
    def share_of_busiest(self) -> float:
        """The share of all backups in all sets that the busiest 1% of the nodes are."""
        busiest = np.argsort(-self.in_degrees, kind="stable")[: NODES // 100]
        return float(np.isin(self.backup, busiest).mean())


@cache
def backup_sets(seed: int, popularity: str, rule: str) -> BackupSets:
    snapshot = start_maintainer("shadow", workload(seed, popularity), lambda_=3, backups=rule).snapshot()
    return BackupSets(snapshot.primary, snapshot.backup)

"""Overlays for fleets with rules: weak nodes, pairs that cannot be linked, links that are dear or there already.

designing.py     the greedy designs under rules: caps, bans, required and kept links, costs
certificates.py  where rules leave a topic split: which ones are to blame, as a statement that anybody can check
bypassing.py     Low-ODA-2 under rules: no single loss cuts a topic, as far as they allow
rerouting.py     where caps stop the greedy design short: links taken away, their topics led another way
relaxing.py      what would be enough
repairing.py     what a loss has split, linked again within the rules
planning.py      from one overlay to another, link by link
bridges.py       an overlay as bridges between Mosquitto brokers
redesigning.py   a better overlay by few changes
comparing.py     designs side by side; drawing.py: one as a picture
"""

from __future__ import annotations

from omen.fleet.certificates import Certificate, find_certificates
from omen.fleet.designing import (
    RULED,
    FleetDesign,
    Violations,
    describe_violations,
    design_fleet,
    find_violations,
)
from omen.fleet.relaxing import Relaxation, find_relaxation
from omen.fleet.repairing import Within
from omen.fleet.rerouting import design_within

__all__ = [
    "RULED",
    "Certificate",
    "FleetDesign",
    "Relaxation",
    "Violations",
    "Within",
    "describe_violations",
    "design_fleet",
    "design_within",
    "find_certificates",
    "find_relaxation",
    "find_violations",
]

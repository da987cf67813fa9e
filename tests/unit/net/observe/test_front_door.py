"""Everything that a front door counts is on its node's page."""

from __future__ import annotations

import re

import msgspec

from omen.net.observe.front_door import FrontDoorFacts, write_front_door
from omen.net.observe.metrics import Page


def test_every_fact_has_a_metric_of_its_own() -> None:
    names = [field.name for field in msgspec.structs.fields(FrontDoorFacts)]
    page = Page()
    write_front_door(page, FrontDoorFacts(*range(100, 100 + len(names))))
    values = re.findall(r"^omen_mqtt_\w+ (\d+)$", page.text(), re.MULTILINE)
    assert sorted(map(int, values)) == list(range(100, 100 + len(names)))

"""The public names of the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

import omen


def test_every_public_name_can_be_had() -> None:
    for name in omen.__all__:
        assert getattr(omen, name) is not None
        assert name in dir(omen)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'overlays'"):
        _ = omen.overlays


def test_the_documented_example_works() -> None:
    interests = omen.Interests.from_pairs([("ann", "tea"), ("bob", "tea"), ("bob", "jazz"), ("cid", "jazz")])
    overlay = omen.design_overlay(interests, "low-oda", rho=3)
    assert overlay.links() == [("ann", "bob"), ("bob", "cid")]
    assert omen.check_overlay(interests, overlay, k=1).holds
    assert not omen.check_overlay(interests, omen.Overlay.from_links(["ann", "bob", "cid"], [("ann", "bob")])).holds


def test_overlays_and_interests_go_through_networkx_and_pandas_unchanged() -> None:
    interests = omen.Interests.from_pairs([(1, "tea"), (2, "tea"), (2, "jazz"), (3, "jazz")])
    overlay = omen.design_overlay(interests, "gm")
    assert omen.Interests.from_pandas(interests.to_pandas()) == interests
    assert omen.Overlay.from_pandas(overlay.to_pandas(), interests.nodes) == overlay
    assert omen.Overlay.from_networkx(overlay.to_networkx()) == overlay
    assert interests.to_networkx().number_of_edges() == interests.subscription_count


def test_bad_values_are_refused_with_what_would_be_right() -> None:
    interests = omen.Interests.from_pairs([(1, "tea"), (2, "tea")])
    with pytest.raises(omen.InvalidInput, match="low-oda"):
        omen.design_overlay(interests, "lowoda")
    with pytest.raises(omen.InvalidInput, match="rho"):
        omen.design_overlay(interests, "low-oda", rho=0.5)
    with pytest.raises(omen.InvalidInput, match="k must be"):
        omen.check_overlay(interests, omen.design_overlay(interests), k=0)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, omen, omen.cli.main; print(sorted(set(sys.modules) & {'numpy', 'numba', 'pyarrow', 'pandas'}))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"

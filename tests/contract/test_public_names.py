"""What users may rely on is documented, and the API reference shows all of it."""

from __future__ import annotations

import pytest

import omen

pytest.importorskip("griffe")
pytest.importorskip("mkdocstrings")

import griffe
from tools.public_names import on_pages, public_names, undocumented, unlisted

NAMES = public_names()


def test_the_names_are_those_of_the_package() -> None:
    assert {f"omen.{name}" for name in omen.__all__ if not name.startswith("__")} <= set(NAMES)
    assert {"omen.Interests.from_pairs", "omen.Interests.node_count", "omen.Broker.publish"} <= set(NAMES)


def test_every_public_name_has_a_docstring() -> None:
    assert undocumented(NAMES) == []


def test_every_public_name_stands_in_the_api_reference() -> None:
    assert unlisted(NAMES, on_pages(NAMES)) == []


def test_a_name_without_docstring_or_page_is_found() -> None:
    bare = griffe.Function("bare")
    assert undocumented({**NAMES, "omen.bare": bare}) == ["omen.bare"]
    assert unlisted({**NAMES, "omen.bare": bare}, on_pages(NAMES)) == ["omen.bare"]

"""Examples in docstrings, shown as code."""

from __future__ import annotations

import pytest

pytest.importorskip("griffe")

from tools.doctest_blocks import fence_sessions


def test_a_session_is_fenced_up_to_the_next_blank_line() -> None:
    text = "What it does.\n\n>>> one = 1\n>>> one\n1\n\nAnd so on."
    assert fence_sessions(text) == "What it does.\n\n```pycon\n>>> one = 1\n>>> one\n1\n```\n\nAnd so on."


def test_an_indented_session_is_put_at_the_margin() -> None:
    assert fence_sessions("    >>> one\n    1\n") == "```pycon\n>>> one\n1\n```\n"


def test_other_text_stays_as_it_is() -> None:
    assert fence_sessions("a >>> b\n\n    code\n") == "a >>> b\n\n    code\n"

"""Pages as they stand in files."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode

from omen.web import SCRIPTS, live_page, policy_of, read_part


def test_the_live_page_is_one_file_that_loads_nothing() -> None:
    page = live_page()
    assert "@@" not in page
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", page)
    assert not re.search(r"\son\w+=|\sstyle=|javascript:|innerHTML|eval\(", page), "the policy allows none of these"
    assert "https:" not in page
    for name in SCRIPTS:
        assert read_part(f"live/{name}") in page


def test_its_policy_names_its_own_script_and_style_alone() -> None:
    page = live_page()
    policy = dict(part.strip().split(" ", 1) for part in policy_of(page).split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    for kind, tag in (("script-src", "script"), ("style-src", "style")):
        text = page.split(f"<{tag}>", 1)[1].split(f"</{tag}>", 1)[0]
        assert policy[kind] == f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_both_pages_have_one_style() -> None:
    assert read_part("base.css") in live_page()

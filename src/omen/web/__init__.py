"""Pages, scripts and styles as they stand in files, for those who serve or write them. Imports no other room.

- `base.css`: colours, type and controls of all pages; the report's page has it too.
- `live/`: the live page. Its parts become one file that loads nothing else.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent
SCRIPTS = ("model.js", "layout.js", "graph.js", "panels.js", "main.js")


def read_part(name: str) -> str:
    """One file of a page."""
    return (ROOT / name).read_text(encoding="utf-8").rstrip()


@cache
def live_page() -> str:
    """The live page, everything in it."""
    script = "\n".join(read_part(f"live/{name}") for name in SCRIPTS)
    filled = {
        "style": f"\n{read_part('base.css')}\n{read_part('live/page.css')}\n",
        "script": f'\n"use strict";\n(() => {{\n{script}\n}})();\n',
    }
    return re.sub(r"@@(\w+)@@", lambda match: filled[match[1]], read_part("live/page.html"))


def _hash_of(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def policy_of(page: str) -> str:
    """The content security policy of a page: its own script, style and events, and nothing else from anywhere."""
    scripts = " ".join(_hash_of(text) for text in re.findall(r"<script>(.*?)</script>", page, re.DOTALL))
    styles = " ".join(_hash_of(text) for text in re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; connect-src 'self'; img-src data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )

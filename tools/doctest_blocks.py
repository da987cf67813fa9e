"""Shows the examples in docstrings as code on the site: an extension of griffe, named in mkdocs.yml.

Markdown takes `>>>` for a quotation. A run of lines from `>>>` to the next blank one is fenced here, as an interactive
session.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_SESSION = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


def fence_sessions(text: str) -> str:
    """The text with every interactive session in a fenced block, at the margin."""

    def fence(match: re.Match[str]) -> str:
        indent = match["indent"]
        lines = [line.removeprefix(indent) for line in match[0].splitlines()]
        return "\n".join(("```pycon", *lines, "```"))

    return _SESSION.sub(fence, text)


class DoctestBlocks(griffe.Extension):
    """Fences the sessions of every docstring that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object that was read from the sources."""
        if obj.docstring is not None:
            obj.docstring.value = fence_sessions(obj.docstring.value)

"""The examples of docs/live.md do what they show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "live.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("script", "shown"), EXAMPLES)
def test_an_example_of_the_page_prints_what_it_shows(script: str, shown: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == shown, done.stderr


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 2

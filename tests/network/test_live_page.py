"""The examples of live nodes in the documentation do what they show."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import textwrap
from typing import Any

import pytest

import omen
from documented import ROOT, blocks

PAGE = (ROOT / "docs/live.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PATIENCE_S = 60


@pytest.mark.parametrize(("script", "shown"), EXAMPLES)
def test_an_example_of_the_page_prints_what_it_shows(script: str, shown: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == shown, done.stderr


def test_every_example_of_the_page_is_run() -> None:
    assert len(EXAMPLES) == sum(block.language == "python" for block in blocks("docs/live.md"))


def test_the_node_of_the_readme_publishes_and_prints_what_comes(capsys: pytest.CaptureFixture[str]) -> None:
    """Next to a node that is there already, whose address takes the place of the one shown."""
    shown = next(block.text for block in blocks("README.md") if "omen.Broker" in block.text)
    assert "127.0.0.1:7070" in shown

    async def live() -> None:
        async with omen.Broker(omen.NodeConfig(topics=("prices",))) as first:
            told: dict[str, Any] = {"omen": omen}
            text = shown.replace("127.0.0.1:7070", first.address)
            exec("async def example():\n" + textwrap.indent(text, "    "), told)
            example = asyncio.create_task(told["example"]())
            heard = await anext(first.messages())
            assert isinstance(heard, omen.Message) and heard.payload == b"tea 3.20"
            await first.publish("prices", b"jazz 9.90")
            while "jazz 9.90" not in capsys.readouterr().out:
                assert not example.done(), example.result()
                await asyncio.sleep(0.05)
            example.cancel()
            await asyncio.gather(example, return_exceptions=True)

    asyncio.run(asyncio.wait_for(live(), PATIENCE_S))

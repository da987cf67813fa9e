"""Sources and pages say what the glossary says (docs/glossary.md), and no longer what version 0.1.0 said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
SOURCES = tuple(
    path for path in sorted((ROOT / "src").rglob("*")) if path.suffix in (".py", ".toml", ".html", ".js", ".css")
)

COUNTED = "bytes|connections|deliveries|events|frames|heartbeats|lines|messages|publications|rows|steps|times|MB|kB"
FORBIDDEN = {
    r"\bwho(m)?ever\b": "the node, the peer, the member that ...",
    r"\bsome(body|one)\b": "a node, a peer",
    r"\b(taken|took|takes|take) (\w+ )?for (gone|lost)\b": "suspected, declared failed",
    r"\b(another|former|later|next|old|new|present) (life|lives)\b": "incarnation; to rejoin",
    r"\b(life|lives) of (a|the|its|one) (node|peer|publisher|process|member|neighbour)\b": "incarnation",
    r"\bwho is there\b": "failure detector",
    r"\b(a|one|the|each|every|its|no|of|between|that) beats?\b": "heartbeat",
    r"\bmend(s|ed|ing)?\b": "repair",
    r"\bdockets?\b": "event queue",
    r"\btopics? (\w+ ){0,4}in pieces\b": "split topic",
    r"\b(at|past|by) the door\b|\bnode's door\b": "message validation",
    r"\breads? too slowly\b": "slow consumer",
    rf"\b({COUNTED}) an? (second|minute|node-hour|processor-second)\b": "per second",
    r"\bonce an? (second|minute|period|round|tick)\b": "once per ...",
}
"""What is no longer said, and what is said instead. A blank stands for any white space."""

ON_PAGES = {r"\b(no|any|every)body\b": "no node, any node, all nodes"}
"""What pages do not say either."""

COMMAND = "the command keeps its name, and with it its options, its file and its benchmark"
ALLOWED = {
    r"\bomen mend\b|`mend`|\"mend\"|\bcli[./]mend\b|\bbench mend\b": COMMAND,
    r"^ +mend,$|\bhandler=mend\b|\bdef mend\b|\bmend_rho\b|-mend-rho\b": COMMAND,
    r"\bhole-loss-while-mending\b|\btaken-for-gone-by-each-other\b": "the names of scenario files",
    r"\boverlay mending(?= for topic-based|\")": "the title of the OMen paper",
}
"""What looks like a forbidden word and is none, and why."""


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str:
    """What is to be checked of a file: of the glossary not the column of old words."""
    text = path.read_text(encoding="utf-8")
    if path == GLOSSARY:
        text = re.sub(r"<!-- old words -->.*?<!-- end of old words -->", "", text, flags=re.DOTALL)
    return text


def spans(pattern: str, text: str) -> Iterator[tuple[int, int]]:
    for found in re.finditer(pattern.replace(" ", r"\s+"), text, re.IGNORECASE | re.MULTILINE):
        yield found.span()


def complaints(path: Path) -> list[str]:
    """Forbidden words of a file, as `file:line word: say instead`."""
    text = text_of(path)
    allowed = [span for pattern in ALLOWED for span in spans(pattern, text)]
    words = FORBIDDEN | (ON_PAGES if path.suffix == ".md" else {})
    found = []
    for pattern, instead in words.items():
        for start, end in spans(pattern, text):
            if not any(first <= start and end <= last for first, last in allowed):
                line = text.count("\n", 0, start) + 1
                found.append(f"{place(path)}:{line} {' '.join(text[start:end].split())}: {instead}")
    return found


@pytest.mark.parametrize("path", [*PAGES, *SOURCES], ids=place)
def test_a_file_says_what_the_glossary_says(path: Path) -> None:
    assert complaints(path) == []

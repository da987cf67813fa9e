"""Hold the public names to what is promised of them: python -m tools.public_names [--site build/site].

Every name in `__all__` of the packages below, and every public method and property of such a class, has a docstring and
stands in the API reference: on a page of docs/api and, with `--site`, in the site that was built there.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import griffe
from mkdocstrings import Inventory

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "api"
PACKAGES = ("omen", "omen.design", "omen.fleet", "omen.quality", "omen.tables", "omen.workloads")
"""What users import from."""


def public_names() -> dict[str, griffe.Object]:
    """All of them by the path that users write, and what each stands for."""
    root = griffe.load("omen", search_paths=[ROOT / "src"], resolve_aliases=True)
    found: dict[str, griffe.Object] = {}
    for package in PACKAGES:
        module = root if package == "omen" else root[package.removeprefix("omen.")]
        for name in sorted(str(name) for name in module.exports or ()):
            if not name.startswith("__"):
                found.update(_with_members(f"{package}.{name}", module[name]))
    return found


def _with_members(path: str, named: griffe.Object | griffe.Alias) -> Iterator[tuple[str, griffe.Object]]:
    target = named.final_target if isinstance(named, griffe.Alias) else named
    yield path, target
    if isinstance(target, griffe.Class):
        for name, member in target.members.items():
            if (
                not name.startswith("_")
                and isinstance(member, griffe.Function | griffe.Attribute)
                and (member.is_function or "property" in member.labels)
            ):
                yield f"{path}.{name}", member


def undocumented(names: dict[str, griffe.Object]) -> list[str]:
    """Those without a docstring."""
    return sorted(path for path, named in names.items() if not (named.docstring and named.docstring.value.strip()))


def unlisted(names: dict[str, griffe.Object], listed: Iterable[str]) -> list[str]:
    """Those of which none of their paths is listed: `omen.Check` and `omen.quality.Check` are one name."""
    present = set(listed)
    known = {named.canonical_path for path, named in names.items() if path in present}
    return sorted(path for path, named in names.items() if named.canonical_path not in known)


def on_pages(names: dict[str, griffe.Object]) -> set[str]:
    """What the pages of docs/api ask for; a class brings its members along."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md")))
    asked = set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))
    return {path for path in names if path in asked or path.rpartition(".")[0] in asked}


def on_site(site: Path) -> set[str]:
    """What the reference of a built site holds."""
    with (site / "objects.inv").open("rb") as file:
        return set(Inventory.parse_sphinx(file))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.public_names", description=__doc__)
    parser.add_argument("--site", type=Path, metavar="FOLDER", help="where a site was built")
    site: Path | None = parser.parse_args().site
    names = public_names()
    wrong = [f"{path} has no docstring" for path in undocumented(names)]
    wrong += [f"{path} is on no page of docs/api" for path in unlisted(names, on_pages(names))]
    if site is not None and not wrong:
        wrong += [f"{path} is not in the reference in {site}" for path in unlisted(names, on_site(site))]
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    print(f"{len(names)} public names, all of them documented and in the API reference.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

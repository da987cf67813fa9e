"""Build the wheel of a released version from its commit: python -m tools.releases [VERSION]... (all).

`RELEASES` names the commit of each version. A wheel is built once, without a package index, and kept in build/releases.
Tests of upgrades ask for one with `wheel_of`.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tools.release import NotReady, build

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "build" / "releases"


class NoRelease(Exception):
    """The sources of a version cannot be had here; says in one line why. A test that needs them skips with that."""


def released(root: Path = ROOT) -> dict[str, str]:
    """The commit of each released version."""
    lines = (root / "RELEASES").read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines if line.strip() and not line.startswith("#"))


def wheel_of(version: str, root: Path = ROOT, built: Path = BUILT) -> Path:
    """The wheel of a released version, built from its commit unless that was done before."""
    commits = released(root)
    if version not in commits:
        raise NoRelease(f"there is no release {version} (RELEASES names {', '.join(commits)})")
    kept = f"omen_overlay-{version}-*.whl"
    for wheel in built.glob(kept):
        return wheel
    built.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=built) as folder:
        source = Path(folder) / "source"
        zipfile.ZipFile(io.BytesIO(_sources(version, commits[version], root))).extractall(source)
        (wheel,) = build(source, Path(folder) / "dist", "wheel")
        if not wheel.match(kept):
            raise NoRelease(f"release {version}, commit {commits[version][:12]}, builds {wheel.name} instead")
        return wheel.replace(built / wheel.name)


def _sources(version: str, commit: str, root: Path) -> bytes:
    """All files of a commit, as a zip file."""
    try:
        inside = subprocess.run(["git", "rev-parse", "--git-dir"], cwd=root, capture_output=True)
    except OSError:
        raise NoRelease(f"release {version} is commit {commit[:12]}, and there is no git to take it from") from None
    if inside.returncode:
        raise NoRelease(f"release {version} is commit {commit[:12]}, and this is no clone of the repository")
    known = subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=root, capture_output=True)
    if known.returncode:
        raise NoRelease(
            f"release {version} is commit {commit[:12]}, which this clone does not have: try git fetch --unshallow"
        )
    archive = ["git", "archive", "--format=zip", commit]
    return subprocess.run(archive, cwd=root, capture_output=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.releases", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"of {', '.join(released())} (all)")
    try:
        for version in parser.parse_args().versions or released():
            print(wheel_of(version))
    except (NoRelease, NotReady) as error:
        print(f"tools.releases: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

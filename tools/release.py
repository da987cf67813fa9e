"""Build wheel and sdist, check both, try the wheel in an empty environment: python -m tools.release, or make release.

Nothing reaches dist before all of it holds. Build tools and what the wheel depends on are those of requirements.lock.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

from packaging.metadata import Metadata

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
IN_WHEEL = {"omen/py.typed", "omen/cli/main.py", "omen/kernels/compiling.py"}
IN_SDIST = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "requirements.lock", "src/omen/py.typed"}
LEFTOVERS = (".pyc", ".nbi", ".nbc", ".whl", ".coverage")
TINY = "node,topic\nann,tea\nbob,tea\nbob,jazz\ncid,jazz\n"


class NotReady(Exception):
    """The release does not hold; says in one line why."""


def run(command: list[str], cwd: Path, environment: dict[str, str] | None = None) -> str:
    """What a command prints; NotReady with the last line of its complaint."""
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        complaint = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise NotReady(f"{Path(command[0]).name} {' '.join(command[1:4])} ended with {done.returncode}: {complaint}")
    return done.stdout


def build(source: Path, folder: Path, *kinds: str) -> list[Path]:
    """Wheel or sdist of the project in `source`, by the locked build tools, without an index."""
    targets = [word for kind in kinds for word in ("-t", kind)]
    run([sys.executable, "-m", "hatchling", "build", *targets, "-d", str(folder)], source)
    return sorted(folder.glob("omen_overlay-*"))


def check_wheel(wheel: Path, version: str) -> None:
    """Holds the package and nothing else, with the metadata and the checksums that belong to it."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        information = f"omen_overlay-{version}.dist-info"
        metadata = Metadata.from_email(archive.read(f"{information}/METADATA"), validate=True)
        record = csv.reader(archive.read(f"{information}/RECORD").decode().splitlines())
        recorded = {name: checksum for name, checksum, _ in record}
        for name in sorted(names - {f"{information}/RECORD"}):
            digest = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).decode().rstrip("=")
            if recorded.get(name) != f"sha256={digest}":
                raise NotReady(f"{wheel.name}: {name} does not have the checksum in RECORD")
    if missing := IN_WHEEL - names:
        raise NotReady(f"{wheel.name} lacks {', '.join(sorted(missing))}")
    if strange := {name.split("/")[0] for name in names} - {"omen", information}:
        raise NotReady(f"{wheel.name} holds {', '.join(sorted(strange))}, which are not part of the package")
    if left := [name for name in names if name.endswith(LEFTOVERS)]:
        raise NotReady(f"{wheel.name} holds {left[0]}, which a build or a run left behind")
    if str(metadata.version) != version or metadata.description_content_type != "text/markdown":
        raise NotReady(f"{wheel.name}: version or readme are not those of pyproject.toml")
    if not metadata.description or not metadata.project_urls or not metadata.classifiers:
        raise NotReady(f"{wheel.name}: readme, urls or classifiers are missing")


def check_sdist(sdist: Path, wheel: Path, folder: Path) -> None:
    """Holds what is needed to build, and the wheel built from it is the same as the one built from the tree."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(folder, filter="data")
    if missing := IN_SDIST - names:
        raise NotReady(f"{sdist.name} lacks {', '.join(sorted(missing))}")
    if left := [name for name in names if name.endswith(LEFTOVERS) or name.startswith((".venv", "build/", "dist/"))]:
        raise NotReady(f"{sdist.name} holds {left[0]}, which a build or a run left behind")
    (source,) = folder.iterdir()
    (again,) = build(source, folder / "again", "wheel")
    if again.read_bytes() != wheel.read_bytes():
        raise NotReady(f"the wheel built from {sdist.name} differs from the one built from the tree")


def check_changelog(version: str) -> None:
    if not re.search(rf"^## \[{re.escape(version)}\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE):
        raise NotReady(f"CHANGELOG.md has no section [{version}]")


def try_wheel(wheel: Path, folder: Path) -> None:
    """Install it where nothing else is, and design an overlay with it."""
    uv, binaries = str(Path(sys.executable).with_name("uv")), folder / "venv" / "bin"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA", "VIRTUAL"))}
    run([uv, "venv", "--quiet", "--python", sys.executable, str(folder / "venv")], folder, clean)
    locked = ["--constraints", str(ROOT / "requirements.lock")]
    run([uv, "pip", "install", "--quiet", "--python", str(binaries / "python"), *locked, str(wheel)], folder, clean)
    omen = str(binaries / "omen")
    if "design" not in run([omen, "--help"], folder, clean):
        raise NotReady("omen --help does not name its commands")
    (folder / "w.csv").write_text(TINY, encoding="utf-8")
    designed = json.loads(run([omen, "design", "--workload", "w.csv", "--out", "o.csv", "--json"], folder, clean))
    if (designed["edges"], designed["topic_connected"]) != (2, True):
        raise NotReady(f"omen design made {designed['edges']} links of a workload that needs 2")
    run([omen, "check", "--workload", "w.csv", "--overlay", "o.csv"], folder, clean)


def make_release() -> list[Path]:
    """Everything, and then the two files in dist."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    check_changelog(version)
    with tempfile.TemporaryDirectory(prefix="omen-release-") as name:
        folder = Path(name)
        wheel, sdist = build(ROOT, folder / "dist", "wheel", "sdist")
        print(f"built {sdist.name} and {wheel.name}", flush=True)
        check_wheel(wheel, version)
        (folder / "sdist").mkdir()
        check_sdist(sdist, wheel, folder / "sdist")
        print("checked metadata, contents and checksums; the sdist builds the same wheel", flush=True)
        (folder / "try").mkdir()
        try_wheel(wheel, folder / "try")
        print("installed the wheel where nothing else is: it designs and checks an overlay", flush=True)
        DIST.mkdir(exist_ok=True)
        return [Path(shutil.copy(built, DIST / built.name)) for built in (wheel, sdist)]


def main() -> int:
    try:
        make_release()
    except NotReady as error:
        print(f"tools.release: {error}", file=sys.stderr)
        return 1
    for path in sorted(DIST.iterdir()):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"dist/{path.name}  {path.stat().st_size:,} bytes  sha256 {digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Wheels of released versions, built from their commits."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tools.release import NotReady, build, check_sdist, check_wheel
from tools.releases import ROOT, NoRelease, released, wheel_of

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "omen-overlay"
version = "7.1.0"
[tool.hatch.build.targets.wheel]
packages = ["omen"]
"""


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository of one commit, released as 7.1.0, and with changes since."""
    folder = tmp_path / "clone"
    (folder / "omen").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "omen" / "__init__.py").write_text("released = True\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "released")
    (folder / "RELEASES").write_text(f"# versions\n7.1.0 {git(folder, 'rev-parse', 'HEAD')}\n")
    (folder / "omen" / "__init__.py").write_text("released = False\n")
    return folder


def test_a_wheel_is_built_from_the_commit_and_kept(clone: Path, tmp_path: Path) -> None:
    wheel = wheel_of("7.1.0", clone, tmp_path / "built")
    assert wheel == tmp_path / "built" / "omen_overlay-7.1.0-py2.py3-none-any.whl"
    assert zipfile.ZipFile(wheel).read("omen/__init__.py") == b"released = True\n"
    assert list(wheel.parent.iterdir()) == [wheel]
    (clone / ".git").rename(tmp_path / "elsewhere")
    assert wheel_of("7.1.0", clone, tmp_path / "built") == wheel


def test_a_clone_without_the_commit_says_so_in_one_line(clone: Path, tmp_path: Path) -> None:
    (clone / "RELEASES").write_text(f"7.1.0 {'0123456789' * 4}\n")
    with pytest.raises(NoRelease, match=r"^release 7\.1\.0 is commit 012345678901, which this clone does not have.*$"):
        wheel_of("7.1.0", clone, tmp_path / "built")
    (clone / ".git").rename(tmp_path / "elsewhere")
    with pytest.raises(NoRelease, match="this is no clone of the repository"):
        wheel_of("7.1.0", clone, tmp_path / "built")


def test_an_unknown_or_misnamed_version_is_refused(clone: Path, tmp_path: Path) -> None:
    with pytest.raises(NoRelease, match=r"there is no release 8\.0\.0 \(RELEASES names 7\.1\.0\)"):
        wheel_of("8.0.0", clone, tmp_path / "built")
    (clone / "RELEASES").write_text((clone / "RELEASES").read_text().replace("7.1.0", "7.2.0"))
    with pytest.raises(NoRelease, match=r"builds omen_overlay-7\.1\.0-py2\.py3-none-any\.whl instead"):
        wheel_of("7.2.0", clone, tmp_path / "built")


def test_the_command_prints_one_line_where_there_is_no_release() -> None:
    command = [sys.executable, "-m", "tools.releases", "99.0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_every_release_names_a_full_commit_and_the_first_can_be_built() -> None:
    assert all(re.fullmatch(r"[0-9a-f]{40}", commit) for commit in released().values())
    try:
        wheel = wheel_of("0.1.0")
    except NoRelease as reason:
        pytest.skip(str(reason))
    assert "omen_overlay-0.1.0.dist-info/METADATA" in zipfile.ZipFile(wheel).namelist()


def test_wheel_and_sdist_of_this_tree_hold_and_a_stray_file_is_noticed(tmp_path: Path) -> None:
    wheel, sdist = build(ROOT, tmp_path / "dist", "wheel", "sdist")
    version = wheel.name.split("-")[1]
    check_wheel(wheel, version)
    (tmp_path / "sdist").mkdir()
    check_sdist(sdist, wheel, tmp_path / "sdist")
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tests/stray.py", "")
    with pytest.raises(NotReady, match=r"tests/stray\.py does not have the checksum"):
        check_wheel(wheel, version)

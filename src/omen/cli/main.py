"""The command `omen`: parses, calls, prints. An error that a user can cause becomes one line and exit code 2."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from omen.cli import (
    check,
    churn,
    cluster,
    compare,
    compile,
    completion,
    demo,
    design,
    draw,
    export,
    keys,
    mend,
    node,
    plan,
    replay,
    reproduce,
    simulate,
    status,
    sweep,
    watch,
    workload,
)
from omen.cli.output import complain
from omen.errors import OmenError

BAD_INPUT = 2
INTERRUPTED, READER_GONE = 130, 141  # 128 and the signal, as shells report it

EPILOG = """\
example:
  omen workload synth --nodes 1000 --topics 100 --popularity zipf:1 --sizes uniform:5:20 --seed 7 --out w
  omen design --workload w --algorithm low-oda --out o.parquet
  omen check --workload w --overlay o.parquet

exit codes: 0 done, 1 a check does not hold, 2 bad input
"""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage in front of it."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse what is not known here, not at the top: the error then names the command whose help to read."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        complain(self.prog, f"{message} ({self.prog} --help shows what it takes)")
        self.exit(BAD_INPUT)


class ShowVersion(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        import omen

        print(f"omen {omen.__version__}")
        parser.exit()


def make_parser() -> Parser:
    parser = Parser(prog="omen", description="Topic-connected overlays for publish/subscribe.", epilog=EPILOG)
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")
    modules = (
        demo,
        workload,
        churn,
        design,
        check,
        compare,
        draw,
        replay,
        mend,
        plan,
        simulate,
        export,
        sweep,
        reproduce,
        node,
        cluster,
        status,
        watch,
        keys,
        compile,
        completion,
    )
    for module in modules:
        module.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        arguments = make_parser().parse_args(argv)
        status: int = arguments.handler(arguments)
        sys.stdout.flush()
        return status
    except OmenError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        # The reader of our output has left; keep the interpreter from complaining when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _refuse(f"{where}{error.strerror or error}")
    except MemoryError:
        return _refuse("not enough memory for this size")
    except KeyboardInterrupt:
        return INTERRUPTED


def _refuse(message: str) -> int:
    complain("omen", " ".join(message.split()))
    return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())

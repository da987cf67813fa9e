"""omen completion: a script that teaches a shell the commands and their options."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from omen.cli.arguments import offered_names

SHELLS = ("bash", "zsh", "fish")
EPILOG = """\
example:
  eval "$(omen completion bash)"
  omen completion zsh > ~/.zfunc/_omen_completion && source ~/.zfunc/_omen_completion
  omen completion fish > ~/.config/fish/completions/omen.fish
"""


class Place(NamedTuple):
    """A command as it is typed, and what may follow it: words (subcommands) and options, each with its help."""

    command: str
    words: dict[str, str]
    options: dict[str, str]
    choices: dict[str, list[str]]  # of options and of the arguments ("") that know theirs
    free: list[str]  # options whose value may be anything, a file for the most part


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "completion",
        help="a script that lets a shell complete commands and options",
        description="Print a script that lets the shell complete commands, options and their choices.",
        epilog=EPILOG,
    )
    parser.add_argument("shell", choices=SHELLS, help="for which shell")
    parser.set_defaults(handler=completion)


def completion(arguments: argparse.Namespace) -> int:
    from omen.cli.main import make_parser

    write: dict[str, Callable[[list[Place]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    print(write[arguments.shell](list(walk(make_parser(), "omen"))))
    return 0


def walk(parser: argparse.ArgumentParser, command: str) -> Iterator[Place]:
    """The command and all below it."""
    words: dict[str, str] = {}
    options: dict[str, str] = {}
    choices: dict[str, list[str]] = {}
    free: list[str] = []
    below: list[tuple[str, argparse.ArgumentParser]] = []
    for action in parser._actions:  # argparse has no public way to ask
        if isinstance(action, argparse._SubParsersAction):
            words |= {choice.dest: choice.help or "" for choice in action._choices_actions}
            below += action.choices.items()
            continue
        longest = max(action.option_strings, key=len, default="")
        if longest:
            options[longest] = _brief(action.help or "")
        if known := action.choices or offered_names(action):
            choices[longest] = [str(choice) for choice in known]
        elif longest and action.nargs != 0:
            free += action.option_strings
    yield Place(command, words, options, choices, free)
    for word, inner in below:
        yield from walk(inner, f"{command} {word}")


def _brief(text: str) -> str:
    return " ".join(text.replace("%%", "%").split())[:80]


def _bash(places: list[Place]) -> str:
    known = " | ".join(shlex.quote(place.command) for place in places if place.command != "omen")
    valued = [
        _bash_case(f"{place.command} {option}", values)
        for place in places
        for option, values in place.choices.items()
        if option
    ]
    free = " | ".join(shlex.quote(f"{place.command} {option}") for place in places for option in place.free)
    plain = [_bash_case(place.command, [*place.words, *place.choices.get("", []), *place.options]) for place in places]
    return (
        "_omen() {\n"
        '  local command=omen word found=""\n'
        "  COMPREPLY=()\n"
        '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do\n'
        f'    case "$command $word" in {known}) command="$command $word" ;; esac\n'
        "  done\n"
        '  case "$command ${COMP_WORDS[COMP_CWORD-1]}" in\n'
        f"      {free}) return ;;\n" + "".join(valued) + "  esac\n"
        '  if [ -z "$found" ]; then\n    case "$command" in\n' + "".join(plain) + "    esac\n  fi\n"
        '  COMPREPLY=($(compgen -W "$found" -- "${COMP_WORDS[COMP_CWORD]}"))\n'
        "}\n"
        "complete -o default -F _omen omen"
    )


def _bash_case(typed: str, found: list[str]) -> str:
    return f"      {shlex.quote(typed)}) found={shlex.quote(' '.join(found))} ;;\n"


def _zsh(places: list[Place]) -> str:
    return f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{_bash(places)}"


def _fish(places: list[Place]) -> str:
    lines = ["complete -c omen -n __fish_use_subcommand -f"]
    for place in places:
        _, *path = place.command.split()
        seen = " ; and ".join(f"__fish_seen_subcommand_from {word}" for word in path) or "__fish_use_subcommand"
        rest = f" ; and not __fish_seen_subcommand_from {' '.join(place.words)}" if path and place.words else ""
        start = f"complete -c omen -n {shlex.quote(seen + rest)}"
        lines += [f"{start} -f -a {word} -d {shlex.quote(text)}" for word, text in place.words.items()]
        lines += [f"{start} -f -a {shlex.quote(' '.join(place.choices['']))}"] if "" in place.choices else []
        for option, text in place.options.items():
            values = place.choices.get(option)
            more = f" -x -a {shlex.quote(' '.join(values))}" if values else " -r" if option in place.free else ""
            lines.append(f"{start} -l {option.removeprefix('--')}{more} -d {shlex.quote(text)}")
    return "\n".join(lines)

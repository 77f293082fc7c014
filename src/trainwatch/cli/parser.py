"""The command line's parser. Each file that ``SECTIONS`` names has a table ``VERBS`` (verb.py)."""

import argparse
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

from trainwatch import __version__
from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.model.text import did_you_mean, nearest

from .verb import Verb

SECTIONS: dict[str, tuple[str, dict[str, Sequence[str]]]] = {
    "start": ("start a training", {"start": ("adopt", "init", "run"), "queue": ("queue",)}),
    "watch": ("watch runs", {"watch": (
        *("attach", "events", "logs", "mcp", "metrics", "runs", "serve", "status", "wait"),
    )}),
    "control": ("control a run", {"control": (
        *("ack", "act", "enable", "forget", "kill", "pause", "profile", "restart", "resume", "save", "snooze", "stop"),
        "supervise",
    )}),
    "prepare": ("prepare a run", {"prepare": (
        *("check", "completion", "doctor", "hosts", "notify", "presets", "profiles", "rehearse", "trial"),
    )}),
    "examine": ("examine logs, checkpoints and past runs", {
        "checkpoints": ("checkpoints",), "examine": ["diagnose", "export", "progress", "replay", "report"],
    }),
    "practise": ("see trainwatch at work", {"start": ("demo", "drill")}),
}  # fmt: skip
"""Sections of ``trainwatch help all``, in their order: heading, and the verbs of each file."""
FIRST = ("run", "status", "attach", "stop", "resume", "report", "check", "rehearse", "wait")
"""What ``trainwatch --help`` lists: all that the first nights need."""
EXAMPLES = """examples:
  trainwatch run -- python train.py    launch a command and supervise it
  trainwatch                           open the screen on this project's run
  trainwatch --headless                supervise it without a screen (systemd)
  trainwatch status --json             what is going on, for scripts
  trainwatch --on box1 status          the same on another machine, through ssh
"""
ALIASES = {
    "ls": ("runs",),
    "list": ("runs",),
    "ps": ("runs",),
    "start": ("run",),
    "launch": ("run",),
    "tail": ("logs", "--follow"),
    "unpause": ("resume", "--paused"),
    "version": ("--version",),
}
"""Words that people type out of habit → the words that they mean."""
STARTING = frozenset({"run", "adopt", "restart", "resume", "trial", "rehearse", "demo", "drill"})
"""Verbs that start processes: none of them is offered for a mistyped word."""
_CHOICE = r"(?s)argument (?P<what>[^:]+): invalid choice: '(?P<word>.*?)' \(choose from (?P<known>.*)\)"


class OneLineParser(argparse.ArgumentParser):
    """Reports an error in one line with the nearest valid word. ``top``: the parser of the verbs themselves."""

    top = False

    def error(self, message: str) -> NoReturn:
        """End the verb with exit code 2."""
        import re

        found = re.fullmatch(_CHOICE, message)
        if found is not None:
            known = listed_verbs() if self.top else [word.strip(" '\"") for word in found["known"].split(",")]
            what = f"{found['what']} takes no" if found["what"].startswith("-") else "there is no verb"
            # The nearest word, unless it starts processes: then all of them.
            word = "" if nearest(found["word"], known) in STARTING else found["word"]
            message = f'{what} "{found["word"]}"{did_you_mean(word, known)}'
        raise CliError(ExitCode.USAGE, f"{message}; see `{self.prog} --help`")


@cache
def verbs() -> dict[str, tuple[str, str]]:
    """All verbs, hidden ones included, each with its section and its file. Imports none of them."""
    sections = ((section, files) for section, (_, files) in SECTIONS.items())
    return dict(sorted((v, (section, file)) for section, files in sections for file in files for v in files[file]))


def spelled_out(words: Sequence[str]) -> list[str]:
    """The words with an alias of a verb replaced; ``help VERB`` is ``VERB --help``, ``help all`` lists every verb."""
    first, rest = (words[0] if words else ""), list(words[1:])
    if words == ["help", "all"]:
        return ["--help-all"]
    if first == "help":
        return [*spelled_out(rest[:1]), "--help"]
    return [*ALIASES.get(first, (first,)), *rest] if words else []


def listed_verbs() -> list[str]:
    """The verbs that ``trainwatch help all`` lists. Imports all of them."""
    return [name for name in verbs() if verb(name).help is not None]


def verb(name: str) -> Verb:
    found: Verb = import_module(f".{verbs()[name][1]}", __package__).VERBS[name]
    return found


def build_parser(words: Sequence[str]) -> OneLineParser:
    """The parser for these words. Imports only the verb among them, or those that the help lists.

    It has the arguments of the verbs that are among the words, and those of the command without a verb unless a verb
    comes first; ``whole_parser`` has all.
    """
    known = verbs()
    wanted = list(dict.fromkeys(word for word in words if word in known))  # a run may be called `stop`, too
    overview = (
        "" if wanted else _overview() if "--help-all" in words else _first() if {"-h", "--help"} & {*words} else ""
    )
    return _parser(wanted, overview, bare=not words or words[0] not in known)


def whole_parser() -> OneLineParser:
    return _parser(list(verbs()), _overview(), bare=True)


def _parser(wanted: Sequence[str], overview: str, *, bare: bool) -> OneLineParser:
    parser = OneLineParser(
        prog="trainwatch",
        usage="trainwatch [options] [VERB …]",
        description="Supervises a long training run: launches it, shows it, detects when it hangs\n"
        "or crashes, reports why, and restarts it from a verified checkpoint.\nWithout a verb: the screen.",
        epilog=f"{overview}\n{EXAMPLES}" if overview else EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.top = True
    parser.add_argument("--version", action="version", version=f"trainwatch {__version__}")
    parser.add_argument("--help-all", action="help", help=argparse.SUPPRESS)
    if bare:
        from . import bare_command

        for argument in bare_command.ARGUMENTS:
            argument(parser)
        parser.set_defaults(act=bare_command.act)
    subparsers = parser.add_subparsers(metavar="VERB", dest="verb", prog="trainwatch", help=argparse.SUPPRESS)
    for name in wanted:
        _add(subparsers, "trainwatch", name, verb(name))
    return parser


def _add(subparsers: Any, before: str, name: str, one: Verb) -> None:
    """Add a verb with its parts. ``before``: what is typed before its name."""
    shown: dict[str, Any] = {} if one.help is None else {"help": one.help}
    inner = subparsers.add_parser(
        name,
        description=one.description or one.help,
        epilog=f"example: {before} {name} {one.example}".rstrip(),
        **shown,
    )
    for argument in one.arguments:
        argument(inner)
    inner.set_defaults(act=one.act)
    if one.parts:
        inner.set_defaults(json=False)
        parts = inner.add_subparsers(title="parts", metavar="PART", dest="part", required=one.act is None)
        for part, row in one.parts:
            _add(parts, f"{before} {name}", part, row)


def _first() -> str:
    lines = [f"  {name:12} {verb(name).help}" for name in FIRST]
    return "\n".join(
        ["verbs:", *lines, "", "`trainwatch help all` lists every verb, `trainwatch VERB --help` explains one.", ""]
    )


def _overview() -> str:
    lines = []
    for section, (heading, _) in SECTIONS.items():
        lines.append(f"{heading}:")
        lines += [f"  {name:12} {verb(name).help}" for name in listed_verbs() if section == verbs()[name][0]]
        lines.append("")
    return "\n".join(lines)


def refuse_misplaced(words: Sequence[str], verb: str | None) -> None:
    """End with exit code 2 if something stands before the verb: argparse would not give it to the verb."""
    if verb is not None and words[0] != verb:
        told = f"{words[0]} stands before the verb; write options behind it: trainwatch {verb} …"
        raise CliError(ExitCode.USAGE, f"{told}; see `trainwatch {verb} --help`")


def refuse_command(args: argparse.Namespace, command: Sequence[str] | None) -> None:
    """End with exit code 2 if a command stands behind ``--``, and the verb takes none."""
    if command and not getattr(args, "takes_command", False):
        verb = f"trainwatch {args.verb}" if args.verb else "trainwatch without a verb"
        raise CliError(ExitCode.USAGE, f"{verb} takes no command: `-- {' '.join(command)}`; see `trainwatch --help`")


def refuse_unknown(extra: Sequence[str], parser: argparse.ArgumentParser, verb: str | None) -> None:
    """End with exit code 2 if words were left over that no verb and no option takes."""
    if not extra:
        return
    inner = next((p for a in _subparsers(parser) for name, p in a.choices.items() if name == verb), parser)
    word = extra[0].partition("=")[0]
    where = f"{parser.prog} {verb}" if verb else parser.prog
    if not word.startswith("-"):
        raise CliError(ExitCode.USAGE, f"unexpected: {extra[0]}; see `{where} --help`")
    family = [inner, *(part for a in _subparsers(inner) for part in a.choices.values())]
    known = sorted({o for p in family for o in p._option_string_actions if o.startswith("--")})  # noqa: SLF001
    raise CliError(ExitCode.USAGE, f"unknown option {word}{did_you_mean(word, known)}; see `{where} --help`")


# argparse gives its options and subparsers in private attributes only; they are the same in all Pythons from 3.11 on.


def every_action(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All options and arguments of a parser, those of its verbs and their parts included."""
    yield from parser._actions  # noqa: SLF001
    for choice in _subparsers(parser):
        for inner in choice.choices.values():
            yield from every_action(inner)


def _subparsers(parser: argparse.ArgumentParser) -> list["argparse._SubParsersAction[argparse.ArgumentParser]"]:
    kind = argparse._SubParsersAction  # noqa: SLF001
    return [action for action in parser._actions if isinstance(action, kind)]  # noqa: SLF001

"""Words of a command line that mean nothing: one line that names the nearest that do."""

import argparse
import re
from collections.abc import Sequence
from typing import NoReturn

from trainwatch.core.app.errors import CliError, ExitCode

_CHOICE = re.compile(
    r"argument (?P<what>[^:]+): invalid choice: '(?P<word>.*?)' \(choose from (?P<known>.*)\)", re.DOTALL
)


class OneLineParser(argparse.ArgumentParser):
    """Complains in one line with what was probably meant. ``verbs``: all there are, also those not loaded."""

    verbs: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        """Ends the verb with exit code 2."""
        found = _CHOICE.fullmatch(message)
        if found is not None:
            known = [word.strip(" '\"") for word in found["known"].split(",")]
            what = f"{found['what']} takes no" if found["what"].startswith("-") else "there is no verb"
            message = f'{what} "{found["word"]}"{meant(found["word"], self.verbs or known)}'
        raise CliError(ExitCode.USAGE, f"{message}; see `{self.prog} --help`")


def refuse_unknown(extra: Sequence[str], parser: argparse.ArgumentParser, verb: str | None) -> None:
    """End with exit code 2 where words were left over that no verb and no option takes."""
    if not extra:
        return
    inner = _parser_of(parser, verb)
    word = extra[0].partition("=")[0]
    where = f"{parser.prog} {verb}" if verb else parser.prog
    if not word.startswith("-"):
        raise CliError(ExitCode.USAGE, f"unexpected: {extra[0]}; see `{where} --help`")
    known = sorted({option for p in _family(inner) for option in _options(p) if option.startswith("--")})
    raise CliError(ExitCode.USAGE, f"unknown option {word}{meant(word, known)}; see `{where} --help`")


def meant(word: str, known: Sequence[str]) -> str:
    """``; did you mean "status"?``, or all there are."""
    from trainwatch.core.config.problem import nearest

    guess = nearest(word, known)
    return f'; did you mean "{guess}"?' if guess is not None else f"; there are: {', '.join(known)}"


def _parser_of(parser: argparse.ArgumentParser, verb: str | None) -> argparse.ArgumentParser:
    return next((p for action in _subparsers(parser) for name, p in action.choices.items() if name == verb), parser)


def _family(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """A verb's parser and those of its own verbs (``checkpoints list``)."""
    return [parser, *(p for action in _subparsers(parser) for p in action.choices.values())]


# argparse tells what it was taught in private names only; they are the same in all Pythons from 3.11 on.


def _options(parser: argparse.ArgumentParser) -> Sequence[str]:
    return list(parser._option_string_actions)  # noqa: SLF001


def _subparsers(parser: argparse.ArgumentParser) -> list["argparse._SubParsersAction[argparse.ArgumentParser]"]:
    kind = argparse._SubParsersAction  # noqa: SLF001
    return [action for action in parser._actions if isinstance(action, kind)]  # noqa: SLF001

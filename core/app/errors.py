"""The error of a use case: an exit code and one sentence with the problem, its place, and what to do next."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of all verbs."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    OWNED = 4
    NO_SUPERVISOR = 5
    NEEDS_YOU = 6
    GOES_ON = 7
    CRASHED = 70
    TIMEOUT = 124
    INTERRUPTED = 130


class CliError(Exception):
    """Ends the verb. The message goes to stderr as one line (or one line per problem)."""

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type["CliError"], tuple[ExitCode, str]]:
        """It may come from another process."""
        return CliError, (self.code, str(self))


@contextmanager
def ends_verb(code: ExitCode, *kinds: type[Exception], place: str = "") -> Iterator[None]:
    """Raise these errors, whose message is a sentence, as CliError. ``place``: stands before the sentence."""
    try:
        yield
    except kinds as error:
        raise CliError(code, f"{place}{error}") from None


@contextmanager
def config_errors() -> Iterator[None]:
    """Raise problems of a config file as CliError: exit code 3 if it has no run of that name, else 2."""
    from ..config.document import ConfigError, UnknownRun

    with ends_verb(ExitCode.USAGE, ConfigError), ends_verb(ExitCode.NOT_FOUND, UnknownRun):
        yield


@contextmanager
def file_errors(place: object = "") -> Iterator[None]:
    """Raise errors of files, and of a list of trainwatch's own, as CliError. ``place``: what is named."""
    from ..store.learned import ListUnreadable

    try:
        with ends_verb(ExitCode.USAGE, ListUnreadable):
            yield
    except OSError as error:
        raise CliError(ExitCode.FAILED, f"{place or error.filename}: {error.strerror or error}") from None


def says_what_cannot_be_read(error: Exception) -> bool:
    """Whether its message is a sentence about state that is damaged, or of a newer trainwatch."""
    if "trainwatch.core.store.run_directory" not in sys.modules:  # then nothing was read
        return False
    from ..store.journal import JournalTooNew
    from ..store.run_directory import RunUnreadable

    return isinstance(error, JournalTooNew | RunUnreadable)

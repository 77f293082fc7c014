"""How a verb fails: an exit code and one sentence that says what, where and what to do next."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of all verbs."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    OWNED = 4
    NO_SUPERVISOR = 5
    INTERRUPTED = 130


class CliError(Exception):
    """Ends the verb. The message goes to stderr as one line (or one line per problem)."""

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.code = code

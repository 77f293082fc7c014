"""One call of trainwatch: the words of the command line, the verb that they name, and its exit code."""

import errno
import os
import sys
from collections.abc import Sequence

from trainwatch.core.app.errors import CliError, ExitCode, says_what_cannot_be_read

from .output import discard_stdout, make_writable, without_secrets
from .parser import build_parser, refuse_unknown, spelled_out


def run_verb(words: Sequence[str]) -> int:
    """Run one verb. Returns its exit code (``core.app.errors.ExitCode``)."""
    make_writable()
    if host := os.environ.pop("TRAINWATCH_ON", ""):  # of this call only: no process that it starts has it
        from trainwatch.core.model.suggestion import called_from

        called_from(host)
    with without_secrets():
        return _run(list(words))


def _run(words: list[str]) -> int:
    command: list[str] | None = None
    if "--" in words:  # all words behind it are the trainer's
        at = words.index("--")
        words, command = words[:at], words[at + 1 :]
    try:
        if any(word == "--on" or word.startswith("--on=") for word in words):
            from .other_host import on_host

            return on_host(words, command)
        words, run_in_front = spelled_out(words), None
        if words and words[0].startswith("-"):
            from .bare_command import moved_behind

            words, run_in_front = moved_behind(words)
        parser = build_parser(words)
        args, unknown = parser.parse_known_args(words)
        refuse_unknown(unknown, parser, args.verb)
        if run_in_front is not None:
            from .bare_command import use_run

            use_run(args, run_in_front)
        args.command_after_dashes = command
        args.typed = words if command is None else [*words, "--", *command]
        code = int(args.act(args))
        sys.stdout.flush()  # a full disk fails here, where it can be reported
        return code
    except CliError as error:
        from trainwatch.core.model.text import printable_lines

        print(f"trainwatch: {printable_lines(str(error))}", file=sys.stderr)
        return int(error.code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # `trainwatch events | head`
        discard_stdout()
        return int(ExitCode.DONE)
    except OSError as error:  # a full disk, a permission, a path
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        if error.filename is None:
            discard_stdout()
        where = "the output" if error.filename is None else os.fsdecode(error.filename)
        print(f"trainwatch: {where}: {error.strerror}", file=sys.stderr)
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        return int(ExitCode.NOT_FOUND if missing else ExitCode.FAILED)
    except Exception as error:
        if not says_what_cannot_be_read(error):
            raise
        from trainwatch.core.model.text import printable_lines

        print(f"trainwatch: {printable_lines(str(error))}", file=sys.stderr)
        return int(ExitCode.FAILED)

"""The command line: one file per verb, plus wiring.py which puts the rooms of core together."""

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Sequence

from trainwatch import __version__
from trainwatch.core.app.errors import CliError, ExitCode

from .streams import discard_stdout, make_writable
from .words import OneLineParser, refuse_unknown

VERBS = (
    "init",
    "run",
    "adopt",
    "status",
    "runs",
    "events",
    "attach",
    "stop",
    "kill",
    "restart",
    "resume",
    "pause",
    "unpause",
    "wait",
    "profile",
    "ack",
    "check",
    "trial",
    "checkpoints",
    "diagnose",
    "progress",
    "replay",
    "export",
    "report",
    "profiles",
    "presets",
    "demo",
    "drill",
    "supervise",
)
"""Each is a module ``verb_NAME.py`` or shares one (see MODULES) with ``add(subparsers)``."""

MODULES = {
    "attach": "verb_attach",
    "stop": "verbs_operator",
    "kill": "verbs_operator",
    "restart": "verbs_operator",
    "resume": "verbs_operator",
    "pause": "verbs_operator",
    "unpause": "verbs_operator",
    "wait": "verbs_operator",
    "profile": "verbs_operator",
    "ack": "verbs_operator",
    "profiles": "verbs_shipped",
    "presets": "verbs_shipped",
}
UNLISTED = frozenset({"supervise"})
"""Not for typing."""

EPILOG = """examples:
  trainwatch run -- python train.py --config cfg.yaml      launch a command and look after it
  trainwatch                                               open the screen on this project's run
  trainwatch --headless                                    look after it without a screen (tmux, SSH, systemd)
  trainwatch status --json                                 what is going on, for scripts
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb. Returns its exit code (see ``failure.ExitCode``)."""
    make_writable()
    words = list(sys.argv[1:] if argv is None else argv)
    command: list[str] | None = None
    if "--" in words:  # everything behind it belongs to the trainer, whatever it looks like
        at = words.index("--")
        words, command = words[:at], words[at + 1 :]
    try:
        parser = _parser(words)
        args, unknown = parser.parse_known_args(words)
        refuse_unknown(unknown, parser, args.verb)
        args.command_after_dashes = command
        code = int(args.act(args))
        sys.stdout.flush()  # a full disk behind it is told here, not by the interpreter's last breath
        return code
    except CliError as error:
        from trainwatch.core.model.printable import printable_lines

        print(f"trainwatch: {printable_lines(str(error))}", file=sys.stderr)
        return int(error.code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # `trainwatch events | head`: the reader has seen enough
        discard_stdout()
        return int(ExitCode.DONE)
    except OSError as error:  # the world's fault, not ours: a disk, a right, a path
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        if error.filename is None:
            discard_stdout()
        where = "what was to be written" if error.filename is None else os.fsdecode(error.filename)
        print(f"trainwatch: {where}: {error.strerror}", file=sys.stderr)
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        return int(ExitCode.NOT_FOUND if missing else ExitCode.FAILED)


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="trainwatch",
        description="Looks after a long training run: launches it, shows it, notices when it hangs or dies, says why, "
        "and brings it back from a good checkpoint.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.verbs = [verb for verb in VERBS if verb not in UNLISTED]
    parser.add_argument("--version", action="version", version=f"trainwatch {__version__}")
    from . import verb_screen

    verb_screen.add(parser)
    subparsers = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb")
    # Only the verb that was asked for is imported, and none for the bare command; `--help` and a wrong verb need all.
    wanted: Sequence[str] = [word for word in words if word in VERBS]
    if not wanted and any(not word.startswith("-") or word in {"-h", "--help"} for word in words):
        wanted = VERBS
    added: set[str] = set()
    for verb in wanted:
        name = MODULES.get(verb, f"verb_{verb}")
        if name not in added:
            added.add(name)
            importlib.import_module(f".{name}", __name__).add(subparsers)
    return parser

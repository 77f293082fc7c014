"""The command line: ``main`` runs one verb. One file per verb (``parser.py`` describes its contents)."""

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb. Returns its exit code (``core.app.errors.ExitCode``)."""
    if os.getpid() == 1:
        from trainwatch.core.app.supervise.machine_end import divide_if_init

        divide_if_init()
    words = list(sys.argv[1:] if argv is None else argv)
    from .command_line import run_verb

    return run_verb(words)

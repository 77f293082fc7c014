"""``trainwatch mirror``: sends what this machine's runs gain to a screen on another one; that screen starts it."""

import argparse

from trainwatch.core.app.errors import CliError, ExitCode

HELP = None
DESCRIPTION = "Serves the screen of another machine over standard input and output; `trainwatch --on HOST` starts it."
EXAMPLE = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def act(_args: argparse.Namespace) -> int:
    """Ends with the connection."""
    import sys

    from trainwatch.core.app.screen.mirror.serving import serve_mirror

    if sys.stdin.isatty():
        raise CliError(ExitCode.USAGE, "mirror is for the screen of another machine: trainwatch --on HOST")
    serve_mirror()
    return ExitCode.DONE

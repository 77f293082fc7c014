"""``trainwatch doctor``: the checks of this machine, whatever is to run on it."""

import argparse

from .check_text import show_checks

HELP = "is this machine ready: GPUs, driver, memory, tmux, logout, sleep"
DESCRIPTION = (
    "Checks this machine, with no project and no run: GPUs and their driver, memory, tmux, trainwatch's own state "
    "folder, and settings of the host that end processes (logout, sleep, WSL2). It is the part of `trainwatch check` "
    "that is about the machine. Changes nothing."
)
EXAMPLE = "--json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object")


def act(args: argparse.Namespace) -> int:
    """1 if a check failed."""
    from trainwatch.core.app.preflight.checklist import machine_checks

    return show_checks(machine_checks(), as_json=args.json)

"""``trainwatch check``: check for problems that could end a run, before it starts or after it has ended."""

import argparse

from trainwatch.core.app.errors import ExitCode

from ..output import print_json, warn

HELP = "pre-flight: find what could end the run before it does"
DESCRIPTION = (
    "Checks config, disk, GPU, the trainer's interpreter, the resume point, tmux, and settings of the host that "
    "end processes (logout, sleep). Changes nothing. Without a project it checks the machine."
)
EXAMPLE = "--json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", dest="run_name", metavar="NAME", help="which run, if there are several")
    parser.add_argument(
        "--after",
        action="store_true",
        help="check a run that is over instead: log, loss, every checkpoint, what to keep and to back up",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


MARKS = {"pass": "ok  ", "warn": "warn", "fail": "FAIL"}


def act(args: argparse.Namespace) -> int:
    """1 if a check failed."""
    if args.after:
        from trainwatch.core.app.preflight.after_run import checks_after

        checks = checks_after(args.run_name, warn)
    else:
        from trainwatch.core.app.preflight.checklist import preflight_here

        checks = preflight_here(args.run_name)
    failed = any(c.result == "fail" for c in checks)
    if args.json:
        print_json({"passed": not failed, "checks": checks})
        return ExitCode.FAILED if failed else ExitCode.DONE
    for check in checks:
        first, *more = check.found.splitlines() or [""]
        print(f"{MARKS[check.result]}  {check.name:14} {first}")
        for line in more:
            print(f"{'':21}{line}")
        if check.remedy and check.result != "pass":
            print(f"{'':21}-> {check.remedy}")
    return ExitCode.FAILED if failed else ExitCode.DONE

"""``trainwatch wait [RUN]``: block until a run is over or needs somebody."""

import argparse

from trainwatch.core.app.errors import CliError, ExitCode

from ..output import print_json, printable
from ..run_argument import add_run, run_to_read

HELP = "block until a run is over or needs you"
DESCRIPTION = (
    "Blocks until the run is over or needs you, and prints one line. Exit code: 0 finished; 1 given up or ended early; "
    "6 it needs you: held, stopped or paused by a person, or a question is open; 124 the time limit passed; "
    "5 nothing watches it and it is not over; 3 no such run. With --until X: 0 when X is reached; 1 or 6 when it "
    "cannot be reached any more. `trainwatch snooze` gives a suspected hang more time."
)
EXAMPLE = "--until finished --timeout 36000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--until",
        metavar="WHAT",
        help="over, finished, needs-you, or a state as `status --json` has it (default: over or needs-you)",
    )
    parser.add_argument("--timeout", type=float, metavar="S", help="wait at most this many seconds")
    parser.add_argument("--json", action="store_true", help="one JSON object: run, state, step, reason")


def act(args: argparse.Namespace) -> int:
    """The exit code says how the run stands."""
    from typing import get_args

    from trainwatch.core.app.runs.waiting import wait_for
    from trainwatch.core.model.run import RunState

    if args.until is not None and args.until not in (known := ("over", "needs-you", *get_args(RunState))):
        raise CliError(ExitCode.USAGE, f"--until {printable(args.until)}: it is one of {', '.join(known)}")
    try:
        run = run_to_read(args)
    except CliError as error:
        if error.code is ExitCode.NOT_FOUND and (args.run or "").isdecimal():
            hint = f"{error}; `trainwatch snooze` gives a suspected hang more time"
            raise CliError(ExitCode.NOT_FOUND, hint) from None
        raise
    code, now = wait_for(run, args.until, args.timeout)
    name = run.load_spec().name
    if args.json:
        print_json({"run": name, "state": now.state, "step": now.step, "reason": now.reason})
    else:
        late = f" after {args.timeout:g} s" if code is ExitCode.TIMEOUT else ""
        print(printable(f"{name} is {now.state.replace('_', ' ')}{late}" + (f": {now.reason}" if now.reason else "")))
    return code

"""``trainwatch drill``: cause real faults in an example trainer, to see that each is detected and survived."""

import argparse
from typing import Any

from trainwatch.core.app.errors import ExitCode

from ..output import print_json

HELP = "real faults in an example trainer: is each detected and survived?"
DESCRIPTION = (
    "Runs a short real training once per fault and shows what was detected, after how long, and how it ended. "
    "Takes about a minute. State goes to TRAINWATCH_HOME/drill."
)
EXAMPLE = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object")


def act(args: argparse.Namespace) -> int:
    """1 if a fault was not detected or not survived."""
    from trainwatch.core.app.examples.drill import drill

    rows = []
    for row in drill():
        rows.append(row)
        if not args.json:
            _print(row)
    passed = all(row["passed"] for row in rows)
    if args.json:
        print_json({"passed": passed, "exercises": rows})
    else:
        print("all were detected and survived" if passed else "not all were detected and survived: see the lines above")
    return ExitCode.DONE if passed else ExitCode.FAILED


def _print(row: dict[str, Any]) -> None:
    mark = "ok  " if row["passed"] else "FAIL"
    after = f"after {row['detect_s']:.1f} s" if row["detect_s"] is not None else ""
    print(
        f"{mark}  {row['fault']:24} {', '.join(row['seen']) or 'nothing seen':32} {after:14} "
        f"attempts {row['attempts']}, steps lost {row['lost_steps']}, {row['state']}",
        flush=True,
    )

"""``trainwatch runs``: all runs of this machine, newest first."""

import argparse
from typing import Any

from .failure import ExitCode
from .known_runs import all_runs, read_status
from .output import print_json, printable


def add(subparsers: Any) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        "runs",
        help="all known runs",
        description="Lists the runs that this machine remembers, newest first.",
        epilog="example: trainwatch runs --json",
    )
    parser.add_argument("--json", action="store_true", help='one JSON object: {"runs": […]}')
    parser.set_defaults(act=act)


def act(args: argparse.Namespace) -> int:
    """Print them; none at all is an answer, too."""
    rows = []
    for run in all_runs():
        status = read_status(run)
        last = status["incidents"][-1] if status["incidents"] else None
        rows.append(
            {
                "run": run.load_spec().name,
                "id": run.path.name,
                "state": status["state"],
                "attempt": status["attempt"],
                "step": status["overall"]["step"],
                "total_steps": status["overall"]["total_steps"],
                "last_incident": last,
                "supervisor": status["supervisor"],
                "cwd": run.load_spec().cwd,
                "created": run.load_spec().created_wall,
            }
        )
    if args.json:
        print_json({"runs": rows})
        return ExitCode.DONE
    if not rows:
        print("no runs yet: start one with `trainwatch run -- COMMAND`")
    for row in rows:
        step = f"step {row['step']:,}" if row["step"] is not None else "no step yet"
        watched = "watched" if row["supervisor"]["alive"] else "not watched"
        where = printable(row["cwd"])
        print(f"{row['id']:32} {row['state']:12} attempt {row['attempt']:<3} {step:16} {watched:12} {where}")
    return ExitCode.DONE

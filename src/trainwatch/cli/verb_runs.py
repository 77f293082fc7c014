"""``trainwatch runs``: list all runs of this machine, newest first."""

import argparse
from typing import Any

from trainwatch.core.app.errors import ExitCode
from trainwatch.core.app.runs.known_runs import all_runs, read_status, stand_in_of
from trainwatch.core.model.run import LIVE_STATES
from trainwatch.core.views import quantity

from .output import print_json, printable

SECTION = "watch"
HELP = "all known runs"
DESCRIPTION = (
    "Lists the runs that this machine knows, newest first. Ended runs of `demo` and `drill` are only counted; "
    "--all lists them, --json always has them."
)
EXAMPLE = "--json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help='one JSON object: {"runs": […]}')
    parser.add_argument("--all", action="store_true", help="list ended runs of demo and drill, too")


def act(args: argparse.Namespace) -> int:
    """Print them; none at all is an answer, too."""
    rows = []
    for run in all_runs():
        status, spec = read_status(run), run.load_spec()
        last = status["incidents"][-1] if status["incidents"] else None
        rows.append(
            {
                "run": spec.name,
                "id": run.path.name,
                "state": status["state"],
                "attempt": status["attempt"],
                "step": status["overall"]["step"],
                "total_steps": status["overall"]["total_steps"],
                "last_incident": last,
                "supervisor": status["supervisor"],
                "cwd": spec.cwd,
                "created": spec.created_wall,
                "stand_in": stand_in_of(spec),
            }
        )
    if args.json:
        print_json({"runs": rows})
        return ExitCode.DONE
    shown = [row for row in rows if args.all or not _is_over_for_show(row)]
    if not shown:
        print("no runs yet: start one with `trainwatch run -- COMMAND`")
    for row in shown:
        step = f"step {row['step']:,}" if row["step"] is not None else "no step yet"
        watched = "watched" if row["supervisor"]["alive"] else "not watched"
        where = printable(row["cwd"])
        print(f"{row['id']:32} {row['state']:12} attempt {row['attempt']:<3} {step:16} {watched:12} {where}")
    if len(shown) < len(rows):
        print(f"{quantity.plural(len(rows) - len(shown), 'ended run')} of demo and drill: trainwatch runs --all")
    return ExitCode.DONE


def _is_over_for_show(row: dict[str, Any]) -> bool:
    """An example's run that came to its end: nobody wants it before their own."""
    return row["stand_in"] is not None and row["state"] not in LIVE_STATES and not row["supervisor"]["alive"]

"""``trainwatch runs``: list all runs of this machine, newest first."""

import argparse
from typing import Any

from trainwatch.core.app.errors import ExitCode

from ..output import print_json, printable, warn

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
    """0 also if there are none."""
    from trainwatch.core.app.runs.lists.queued_runs import queued_entries
    from trainwatch.core.app.runs.run_status import run_rows

    rows = run_rows(warn)
    waiting = queued_entries(warn)
    if args.json:
        told = [
            {"id": entry.id, "name": entry.name, "place": place, "why": entry.why or None, "cwd": entry.cwd}
            for place, entry in enumerate(waiting, 1)
        ]
        print_json({"runs": [row for row, _ in rows], "queued": told})
        return ExitCode.DONE
    from trainwatch.core.views import quantity
    from trainwatch.core.views.columns import text_rows
    from trainwatch.core.views.printed_lists import RUNS

    shown = [told for told in rows if args.all or not _is_ended_example(told[0])]
    for place, entry in enumerate(waiting, 1):
        why = f": {printable(entry.why)}" if entry.why else ""
        print(f"{printable(entry.name):32} queued, place {place}{why}")
    if not shown and not waiting:
        print("no runs yet: start one with `trainwatch run -- COMMAND`")
    for line in text_rows(RUNS, shown):
        print(printable(line))
    if len(shown) < len(rows):
        print(f"{quantity.plural(len(rows) - len(shown), 'ended run')} of demo and drill: trainwatch runs --all")
    return ExitCode.DONE


def _is_ended_example(row: dict[str, Any]) -> bool:
    """A run of demo or drill that has ended."""
    from trainwatch.core.model.run import LIVE_STATES

    return row["stand_in"] is not None and row["state"] not in LIVE_STATES and not row["supervisor"]["alive"]

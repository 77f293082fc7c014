"""``trainwatch runs``: list all runs of this machine, newest first."""

import argparse
from typing import Any

from trainwatch.core.app.errors import ExitCode

from ..output import print_json, printable, warn

HELP = "all known runs"
DESCRIPTION = (
    "Lists the runs that this machine knows, newest first. Ended runs of `demo` and `drill` are only counted; "
    "--all lists them, --json always has them. `--on all` lists those of all machines of [hosts], too; all are asked "
    "at the same time, and one that does not answer is named with the reason."
)
EXAMPLE = "--json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help='one JSON object: {"runs": […]}')
    parser.add_argument("--all", action="store_true", help="list ended runs of demo and drill, too")
    parser.add_argument("--on", metavar="HOST", help="of that host; `all`: of this machine and of all hosts")


def act(args: argparse.Namespace) -> int:
    """0 also if there are none."""
    from trainwatch.core.app.runs.lists.queued_runs import queued_entries
    from trainwatch.core.app.runs.run_status import run_rows

    rows = run_rows(warn)
    waiting: list[dict[str, Any]] = [
        {"id": entry.id, "name": entry.name, "place": place, "why": entry.why or None, "cwd": entry.cwd}
        for place, entry in enumerate(queued_entries(warn), 1)
    ]
    told: dict[str, Any] = {"runs": [row for row, _ in rows], "queued": waiting}
    if args.on is not None:
        hosts = _add_others(rows, waiting)
        told = {"runs": [row for row, _ in rows], "queued": waiting, "hosts": hosts}
    if args.json:
        print_json(told)
        return ExitCode.DONE
    from trainwatch.core.views import quantity
    from trainwatch.core.views.columns import text_rows
    from trainwatch.core.views.printed_lists import RUNS

    shown = [each for each in rows if args.all or not _is_ended_example(each[0])]
    for entry in waiting:
        why = f": {printable(entry['why'])}" if entry.get("why") else ""
        print(f"{printable(_name(entry, entry['name'])):32} queued, place {entry['place']}{why}")
    if not shown and not waiting:
        print("no runs yet: start one with `trainwatch run -- COMMAND`")
    for line in text_rows(RUNS, [({**row, "id": _name(row, row["id"])}, still) for row, still in shown]):
        print(printable(line))
    for host in told.get("hosts", ()):
        if host["trouble"]:
            print(printable(f"{host['name']:32} no answer: {host['trouble'].removeprefix('no answer: ')}"))
    if len(shown) < len(rows):
        print(f"{quantity.plural(len(rows) - len(shown), 'ended run')} of demo and drill: trainwatch runs --all")
    return ExitCode.DONE


def _add_others(rows: list[tuple[dict[str, Any], str]], waiting: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the runs of the other machines (``host`` None: this one), newest first together. Returns the machines."""
    from trainwatch.core.app.hosts.far_runs import runs_of_all
    from trainwatch.core.app.hosts.known_hosts import NONE_KNOWN, all_hosts

    answers = runs_of_all(all_hosts().values())
    if not answers:
        warn(NONE_KNOWN)
    for row in [*(row for row, _ in rows), *waiting]:
        row["host"] = None
    for answer in answers:
        rows += [({**row, "host": answer.host}, "") for row in answer.rows]
        waiting += [{**entry, "host": answer.host} for entry in answer.queued]
    rows.sort(key=lambda each: -each[0]["created"])
    return [{"name": a.host, "reached": not a.trouble, "trouble": a.trouble or None} for a in answers]


def _name(row: dict[str, Any], name: str) -> str:
    """``box1:job-1a2b3c4d`` of a run of another machine."""
    return f"{row['host']}:{name}" if row.get("host") else name


def _is_ended_example(row: dict[str, Any]) -> bool:
    """A run of demo or drill that has ended."""
    from trainwatch.core.model.run import LIVE_STATES

    return row.get("stand_in") is not None and row["state"] not in LIVE_STATES and not row["supervisor"]["alive"]

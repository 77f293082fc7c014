"""The verbs that watch runs."""

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import CliError, ExitCode, ends_verb
from trainwatch.core.model.text import typed

from .output import end_when_unread, print_json, printable, put, warn
from .verb import JSON, RUN, Argument, Verbs, arg, flag, run_of, run_to_read

if TYPE_CHECKING:
    from trainwatch.core.app.runs.known_runs import RunDirectory


VERBS = Verbs()


@VERBS(
    "status",
    "the state of a run",
    "Shows the status of a run: state, progress, machine, checkpoints, incidents.",
    "--json",
    RUN,
    JSON,
    flag("--brief", "with --json: at most 300 bytes"),
    arg("--since", metavar="ID", help='with --brief: {"unchanged": true} if its "id" is still this one'),
    flag("--exit-code", "exit with the code that `wait` would have now; 7: it goes on"),
)
def status_verb(args: argparse.Namespace) -> int:
    """0 whenever the run is known, but for ``--exit-code``."""
    from trainwatch.core.app.runs.run_status import status_of

    status, seen = status_of(args.run, warn)
    if args.json:
        print_json(_brief(status, args.since) if args.brief else status)
    else:
        from .status_text import status_lines

        print("\n".join(status_lines(status)))
        seen()
    if not args.exit_code:
        return ExitCode.DONE
    from trainwatch.core.app.runs.waiting import CODES, kind_of

    asks, held = status["question"] is not None, status["hold"] is not None
    return CODES[kind_of(status["state"], held=held, asks=asks, watched=status["supervisor"]["alive"])]


MOST_BYTES = 300
"""Of ``--brief``."""


def _brief(status: dict[str, Any], since: str | None) -> dict[str, Any]:
    """What a script that looks often needs. ``id``: another one if anything of it but the ETA has changed."""
    import json
    from zlib import crc32

    troubles = status["troubles"]
    told = {
        "run": status["run"],
        "state": status["state"],
        "step": status["overall"]["step"],
        "total": status["overall"]["total_steps"],
        "trouble": troubles[0]["text"] if troubles else None,
        "needs_you": status["needs_you"],
    }
    seen = f"{crc32(json.dumps(told).encode()):08x}"
    if seen == since:
        return {"id": seen, "unchanged": True}
    moves = status["state"] in {"running", "finished"} and not status["still"]
    told |= {"eta_s": status["progress"]["eta_s"] if moves else None, "id": seen}
    for key in ("trouble", "needs_you", "run"):
        more = len(json.dumps(told, ensure_ascii=False).encode()) - MOST_BYTES
        if more > 0 and told[key]:
            told[key] = told[key].encode()[: max(16, len(told[key].encode()) - more - 3)].decode(errors="ignore") + "…"
    return told


@VERBS(
    "runs",
    "all known runs",
    "Lists the runs that this machine knows, newest first. Ended runs of `demo` and `drill` are only counted; "
    "--all lists them, --json always has them. `--on all` lists those of all machines of [hosts], too; all are asked "
    "at the same time, and one that does not answer is named with the reason.",
    "--json",
    flag("--json", 'one JSON object: {"runs": […]}'),
    flag("--all", "list ended runs of demo and drill, too"),
    arg("--on", metavar="HOST", help="of that host; `all`: of this machine and of all hosts"),
)
def runs_verb(args: argparse.Namespace) -> int:
    """0 also if there are none."""
    from trainwatch.core.app.runs.known_runs import queued_entries
    from trainwatch.core.app.runs.run_status import run_rows

    rows = run_rows(warn)
    waiting: list[dict[str, Any]] = [
        {"id": entry.id, "name": entry.name, "place": place, "why": entry.why or None, "cwd": entry.cwd}
        for place, entry in enumerate(queued_entries(warn), 1)
    ]
    told: dict[str, Any] = {"runs": rows, "queued": waiting}
    if args.on is not None:
        told["hosts"] = _add_others(rows)
    from trainwatch.core.model.run import LIVE_STATES
    from trainwatch.core.views import quantity
    from trainwatch.core.views.columns import RUNS, text_rows

    shown = [  # ended runs of demo and drill are counted
        row
        for row in rows
        if args.all or row.get("stand_in") is None or row["state"] in LIVE_STATES or row["supervisor"]["alive"]
    ]
    lines = []
    for entry in waiting:
        why = f": {entry['why']}" if entry["why"] else ""
        lines.append(f"{printable(entry['name']):32} queued, place {entry['place']}{why}")
    if not shown and not waiting:
        lines.append(f"no runs yet: start one with `{typed('run', '--', 'COMMAND')}`")
    lines += text_rows(
        RUNS, [{**row, "id": f"{row['host']}:{row['id']}" if row.get("host") else row["id"]} for row in shown]
    )
    for host in told.get("hosts", ()):
        if host["trouble"]:
            lines.append(f"{host['name']:32} no answer: {host['trouble'].removeprefix('no answer: ')}")
    if ended := len(rows) - len(shown):
        lines.append(f"{quantity.plural(ended, 'ended run')} of demo and drill: {typed('runs', '--all')}")
    return put(args, told, *lines)


def _add_others(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the runs of the other machines (``host`` None: this one), newest first together. Returns the machines."""
    from trainwatch.core.app.hosts.far_runs import runs_of_all
    from trainwatch.core.app.hosts.run_there import NONE_KNOWN, all_hosts

    answers = runs_of_all(all_hosts().values())
    if not answers:
        warn(NONE_KNOWN)
    for row in rows:
        row["host"] = None
    for answer in answers:
        rows += [{**row, "host": answer.host} for row in answer.rows]
    rows.sort(key=lambda each: -each["created"])
    return [{"name": a.host, "reached": not a.trouble, "trouble": a.trouble or None} for a in answers]


def following(what: str) -> tuple[Argument, Argument]:
    forever = arg("--follow-forever", "-F", action="store_true", help=f"keep printing {what} (Ctrl-C ends)")
    return arg("--follow", "-f", action="store_true", help=f"keep printing {what} until the run is over"), forever


def _over(args: argparse.Namespace, run: "RunDirectory") -> Callable[[], bool] | None:
    """When following ends; None: nothing is followed."""
    if not (args.follow or args.follow_forever):
        return None
    from trainwatch.core.app.runs.waiting import Standings

    end_when_unread()
    return (lambda: False) if args.follow_forever else Standings(run).over


@VERBS(
    "events",
    "the events of a run, from its journal",
    "Prints observations, findings, decisions and their outcomes, oldest first.",
    "--follow",
    RUN,
    *following("new events"),
    flag("--json", "JSON lines, one record each"),
    arg("--since", type=int, default=0, metavar="SEQ", help='only those behind the one with this "seq" of --json'),
)
def events_verb(args: argparse.Namespace) -> int:
    """A run without a journal has no events."""
    from trainwatch.core.app.runs.waiting import records_of

    from .events import show

    run = run_to_read(args)
    for record in records_of(run, _over(args, run) or (lambda: True)):
        if record.seq <= args.since:
            continue
        show(record, run.id, as_json=args.json)
    return ExitCode.DONE


LINES = 100
POLL_S = 0.5


@VERBS(
    "logs",
    "what the trainer printed: the log of its newest attempt",
    "Prints the end of the log of the newest attempt, or all of it, with its colours and without what else acts on a "
    "terminal (`--path` names the file as it is). `trainwatch attach` shows it live in a "
    "terminal of its own, `trainwatch` on the screen.",
    "-n 200",
    RUN,
    arg("--lines", "-n", type=int, default=LINES, help=f"last lines to print (default {LINES})"),
    flag("--all", "print all of it"),
    *following("what is added"),
    arg("--attempt", type=int, help="another attempt than the newest"),
    arg("--at", metavar="TIME", help='lines around a local time: "03:41", "2026-11-30 03:41:20"'),
    flag("--path", "print the path of the log instead"),
)
def logs_verb(args: argparse.Namespace) -> int:
    """3 if there is no log."""
    from trainwatch.core.app.runs.known_runs import log_of, log_pieces

    if args.lines < 1:
        raise CliError(ExitCode.USAGE, "--lines takes a number of at least 1")
    run = run_to_read(args)
    if args.at is not None:
        from trainwatch.core.app.runs.known_runs import log_around

        print(log_around(run, args.at, args.lines), end="")
        return ExitCode.DONE
    over = _over(args, run)
    while True:
        ended = over is None or over()
        try:
            path = log_of(run, args.attempt)
            break
        except CliError:  # the first attempt was not started yet
            if ended:
                raise
            time.sleep(POLL_S)
    if args.path:
        print(path)
        return ExitCode.DONE
    for piece in log_pieces(run, path, None if args.all else args.lines, over):
        sys.stdout.write(piece)
        if over is not None:  # else whole lines go on: a secret is not cut in two
            sys.stdout.flush()
    return ExitCode.DONE


@VERBS(
    "wait",
    "block until a run is over or needs you",
    "Blocks until the run is over or needs you, and prints one line. Exit code: 0 finished; 1 given up or ended early; "
    "6 it needs you: held, stopped or paused by a person, or a question is open; 124 the time limit passed; "
    "5 nothing watches it and it is not over; 3 no such run. With --until X: 0 when X is reached; 1 or 6 when it "
    "cannot be reached any more. `trainwatch snooze` gives a suspected hang more time.",
    "--until finished --timeout 36000",
    RUN,
    arg(
        "--until",
        metavar="WHAT",
        help="over, finished, needs-you, or a state as `status --json` has it (default: over or needs-you)",
    ),
    arg("--timeout", type=float, metavar="S", help="wait at most this many seconds"),
    flag("--json", "one JSON object: run, state, step, reason"),
)
def wait_verb(args: argparse.Namespace) -> int:
    """The exit code says how the run stands."""
    from typing import get_args

    from trainwatch.core.app.runs.run_status import read_run
    from trainwatch.core.app.runs.waiting import wait_for
    from trainwatch.core.model.run import RunState

    if args.until is not None and args.until not in (known := ("over", "needs-you", *get_args(RunState))):
        raise CliError(ExitCode.USAGE, f"--until {printable(args.until)}: it is one of {', '.join(known)}")
    run = run_to_read(args, anywhere=False)
    code, now = wait_for(run, args.until, args.timeout)
    name = run.load_spec().name
    late = f" after {args.timeout:g} s" if code is ExitCode.TIMEOUT else ""
    said = f"{name} is {now.state.replace('_', ' ')}{late}" + (f": {now.reason}" if now.reason else "")
    if now.kind == "unwatched":
        said += f"; no supervisor watches it: `{typed('resume', run.id)}` goes on with it"
    put(args, {"run": name, "state": now.state, "step": read_run(run).said.position.step, "reason": now.reason}, said)
    return code


@VERBS(
    "attach",
    "open the trainer's terminal, or its live log",
    "In pty mode this opens the trainer's own terminal. In file mode it shows the trainer's log: keys cannot "
    "reach the trainer.",
    "",
    RUN,
)
def attach_verb(args: argparse.Namespace) -> int:
    """Replaces this process by the view; 1 if there is nothing to show."""
    from trainwatch.core.app.wiring.supervisor import attach_argv

    run = run_of(args)
    with ends_verb(ExitCode.FAILED, RuntimeError):
        argv = attach_argv(run)
    if not sys.stdout.isatty():
        raise CliError(ExitCode.USAGE, f"attach needs a terminal; the log: `{typed('logs', run.id)}` (-f follows it)")
    os.execvp(argv[0], argv)


PORT = 8700
MISSING = "the screen in a browser needs textual-serve: pip install 'trainwatch-tui[web]'"


@VERBS(
    "serve",
    "the screen in a browser, behind a token",
    "Serves the screen to browsers of this machine and prints the address with its token. From elsewhere: "
    "ssh -L 8700:localhost:8700 HOST. Ctrl-C ends it; training and supervisor continue.",
    "--read-only",
    RUN,
    flag("--read-only", "screens that can change nothing"),
    arg("--port", type=int, default=PORT, metavar="N", help=f"default: {PORT}; 0: any free one"),
)
def serve_verb(args: argparse.Namespace) -> int:
    """Serves until Ctrl-C; 1 if the port is taken."""
    try:
        from . import web
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"aiohttp", "textual_serve"}:
            raise
        raise CliError(ExitCode.FAILED, MISSING) from None
    from trainwatch.core.app.runs.known_runs import find_run

    words = ["--run", find_run(args.run).id] if args.run else []
    words += ["--read-only"] if args.read_only else []
    try:
        web.serve_screens(words, args.port, f"trainwatch {args.run or ''}".strip())
    except OSError as error:
        why = error.strerror or error
        raise CliError(ExitCode.FAILED, f"port {args.port}: {why}; choose another with --port") from None
    return ExitCode.DONE


@VERBS(
    "mcp",
    "the verbs as tools for an agent (Model Context Protocol)",
    "Serves an agent over standard input and output: status, events, report, diagnose, checkpoints, logs, wait. Reads "
    "only; --act adds stop, restart, resume and save. ask: a person has to say yes, on the screen or with the verb "
    "at a terminal; without an answer nothing is done. all: nobody is asked.",
    "--act ask",
    arg("--act", dest="agent_acts", choices=("ask", "all"), help="what the agent may do; default: read only"),
)
def mcp_verb(args: argparse.Namespace) -> int:
    """Serves until its standard input is closed."""
    from .mcp_server import Server

    if sys.stdin.isatty():
        warn("this speaks with an agent's client, which starts it itself (docs/agents.md); Ctrl-C ends it")
    Server(args.agent_acts).run()
    return ExitCode.DONE


@VERBS(
    "metrics",
    "the newest values of all runs, for Prometheus",
    "Prints the newest values of all runs of this user in the Prometheus text format: steps, loss, checkpoints, "
    "incidents, troubles, GPUs, host; runs that are over for a day are left out. For an endpoint that Prometheus reads "
    "itself, set [metrics] prometheus in trainwatch.toml.",
    "",
)
def metrics_verb(_args: argparse.Namespace) -> int:
    from trainwatch.core.app.export import prometheus_page

    print(prometheus_page(warn), end="")
    return ExitCode.DONE

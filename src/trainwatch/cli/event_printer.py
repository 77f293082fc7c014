"""Supervise a run in this process and print one line per event."""

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from trainwatch.core.app.errors import ExitCode
from trainwatch.core.app.plan.launch_plan import LaunchPlan
from trainwatch.core.app.runs.known_runs import RunDirectory
from trainwatch.core.app.runs.output_claim import OutputClaim
from trainwatch.core.model.observation import Command
from trainwatch.core.model.record import Record
from trainwatch.core.model.story import RunStory
from trainwatch.core.views.state.concerns import reason_of

from .output import outlive_reader, printable, warn
from .watch import show


def supervise_and_print(
    run: RunDirectory,
    *,
    plan: LaunchPlan | None = None,
    first: Command | None = None,
    as_json: bool = False,
    stop_trainer: bool = False,
    claim: OutputClaim | None = None,
) -> int:
    """``supervise`` with every record printed as it is written. For a run that has ended it prints one line."""
    from trainwatch.core.app.foreground import NothingToSuperviseError, supervise
    from trainwatch.core.app.supervise.state_keeper import OwnFiles

    outlive_reader()
    if not stop_trainer:
        warn(f"this process is the supervisor (pid {os.getpid()}); it goes on when its terminal is closed")
    printer = EventPrinter(run, as_json=as_json)
    try:
        return supervise(
            run,
            listener=printer.begin,
            turning=printer.turn,
            plan=plan,
            first=first,
            stop_trainer=stop_trainer,
            claim=claim,
            own_files=OwnFiles(run, as_json=as_json),
            after_fault=printer.after_fault,
        )
    except NothingToSuperviseError as ended:
        print(ended, file=sys.stdout if ended.code == ExitCode.DONE else sys.stderr)
        return ended.code


class EventPrinter:
    """One line per event, and every ``watch.summary_s`` a health line that repeats open incidents."""

    def __init__(self, run: RunDirectory, *, as_json: bool) -> None:
        self._as_json = as_json
        self._run = run
        self._summary_s = run.load_spec().settings.watch.summary_s
        self._summary_at = math.inf if as_json else time.monotonic() + self._summary_s
        self._lock = threading.Lock()
        self._gives_way: Callable[[], bool] = lambda: False

    def begin(self, story: RunStory) -> Callable[[Sequence[Record]], None]:
        """What gets the records. What the run waits for was told by an earlier supervisor; it is said again."""
        if story.state_why.holds and not self._as_json:
            since = _clock(story.state_t, story.wall0)
            print(f"{printable(reason_of(story))} (since {since})", flush=True)
        return self

    def after_fault(self, gives_way: Callable[[], bool]) -> None:
        """Set what is asked if a health line fails: whether a new version of trainwatch goes on."""
        self._gives_way = gives_way

    def __call__(self, records: Sequence[Record]) -> None:
        """Print them."""
        with self._lock:
            for record in records:
                show(record, self._run.id, as_json=self._as_json)

    def turn(self) -> None:
        """Begin a health line if it is time, in a thread: it reads the state of the run."""
        if time.monotonic() >= self._summary_at:
            self._summary_at = time.monotonic() + self._summary_s
            threading.Thread(target=self._summarise, name="summary", daemon=True).start()

    def _summarise(self) -> None:
        try:
            with self._lock:
                line = self._health_line()
                print(line, flush=True)
        except Exception:
            # The run's folder may just be removed or made again: the next line is due soon. Or what is loaded only now
            # was replaced by another version, which then goes on.
            self._gives_way()

    def _health_line(self) -> str:
        from trainwatch.core.app.runs.run_status import read_run

        from .status_text import machine_lines, status_lines

        status, still = read_run(self._run)
        said = [*status_lines(status, still)[:4], *machine_lines(status)]
        said += [f"ALERT {i['kind']} since {_clock(i['t'], status['wall0'])}: {i['reason']}" for i in _alerts(status)]
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        return f"{now}  health: {' | '.join(' '.join(x.split()) for x in said)}"


def _alerts(status: dict[str, Any]) -> list[dict[str, Any]]:
    """Open incidents that are not acknowledged."""
    return [i for i in status["incidents"] if i["open"] and not i["acknowledged"] and i["severity"] != "info"]


def _clock(t: float, wall0: float) -> str:
    return time.strftime("%H:%M", time.localtime(wall0 + t))

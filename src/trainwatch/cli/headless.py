"""Looking after one run in the foreground: what ``--headless``, ``run`` and the detached supervisor all do."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trainwatch.core.model.observation import Command
from trainwatch.core.model.record import Record
from trainwatch.core.model.story import RunStory, apply
from trainwatch.core.model.wire import Reply, Request
from trainwatch.core.store.control_server import ControlServer
from trainwatch.core.store.journal import JournalTooNew, load_story
from trainwatch.core.store.lock import SupervisorLock, SupervisorRunning
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.supervisor import Supervisor

from .failure import CliError, ExitCode
from .output import printable
from .output_owner import require_own_output_to_start
from .verb_events import show
from .wiring import build_supervisor, close_view

Listener = Callable[[Sequence[Record]], None]
ANSWER_S = 4.0
"""Longest wait of an operator for the loop to take a command: it may be writing to a slow disk. Clients wait for 5."""


def supervise(
    run: RunDirectory,
    *,
    first: Command | None = None,
    as_json: bool = False,
    stop_trainer: bool = False,
    listener: Listener | None = None,
) -> int:
    """Take the run's lock and watch it to its end. Returns 0 (finished, or told to leave it running) or 1 (given up).

    ``first`` is an operator command to begin with (``resume`` of a run that was stopped). ``listener`` gets every
    record as it is written; without one they are printed. Ends with exit code 4 when another supervisor owns the run.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    lock = SupervisorLock(run.lock)
    try:
        lock.acquire()
    except SupervisorRunning as error:
        raise CliError(ExitCode.OWNED, str(error)) from None
    try:
        story = load_story(run.journal)
    except JournalTooNew as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    with lock:
        settled = _settled(run, story) if first is None else None
        if settled is not None:
            return settled
        require_own_output_to_start(run)
        return _watch(run, story, first, listener or Printer(run, story, as_json=as_json), stop_trainer)


def _settled(run: RunDirectory, story: RunStory) -> int | None:
    """The exit code where nothing is left to do, with a sentence that says what would be."""
    name = printable(run.load_spec().name)
    match story.state:
        case "finished":
            print(f"{name} is finished ({story.state_reason}); its events: trainwatch events {run.id}")
            return ExitCode.DONE
        case "given_up" | "stopped":
            print(
                f"{name} is {story.state.replace('_', ' ')} ({story.state_reason}); "
                f"go on with: trainwatch resume {run.id}",
                file=sys.stderr,
            )
            return ExitCode.FAILED
        case _:
            return None


def _watch(
    run: RunDirectory,
    story: RunStory,
    first: Command | None,
    listener: Listener,
    stop_trainer: bool,
) -> int:
    supervisor = build_supervisor(run, story, on_records=listener)
    interrupted = _leave_on_signals(supervisor, stop_trainer=stop_trainer)
    server = ControlServer(run, lambda request: _answer(supervisor, request), os.environ)
    server.start()
    try:
        if first is not None:
            supervisor.ask(first)
        code = supervisor.run()
    finally:
        server.stop()
    if load_story(run.journal).state == "finished":
        close_view(run)
    return ExitCode.INTERRUPTED if interrupted.is_set() else code


def _answer(supervisor: Supervisor, request: Request) -> Reply:
    """Called in the control server's threads."""
    if request.command is None:
        return Reply(ok=True, message="here", data={"pid": os.getpid()})
    try:
        return supervisor.ask(request.command).result(ANSWER_S)
    except TimeoutError:
        return Reply(ok=True, message=f"{request.command.verb}: noted; `trainwatch events` shows when it is taken")


def _leave_on_signals(supervisor: Supervisor, *, stop_trainer: bool) -> threading.Event:
    """TERM, HUP and INT end the watch and leave the trainer running (``--stop-trainer``: end it, too).

    The returned event says whether it was an INT. Handlers only start threads: they may interrupt the loop anywhere.
    """
    interrupted = threading.Event()

    def leave(number: int, _frame: Any) -> None:
        name = signal.Signals(number).name
        if number == signal.SIGINT:
            interrupted.set()
        if stop_trainer:
            shutdown = Command(t=0.0, verb="shutdown", by=name, stop_trainer=True)
            threading.Thread(target=supervisor.ask, args=(shutdown,), daemon=True).start()
        else:
            supervisor.end(ExitCode.DONE, f"asked by {name}; the training goes on")

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, leave)
    return interrupted


class Printer:
    """One line per event, and every ``watch.summary_s`` a health line that repeats what is open."""

    def __init__(self, run: RunDirectory, story: RunStory, *, as_json: bool) -> None:
        self._story = story
        self._as_json = as_json
        self._run = run
        self._summary_s = run.load_spec().settings.watch.summary_s
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        if not as_json:
            threading.Thread(target=self._summarise, name="summary", daemon=True).start()

    def __call__(self, records: Sequence[Record]) -> None:
        """Print them. A closed standard output (a pipe that ended) must not end the watch."""
        with self._lock:
            for record in records:
                self._story = apply(self._story, record)
                try:
                    show(record, as_json=self._as_json)
                except OSError:
                    sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  for life

    def _summarise(self) -> None:
        from .known_runs import read_status
        from .verb_status import machine_lines, status_lines

        while not self._stopped.wait(self._summary_s):
            with self._lock:
                status = read_status(self._run)
                said = [*status_lines(status)[:4], *machine_lines(status)]
                said += [f"ALERT {i['kind']} since {_clock(i['t'], status)}: {i['reason']}" for i in _alerts(status)]
                now = time.strftime("%Y-%m-%d %H:%M:%S")
                print(f"{now}  health: {' | '.join(' '.join(x.split()) for x in said)}", flush=True)


def _alerts(status: dict[str, Any]) -> list[dict[str, Any]]:
    """What is open and was not acknowledged: it is repeated for as long as it lasts."""
    return [i for i in status["incidents"] if i["open"] and not i["acknowledged"] and i["severity"] != "info"]


def _clock(t: float, status: dict[str, Any]) -> str:
    return time.strftime("%H:%M", time.localtime(status["wall0"] + t))

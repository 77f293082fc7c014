"""Supervise one run in this process: ``--headless``, ``run`` and the detached supervisor do this."""

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..act.notify import AT_END_S, Outbox, has_begun
from ..judge.state import JudgeState, changed, from_snapshot
from ..model.decision import Record
from ..model.launch import LABEL
from ..model.observation import Command, Reply, Request
from ..model.redact import EDGE
from ..model.run import TERMINAL_STATES
from ..model.story import RunStory
from ..model.text import printable, typed
from ..store.control_server import ControlServer
from ..store.journal import JournalTooNew, latest_snapshot, load_story
from ..store.learned import ListUnreadable
from ..store.lock import SupervisorLock, SupervisorRunning
from ..store.run_directory import RunDirectory
from ..supervisor.loop import Supervisor
from ..views.checkpoint_list import how_to_resume
from .errors import CliError, ExitCode, ends_verb
from .plan.launch_plan import LaunchPlan
from .runs.known_runs import know_secrets
from .runs.output_claim import OutputClaim, require_own_output_to_start, trainer_pid
from .supervise.machine_end import REPLACES, ends_with_us, grace_s, passed_on
from .supervise.state_keeper import OwnFiles, Vitality
from .wiring.supervisor import build_supervisor, close_view

if TYPE_CHECKING:
    from .supervise.channels import Channel

Listener = Callable[[Sequence[Record]], None]
log = logging.getLogger(__name__)
ANSWER_S = 4.0
"""Longest time that an operator's command waits for the loop, which may be writing to a slow disk. Clients wait 5 s."""


OPEN_FILES = 65_536
"""Wanted limit of open files. The hard one of a container may be 10⁹, and some programs close each number below it."""


class NothingToSuperviseError(CliError):
    """The run is over (finished, ended early, given up, or stopped by a person) until somebody resumes it."""


def supervise(
    run: RunDirectory,
    *,
    listener: Callable[[RunStory], Listener] = lambda _story: lambda _records: None,
    judged: Callable[[Callable[[], JudgeState]], None] = lambda _state: None,
    turning: Callable[[], None] = lambda: None,
    plan: LaunchPlan | None = None,
    first: Command | None = None,
    stop_trainer: bool = False,
    claim: OutputClaim | None = None,
    own_files: OwnFiles | None = None,
    after_fault: Callable[[Callable[[], bool]], None] = lambda _gives_way: None,
) -> int:
    """Take the run's lock and supervise it to its end: 0 (finished, or left running on request) or 1 (any other end).

    ``plan``: of the first launch, if it was computed already. ``first``: an operator command to begin with (``resume``
    of a run that was stopped). ``listener`` is called once with the story so far and returns the function that gets
    every record as it is written. ``judged``: called once with what returns the judge's state at any time.
    ``turning``: called at each turn of the loop. ``claim``: the locks of its output folder, if they were taken already.
    ``own_files``: if they are replaced, this process goes on as the new version.
    ``after_fault``: called once with what a thread of the caller asks after a fault that may be due to replaced files:
    whether the new version goes on.
    Raises CliError with exit code 4 if another supervisor owns the run or another run has the folder,
    NothingToSuperviseError if the run has ended.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    EDGE.know(os.environ)
    _allow_open_files()
    know_secrets(run)
    lock = SupervisorLock(run.lock)
    with ends_verb(ExitCode.OWNED, SupervisorRunning), ends_verb(ExitCode.FAILED, JournalTooNew):
        lock.acquire()
        story = load_story(run.journal)
    revive: Callable[[Path], object] | None = None
    if LABEL in run.load_spec().labels:  # loaded now: its file may be another version's by then
        from .queue import ensure_worker as revive
    code, renewed = int(ExitCode.FAILED), False
    try:
        with lock:
            if first is None:
                _require_unsettled(run, story)
            claim = claim if claim is not None else OutputClaim(run.load_spec(), run.path.parents[1])
            unlocked = _take(run, claim)
            gives_way: Callable[[], bool] | None = None
            try:
                with Vitality(run, lock, turning=turning) as vitality:
                    gives_way = None if own_files is None or stop_trainer or ends_with_us() else own_files.give_way
                    supervisor = build_supervisor(
                        run, story, plan, claim, on_records=listener(story), vitality=vitality, gives_way=gives_way
                    )
                    if first is not None:  # the person who typed it is there: nothing is left of an end before it
                        supervisor.state = changed(supervisor.state, "saved", end=None)
                    after_fault(supervisor.give_way)
                    _first_notes(unlocked, lock, supervisor, vitality)
                    code = _watch(run, supervisor, vitality, first, judged, stop_trainer=stop_trainer)
                    renewed = supervisor.gave_way
            except CliError:
                raise
            except Exception:
                if gives_way is None or not gives_way():
                    lock.crashed = True  # a bug: whoever watches this supervisor may start another
                    raise
                log.exception("a bug, or a file of another version: the new version goes on")
                renewed = True
            finally:
                claim.release()
    finally:
        if revive is not None and not renewed:
            with contextlib.suppress(OSError, ListUnreadable):
                revive(run.path.parents[1])
    if own_files is not None and renewed:
        own_files.execute()
    return code


def _allow_open_files() -> None:
    """Raise the soft limit towards the hard one; the trainer inherits it."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def can_supervise(run: RunDirectory) -> None:
    """Read what a supervisor of this run reads first. Raises what stops it: JournalTooNew, RunUnreadable, OSError."""
    run.load_spec()
    load_story(run.journal)


def _first_notes(unlocked: str | None, lock: SupervisorLock, supervisor: Supervisor, vitality: Vitality) -> None:
    """Say whose the output folder is, and that the last supervisor died; notify if this one was started in its place.

    ``unlocked``: the sentence of ``_take``.
    """
    vitality.outbox.tell = supervisor.note
    if unlocked is not None:
        supervisor.note(unlocked)
    if lock.predecessor is None:
        return
    died = f"the supervisor before this one (pid {lock.predecessor}) died or was killed because it was frozen"
    supervisor.note(died)
    if os.environ.pop(REPLACES, None):
        said = f"{died}; the runner started a new one, which goes on watching"
        vitality.keeper.notice("replaced", "trainwatch: supervisor replaced", said)


def _take(run: RunDirectory, claim: OutputClaim) -> str | None:
    """Take the locks of the output folder. Raises CliError (exit code 4) if a trainer would be started beside another.

    A trainer of this run that lives already is watched in any case; then the sentence about the other run is returned.
    """
    require_own_output_to_start(run)
    try:
        claim.take()
    except CliError as taken:
        if trainer_pid(run) is None:
            raise
        return f"{taken}; this run's own trainer is watched, and no attempt is started while the other run is there"
    return None


LEFT_S = 3600.0
"""Since the last record. Later a person has come: the command of the end may stop the machine under them."""


def _require_unsettled(run: RunDirectory, story: RunStory) -> None:
    """Raise NothingToSuperviseError if the run has ended; its message names the command that continues it.

    A supervisor that died before it had copied, evaluated and run the command of the end has left that to the next, for
    LEFT_S.
    """
    if story.state not in TERMINAL_STATES:
        return
    kept = latest_snapshot(run.journal)
    left = None if kept is None else from_snapshot(kept.state)
    end = None if left is None else left.saved.end
    if end is not None and not has_begun(str(run.path), end.t) and time.time() < story.wall0 + story.t + LEFT_S:
        return
    Outbox(run.load_spec(), str(run.path)).flush()
    said = f"{printable(run.load_spec().name)} is {story.state.replace('_', ' ')} ({story.state_reason}); "
    if story.state == "finished":
        raise NothingToSuperviseError(ExitCode.DONE, f"{said}its events: {typed('events', run.id)}")
    code = ExitCode.NEEDS_YOU if story.state == "stopped" else ExitCode.FAILED
    raise NothingToSuperviseError(code, f"{said}continue it with: {how_to_resume(story, (run.id,))}")


def _watch(
    run: RunDirectory,
    supervisor: Supervisor,
    vitality: Vitality,
    first: Command | None,
    judged: Callable[[Callable[[], JudgeState]], None],
    *,
    stop_trainer: bool,
) -> int:
    kind = ends_with_us()
    within_s = None if kind is None or stop_trainer else grace_s(kind, run.load_spec().settings)
    judged(lambda: supervisor.state)
    interrupted = _handle_signals(supervisor, stop_trainer=stop_trainer or kind is not None, within_s=within_s)
    server = ControlServer(run, lambda request: _answer(run, supervisor, vitality, request), os.environ)
    server.start()

    channels = _channels(run, supervisor, vitality)
    try:
        if supervisor.live is not None and trainer_pid(run) is None and not run.load_spec().capabilities.queues:
            supervisor.found_dead = True
        if first is not None:
            supervisor.ask(first).add_done_callback(lambda reply: _end_if_refused(supervisor, reply.result()))
        code = supervisor.run()
    finally:
        server.stop()
        for channel in channels:
            channel.stop()
        vitality.outbox.flush(AT_END_S if supervisor.nothing_runs else 0.0)
    story = load_story(run.journal)
    if story.state in TERMINAL_STATES:
        close_view(run)
    if kind is not None and not stop_trainer:
        return passed_on(story, code)
    return ExitCode.INTERRUPTED if interrupted.is_set() else code


def _end_if_refused(supervisor: Supervisor, reply: Reply) -> None:
    """A supervisor that was started for a command that makes no sense has nothing to do."""
    if not reply.ok and supervisor.at_rest:
        supervisor.end(ExitCode.FAILED, reply.message)


def _channels(run: RunDirectory, supervisor: Supervisor, vitality: Vitality) -> "list[Channel]":
    """The calls of ``[notify] ping_url`` and the endpoint for Prometheus, started, as far as the settings want them."""
    settings = run.load_spec().settings
    if not (settings.notify.ping_url or settings.metrics.prometheus):
        return []
    from .export import prometheus_page
    from .supervise.channels import DeadManPing, MetricsEndpoint

    def tell(kind: str, over: str, trouble: str | None) -> None:
        """Set a trouble of this kind, or clear it and write ``over``."""
        if trouble is None:
            vitality.troubles.clear(kind)
            supervisor.note(over)
        elif vitality.troubles.set(kind, trouble, "warning"):
            supervisor.note(trouble)

    found: list[Channel] = []
    if settings.notify.ping_url:
        told = partial(tell, "ping", "the ping address is called again")
        blind = lambda: vitality.why_blind(live=supervisor.live is not None)  # noqa: E731
        found.append(DeadManPing(settings.notify.ping_url, blind, told))
    if settings.metrics.prometheus:
        told = partial(tell, "metrics_endpoint", "the metrics for Prometheus are served now")
        page = lambda: prometheus_page(lambda _problem: None)  # noqa: E731
        found.append(MetricsEndpoint(settings.metrics.prometheus, page, told))
    for channel in found:
        channel.start()
    return found


def _answer(run: RunDirectory, supervisor: Supervisor, vitality: Vitality, request: Request) -> Reply:
    """Called in the control server's threads."""
    if request.command is None:
        return Reply(ok=True, message="here", data={"pid": os.getpid(), **vitality.report()})
    try:
        return supervisor.ask(request.command).result(ANSWER_S)
    except TimeoutError:
        told = f"{request.command.verb}: received; `{typed('events', run.id)}` shows when it is carried out"
        return Reply(ok=True, message=told)


def _handle_signals(supervisor: Supervisor, *, stop_trainer: bool, within_s: float | None) -> threading.Event:
    """SIGTERM and SIGINT end the supervisor, and the trainer, too, with ``--stop-trainer``. It outlives its terminal.

    ``within_s``: seconds for a save and the end, if the machine ends, too. SIGUSR1 and SIGUSR2, which schedulers send
    before the limit of a job, ask for a checkpoint.

    The returned event is set after a SIGINT. Handlers only start threads, because they may interrupt the loop anywhere.
    """
    interrupted = threading.Event()

    def ask(order: Command) -> None:
        threading.Thread(target=supervisor.ask, args=(order,), daemon=True).start()

    def leave(number: int, _frame: Any) -> None:
        name = signal.Signals(number).name
        if number == signal.SIGINT:
            interrupted.set()
        if stop_trainer:
            ask(Command(t=0.0, verb="shutdown", by=name, stop_trainer=True, within_s=within_s))
        else:
            rest = "; nothing of the run is running" if supervisor.nothing_runs else "; the training continues"
            supervisor.end(ExitCode.DONE, f"requested by {name}{rest}")

    def save(number: int, _frame: Any) -> None:
        ask(Command(t=0.0, verb="save", by=signal.Signals(number).name))

    def stay(_number: int, _frame: Any) -> None:
        supervisor.note("SIGHUP (a terminal or a session has ended): this supervisor goes on")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, save)
    signal.signal(signal.SIGHUP, stay)
    return interrupted

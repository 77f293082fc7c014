"""Whether a run's supervisor lives and turns: its lock, its last sign of life, the state of its process, its answer."""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...model.checkpoint import DAMAGED, Checkpoint
from ...model.log_lines import LogLine
from ...model.progress import Outlook, Progress, Why
from ...model.run import TERMINAL_STATES, AttemptStory, RunSpec
from ...model.settings import Health
from ...model.story import RESPONSIVE_S, RunStory, Situation, SupervisorLife, Trouble
from ...processes import is_alive, read_process
from ...spool import read_exit, read_start
from ...store.journal import load_story
from ...store.latest import Latest, ProgressPoint, latest_of
from ...store.lock import holder_pid, is_held, read_life_sign
from ...store.run_directory import RunDirectory
from ...views.quantity import clock

FRESH_S = 3.0
"""A sign of life of at most this age needs no question."""
ANSWER_S = 1.0
"""Longest wait for the answer to a question. A supervisor that turns answers within milliseconds."""
STOPPED_STATES = frozenset("Tt")


def supervisor_life(run: RunDirectory, *, ask: bool = False) -> SupervisorLife:
    """Look at the supervisor of a run. Blocks for at most about ANSWER_S, if it does not answer.

    ``ask``: ask it for its own troubles even if its sign of life is fresh.
    """
    if not is_held(run.lock):
        return SupervisorLife()
    pid = holder_pid(run.lock)
    stat = read_process(pid) if pid is not None else None
    stopped = stat is not None and stat.state in STOPPED_STATES
    sign = read_life_sign(run.life_sign)
    age_s = sign.age_s if sign is not None and pid in {None, sign.pid} else None
    troubles: tuple[Trouble, ...] = ()
    newest: ProgressPoint | None = None
    if not stopped and (ask or age_s is None or age_s > FRESH_S):
        said = _asked(run)
        if said is not None:
            age_s = min(float(said.get("age_s", 0.0)), age_s if age_s is not None else float("inf"))
            with contextlib.suppress(msgspec.ValidationError):
                troubles = msgspec.convert(said.get("troubles", ()), tuple[Trouble, ...])
            with contextlib.suppress(msgspec.ValidationError):
                newest = msgspec.convert(said.get("progress"), ProgressPoint | None)
    if age_s is None and sign is None:  # it just began: its first sign of life comes after it has the lock
        with contextlib.suppress(OSError):
            age_s = max(0.0, time.time() - run.lock.stat().st_mtime)
    return SupervisorLife(
        pid=pid,
        alive=True,
        responsive=not stopped and age_s is not None and age_s <= RESPONSIVE_S,
        age_s=age_s,
        stopped=stopped,
        troubles=troubles,
        progress=newest.progress if newest is not None else None,
        step_t=newest.step_t if newest is not None else None,
    )


def _asked(run: RunDirectory) -> dict[str, Any] | None:
    """The data of its answer; None: no answer in time."""
    if not Path(run.control).exists():
        return None
    from ...model.observation import Request
    from ...store.control_client import ControlError, send

    try:
        reply = send(run, Request(), ANSWER_S)
    except (ControlError, OSError):
        return None
    return reply.data if reply.ok else None


def situation_of(
    story: RunStory, life: SupervisorLife, latest: Latest, *, created_wall: float, health: Health
) -> Situation:
    """A run now, read from outside. Its progress is that of the supervisor's answer, else the newest that was kept."""
    from ...views.state.concerns import frozen_text

    wall, made = time.time(), latest.progress
    answered = life.progress is not None
    now_t = max(story.t, wall - (story.wall0 if story.run is not None else created_wall))
    return Situation(
        story=with_rewritten(story),
        gpu=latest.gpu,
        host=latest.host,
        process=latest.process,
        progress=life.progress or (made.progress if made else None),
        progress_t=now_t if answered else made.t if made else 0.0,
        step_t=life.step_t if answered else made.step_t if made else None,
        outlook=made.outlook if made and life.alive else Outlook(),
        now_t=now_t,
        now_wall=wall,
        supervisor_alive=life.alive,
        frozen=frozen_text(life) if life.frozen else "",
        health=health,
    )


def read_situation(
    run: RunDirectory, stored: RunStory | None = None, *, ask: bool = False, disks: bool = False
) -> tuple[Situation, SupervisorLife]:
    """From its journal, its metric history, its lock and its sign of life. ``stored``: of the journal, if it was read.

    ``ask``: ask the supervisor for its own troubles and its newest step, too. ``disks``: with the troubles
    that its disks show; of one kind the supervisor's report counts. A dead mount may block that.
    """
    latest, spec = latest_of(run.history), run.load_spec()
    story = story_now(run) if stored is None else as_found(run, stored)
    attempt = story.attempt
    if story.state == "interrupted" and attempt is not None and attempt.last_step is None and attempt.log:
        seen = progress_in(attempt.log, spec.settings.progress.shapes, resumed=attempt.resume_from is not None)
        known = None if latest.progress is None else latest.progress.progress.any_step
        if seen.any_step is not None and seen.any_step > (known or 0):
            latest = msgspec.structs.replace(latest, progress=ProgressPoint(t=story.t, progress=seen))
    life = supervisor_life(run, ask=ask)
    now = situation_of(story, life, latest, created_wall=spec.created_wall, health=spec.settings.health)
    if disks:
        found = (*place_troubles(run, spec, story, watched=life.alive), *life.troubles)
        now = msgspec.structs.replace(now, troubles=tuple({each.kind: each for each in found}.values()))
    if run.order.exists():
        from ...store.control_client import order_left

        now = msgspec.structs.replace(now, left=order_left(run, now.now_t))
    return now, life


# What the journal of a run does not have: that supervisor and trainer have ended, who is the trainer now, and what was
# written again since it was found damaged.

LOST = "its journal is missing, so that its steps and events are not known"
SETTLED = TERMINAL_STATES | {"idle", "interrupted"}


def story_now(run: RunDirectory) -> RunStory:
    """The story of the run's journal, ``as_found``. Raises JournalTooNew."""
    return as_found(run, load_story(run.journal))


def as_found(run: RunDirectory, story: RunStory) -> RunStory:
    """The story, as interrupted if it is in a live state and neither supervisor nor trainer exist.

    It is so from the end in the exit record on; without one, the time of the last record is all that is known.
    The pid is that of the process that is followed as the trainer, also if the command left it behind and has ended.
    """
    story = with_attempts_on_disk(run, story)
    attempt = story.attempt
    if story.state in SETTLED or attempt is None:
        return story
    folder = run.attempt(attempt.number)
    start = read_start(folder)
    if start is not None and is_alive(start.trainer):
        followed = msgspec.structs.replace(attempt, pid=start.trainer.pid)
        return msgspec.structs.replace(story, attempts=(*story.attempts[:-1], followed))
    from ...act.launch.launching import lives_elsewhere  # for runs that nobody seems to watch

    if is_held(run.lock) or lives_elsewhere(folder):
        return story
    ended, how = read_exit(folder), f"the trainer of attempt {attempt.number} has ended without an exit record"
    attempt, ended_t = msgspec.structs.replace(attempt, pid=None, runner_pid=None), story.t
    if ended is not None:
        status = f"signal {ended.signal}" if ended.signal is not None else f"exit code {ended.code}"
        how = f"attempt {attempt.number} has ended ({status}), {clock(ended.wall, time.time())}, while nobody watched"
        if attempt.ended_t is None:
            ended_t = max(ended_t, ended.wall - story.wall0)
            attempt = msgspec.structs.replace(attempt, ended_t=ended_t, code=ended.code, signal=ended.signal)
    return msgspec.structs.replace(
        story,
        state="interrupted",
        state_t=ended_t,
        state_reason=f"no supervisor is running, and {how}"
        + (f"; the restart is held: {story.state_reason}" if story.state_why.holds else "")
        + (f"; {LOST}" if story.run is None else ""),
        state_why=Why(),
        attempts=(*story.attempts[:-1], attempt),
    )


LOG_LINES = 400
"""Lines at the end of a log that are searched for the last step or traceback."""


def progress_in(log: str, shapes: Sequence[str] = (), *, resumed: bool = False) -> Progress:
    """The progress of the run that the end of a log shows; none of a log that cannot be read.

    ``resumed``: the attempt began from a checkpoint, so that a bar without the number of its epoch shows none.
    """
    text = "".join(line.text if line.open else f"{line.text}\n" for line in log_end(log))
    if not text:
        return Progress()
    from ...config.shipped import load_log_shapes  # most looks need no step of a log
    from ...judge.progress import START, begin_attempt, read_progress
    from ...judge.text.shapes import ShapeTable

    return read_progress(begin_attempt(START, resumed=resumed), text, ShapeTable(load_log_shapes(), shapes)).progress


def log_end(log: str) -> tuple[LogLine, ...]:
    """The last lines of a log; none if it cannot be read."""
    from ...sense.log.log_browser import FileLogBrowser

    browser = FileLogBrowser()
    with contextlib.suppress(OSError):
        return browser.before(log, browser.size(log), LOG_LINES).lines
    return ()


def with_attempts_on_disk(run: RunDirectory, story: RunStory) -> RunStory:
    """The story; without a journal, with the newest attempt whose files are there: it was launched all the same."""
    if story.run is not None:
        return story
    for folder in run.attempt_folders():
        start = read_start(folder)
        if start is not None:
            spec = run.load_spec()
            attempt = AttemptStory(
                number=start.attempt,
                t=max(0.0, start.wall - spec.created_wall),
                wall=start.wall,
                pid=start.trainer.pid,
                runner_pid=None if start.runner is None else start.runner.pid,
                log=start.log,
                directory=str(folder),
            )
            return msgspec.structs.replace(
                story,
                state="starting",
                state_reason=LOST,
                attempts=(attempt,),
                wall0=spec.created_wall,
                outputs=spec.outputs,
            )
    return story


def with_rewritten(story: RunStory) -> RunStory:
    """The story, with what was found damaged and was written again since as ``writing``: a verdict is of old bytes."""
    again = {c.path for c in story.checkpoints if c.verdict in DAMAGED and _is_written_again(c)}
    if not again:
        return story
    clean: dict[str, Any] = {"verdict": "writing", "reason": "it was written again", "nonfinite": (), "nan": ()}
    found = (msgspec.structs.replace(c, **clean) if c.path in again else c for c in story.checkpoints)
    return msgspec.structs.replace(story, checkpoints=tuple(found))


def _is_written_again(known: Checkpoint) -> bool:
    """Also if that cannot be told; a save that is gone is not."""
    from ...checkpoints.inspection import subject_of_any  # for damaged ones only

    try:
        subject = subject_of_any(Path(known.path))
        return subject is None or abs(subject.mtime - known.mtime) > 1e-3  # as a float
    except FileNotFoundError:
        return False
    except OSError:
        return True


# Troubles of trainwatch that anybody can see from outside: its disk, the output disk, its journal.

FULL_BYTES = 1 << 20
"""Less free space than this is full: a checkpoint, a log and a journal write more at once."""
JOURNAL_GONE = "was deleted; what happened before cannot be told; the supervisor continues it in a new file"


def place_troubles(run: RunDirectory, spec: RunSpec, story: RunStory, *, watched: bool) -> Iterator[Trouble]:
    """``watched``: a supervisor holds the run."""
    if (why := unusable(run.path)) is not None:
        yield Trouble(
            kind="state_disk",
            level="danger",
            text=f"{run.path}: {why}; events are sent but not recorded: free some space there, or make it writable",
        )
    if watched and story.run is None and not run.journal.exists():
        yield Trouble(kind="journal", level="warning", text=f"{run.journal} {JOURNAL_GONE}")
    output = None if spec.output_dir is None else Path(spec.output_dir)
    there = (place for place in (output, *output.parents) if place.is_dir()) if output is not None else ()
    if output is not None and (why := unusable(next(iter(there), output))) is not None:
        yield Trouble(
            kind="output_disk",
            level="danger",
            text=f"{spec.output_dir}: {why}; the trainer cannot save: free some space there, or make it writable",
        )


def unusable(folder: Path) -> str | None:
    """Why no file can be written into ``folder``; None if one can, as far as can be told without writing."""
    try:
        room = os.statvfs(folder)
    except FileNotFoundError:
        return "does not exist"
    except OSError as error:
        return f"cannot be looked at ({error.strerror})"
    if room.f_flag & os.ST_RDONLY:
        return "its file system is mounted read-only"
    if not os.access(folder, os.W_OK | os.X_OK):
        return "it may not be written"
    if room.f_blocks and room.f_bavail * room.f_frsize < FULL_BYTES:
        return f"its disk is full ({room.f_bavail * room.f_frsize / 1e6:.1f} MB free)"
    if room.f_files and room.f_favail == 0:
        return "its file system has no free inodes"
    return None

"""The process that rehearses: it puts overlays over the user's folders, and supervises the run in the scratch folder.

It is a process of its own because the overlays hold for a process and its children (overlay.py): the trainer finds
every path as tonight, and no file of the user can be written.
"""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from ...act.overlay import written
from ...judge.resume.resume_check import VERIFIED
from ...model.attempt import AttemptStory
from ...model.checkpoint import Checkpoint
from ...model.fact import Note
from ...model.output_place import is_below
from ...model.preset import Preset
from ...model.resume import resume_support
from ...model.run import RunSpec
from ...store.journal import load_story
from ...store.run_directory import RunDirectory
from ..apart import obey
from ..errors import ExitCode
from ..plan.launch_plan import plan_launch
from ..plan.resume_plan import resuming_by_itself
from ..plan.specs import definitions_of
from ..runs.output_folder import list_run_checkpoints
from ..runs.output_lists import origins
from .conclusion import (
    RehearsalOrder,
    Seen,
    of_no_resume,
    prove_loss,
    prove_steps,
    steps_of,
    with_loss,
    with_verified,
)
from .outlook import outlook, recorded
from .rehearse import PERIOD_S, SETTLE_S, USABLE, Stages

SHOWN_FILES = 6
SHOWN_LINES = 8


def _rehearse(order: RehearsalOrder, scratch: Path) -> Seen:
    from ..foreground import supervise
    from ..preflight.checklist import require_startable
    from ..wiring.sensors import replay_of

    spec = order.spec
    definitions = definitions_of(spec)
    plan = plan_launch(spec, definitions, scratch / "home")
    require_startable(plan, forced=True)  # what fails, the rehearsal shows
    run = RunDirectory.create(scratch / "home", spec)
    look = partial(_first_sight, spec, definitions.preset_of(spec)) if order.hasty else None
    stages = Stages(run, spec.settings, order.limit_s, _say, look)
    over = threading.Event()
    thread = threading.Thread(target=stages.follow, args=(over,), name="rehearsal", daemon=True)
    thread.start()
    try:
        code = supervise(run, listener=stages.listener, plan=plan, stop_trainer=True)
    finally:
        over.set()
        thread.join()
    if code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    takes = bool(resume_support(definitions.preset_of(spec), spec.command).forms)
    seen = _seen(stages, run, spec, scratch, takes_checkpoint=takes)
    tonight = order.tonight
    if seen.steps.holds:
        tonight = resuming_by_itself(tonight)  # as `run` starts it once this is proven
    has_loss = any(line.loss is not None for line in stages.lines(1))
    faults = outlook(
        lambda: replay_of(tonight, definitions), recorded(run.trace), tonight, resumes=_resumes(seen), has_loss=has_loss
    )
    return msgspec.structs.replace(seen, faults=faults)


def _first_sight(spec: RunSpec, preset: Preset) -> Checkpoint | None:
    """The newest whole checkpoint in the output folder, before the sensor has looked at it twice.

    One of an unknown format only once it has settled: no attempt is given it before.
    """
    settled = time.time() - SETTLE_S - PERIOD_S
    found, origin = list_run_checkpoints(spec, preset).checkpoints, origins(spec.created_wall)
    return next((c for c in found if _is_usable(c, settled) and origin(c) == "run"), None)


def _is_usable(checkpoint: Checkpoint, settled: float) -> bool:
    return checkpoint.verdict in USABLE and (not checkpoint.unknown_make or checkpoint.mtime <= settled)


def _resumes(seen: Seen) -> bool | None:
    failed = seen.stage in {"restart", "proof"} and bool(seen.failure)
    if failed or seen.ignored or seen.steps.holds is False or seen.loss.holds is False:
        return False
    return seen.steps.holds


def _seen(stages: Stages, run: RunDirectory, spec: RunSpec, scratch: Path, *, takes_checkpoint: bool) -> Seen:
    """What the story and the logs of the attempts show. ``takes_checkpoint``: the command can be given one."""
    story = load_story(run.journal)
    first, second = stages.lines(1), stages.lines(2)
    attempt = story.attempts[1] if len(story.attempts) > 1 else None
    resumed = _named(story.checkpoints, attempt.resume_from) if attempt is not None else None
    step = stages.step_of(resumed or stages.newest())
    crash = [i for i in story.incidents if i.kind in {"crash", "hang", "resume", "checkpoint"}]
    own = [i for i in crash if i.attempt == (1 if attempt is None else attempt.number)]
    if stages.killed_wall is not None and attempt is None:
        own = []  # the kill itself
    ignored = next((i.reason for i in story.incidents if i.kind == "resume" and i.class_ == "started_over"), "")
    last = max((line.step for line in first if line.step), default=None)
    log = story.attempts[-1].log if story.attempts else None
    loss = prove_loss(first, second, step)
    steps = with_verified(with_loss(prove_steps(first, second, step), loss), _verified(run))
    withheld = ""
    if attempt is not None and attempt.resume_from is None and takes_checkpoint and (newest := stages.newest()):
        withheld = newest.name
        steps, loss = of_no_resume(steps, loss, withheld)
    return Seen(
        stage=stages.stage,
        over=story.state_reason,
        timed_out=stages.timed_out,
        saved_in=spec.output_dir
        or next((o.folder for o in story.outputs if not is_below(o.folder, str(scratch))), None),
        checkpoint=None if stages.first_checkpoint is None else stages.first_checkpoint.name,
        checkpoint_after_s=stages.checkpoint_after_s,
        resumed_from=None if attempt is None else attempt.resume_from,
        told=bool(attempt is not None and attempt.resume_from and _told(run)),
        ignored=ignored,
        withheld=withheld,
        finished=_was_done(story.attempts, resumed_steps=len(steps_of(second))),
        failure=next((i.reason for i in own if i.kind in {"crash", "hang"}), ""),
        last_step=last,
        total_steps=stages.total(1),
        steps=steps,
        loss=loss,
        written=tuple(_new_files(scratch, spec)),
        log_tail=_tail(log),
    )


def _was_done(attempts: Sequence[AttemptStory], *, resumed_steps: int) -> bool:
    """Whether the training was done before the kill: it ended by itself, or there was nothing left to do after it."""
    if len(attempts) == 1:
        return attempts[0].how == "finished"
    return len(attempts) > 1 and attempts[1].code == 0 and not resumed_steps


def _told(run: RunDirectory) -> bool:
    from ...store.journal import read_journal

    told = [
        record.outcome.data.get("told_resume")
        for record in read_journal(run.journal)
        if record.outcome is not None and record.outcome.action == "start_attempt"
    ]
    return len(told) > 1 and told[1] is True


def _verified(run: RunDirectory) -> str:
    """What the supervisor saw of the resume, without its first words; "" = it verified none."""
    from ...store.journal import read_journal

    notes = [record.fact for record in read_journal(run.journal) if isinstance(record.fact, Note)]
    return next((note.text.removeprefix(VERIFIED) for note in reversed(notes) if note.about == "resume"), "")


def _named(checkpoints: tuple[Checkpoint, ...], path: str | None) -> Checkpoint | None:
    return next((c for c in checkpoints if path is not None and Path(c.path) == Path(path)), None)


def _new_files(scratch: Path, spec: RunSpec) -> list[str]:
    """Files that the trainer wrote, the newest first: shown if none of them is a checkpoint that is understood."""
    places = written(scratch) or ([] if spec.output_dir is None else [(Path(spec.output_dir), Path(spec.output_dir))])
    found: list[tuple[float, str]] = []
    for place, upper in places:
        for folder, _, names in os.walk(upper):
            for name in names:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink() and not name.startswith("."):
                    found.append((path.stat().st_mtime, str(place / path.relative_to(upper))))
    return [name for _, name in sorted(found, reverse=True)[:SHOWN_FILES]]


def _tail(log: str | None) -> tuple[str, ...]:
    if log is None:
        return ()
    try:
        with Path(log).open(encoding="utf-8", errors="replace") as file:
            return tuple(line.rstrip("\r\n") for line in deque(file, SHOWN_LINES))
    except OSError:
        return ()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(obey(Path(sys.argv[1]), RehearsalOrder, _rehearse))

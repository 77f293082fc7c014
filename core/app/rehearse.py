"""``trainwatch rehearse``: train to the first checkpoint, kill, resume, prove it, in a scratch folder.

The run is a real one: planned, launched, judged, verified and restarted by the same parts as tonight, with a state
folder of its own in the scratch folder. It runs in a process of its own that sees the user's folders through overlays,
so that the trainer finds every path as tonight and no file of the user can be written; where the kernel does not allow
that, the known output options are redirected, or the rehearsal is refused.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path

import msgspec

from .. import processes
from ..act.config.derive import DeriveError, redirected
from ..act.launch.launching import find_attempt
from ..act.overlay import NoOverlayError, written
from ..act.stopping import members
from ..judge.resume.resume_check import VERIFIED
from ..judge.text.loss_run import FEW
from ..model.checkpoint import Checkpoint
from ..model.decision import Record
from ..model.fact import Note
from ..model.launch import Apart, Rehearsal
from ..model.observation import Command, Request
from ..model.preset import Preset
from ..model.resume import resume_support
from ..model.run import TERMINAL_STATES, RunSpec, is_below
from ..model.settings import Settings
from ..model.story import RunStory
from ..model.story_fold import apply
from ..spool import read_start
from ..store.control_client import ControlError, send
from ..store.journal import load_story, read_journal
from ..store.learned import keep_rehearsal, source_digest
from ..store.run_directory import RunDirectory, new_run_id
from .apart import behind_overlays, obey, ordered, places, quiet, scratch_folder, short_run, written_folders
from .errors import CliError, ExitCode
from .gpu_survey import GpuSurvey, survey
from .plan.launch_plan import LaunchPlan
from .plan.resume_plan import resuming_by_itself
from .plan.specs import definitions_of
from .rehearsal_verdict import (
    SURE,
    Printed,
    RehearsalOrder,
    Seen,
    Stage,
    StepsReader,
    conclude,
    fall_of,
    of_no_resume,
    offline,
    outlook,
    prove_loss,
    prove_steps,
    recorded,
    steps_of,
    tells_apart,
    with_loss,
    with_verified,
)
from .runs.known_runs import end_of, home
from .runs.output_claim import lock_rival
from .runs.output_folder import list_run_checkpoints, origins
from .trial import rivals

LIMIT_S = 1800.0
"""Longest time by default: half an hour before the night."""
MOST_FILES = 50_000
MODULE = "trainwatch.core.app.rehearse"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """``limit_s``: longest time. ``scratch``: parent of the scratch folder. ``keep``: leave it there."""

    limit_s: float = LIMIT_S
    scratch: Path | None = None
    keep: bool = False


def rehearse(plan: LaunchPlan, limits: Limits, say: Callable[[str], None]) -> Rehearsal:
    """Rehearse a planned launch. ``say`` gets lines of progress. Raises CliError, KeyboardInterrupt."""
    spec = plan.spec
    if plan.problem is not None:
        raise CliError(ExitCode.USAGE, plan.problem)
    if (rival := lock_rival(spec, home())) is not None:
        raise CliError(ExitCode.OWNED, f"{rival}; nothing was started")
    if others := beside(rivals(spec)):
        raise CliError(
            ExitCode.FAILED,
            f"{'; '.join(others)}: a rehearsal beside it would slow it or take its memory; nothing was started",
        )
    began = time.time()
    source = source_digest(spec.command, spec.cwd, spec.config)
    before = _listing(spec)
    apart: Apart = "overlay"
    try:
        seen = _on_overlays(plan, limits, say, hasty=False)
        if seen.finished:
            say("the training was done before it could be killed: once more, killed at the first sight of a checkpoint")
            seen = _on_overlays(plan, limits, say, hasty=True)
    except NoOverlayError as error:
        say(f"no overlay here ({error}): redirecting the output instead")
        seen, apart = _redirected(plan, limits, say, str(error)), "redirect"
    after = _listing(spec)
    changed = sorted(path for path in {**before, **after} if before.get(path) != after.get(path))
    known = Rehearsal(
        run=spec.name, command=spec.command, wall=began, took_s=time.time() - began, apart=apart, preset=spec.preset,
        touched=tuple(changed) if max(len(before), len(after)) < MOST_FILES else (),
    )  # fmt: skip
    result = conclude(plan, seen, known, limits.limit_s)
    if result.verdict != "unknown":
        try:
            keep_rehearsal(home(), spec.cwd, result, source)
        except OSError as error:
            say(f"the result is not kept: {error}")
    return result


def _on_overlays(plan: LaunchPlan, limits: Limits, say: Callable[[str], None], *, hasty: bool) -> Seen:
    def order(scratch: Path) -> RehearsalOrder:
        spec = spec_apart(plan.spec, scratch, offline(plan, os.environ, scratch))
        return RehearsalOrder(spec=spec, tonight=plan.spec, limit_s=limits.limit_s, hasty=hasty)

    return behind_overlays(MODULE, plan, order, Seen, scratch=limits.scratch, keep=limits.keep, say=say)


def _redirected(plan: LaunchPlan, limits: Limits, say: Callable[[str], None], no_overlay: str) -> Seen:
    """With the output options of command and config changed. Raises CliError if none is known."""
    parent = next(iter(places(limits.scratch, written_folders(plan.spec))))
    with scratch_folder(parent, keep=limits.keep) as scratch:
        apart = spec_apart(plan.spec, scratch, offline(plan, os.environ, scratch))
        try:
            spec = redirected(apart, plan.preset, plan.profile, scratch / "out")
        except DeriveError as error:
            raise CliError(
                ExitCode.FAILED,
                f"no rehearsal: {error}. Overlays over your folders, which need no such option, are not possible here: "
                f"{no_overlay}; nothing was started",
            ) from None
        (scratch / "out").mkdir()
        tonight = msgspec.structs.replace(spec, settings=plan.spec.settings)
        order = RehearsalOrder(spec=spec, tonight=tonight, limit_s=limits.limit_s)
        seen = ordered(MODULE, scratch, spec.cwd, order, Seen, say)
        return msgspec.structs.replace(seen, saved_in=plan.spec.output_dir)


def _listing(spec: RunSpec) -> dict[str, tuple[int, int]]:
    """The files of the working folder and the output folder: size and mtime."""
    found: dict[str, tuple[int, int]] = {}
    for top in dict.fromkeys((spec.cwd, *([spec.output_dir] if spec.output_dir else []))):
        for folder, _, names in os.walk(Path(spec.cwd, top)):
            for name in names:
                if len(found) >= MOST_FILES:
                    return found
                path = os.path.join(folder, name)  # noqa: PTH118  many files
                try:
                    entry = os.lstat(path)
                except OSError:
                    continue
                found[path] = (entry.st_size, entry.st_mtime_ns)
    return found


# The stages of a rehearsal: to the first checkpoint, kill, restart, proof. Follows a supervised run and acts on it.

LOOK_S = 0.1
"""Period of looking at the log and the story."""
HASTE_S = 0.01
LOSS_WAIT_S = 60.0
"""How long the first attempt trains on after its checkpoint until its losses tell a resume from a new start, at most;
a trainer that needed less than this to its checkpoint gets as long again."""
LOSS_WAIT_LEAST_S = 10.0
SHARE_OF_TOTAL = 0.6
"""Of the total steps: it is killed by then, before it ends by itself."""
PROOF_S = 60.0
"""How long the second attempt is waited for after its first step, at most."""
USABLE = frozenset({"complete", "opaque"})
"""Verdicts of checkpoints that a launch may resume from."""
LINES_AFTER = 3
"""Printed steps after the checkpoint before the kill, so that the kill loses some."""


class Stages:
    """One rehearsed run. ``listener`` is called by the supervisor, ``follow`` runs in a thread of its own."""

    def __init__(
        self, settings: Settings, limit_s: float, first_sight: Callable[[], Checkpoint | None] | None = None
    ) -> None:
        """``first_sight``: looks for a checkpoint by itself; the kill then follows at once."""
        self.story = RunStory()
        self.stage: Stage = "start"
        self.timed_out = False
        self.killed_wall: float | None = None
        self.first_checkpoint: Checkpoint | None = None
        self.checkpoint_after_s: float | None = None
        self._settings, self._first_sight = settings, first_sight
        self._end = time.monotonic() + limit_s
        self._since = time.monotonic()
        self._readers: dict[int, StepsReader] = {}

    def listener(self, story: RunStory) -> Callable[[Sequence[Record]], None]:
        self.story = story

        def hear(records: Sequence[Record]) -> None:
            self.story = reduce(apply, records, self.story)

        return hear

    def lines(self, number: int) -> Sequence[Printed]:
        attempt = next((a for a in self.story.attempts if a.number == number), None)
        if attempt is None or attempt.log is None:
            return ()
        if number not in self._readers:
            before = self._readers.get(number - 1)
            self._readers[number] = StepsReader(Path(attempt.log), self._settings, before, attempt.resume_step)
        return self._readers[number].read()

    def total(self, number: int) -> int | None:
        reader = self._readers.get(number)
        return None if reader is None else reader.total

    def step_of(self, checkpoint: Checkpoint | None) -> int | None:
        """The step of a checkpoint in the steps that the first attempt printed; None if it cannot be told.

        The stored one if it fits the log; a log that counts something else had come this far when it was written.
        """
        if checkpoint is None:
            return None
        lines = self.lines(1)
        printed = max(
            (line.step for line in lines if line.step and line.wall <= checkpoint.mtime + LOOK_S), default=None
        )
        ever = max((line.step for line in lines if line.step), default=None)
        stored = checkpoint.step
        if stored is not None and ever is not None and (printed or 0) / 2 <= stored <= ever + LINES_AFTER:
            return stored
        return printed

    def follow(self, run: RunDirectory, over: threading.Event) -> None:
        """Act until the rehearsal is done or ``over`` is set; then end the run."""
        self.stage = "checkpoint"
        self._since = time.monotonic()
        while not over.wait(LOOK_S if self._first_sight is None or self.stage != "checkpoint" else HASTE_S):
            if self.story.state in TERMINAL_STATES:
                continue  # the supervisor ends by itself
            self.timed_out = time.monotonic() >= self._end
            if self.timed_out or self._act():
                break
        request = Request(command=Command(t=0.0, verb="shutdown", by="the rehearsal", stop_trainer=True))
        while not over.is_set():
            try:
                send(run, request)
            except ControlError:
                over.wait(LOOK_S)
            else:
                return

    def _act(self) -> bool:
        """Do what is due in this stage. Returns whether all is done."""
        match self.stage:
            case "checkpoint":
                self._look_for_checkpoint()
            case "kill" if self._enough():
                self._kill()
            case "restart" if len(self.story.attempts) > 1 and (steps_of(self.lines(2)) or self._is_judged()):
                _say("it trains again")
                self._next("proof")
            case "proof" if self._proven() or self._waited > PROOF_S:
                self._next("done")
                return True
            case _:
                pass
        return False

    def _next(self, stage: Stage) -> None:
        self.stage, self._since = stage, time.monotonic()

    @property
    def _waited(self) -> float:
        return time.monotonic() - self._since

    def newest(self) -> Checkpoint | None:
        before = self.killed_wall or float("inf")
        whole = [c for c in self.story.checkpoints if c.verdict in USABLE and c.mtime <= before]
        return whole[-1] if whole else None

    def _look_for_checkpoint(self) -> None:
        lines = self.lines(1)
        found = self.newest() if self._first_sight is None else self._first_sight()
        if found is None:
            return
        steps = steps_of(lines)  # a log without any (tqdm off) tells no more if it is waited for
        if self._first_sight is not None and steps and not tells_apart(steps, self.step_of(found)):
            return
        self.first_checkpoint, self.checkpoint_after_s = found, self._waited
        at = f" at step {found.step}" if found.step is not None else ""
        _say(f"first checkpoint after {self._waited:.0f} s: {found.name}{at}")
        self._next("kill")
        if self._first_sight is not None:
            self._kill()

    def _enough(self) -> bool:
        """Whether what was printed so far tells a resume from a new start, or it will not get better."""
        lines, step = self.lines(1), self.step_of(self.newest())
        steps, total = steps_of(lines), self.total(1)
        longest = min(LOSS_WAIT_S, max(LOSS_WAIT_LEAST_S, self.checkpoint_after_s or 0.0))
        if total is not None and steps and steps[-1] >= SHARE_OF_TOTAL * total:
            return True
        if not tells_apart(steps, step):
            return self._waited > 2 * longest
        after = [s for s in steps if step is not None and s > step]
        fall = fall_of(lines, step)
        told = len(after) >= LINES_AFTER and (fall is None or fall.clear)
        return told or self._waited > longest

    def _kill(self) -> None:
        attempt = self.story.attempt
        if attempt is None:
            return
        self._next("restart")
        self.killed_wall = time.time()
        steps = steps_of(self.lines(1))
        _say(f"kill -9{f' at step {steps[-1]}' if steps else ''}")
        start = None if attempt.directory is None else read_start(Path(attempt.directory))
        if start is None:
            return
        key = (start.trainer.pid, start.trainer.start_ticks)
        processes.send_signal(key, signal.SIGSTOP)  # it makes no further step while its children are looked for
        for process in processes.attempt_processes(key, directory=attempt.directory):
            try:
                processes.send_signal(process.key, signal.SIGKILL)
            except PermissionError:
                continue

    def _proven(self) -> bool:
        before, after = self.lines(1), self.lines(2)
        losses = sum(1 for line in after if line.loss is not None)
        wanted = min(FEW, sum(1 for line in before if line.loss is not None))
        if losses < wanted or (len(steps_of(after)) <= SURE and steps_of(before)):
            return False
        return prove_steps(before, after, self.step_of(self.newest())).holds is True or self._is_judged()

    def _is_judged(self) -> bool:
        """Whether the judge has said what it saw of the resume: it then closes the incident of the kill."""
        return not any(incident.open for incident in self.story.incidents if incident.attempt == 1)


# The run of a rehearsal: that of the user, with a state folder of its own and the settings of a rehearsal.

PERIOD_S = 0.25
"""Sampling period of a rehearsal, at most."""
SETTLE_S = 1.0
"""Settling time of a rehearsal, at most. Not below ``unclear_state.STILL_S``: a file of an unknown format that changed
more recently when it was inspected is given to no attempt, and the rehearsal would begin anew over it."""


def spec_apart(spec: RunSpec, scratch: Path, env: Mapping[str, str]) -> RunSpec:
    """The run with a state folder of its own, without notices, remedies and windows, and restarted at once."""
    settings, watch, replace = spec.settings, spec.settings.watch, msgspec.structs.replace
    return replace(
        spec,
        id=new_run_id(scratch / "home", spec.name, Path(spec.project or spec.cwd)),
        created_wall=time.time(),
        env={**spec.env, **env},
        begin_from=None,
        settings=quiet(
            settings,
            watch=replace(
                watch, interval_s=min(watch.interval_s, PERIOD_S), settle_s=min(watch.settle_s, SETTLE_S), rescan_s=2.0
            ),
            profiles=replace(settings.profiles, ramp=()),
            restart=replace(
                settings.restart,
                act="all",
                max_restarts=max(1, settings.restart.max_restarts),
                backoff_s=(0.0,),
                if_not_told="go_on",
                if_not_understood="copy_and_restart",
            ),
        ),
        labels={**spec.labels, "rehearsal_of": spec.id},
    )


# Which live runs a rehearsal would take a GPU from.


def beside(others: Sequence[tuple[RunDirectory, str]]) -> list[str]:
    """The sentences about those live runs.

    A machine without a GPU has none to take. A run that has trained and is not in the driver's list is on none; an
    empty list tells nothing, because the driver of WSL2 lists no process.
    """
    seen = survey() if others else GpuSurvey()
    if not seen.gpus and not seen.stuck:
        return []
    pids = {user.pid for gpu in seen.gpus for user in gpu.users or ()}
    told = not seen.stuck and bool(pids) and all(gpu.users is not None for gpu in seen.gpus)
    return [sentence for run, sentence in others if not (told and _is_elsewhere(run, pids))]


def _is_elsewhere(run: RunDirectory, pids: set[int]) -> bool:
    targets = [target for folder in run.attempt_folders() if (target := find_attempt(folder)) is not None]
    own = {pid for target in targets for pid in (target.trainer.pid, *(process.pid for process in members(target)))}
    return load_story(run.journal).state == "running" and bool(own) and own.isdisjoint(pids)


# In the process of its own.

SHOWN_FILES = 6
SHOWN_LINES = 8
TAIL_BYTES = 1 << 16


def _rehearse(order: RehearsalOrder, scratch: Path) -> Seen:
    from .wiring.sensors import replay_of

    spec, definitions = order.spec, definitions_of(order.spec)
    preset = definitions.preset_of(spec)
    look = partial(_first_sight, spec, preset) if order.hasty else None
    stages = Stages(spec.settings, order.limit_s, look)
    run = short_run(spec, definitions, scratch / "home", stages.follow, stages.listener)
    takes = bool(resume_support(preset, spec.command).forms)
    seen = _seen(stages, run, spec, scratch, takes_checkpoint=takes)
    resumes = seen.steps.holds
    if (seen.stage in {"restart", "proof"} and seen.failure) or seen.ignored or seen.loss.holds is False:
        resumes = False
    # as `run` starts it once this is proven
    tonight = resuming_by_itself(order.tonight) if seen.steps.holds else order.tonight
    has_loss = any(line.loss is not None for line in stages.lines(1))
    begin = partial(replay_of, tonight, definitions)
    faults = outlook(begin, recorded(run.trace), tonight, resumes=resumes, has_loss=has_loss)
    return msgspec.structs.replace(seen, faults=faults)


def _first_sight(spec: RunSpec, preset: Preset) -> Checkpoint | None:
    """The newest whole checkpoint in the output folder, before the sensor has looked at it twice.

    One of an unknown format only once it has settled: no attempt is given it before.
    """
    settled, origin = time.time() - SETTLE_S - PERIOD_S, origins(spec.created_wall)
    found = (c for c in list_run_checkpoints(spec, preset).checkpoints if c.verdict in USABLE)
    return next((c for c in found if (not c.unknown_make or c.mtime <= settled) and origin(c) == "run"), None)


def _seen(stages: Stages, run: RunDirectory, spec: RunSpec, scratch: Path, *, takes_checkpoint: bool) -> Seen:
    """What the story and the logs of the attempts show. ``takes_checkpoint``: the command can be given one."""
    story = load_story(run.journal)
    first, second = stages.lines(1), stages.lines(2)
    attempt = story.attempts[1] if len(story.attempts) > 1 else None
    path = None if attempt is None else attempt.resume_from
    resumed = next((c for c in story.checkpoints if path is not None and Path(c.path) == Path(path)), None)
    step = stages.step_of(resumed or stages.newest())
    number = 1 if attempt is None else attempt.number
    failed = [i for i in story.incidents if i.kind in {"crash", "hang"} and i.attempt == number]
    if stages.killed_wall is not None and attempt is None:
        failed = []  # the kill itself
    # the training was done before the kill: it ended by itself, or there was nothing left to do after it
    done = attempt.code == 0 and not steps_of(second) if attempt else [a.how for a in story.attempts] == ["finished"]
    records = list(read_journal(run.journal))
    told = [r.outcome.data.get("told_resume") for r in records if r.outcome and r.outcome.action == "start_attempt"]
    notes = [r.fact.text for r in records if isinstance(r.fact, Note) and r.fact.about == "resume"]
    loss = prove_loss(first, second, step)
    said = notes[-1].removeprefix(VERIFIED) if notes else ""
    steps = with_verified(with_loss(prove_steps(first, second, step), loss), said)
    withheld, newest = "", stages.newest()
    if attempt is not None and attempt.resume_from is None and takes_checkpoint and newest is not None:
        withheld = newest.name
        steps, loss = of_no_resume(steps, loss, withheld)
    log = story.attempts[-1].log if story.attempts else None
    return Seen(
        stage=stages.stage,
        over=story.state_reason,
        timed_out=stages.timed_out,
        saved_in=spec.output_dir
        or next((o.folder for o in story.outputs if not is_below(o.folder, str(scratch))), None),
        checkpoint=None if stages.first_checkpoint is None else stages.first_checkpoint.name,
        checkpoint_after_s=stages.checkpoint_after_s,
        told=bool(path and told[1:2] == [True]),
        ignored=next((i.reason for i in story.incidents if i.kind == "resume" and i.class_ == "started_over"), ""),
        withheld=withheld,
        finished=done,
        failure=next((i.reason for i in failed), ""),
        last_step=max((line.step for line in first if line.step), default=None),
        total_steps=stages.total(1),
        steps=steps,
        loss=loss,
        written=tuple(_new_files(scratch, spec)),
        log_tail=tuple(end_of(log, TAIL_BYTES).splitlines()[-SHOWN_LINES:]),
    )


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


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(obey(Path(sys.argv[1]), RehearsalOrder, _rehearse))

"""``trainwatch rehearse``: train to the first checkpoint, kill, resume, prove it, in a scratch folder.

The run is a real one: planned, launched, judged, verified and restarted by the same parts as tonight, with a state
folder of its own in the scratch folder. It runs in a process of its own that sees the user's folders through overlays,
so that the trainer finds every path as tonight and no file of the user can be written; where the kernel does not allow
that, the known output options are redirected, or the rehearsal is refused.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from .. import processes
from ..act.overlay import written
from ..act.stopping import members
from ..judge.recovery.restarts import COUNTS_ANEW
from ..judge.resume.checkpoint_index import GOOD, KnownCheckpoint, base_name
from ..judge.resume.resume_check import VERIFIED, fall_until
from ..judge.resume.resume_point import to_begin_from
from ..judge.run_states import WORDS, name_of
from ..judge.state import JudgeState
from ..judge.text.reading import FEW
from ..model.checkpoint import Checkpoint
from ..model.fact import Note
from ..model.launch import Apart, Rehearsal
from ..model.preset import Preset, ResumeSupport, resume_support
from ..model.run import TERMINAL_STATES, VANISHED, RunSpec, is_below
from ..model.settings import Settings
from ..rank_files import tail_of
from ..spool import read_start
from ..store.journal import load_story, read_journal
from ..store.learned import keep_rehearsal
from ..store.run_directory import RunDirectory
from . import rehearsal_verdict as verdict
from .apart import Job, Judged, Say, done_apart, end_trainer, short_run, short_spec
from .errors import CliError, ExitCode
from .gpu_survey import GpuSurvey, survey
from .plan.launch_plan import LaunchPlan
from .plan.resume_plan import resuming_by_itself, setting_of, sources_of
from .plan.specs import definitions_of
from .runs.ended_attempt import attempts_of
from .runs.known_runs import home
from .runs.output_claim import lock_rival
from .runs.output_folder import list_run_checkpoints, origins
from .trial import rivals

MOST_FILES = 50_000


def rehearse(plan: LaunchPlan, limit_s: float, scratch: Path | None, say: Say, *, keep: bool) -> Rehearsal:
    """Rehearse a planned launch, at most ``limit_s``; ``say`` gets lines. Raises CliError, KeyboardInterrupt.

    ``scratch``: parent of the scratch folder, which stays there with ``keep``.
    """
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
    sources, setting = sources_of(spec), setting_of(spec)
    before = _listing(spec)
    job = Job("rehearsal", "overlay", scratch, keep, say=say)
    seen, apart = _seen_apart(job, plan, limit_s, hasty=False)
    if seen.finished:
        say("the training was done before it could be killed: once more, killed at the first sight of a checkpoint")
        seen, apart = _seen_apart(job, plan, limit_s, hasty=True)
    after = _listing(spec)
    changed = sorted(path for path in {**before, **after} if before.get(path) != after.get(path))
    known = Rehearsal(
        run=spec.name, command=spec.command, wall=began, took_s=time.time() - began, apart=apart, preset=spec.preset,
        touched=tuple(changed) if max(len(before), len(after)) < MOST_FILES else (), setting=setting,
    )  # fmt: skip
    result = verdict.conclude(plan, seen, known, limit_s)
    if result.verdict != "unknown":
        try:
            keep_rehearsal(home(), spec.cwd, result, sources)
        except OSError as error:
            say(f"the result is not kept: {error}")
    return result


def _seen_apart(job: Job, plan: LaunchPlan, limit_s: float, *, hasty: bool) -> tuple[verdict.Seen, Apart]:
    """``hasty``: killed at the first sight of a checkpoint, for a training that takes seconds."""
    work = partial(_rehearse, settings=plan.spec.settings, limit_s=limit_s, hasty=hasty)
    seen, apart = done_apart(job, work, plan, lambda f: spec_apart(plan.spec, f, verdict.offline(plan, os.environ, f)))
    return (seen if apart == "overlay" else msgspec.structs.replace(seen, saved_in=plan.spec.output_dir)), apart


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


# The stages of a rehearsal: to the first checkpoint, kill, restart, proof.

LOOK_S = 0.1
"""Period of asking the judge."""
HASTE_S = 0.01
LOSS_WAIT_S = 60.0
"""How long the first attempt trains on after its checkpoint until its losses tell a resume from a new start, at most;
a trainer that needed less than this to its checkpoint gets as long again."""
LOSS_WAIT_LEAST_S = 10.0
SHARE_OF_TOTAL = 0.6
"""Of the total steps: it is killed by then, before it ends by itself."""
PROOF_S = 60.0
"""How long the second attempt is waited for after its first step, at most."""
LINES_AFTER = 3
"""Printed steps after the checkpoint before the kill, so that the kill loses some."""


class Stages:
    """One rehearsed run; ``follow`` runs in a thread beside its supervisor, and asks the judge what it knows."""

    def __init__(
        self, support: ResumeSupport, limit_s: float, say: Say, first_sight: Callable[[], Checkpoint | None] | None
    ) -> None:
        """``first_sight``: looks for a checkpoint by itself; the kill then follows at once. None: the judge does."""
        self.states: dict[int, JudgeState] = {}
        """Attempt → the last state of the judge in it."""
        self.stage: verdict.Stage = "start"
        self.timed_out = False
        self.killed = False
        self.first_checkpoint: str | None = None
        self.checkpoint_after_s: float | None = None
        self._support, self._say, self._first_sight = support, say, first_sight
        self._end = time.monotonic() + limit_s
        self._since = time.monotonic()

    def follow(self, run: RunDirectory, over: threading.Event, judged: Judged) -> None:
        """Act until the rehearsal is done or ``over`` is set; then end the run."""
        self._next("checkpoint")
        while not over.wait(LOOK_S if self._first_sight is None or self.stage != "checkpoint" else HASTE_S):
            state = self.look(judged)
            if state is not None and WORDS[name_of(state.machine)] in TERMINAL_STATES:
                continue  # the supervisor ends by itself
            self.timed_out = time.monotonic() >= self._end
            if self.timed_out or self._act(run):
                break
        end_trainer(run, over, "the rehearsal")
        over.wait()
        self.look(judged)

    def look(self, judged: Judged) -> JudgeState | None:
        state = judged()
        if state is not None:
            self.states[state.attempt.number] = state
        return state

    def _act(self, run: RunDirectory) -> bool:
        """Do what is due in this stage. Returns whether all is done."""
        before, after = self.states.get(1), self.states.get(2)
        if after is not None and not self.killed:
            return True  # the first attempt ended by itself
        match self.stage:
            case "checkpoint" if before is not None:
                self._look_for_checkpoint(run, before)
            case "kill" if before is not None and self._enough(before):
                self._kill(run, before)
            case "restart" if after is not None and after.attempt.beat_t is not None:
                self._say("it trains again")
                self._next("proof")
            case "proof" if (before and after and _is_settled(before, after)) or self._waited > PROOF_S:
                self._next("done")
                return True
            case _:
                pass
        return False

    def _next(self, stage: verdict.Stage) -> None:
        self.stage, self._since = stage, time.monotonic()

    @property
    def _waited(self) -> float:
        return time.monotonic() - self._since

    def newest(self, state: JudgeState) -> KnownCheckpoint | None:
        """What the next attempt would resume from."""
        return to_begin_from(state.saved.checkpoints, self._support, settled=False)[1]

    def _look_for_checkpoint(self, run: RunDirectory, state: JudgeState) -> None:
        if self._first_sight is None:
            known = self.newest(state)
            found = None if known is None else (base_name(known.path), known.step)
        else:
            seen = self._first_sight()
            found = None if seen is None else (seen.name, seen.step)
            begun = state.attempt.beat_t is not None  # a log without any (tqdm off) tells no more if it is waited for
            if seen is not None and begun and not verdict.tells_apart(state, seen.step or state.attempt.step):
                return
        if found is None:
            return
        name, step = found
        self.first_checkpoint, self.checkpoint_after_s = name, self._waited
        self._say(f"first checkpoint after {self._waited:.0f} s: {name}{'' if step is None else f' at step {step}'}")
        self._next("kill")
        if self._first_sight is not None:
            self._kill(run, state)

    def _enough(self, state: JudgeState) -> bool:
        """Whether what was printed so far tells a resume from a new start, or it will not get better."""
        reading, step, known = verdict.reading_of(state), state.attempt.step, self.newest(state)
        total = reading.progress.run_total_steps or reading.progress.total_steps
        longest = min(LOSS_WAIT_S, max(LOSS_WAIT_LEAST_S, self.checkpoint_after_s or 0.0))
        if total is not None and step is not None and step >= SHARE_OF_TOTAL * total:
            return True
        place = None if known is None else known.step if known.position is None else known.position
        if place is None or step is None or not verdict.tells_apart(state, place):
            return self._waited > 2 * longest
        fall = fall_until(reading.curve, place)
        told = not reading.curve.seen or (fall is not None and fall.clear)
        return (told and step >= place + LINES_AFTER * max(1, reading.run.gap)) or self._waited > longest

    def _kill(self, run: RunDirectory, state: JudgeState) -> None:
        folder = run.attempt(state.attempt.number)
        start = read_start(folder)
        if start is None:
            return
        key = (start.trainer.pid, start.trainer.start_ticks)
        if not processes.send_signal(key, signal.SIGSTOP):  # no further step while its children are looked for
            return  # it ended by itself
        self._next("restart")
        self.killed = True
        self._say(f"kill -9{f' at step {state.attempt.step}' if state.attempt.step else ''}")
        processes.signal_each(processes.attempt_processes(key, directory=str(folder)), signal.SIGKILL)


def _is_settled(before: JudgeState, after: JudgeState) -> bool:
    """Whether the judge has said what it saw of the resume, and the losses that it compares are there."""
    losses = len(verdict.reading_of(after).curve.first)
    return after.attempt.resume_verdict != "open" and losses >= min(FEW, verdict.reading_of(before).curve.seen)


# The run of a rehearsal: that of the user, with a state folder of its own and the settings of a rehearsal.

PERIOD_S = 0.25
"""Sampling period of a rehearsal, at most."""
SETTLE_S = 1.0
"""Settling time of a rehearsal, at most. Not below ``unclear_state.STILL_S``: a file of an unknown format that changed
more recently when it was inspected is given to no attempt, and the rehearsal would begin anew over it."""


def spec_apart(spec: RunSpec, scratch: Path, env: Mapping[str, str]) -> RunSpec:
    """The run with a state folder of its own, restarted at once."""
    profiles, restart, watch, replace = (
        spec.settings.profiles, spec.settings.restart, spec.settings.watch, msgspec.structs.replace
    )  # fmt: skip
    settings = {
        "watch": replace(
            watch, interval_s=min(watch.interval_s, PERIOD_S), settle_s=min(watch.settle_s, SETTLE_S)
        ),
        "profiles": replace(profiles, ramp=()),
        "restart": replace(
            restart, act="all", max_restarts=max(1, restart.max_restarts), backoff_s=(0.0,), if_not_told="go_on",
            if_not_understood="copy_and_restart",
        ),
    }  # fmt: skip
    return short_spec(spec, scratch / "home", "rehearsal_of", settings, env={**spec.env, **env})


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
    own = {pid for target in attempts_of(run) for pid in (target.trainer.pid, *(each.pid for each in members(target)))}
    return load_story(run.journal).state == "running" and bool(own) and own.isdisjoint(pids)


# In the process of its own.

SHOWN_FILES = 6
SHOWN_LINES = 8
TAIL_BYTES = 1 << 16


def _rehearse(
    given: RunSpec, scratch: Path, say: Say, *, settings: Settings, limit_s: float, hasty: bool
) -> verdict.Seen:
    """``given``: with the settings of a rehearsal; ``settings``: those of the user."""
    from .wiring.sensors import replay_of

    spec, definitions = given, definitions_of(given)
    preset = definitions.preset_of(spec)
    if not resume_support(preset, spec.command).forms:  # whether it goes on without being told is what is rehearsed
        spec = resuming_by_itself(spec)
    support = resume_support(definitions.preset_of(spec), spec.command)
    stages = Stages(support, limit_s, say, partial(_first_sight, spec, preset) if hasty else None)
    run = short_run(spec, definitions, scratch / "home", stages.follow)
    seen = _seen(stages, run, spec, scratch, takes_path=spec is given)
    begin = partial(replay_of, msgspec.structs.replace(given, settings=settings), definitions)
    after_s = verdict.hang_after_s(begin, verdict.recorded(run.trace))
    return msgspec.structs.replace(seen, hang_after_s=None if after_s is None else round(after_s, 1))


def _first_sight(spec: RunSpec, preset: Preset) -> Checkpoint | None:
    """The newest whole checkpoint in the output folder, before the sensor has looked at it twice.

    One of an unknown format only once it has settled: no attempt is given it before.
    """
    settled, origin = time.time() - SETTLE_S - PERIOD_S, origins(spec.created_wall)
    found = (c for c in list_run_checkpoints(spec, preset).checkpoints if c.verdict in GOOD)
    return next((c for c in found if (not c.unknown_make or c.mtime <= settled) and origin(c) == "run"), None)


def _seen(stages: Stages, run: RunDirectory, spec: RunSpec, scratch: Path, *, takes_path: bool) -> verdict.Seen:
    """What the story and the judge show. ``takes_path``: the command is told which checkpoint to take."""
    story, before, after = load_story(run.journal), stages.states.get(1), stages.states.get(2)
    attempt = story.attempts[1] if len(story.attempts) > 1 else None
    path = None if attempt is None else attempt.resume_from
    number = attempt.number if attempt is not None and stages.killed else 1
    failed = [i for i in story.incidents if i.kind in {"crash", "hang"} and i.attempt == number]
    if stages.killed and attempt is None:
        failed = []  # the kill itself
    # the training was done before the kill: it ended by itself, or there was nothing left to do after it
    begun = after is not None and after.attempt.beat_t is not None
    done = attempt.code == 0 and not begun if attempt else [a.how for a in story.attempts] == ["finished"]
    resume = [i.reason for i in story.incidents if i.kind == "resume" and i.class_ in {"started_over", COUNTS_ANEW}]
    facts = (record.fact for record in read_journal(run.journal))
    notes = [fact.text for fact in facts if isinstance(fact, Note) and fact.about == "resume"]
    said, loss = (notes or resume or [""])[-1].removeprefix(VERIFIED), verdict.prove_loss(after)
    newest = None if before is None else stages.newest(before)
    log = story.attempts[-1 if stages.killed else 0].log if story.attempts else None
    steps = verdict.prove_steps(before, after, loss, said)
    return verdict.Seen(
        stage=stages.stage,
        over=story.state_reason,
        timed_out=stages.timed_out,
        saved_in=spec.output_dir
        or next((o.folder for o in story.outputs if not is_below(o.folder, str(scratch))), None),
        checkpoint=stages.first_checkpoint,
        checkpoint_after_s=stages.checkpoint_after_s,
        told=bool(takes_path and path and after is not None and after.attempt.told_resume),
        ignored=next((i.reason for i in story.incidents if i.kind == "resume" and i.class_ == "started_over"), ""),
        emptied=next((i.reason for i in story.incidents if i.class_ == VANISHED), ""),
        withheld=base_name(newest.path) if attempt is not None and path is None and newest is not None else "",
        finished=done,
        failure=next((i.reason for i in failed), ""),
        last_step=None if before is None else before.attempt.step,
        total_steps=None if before is None else verdict.reading_of(before).progress.total_steps,
        steps=steps if stages.killed else msgspec.structs.replace(steps, killed_at=None),
        loss=loss,
        written=tuple(_new_files(scratch, spec)),
        log_tail=tuple(tail_of(log, TAIL_BYTES).splitlines()[-SHOWN_LINES:]),
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

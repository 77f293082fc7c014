"""Trials: the run's command under one profile for some minutes, in a separate folder, measured and ended gently.

A trial is a run like any other (launched, supervised, journalled), but in its own state folder, with its own output
folder, without restarts, remedies and notices. No file of the user is written.
"""

import math
import re
import shutil
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from ..act.config.derive import DeriveError
from ..act.config.flags import option_groups
from ..judge.recovery.ending import main_reading
from ..model.launch import TrialResult
from ..model.preset import NO_PROFILE, Change
from ..model.run import LIVE_STATES, AttemptStory, RunSpec
from ..model.settings import Checkpoints
from ..model.story import RunStory
from ..store.history_reader import HistoryReader
from ..store.home import make_private, runs_folder
from ..store.journal import load_story
from ..store.learned import keep_trial, trials_folder
from ..store.lock import is_held
from ..store.run_directory import RunDirectory
from .apart import Job, Judged, Say, done_apart, end_trainer, short_run, short_spec
from .errors import CliError, ExitCode
from .plan.launch_plan import plan_command, plan_launch, plan_project
from .plan.specs import Definitions, definitions_of
from .runs.known_runs import all_runs, find_run, home

LOOK_S = 0.25
"""Period of checking whether a trial is long enough."""
MINUTES = 5.0
"""Long enough for warm-up and a stable pace of most trainers."""


def rivals(spec: RunSpec) -> list[tuple[RunDirectory, str]]:
    """Live runs on the same GPU, each with a sentence. A run without ``gpus`` may be on all of them."""
    return [
        (run, f"run {other.name} trains on {'the same GPU' if other.gpus or spec.gpus else 'this machine'}")
        for run, other in ((run, run.load_spec()) for run in all_runs())
        if is_held(run.lock)
        and load_story(run.journal).state in LIVE_STATES
        and (spec.gpus is None or other.gpus is None or set(spec.gpus) & set(other.gpus))
    ]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What is tried. ``profile``: NO_PROFILE = the user's own settings; ``extra``: words added to the command.

    Options among them win over profile, command and config (``--epochs 5``). ``minutes``: from the first step on;
    ``limit_s``: with its start.
    """

    profile: str
    minutes: float = MINUTES
    limit_s: float | None = None
    extra: tuple[str, ...] = ()


def plan_trial(spec: RunSpec, trial: Trial, state: Path, definitions: Definitions) -> RunSpec:
    """The run of a trial, with its state in ``state``; it writes where the user's run does. Raises CliError."""
    profile = trial.profile
    if profile not in definitions.profiles and profile != NO_PROFILE:
        known = ", ".join(definitions.profiles)
        raise CliError(ExitCode.NOT_FOUND, f'no profile "{profile}"; there are: {known}')
    name = f"{spec.name}-{profile}"
    words, changes = _added(trial.extra)
    settings = {
        "profiles": msgspec.structs.replace(
            spec.settings.profiles, use=None if profile == NO_PROFILE else profile, ramp=()
        ),
        "restart": msgspec.structs.replace(spec.settings.restart, max_restarts=0, act="all"),
        "checkpoints": Checkpoints(keep_last=0),
    }
    return short_spec(
        spec, state, "trial_of", settings, name=name, command=(*spec.command, *words),
        changes=(*spec.changes, *changes), logs=(),
    )  # fmt: skip


def _added(extra: Sequence[str]) -> tuple[tuple[str, ...], tuple[Change, ...]]:
    """(words without a dash in front, such as ``training.epochs=5``; options). Raises CliError."""
    first = next((at for at, word in enumerate(extra) if word.startswith("-")), len(extra))
    try:
        options = option_groups(extra[first:])
    except DeriveError:
        raise CliError(ExitCode.USAGE, f"{extra[first]!r} behind -- is no option, and belongs to none") from None
    why = "given to the trial"
    return tuple(extra[:first]), tuple(
        Change(where="flag", key=group.key, before=None, after=group.value, why=why) for group in options
    )


def _end_in_time(run: RunDirectory, over: threading.Event, judged: Judged, trial: Trial) -> None:
    end = math.inf if trial.limit_s is None else time.monotonic() + trial.limit_s
    trains = False
    while not over.wait(LOOK_S):
        state, now = judged(), time.monotonic()
        if not trains and state is not None and main_reading(state).progress.any_step is not None:
            trains, end = True, min(end, now + 60.0 * trial.minutes)
        if now >= end:
            end_trainer(run, over, "the trial")
            return


# The measured values of a trial, from its story, its metric history and its log.

BIN_S = 1.0
"""Trials are short: each second of the history is one point."""
FEWEST = 6
"""Fewer points show no trend."""
FEWEST_LOSSES = 4
"""A short trial prints the loss of a few epochs."""
WARM_UP = 0.25
"""Share of the training time that does not count for speed and memory: compiling, caching, allocating."""
GROWTH = 1.05
"""Memory that grows by more than this factor between the first and the last third is not stable."""
GROWTH_BYTES = 64e6
"""Less than this is noise of a small process."""
LOG_BYTES = 4_000_000
EVALUATION = re.compile(
    r"(?:val(?:id(?:ation)?)?|eval(?:uation)?|test)[\s_/-]*(?:acc(?:uracy)?)[^\d\n]{0,6}(\d+(?:\.\d+)?)", re.IGNORECASE
)

Points = Sequence[tuple[float, float]]
"""(t, value), oldest first."""


def measure(
    profile: str, wall: float, story: RunStory, history: HistoryReader, gpus: Sequence[int] | None
) -> TrialResult:
    """The result of one trial. ``gpus``: those of the run, None = all that were seen."""
    attempt = story.attempt
    steps, losses = _series(history, "progress.step"), _series(history, "progress.loss")
    trained = steps or losses  # a quiet trainer prints the loss of each epoch, and no step
    training = trained[0][0] if trained else 0.0
    warm = [p for p in trained if p[0] >= training + WARM_UP * (trained[-1][0] - training)]
    since = warm[0][0] if warm else 0.0
    cards = tuple(i for i in history.gpus() if gpus is None or i in gpus)
    vram = [_peak(history, f"gpu{i}.vram") for i in cards]
    util = [v for i in cards for _, v in _series(history, f"gpu{i}.util", since)]
    memory = [_stands(_series(history, "process.rss", since))]
    memory += [_stands(_series(history, f"gpu{i}.vram", since)) for i in cards]
    trouble = next((i for i in story.incidents if i.kind in {"crash", "hang", "loss", "resume"}), None)
    latest = history.latest()
    scores = evaluations(attempt.log if attempt is not None else None)
    shown = latest.progress.progress if latest.progress is not None else story.progress
    totals = (
        [g.mem_total_bytes for g in latest.gpu.gpus if g.index in cards and g.mem_total_bytes] if latest.gpu else []
    )
    return TrialResult(
        profile=profile,
        wall=wall,
        ran_s=trained[-1][0] - training if trained else 0.0,
        steps=int(steps[-1][1] - steps[0][1]) if steps else 0,
        s_per_step=(_pace(warm) if steps else None) or shown.sec_per_step,
        vram_peak_bytes=max((v for v in vram if v is not None), default=None),
        vram_total_bytes=max(totals, default=None),
        ram_peak_bytes=_peak(history, "process.rss"),
        gpu_util_pct=sum(util) / len(util) if util else None,
        started=bool(trained),
        no_error=trouble is None,
        memory_stable=False if False in memory else next((m for m in memory if m), None),
        loss_falling=falls([v for _, v in losses]),
        eval_rising=None if len(scores) < 2 else scores[-1] >= scores[0],
        failure=trouble.class_ if trouble is not None else None,
        reason=trouble.reason if trouble is not None else "" if trained else story.state_reason,
        exit=_exit(story, attempt),
        log=attempt.log if attempt is not None else None,
        simulated_gpu=bool(latest.gpu and latest.gpu.simulated),
    )


def falls(losses: Sequence[float]) -> bool | None:
    """Whether the last third is lower than the first on average; None if there are too few, or one that stands."""
    if len(losses) < FEWEST_LOSSES or len(set(losses)) == 1:
        return None
    before, after = _thirds(losses)
    return after < before


def _thirds(values: Sequence[float]) -> tuple[float, float]:
    """The means of the first and the last third."""
    third = len(values) // 3
    return sum(values[:third]) / third, sum(values[-third:]) / third


def evaluations(log: str | None) -> list[float]:
    """Accuracies of evaluations in the log, oldest first; empty if there are none or it cannot be read."""
    if log is None:
        return []
    try:
        with Path(log).open("rb") as file:
            text = file.read(LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    return [float(found[1]) for found in EVALUATION.finditer(text)]


def _series(history: HistoryReader, metric: str, since: float = -1.0) -> list[tuple[float, float]]:
    points = int((LONGEST_S - since) / BIN_S)
    return [(t, mean) for t, _, mean, _ in history.series(metric, since, LONGEST_S, points)]


LONGEST_S = 1e7
"""No trial is longer. Empty bins cost nothing."""


def _peak(history: HistoryReader, metric: str) -> float | None:
    return max((high for _, _, _, high in history.series(metric, -1.0, LONGEST_S, 1)), default=None)


def _pace(steps: Points) -> float | None:
    if len(steps) < 2 or steps[-1][1] <= steps[0][1]:
        return None
    return (steps[-1][0] - steps[0][0]) / (steps[-1][1] - steps[0][1])


def _stands(points: Points) -> bool | None:
    if len(points) < FEWEST:
        return None
    before, after = _thirds([v for _, v in points])
    return after <= max(before * GROWTH, before + GROWTH_BYTES)


def _exit(story: RunStory, attempt: AttemptStory | None) -> str:
    if attempt is None:
        return f"not started: {story.state_reason}"
    if attempt.how in {"stopped", "killed"}:
        return "ended after its time" if attempt.how == "stopped" else "killed after its time"
    status = f"exit code {attempt.code}" if attempt.code is not None else f"signal {attempt.signal}"
    return f"{attempt.how or 'ended'}, {status}"


# Which run and which profiles a trial is for.


def run_to_try(
    name: str | None, profiles: Sequence[str], *, beside_others: bool, command: Sequence[str] = ()
) -> tuple[RunSpec, Sequence[str]]:
    """The run whose command is used, and the profiles to measure. Raises CliError.

    ``name``: None = this project's run, else one started in this folder. ``command``: of no run, tried as it is typed.
    ``profiles`` empty: the run's own. ``beside_others``: also while a run trains on the same GPU.
    """
    if command:
        spec = plan_command(command).spec
    else:
        plan = plan_project(None) if name is None else None
        spec = find_run(name).load_spec() if plan is None else plan.spec
    names = tuple(dict.fromkeys(profiles)) or (spec.settings.profiles.use or NO_PROFILE,)
    others = [sentence for _, sentence in rivals(spec)]
    if others and not beside_others:
        raise CliError(
            ExitCode.FAILED,
            f"{'; '.join(others)}: a trial would slow it or take its memory; --yes runs it nevertheless",
        )
    return spec, names


# One trial on this machine; its result is kept.


def try_here(spec: RunSpec, trial: Trial, scratch: Path | None, *, keep: bool) -> TrialResult:
    """Run one trial to its end, in the main thread, and keep its result. An interrupt ends its trainer, too.

    Its output goes into a folder of its own; if nothing names the output folder, the trainer runs behind overlays.
    ``scratch``: parent of the trial's own folder (default: below TRAINWATCH_HOME, or where an overlay can be); removed
    afterwards unless ``keep``. A result with extra words, or of no run, is not kept. Raises CliError,
    KeyboardInterrupt.
    """
    definitions = definitions_of(spec)
    planned = plan_trial(spec, trial, trials_folder(home()), definitions)
    below = make_private(trials_folder(home()) / "scratch")
    job = Job(f"trial of {trial.profile}", "redirect", scratch, keep, redirects_to=below)
    plan = msgspec.structs.replace(plan_launch(spec, definitions), spec=planned)
    result, _ = done_apart(job, partial(_try, trial=trial), plan, lambda _folder: planned, take=_with_log)
    if not trial.extra and (spec.project is not None or RunDirectory(runs_folder(home()) / spec.id).path.exists()):
        keep_trial(home(), spec.id, result)
    return result


def _with_log(result: TrialResult) -> TrialResult:
    """The result with its log copied to where it stays."""
    kept = make_private(trials_folder(home()) / "logs") / f"{result.profile}-{int(result.wall)}.log"
    try:
        shutil.copyfile(result.log or "", kept)
    except OSError:
        return msgspec.structs.replace(result, log=None)
    return msgspec.structs.replace(result, log=str(kept))


def _try(spec: RunSpec, folder: Path, _say: Say, *, trial: Trial) -> TrialResult:
    run = short_run(spec, definitions_of(spec), folder / "home", partial(_end_in_time, trial=trial))
    with HistoryReader(run.history) as history:
        return measure(trial.profile, spec.created_wall, load_story(run.journal), history, spec.gpus)

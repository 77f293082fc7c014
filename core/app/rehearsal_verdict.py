"""What follows from what a rehearsal saw: is tonight safe, why, what to change, and when a hang is seen. Pure."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from ..judge.progress import STARTED_OVER_STEPS
from ..judge.recovery.ending import main_reading
from ..judge.resume.resume_check import VERIFIED, losses_of, name_of, resume_in_words, widest_gap
from ..judge.state import JudgeState
from ..judge.text.reading import Reading
from ..model.decision import StopAttempt
from ..model.launch import LossProof, Rehearsal, StepProof, Verdict
from ..model.observation import Command, Exit, GpuSample, Observation, ProcessSample, Tick
from ..model.preset import PLACEHOLDER, ResumeWay, Will
from ..replay import Replay
from ..store.trace import TraceReading, trace_lines
from .plan.launch_plan import LaunchPlan

_replace = msgspec.structs.replace

# What the judge of the rehearsed run knew before and after the kill, as the proofs of a resume.
#
# A trainer may ignore the checkpoint (it counts from the beginning), count on without loading the weights (the loss is
# that of the start again), or continue. What the judge does not tell apart is unknown, not proven.


def reading_of(state: JudgeState) -> Reading:
    return main_reading(state).certain


def tells_apart(state: JudgeState, place: int | None) -> bool:
    """Whether a resume from ``place`` prints other first steps than a new start, as the judge checks it."""
    reading = reading_of(state)
    first, gap = reading.opening.first_step, max(reading.run.gap, widest_gap(reading.opening.counted))
    if place is None or first is None or (gap > 1 and place < STARTED_OVER_STEPS):
        return False
    return place >= first + max(2 * gap, state.attempt.printed_every // 2)


def prove_steps(before: JudgeState | None, after: JudgeState | None, loss: LossProof, said: str) -> StepProof:
    """``before``: at the end of the first attempt, ``after``: of the second. ``said``: what the judge said of it."""
    if before is None or before.attempt.beat_t is None:
        return StepProof(why="no step is read from the log")
    known = StepProof(first=reading_of(before).opening.first_step, killed_at=before.attempt.step)
    if after is None or after.attempt.beat_t is None:
        return _replace(known, why="no step was printed after the resume")
    attempt = after.attempt
    at = attempt.resumed_at if attempt.began is None else attempt.began
    first = attempt.first_step
    if first is not None and not attempt.counts_anew:
        first += attempt.offset or 0
    known = _replace(known, checkpoint=at, first_after=first, why=said)
    if attempt.resume_verdict == "taken":
        return _replace(known, holds=True, why=said or resume_in_words(attempt).removeprefix(VERIFIED))
    if attempt.resume_verdict == "ignored":
        return _replace(known, holds=False)
    if attempt.counts_anew and loss.holds is False:
        return _replace(known, holds=False, why=loss.why)
    return _replace(known, why=said or f"nothing that it printed shows whether {name_of(attempt.resume_from)} was used")


def prove_loss(after: JudgeState | None) -> LossProof:
    if after is None or after.attempt.beat_t is None:
        return LossProof(why="no loss was printed after the resume")
    attempt = after.attempt
    if attempt.resume_from is None:
        return LossProof(why="the second attempt was begun without a checkpoint")
    found = losses_of(attempt, reading_of(after))
    if found is None or attempt.former.losses.name:
        return LossProof(why="too few losses are read from the log")
    said = f"{found.start:.4g} at the start, {found.before:.4g} before the kill, {found.after:.4g} after the resume"
    ends = {None: ": too near each other to tell", True: "", False: ": it began again, so the weights were not loaded"}
    return LossProof(
        holds=found.goes_on, start=found.start, before=found.before, after=found.after,
        why=f"{said}{ends[found.goes_on]}",
    )  # fmt: skip


# The environment that keeps a rehearsal off the network services that log experiments and take models.

SILENT = frozenset({"offline", "disabled", "dryrun", "debug", "off", "local", "0", "false"})


def offline(plan: LaunchPlan, environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Variables for the trainer. ``folder``: where trackers write. One that the user switched off stays off.

    TensorBoard writes beside the run, which is the scratch folder already. The Hugging Face hub is switched off only if
    the trainer would upload to it: models and data may have to be fetched. Sources: docs.wandb.ai (WANDB_MODE),
    mlflow.org (MLFLOW_TRACKING_URI), comet.com (COMET_MODE, COMET_START_ONLINE), docs.neptune.ai (NEPTUNE_MODE),
    clear.ml (CLEARML_OFFLINE_MODE), docs.swanlab.cn (SWANLAB_MODE), huggingface.co (HF_HUB_OFFLINE).
    """
    wanted = {
        "WANDB_MODE": "offline",
        "COMET_START_ONLINE": "0",
        "NEPTUNE_MODE": "offline",
        "CLEARML_OFFLINE_MODE": "1",
        "SWANLAB_MODE": "local",
    }
    given = {**environ, **plan.spec.env}
    found = {name: value for name, value in wanted.items() if given.get(name, "").lower() not in SILENT}
    found |= {
        "WANDB_DIR": str(folder),
        "COMET_OFFLINE_DIRECTORY": str(folder),
        "MLFLOW_TRACKING_URI": folder.joinpath("mlruns").as_uri(),
    }
    if plan.truth("push_to_hub"):
        found["HF_HUB_OFFLINE"] = "1"
    return found


# What was seen in a rehearsal.

Stage = Literal["start", "checkpoint", "kill", "restart", "proof", "done"]


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What happened. ``stage``: how far it came; ``over``: "" or why it ended there.

    ``told``: the launch named the checkpoint. ``ignored``: the judge saw that the resume did not take. ``finished``:
    the first attempt was done before it could be killed.
    ``emptied``: what was seen of checkpoints that the second attempt deleted as it began ("" = nothing).
    ``withheld``: the checkpoint that the second attempt was begun without ("" = none).
    ``written``: what was written and is no checkpoint that is understood.
    """

    stage: Stage = "start"
    over: str = ""
    timed_out: bool = False
    saved_in: str | None = None
    checkpoint: str | None = None
    checkpoint_after_s: float | None = None
    told: bool = False
    ignored: str = ""
    withheld: str = ""
    finished: bool = False
    emptied: str = ""
    failure: str = ""
    last_step: int | None = None
    total_steps: int | None = None
    steps: StepProof = StepProof()
    loss: LossProof = LossProof()
    hang_after_s: float | None = None
    written: tuple[str, ...] = ()
    log_tail: tuple[str, ...] = ()


SAVES = ("save", "ckpt", "checkpoint")
HOW_OFTEN = ("step", "every", "interval", "freq", "epoch", "_n", "num")
NOT_ALL = (
    "the weights were loaded, but the step was not, nor perhaps the optimizer: save step, optimizer and weights in one "
    "file, and load all three (docs/how-to/resume.md has the lines)"
)
UNTRIED = (
    "save under another name and rename it when it is whole: the script chooses its checkpoint by itself, and whether "
    "it takes a newest file that a crash left half-written was not tried"
)
MEND = "correct what made it fail, then rehearse again"
OWN_LINES = "if your log prints steps in another form, tell it: docs/how-to/own-log-lines.md"


def conclude(plan: LaunchPlan, seen: Seen, known: Rehearsal, limit_s: float) -> Rehearsal:
    """``known``: the rehearsal without its verdict."""
    verdict, reason, advice = _verdict(plan, seen, limit_s)
    will, how, source = resume_words(plan, seen)
    return _replace(
        known, verdict=verdict, reason=reason, advice=tuple(advice), saved_in=seen.saved_in,
        checkpoint=seen.checkpoint, checkpoint_after_s=seen.checkpoint_after_s, will=will, how=how, source=source,
        steps=seen.steps, loss=seen.loss, hang_after_s=seen.hang_after_s,
    )  # fmt: skip


def resume_words(plan: LaunchPlan, seen: Seen) -> tuple[Will, str, str]:
    """Whether a crash is resumed, how, and how that is known. What the launch plan expects counts only if it was seen.

    A trainer that was not told its checkpoint and goes on all the same finds it by itself.
    """
    way = plan.spec.resume_way or ResumeWay()
    if seen.ignored or seen.steps.holds is False or seen.loss.holds is False:
        return "no", seen.ignored or (seen.steps.why if seen.steps.holds is False else seen.loss.why), "none"
    how = f"{way.how} ({way.place})" if way.place and way.place not in way.how else way.how
    if not seen.steps.holds:
        return "no" if way.will == "no" else "unknown", how, way.source
    if way.is_usable:
        return way.will, how, way.source
    if seen.told:
        return "yes", f"told by {PLACEHOLDER} in the command", way.source
    return "self", "the trainer goes on by itself from its newest checkpoint", "self"


def _verdict(plan: LaunchPlan, seen: Seen, limit_s: float) -> tuple[Verdict, str, list[str]]:
    way = plan.spec.resume_way
    if seen.stage == "kill" and seen.failure:
        where = "" if seen.last_step is None else f" at step {seen.last_step}"
        return "unsafe", f"the training failed{where} before it was killed: {seen.failure}", [MEND]
    unproven = seen.steps.holds is None and seen.checkpoint is not None and not seen.failure
    if unproven and way is not None and way.will == "no":
        return "unsafe", f"it does not resume: {way.how}", _how_to_resume(plan, seen)
    if seen.withheld and not seen.steps.holds:
        return (
            "unknown",
            f"the second attempt was begun without {seen.withheld}: whether the script resumes from it was not seen",
            ["rehearse again with --keep: the journal in the scratch folder says why it was not given"],
        )
    deletes = plan.spec.second_start.left
    if deletes and seen.emptied and not (seen.told and seen.steps.holds):
        keeps = "start it so that it keeps the folder, or give the script an option for the path that it resumes from"
        return "unsafe", f"the restart lost what was saved ({seen.emptied}): {deletes}", [keeps]
    if seen.ignored or seen.steps.holds is False:
        why = seen.ignored or f"the resume does not take: {seen.steps.why}"
        return "unsafe", why, _how_to_resume(plan, seen)
    if seen.loss.holds is False:
        step = (
            "the step goes on after a resume, but the loss does not" if seen.steps.holds else "the loss does not go on"
        )
        return (
            "unsafe",
            f"{step}: {seen.loss.why}",
            ["load the weights and the optimizer from the checkpoint before the first step of a resumed run"],
        )
    if seen.finished and seen.checkpoint is not None:
        why = f"the training was done before it could be killed: {seen.over}"
        return "unknown", why, ["rehearse with more steps, or with more frequent checkpoints", *_how_often(plan)]
    if seen.stage in {"start", "checkpoint"}:
        return _no_checkpoint(plan, seen, limit_s)
    if seen.steps.holds is None:
        return _no_proof(plan, seen, limit_s)
    if seen.failure:
        return "unsafe", f"the resume is proven, but the training failed after it: {seen.failure}", [MEND]
    if seen.hang_after_s is None:
        hours = LONGEST_HANG_S / 3600
        return "unknown", f"a resume is proven, but a hang would not be seen within {hours:.0f} hours", [OWN_LINES]
    loss = "the loss continues" if seen.loss.holds else f"whether the loss continues is unknown ({seen.loss.why})"
    at, first = seen.steps.checkpoint, seen.steps.first_after
    anew = at is not None and first is not None and first < at and plan.preset.resume != "weights"
    proven = f"resume proven: {seen.steps.why}; {loss}; a hang is seen after {seen.hang_after_s:.0f} s"
    return "safe", proven, [*([NOT_ALL] if anew else []), *([] if seen.told else [UNTRIED])]


def _no_checkpoint(plan: LaunchPlan, seen: Seen, limit_s: float) -> tuple[Verdict, str, list[str]]:
    of = "" if seen.total_steps is None else f" of {seen.total_steps}"
    at = "" if seen.last_step is None else f" (it came to step {seen.last_step}{of})"
    advice = _how_often(plan)
    if seen.saved_in is None:
        advice.append("say where the trainer saves: --output-dir D")
    if seen.written:
        advice.append(f"it wrote {', '.join(seen.written)}: nothing there is a checkpoint that is understood")
    if seen.failure:
        return "unsafe", f"the training failed before its first checkpoint: {seen.failure}", _last_line(seen)
    if seen.timed_out:
        none = "no step was read from the log, and " if seen.last_step is None else ""
        advice += [*([OWN_LINES] if none else []), f"or {_longer(limit_s)}"]
        return "unknown", f"{none}no checkpoint was reached within {limit_s:.0f} s{at}", advice
    why = f": {seen.over}" if seen.over else ""
    return "unknown", f"the training ended before it had saved a checkpoint that a resume can use{at}{why}", advice


def _no_proof(plan: LaunchPlan, seen: Seen, limit_s: float) -> tuple[Verdict, str, list[str]]:
    longer = [_longer(limit_s)]
    if seen.stage == "kill" and seen.timed_out:
        return "unknown", f"the time was over before enough was seen ({limit_s:.0f} s)", longer
    if seen.stage == "kill":
        return "unknown", f"the training ended before it could be killed: {seen.over}", _how_often(plan)
    if seen.failure:
        return "unsafe", f"after the kill the resumed training failed: {seen.failure}", _last_line(seen)
    if seen.stage == "restart" and seen.timed_out:
        return "unknown", f"after the kill no step was seen within the time limit ({limit_s:.0f} s)", longer
    if seen.stage == "restart":
        return "unsafe", f"after the kill it was not restarted: {seen.over}", _how_to_resume(plan, seen)
    return "unknown", f"whether a resume goes on cannot be told: {seen.steps.why}", [OWN_LINES]


def _longer(limit_s: float) -> str:
    return f"give it longer: --timeout {limit_s * 4:.0f}"


def _last_line(seen: Seen) -> list[str]:
    return [f"its last line: {next((line for line in reversed(seen.log_tail) if line.strip()), '')}"]


def _how_to_resume(plan: LaunchPlan, seen: Seen) -> list[str]:
    if seen.told and seen.loss.holds:
        return [NOT_ALL]
    if seen.told:
        return ["check that the script uses the path it is given, and has no option against it"]
    way = plan.spec.resume_way
    if way is not None and way.will == "self":
        return [f"it was read as going on by itself ({way.how}), and began anew: check what that depends on"]
    return [
        (
            "a crash would begin anew and may write over what is there: give the script an option for a checkpoint "
            "(docs/how-to/resume.md has the lines), then write it behind the command: "
            f"{shlex.join(plan.spec.command)} --resume '{PLACEHOLDER}'"
        )
    ]


def _how_often(plan: LaunchPlan) -> list[str]:
    keys = [
        f"{key} = {value}"
        for key, value in plan.settings.items()
        if any(word in key.lower() for word in SAVES)
        and any(word in key.lower() for word in HOW_OFTEN)
        and isinstance(value, int | float | str)
        and str(value)
    ]
    if keys:
        return [f"let it save earlier: it has {', '.join(keys[:3])}"]
    return ["let it save earlier: set its option for that (often save_steps, save_every or save_interval)"]


# When a hang would be seen tonight: the judge, with the user's settings, on the recorded start of this run and silence.

TICK_S = 2.0
LONGEST_HANG_S = 2 * 3600.0
"""A hang that is not seen until then is not seen, as far as a night is concerned."""


def recorded(trace: Path) -> list[Observation]:
    """The observations of the first attempt, without its end."""
    found: list[Observation] = []
    try:
        for observation in TraceReading(trace_lines(trace)):
            if isinstance(observation, Exit | Command):
                break
            found.append(observation)
    except OSError:
        return []
    return found


def hang_after_s(begin: Callable[[], Replay], seen: Sequence[Observation]) -> float | None:
    """After how many seconds without any sign of life the judge ends the attempt; None: not within LONGEST_HANG_S.

    ``begin``: a new judge of this run. If the trainer was saving at the end, it is seen after the time that a save may
    take: the time that is said is that of a hang between two steps.
    """
    after_s, training = _until_ended(begin, seen), _training(begin, seen)
    between_s = _until_ended(begin, training) if after_s is not None and len(training) < len(seen) else None
    return after_s if between_s is None else between_s


def _until_ended(begin: Callable[[], Replay], seen: Sequence[Observation]) -> float | None:
    if not seen:
        return None
    fold = begin()
    fold.feed_all(seen)
    before = len(fold.entries)
    t0 = t = seen[-1].t
    still = _still(seen)
    while t < t0 + LONGEST_HANG_S:
        t += TICK_S
        fold.feed_all((*(_replace(sample, t=t) for sample in still), Tick(t=t)))
        if any(isinstance(entry, StopAttempt) for _, entry in fold.entries[before:]):
            return t - t0
    return None


def _training(begin: Callable[[], Replay], seen: Sequence[Observation]) -> Sequence[Observation]:
    """The observations up to the last one at which the trainer was training; all of them if it never was."""
    fold, last = begin(), len(seen)
    for number, observation in enumerate(seen, 1):
        fold.feed_all((observation,))
        if fold.state.progress.phase == "train":
            last = number
    return seen[:last]


def _still(seen: Sequence[Observation]) -> list[Observation]:
    """The last samples of processes and GPUs, as they are when nothing moves."""
    found: list[Observation] = []
    process = next((o for o in reversed(seen) if isinstance(o, ProcessSample)), None)
    if process is not None:
        found.append(_replace(process, cpu_cores=0.0, states={"S": process.procs or 1}))
    gpu = next((o for o in reversed(seen) if isinstance(o, GpuSample)), None)
    if gpu is not None and gpu.gpus:
        found.append(_replace(gpu, gpus=tuple(_replace(card, util_pct=0.0, power_w=None) for card in gpu.gpus)))
    return found

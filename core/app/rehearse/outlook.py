"""What tonight will do: the judge, with the user's settings, on the recorded start of this run and a fault after it."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from ...model.decision import GiveUp, StartAttempt, StopAttempt
from ...model.fact import RemedyApplied, RemedyProposed, StateChanged
from ...model.launch import FaultOutlook
from ...model.observation import Command, Exit, GpuSample, LogChunk, Observation, ProcessSample, Tick
from ...model.record import Entry
from ...model.run import RunSpec
from ...replay import Replay
from ...store.trace import TraceReading, trace_lines

CRASH = "RuntimeError: CUDA error: unknown error\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
TICK_S = 2.0
LONGEST_HANG_S = 2 * 3600.0
"""A hang that is not seen until then is not seen, as far as a night is concerned."""
GROWS = "the deadline grows with the slowest step of the night"


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


def outlook(
    begin: Callable[[], Replay], seen: Sequence[Observation], spec: RunSpec, *, resumes: bool | None, has_loss: bool
) -> tuple[FaultOutlook, ...]:
    """The table of faults. ``begin``: a new judge of this run. ``resumes``: whether a resume was proven."""
    if not seen:
        return ()
    t = seen[-1].t
    crash = _after(begin, seen, _ended(t, CRASH), "crash", resumes)
    return (
        crash,
        _hang(begin, seen, resumes),
        _after(begin, seen, _ended(t, OOM), "out of GPU memory", resumes),
        _nan(spec, crash.survives, has_loss=has_loss),
        FaultOutlook(
            fault="power cut or reboot",
            then="nothing starts by itself, unless you type `trainwatch enable` once the run has started; "
            "`trainwatch --headless` then goes on from the newest verified checkpoint",
            survives=None if resumes is not False else False,
        ),
    )


def _ended(t: float, text: str) -> tuple[Observation, ...]:
    return (LogChunk(t=t + 0.1, text=text), Exit(t=t + 0.5, code=1), Tick(t=t + 700.0))


def _entries(
    begin: Callable[[], Replay], seen: Iterable[Observation], then: Iterable[Observation]
) -> list[tuple[float, Entry]]:
    fold = begin()
    fold.feed_all(seen)
    before = len(fold.entries)
    fold.feed_all(then)
    return fold.entries[before:]


def _after(
    begin: Callable[[], Replay],
    seen: Sequence[Observation],
    then: Sequence[Observation],
    fault: str,
    resumes: bool | None,
) -> FaultOutlook:
    text, survives = _follows([entry for _, entry in _entries(begin, seen, then)], resumes)
    return FaultOutlook(fault=fault, then=text, survives=survives)


def _follows(entries: Sequence[Entry], resumes: bool | None) -> tuple[str, bool | None]:
    """What the judge does, in words, and whether the training goes on without a person."""
    start = next((entry for entry in entries if isinstance(entry, StartAttempt)), None)
    if start is not None:
        changed = next((e for e in entries if isinstance(e, RemedyApplied)), None)
        with_ = "" if changed is None else f" with changed settings ({changed.title}: {_changes(changed)})"
        proposed = next((e for e in entries if isinstance(e, RemedyProposed)), None)
        after = "" if changed is not None or proposed is None else f"; proposed to you: {proposed.title}"
        lost = "what was trained is lost (see above): " if resumes is False else ""
        if start.resume_from is not None:
            return f"{lost}restart from the newest verified checkpoint{with_}{after}", resumes
        if resumes:
            return f"restart; the trainer goes on from its newest checkpoint by itself{with_}{after}", True
        return f"{lost}restart from the beginning{with_}{after}", resumes
    gave_up = next((e for e in entries if isinstance(e, GiveUp)), None)
    state = next((e for e in reversed(entries) if isinstance(e, StateChanged)), None)
    why = gave_up.reason if gave_up is not None else state.reason if state is not None else "nothing"
    return f"no restart: {why}", False


def _changes(remedy: RemedyApplied) -> str:
    if remedy.profile is not None:
        return f"profile {remedy.profile}"
    return ", ".join(f"{change.key} {change.before} -> {change.after}" for change in remedy.changes)


def _hang(begin: Callable[[], Replay], seen: Sequence[Observation], resumes: bool | None) -> FaultOutlook:
    """All signs of life end with the last observation.

    If the trainer was saving then, it is seen after the time that a save may take: the time that is said is that of a
    hang between two steps.
    """
    found = _until_ended(begin, seen)
    if found is None:
        hours = LONGEST_HANG_S / 3600
        return FaultOutlook(fault="hang", then=f"it would not be seen within {hours:.0f} hours", survives=False)
    after_s, entries = found
    training = _training(begin, seen)
    if len(training) < len(seen) and (in_training := _until_ended(begin, training)) is not None:
        after_s = in_training[0]
    then, survives = _follows(entries, resumes)
    text = f"it is ended, stacks and log are kept; {then}; {GROWS}"
    return FaultOutlook(fault="hang", then=text, survives=survives, after_s=round(after_s, 1))


def _until_ended(begin: Callable[[], Replay], seen: Sequence[Observation]) -> tuple[float, list[Entry]] | None:
    """After how many seconds of silence the judge ends the attempt, and all that it says then; None = not at all."""
    fold = begin()
    fold.feed_all(seen)
    before = len(fold.entries)
    t0 = t = seen[-1].t
    still = _still(seen)
    while t < t0 + LONGEST_HANG_S:
        t += TICK_S
        fold.feed_all((*(msgspec.structs.replace(sample, t=t) for sample in still), Tick(t=t)))
        if any(isinstance(entry, StopAttempt) for _, entry in fold.entries[before:]):
            fold.feed_all((Exit(t=t + 1.0, signal=9), Tick(t=t + 700.0)))
            return t - t0, [entry for _, entry in fold.entries[before:]]
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
        found.append(msgspec.structs.replace(process, cpu_cores=0.0, states={"S": process.procs or 1}))
    gpu = next((o for o in reversed(seen) if isinstance(o, GpuSample)), None)
    if gpu is not None and gpu.gpus:
        idle = tuple(msgspec.structs.replace(card, util_pct=0.0, power_w=None) for card in gpu.gpus)
        found.append(msgspec.structs.replace(gpu, gpus=idle))
    return found


def _nan(spec: RunSpec, resumes: bool | None, *, has_loss: bool) -> FaultOutlook:
    nan = spec.settings.nan
    if not has_loss:
        return FaultOutlook(
            fault="NaN in the loss", then="it would not be seen: no loss is read from the log", survives=False
        )
    then = {
        "rollback": f"{nan.steps} NaN steps in a row end the attempt; it goes back once to the last checkpoint before",
        "stop": f"{nan.steps} NaN steps in a row end the attempt, and a person is waited for",
        "warn": "you are notified, and it trains on",
    }[nan.action]
    return FaultOutlook(fault="NaN in the loss", then=then, survives=resumes if nan.action == "rollback" else None)

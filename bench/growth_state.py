"""The state of a run of many days, written without running it: for ``bench/growth.py``."""

import random
from collections.abc import Iterator
from pathlib import Path

from trainwatch.core.model import fact as facts
from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.decision import Entry, StartAttempt
from trainwatch.core.model.json_line import encode_line
from trainwatch.core.model.observation import Outcome
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.run import Incident, RunSpec
from trainwatch.core.store.journal import record_of
from trainwatch.core.store.run_directory import RunDirectory

DAY_S = 86_400.0
WALL0 = 1_700_000_000.0
STEP_S = 2.5
PROGRESS_S = 30.0
"""Period of progress in the journal, as in core/judge/handlers/on_log.py."""


def write_run(home: Path, *, days: float, checkpoints: int, faults: int) -> tuple[RunDirectory, int]:
    """A run with a journal of ``days`` days; returns its folder and the number of records."""
    command = ("python", "train.py")
    spec = RunSpec(id="long-00000000", name="long", command=command, cwd=str(home), created_wall=WALL0)
    run = RunDirectory.create(home, spec)
    seq = 0
    with run.journal.open("wb") as file:
        for t, entry in _events(days, checkpoints, faults):
            seq += 1
            file.write(b'{"v":1,' + encode_line(record_of(seq, t, WALL0 + t, entry))[1:])
    return run, seq


def _events(days: float, checkpoints: int, faults: int) -> Iterator[tuple[float, Entry | Outcome]]:
    end = days * DAY_S
    dice = random.Random(1)
    yield (
        0.0,
        facts.RunCreated(
            run="long-00000000", name="long", command=("python", "train.py"), cwd="/home/ann", preset="generic"
        ),
    )
    timed: list[tuple[float, int, object]] = []
    timed += [(end * (i + 1) / (checkpoints + 1), 1, i) for i in range(checkpoints)]
    timed += [(end * (i + 0.5) / max(1, faults), 2, i) for i in range(faults)]
    timed += [(i * PROGRESS_S, 0, i) for i in range(int(end / PROGRESS_S))]
    attempt, pid = 1, 1000
    yield from ((0.0, entry) for entry in _start(attempt, pid))
    for t, kind, _ in sorted(timed, key=lambda each: each[:2]):
        step = int(t / STEP_S)
        if kind == 0:
            progress = Progress(phase="train", step=step, total_steps=int(end / STEP_S), loss=dice.random())
            yield t, facts.ProgressMade(attempt=attempt, progress=progress, overall_step=step)
            if dice.random() < 0.05:
                yield t, facts.PhaseChanged(attempt=attempt, phase=dice.choice(("train", "eval", "save")))
            if dice.random() < 0.02:
                value = dice.uniform(60.0, 95.0)
                yield t, facts.HealthChanged(metric="ram_used", value=value, unit="%", level="warning", before="safe")
        elif kind == 1:
            path = f"/home/ann/out/checkpoint-{step}"
            for verdict in ("writing", "complete"):
                known = Checkpoint(
                    path=path,
                    name=f"checkpoint-{step}",
                    kind="directory",
                    step=step,
                    epoch=None,
                    size_bytes=254_976,
                    mtime=WALL0 + t,
                    verdict=verdict,
                )
                yield t, facts.CheckpointKnown(checkpoint=known)
        else:
            incident = Incident(
                id=attempt,
                t=t,
                wall=WALL0 + t,
                attempt=attempt,
                kind="crash",
                class_="cuda_oom",
                reason="exit code 1: CUDA out of memory",
                step=step,
            )
            yield t, facts.IncidentOpened(incident=incident)
            yield t, facts.AttemptEnded(attempt=attempt, how="crashed", code=1, last_step=step, productive_s=100.0)
            yield t, facts.BudgetChanged(used=1, max=3)
            attempt, pid = attempt + 1, pid + 10
            yield t, StartAttempt(id=attempt, attempt=attempt, reason="the attempt crashed")
            yield t + 1.0, Outcome(t=t + 1.0, decision=attempt, action="start_attempt", ok=True)
            yield from ((t + 1.0, entry) for entry in _start(attempt, pid))


def _start(attempt: int, pid: int) -> Iterator[Entry]:
    yield facts.StateChanged(state="starting", reason=f"attempt {attempt} starts")
    yield facts.AttemptStarted(attempt=attempt, pid=pid, runner_pid=pid - 1, log=f"/home/ann/{attempt}.log")
    yield facts.StateChanged(state="running", reason="step 1")

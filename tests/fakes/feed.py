"""Runs that never were, for the screen: their stories are folded from records, their charts are computed."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec

from trainwatch.core.model.checkpoint import Checkpoint, Verdict
from trainwatch.core.model.decision import Record
from trainwatch.core.model.fact import (
    ActionWithheld,
    AttemptEnded,
    AttemptStarted,
    BudgetChanged,
    CheckpointKnown,
    Fact,
    IncidentOpened,
    IncidentUpdated,
    PhaseChanged,
    ProgressMade,
    RunCreated,
    StateChanged,
    SupervisorStarted,
)
from trainwatch.core.model.log_lines import LogLine, LogStretch, Stopped
from trainwatch.core.model.machine_details import GpuDetails, MachineDetails
from trainwatch.core.model.observation import (
    Command,
    GpuReading,
    GpuSample,
    HostSample,
    ProcessSample,
    RankTable,
    Reply,
)
from trainwatch.core.model.ports import MachineFeed, OpenRun, Point
from trainwatch.core.model.preset import Change, Profile
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.run import Evidence, Incident, RunSpec
from trainwatch.core.model.settings import Profiles, Screen
from trainwatch.core.model.story import Look, RunCard, RunStory, Situation
from trainwatch.core.model.story_fold import apply, told_one_by_one

WALL0 = 1_763_767_200.0
"""2025-11-21 23:20 UTC."""
HOUR = 3600.0
GB = 1e9
STEP_S = 2.5
TOTAL = 10_260
LOG = "/data/outputs/luca/.trainwatch/0002.log"


class StoryTeller:
    """Folds facts into a story, each at its time."""

    def __init__(self) -> None:
        self.story = RunStory()
        self._seq = 0

    def tell(self, t: float, *facts: Fact) -> "StoryTeller":
        for fact in facts:
            self._seq += 1
            self.story = apply(self.story, Record(seq=self._seq, t=t, wall=WALL0 + t, fact=fact))
        return self


def checkpoint(step: int, t: float, *, verdict: Verdict = "complete", reason: str | None = None) -> Checkpoint:
    return Checkpoint(
        path=f"/data/outputs/luca/luca-step{step:08d}-state",
        name=f"luca-step{step:08d}-state",
        kind="directory",
        step=step,
        epoch=step // 855,
        size_bytes=870_000_000,
        mtime=WALL0 + t,
        verdict=verdict,
        reason=reason,
    )


def created(t: float = 0.0) -> tuple[Fact, ...]:
    del t
    return (
        RunCreated(
            run="luca-1a2b3c4d",
            name="luca",
            command=("accelerate", "launch", "train_network.py"),
            cwd="/data/luca",
            preset="kohya",
            profile="balanced",
            max_restarts=3,
        ),
        SupervisorStarted(pid=4000),
    )


def started(number: int, resume_step: int | None = None, changes: tuple[Change, ...] = ()) -> tuple[Fact, ...]:
    resume = None if resume_step is None else checkpoint(resume_step, 0).path
    return (
        StateChanged(state="starting", reason=""),
        AttemptStarted(
            attempt=number,
            pid=4200 + number,
            runner_pid=4190 + number,
            log=LOG,
            profile="balanced",
            resume_from=resume,
            resume_step=resume_step,
            changes=changes,
        ),
        PhaseChanged(attempt=number, phase="load"),
    )


def training(number: int, step: int, loss: float | None = 0.0912) -> tuple[Fact, ...]:
    return (
        StateChanged(state="running", reason=""),
        PhaseChanged(attempt=number, phase="train"),
        ProgressMade(attempt=number, progress=progress(step, loss)),
    )


def progress(step: int, loss: float | None = 0.0912) -> Progress:
    return Progress(
        phase="train", step=step, total_steps=TOTAL, loss=loss, lr=1e-4, sec_per_step=STEP_S,
        run_step=step, run_total_steps=TOTAL,
    )  # fmt: skip


CRASH = Incident(
    id=1,
    t=1.63 * HOUR,
    wall=WALL0 + 1.63 * HOUR,
    attempt=1,
    kind="crash",
    class_="cuda_oom",
    title="CUDA out of memory",
    reason="exit code 1: CUDA out of memory, tried to allocate 1.96 GiB",
    explanation="VRAM was 99.4 % full for 3 min before; an evaluation had just started",
    evidence=(
        Evidence(what="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB", line=48_211),
        Evidence(what="exit code 1"),
    ),
    step=2340,
    detect_s=0.4,
)


def healthy_story(end: float = 5.2 * HOUR) -> RunStory:
    """Trained all night; one crash, recovered."""
    told = StoryTeller().tell(0, *created()).tell(1, *started(1)).tell(90, *training(1, 1))
    for number in range(1, 4):
        t = number * 0.5 * HOUR
        step = int(t / STEP_S)
        told.tell(t, CheckpointKnown(checkpoint=checkpoint(step, t)))
    told.tell(CRASH.t, IncidentOpened(incident=CRASH), AttemptEnded(attempt=1, how="crashed", code=1, last_step=2340))
    told.tell(CRASH.t + 1, StateChanged(state="backing_off", reason="waits for the GPU", until_t=CRASH.t + 20))
    told.tell(
        CRASH.t + 29,
        BudgetChanged(used=1, max=3),
        *started(2, 2160, (Change(where="config", key="vae_batch_size", before=2, after=1, why="CUDA out of memory"),)),
    )
    closed = msgspec.structs.replace(
        CRASH,
        open=False,
        closed_t=CRASH.t + 41,
        ending="recovered",
        lost_steps=180,
        resumed_from=checkpoint(2160, 0).path,
        resumed_step=2160,
    )
    told.tell(CRASH.t + 41, *training(2, 2161), IncidentUpdated(incident=closed))
    t = 2.2 * HOUR
    while t < end - 900:
        step = 2160 + int((t - CRASH.t) / STEP_S)
        told.tell(t, PhaseChanged(attempt=2, phase="eval"))
        told.tell(t + 120, PhaseChanged(attempt=2, phase="save"))
        told.tell(t + 140, CheckpointKnown(checkpoint=checkpoint(step, t + 140)))
        told.tell(t + 145, PhaseChanged(attempt=2, phase="train"))
        t += 0.55 * HOUR
    step = 2160 + int((end - CRASH.t) / STEP_S)
    return told.tell(end, ProgressMade(attempt=2, progress=progress(step))).story


def readings(t: float, count: int = 1, *, simulated: bool = False) -> GpuSample:
    gpus = tuple(
        GpuReading(
            index=i,
            util_pct=98 - 3 * i % 17,
            mem_used_bytes=(15.2 + 0.05 * i) * GB,
            mem_total_bytes=16.0 * GB,
            temp_c=62 + i,
            power_w=291 - 4 * i,
            power_limit_w=320,
            own=True,
            name="NVIDIA GeForce RTX 4080",
        )
        for i in range(count)
    )
    return GpuSample(t=t, gpus=gpus, simulated=simulated)


def host(t: float) -> HostSample:
    return HostSample(
        t=t,
        ram_used_bytes=12.1 * GB,
        ram_total_bytes=30.0 * GB,
        ram_available_bytes=17.0 * GB,
        swap_used_bytes=283e6,
        swap_total_bytes=8 * GB,
        disk_free_bytes=212 * GB,
    )


def process(t: float, cores: float = 1.12) -> ProcessSample:
    return ProcessSample(t=t, cpu_cores=cores, procs=9, states={"R": 1, "S": 8})


def situation(story: RunStory, end: float, *, gpus: int = 1) -> Situation:
    return Situation(
        story=story,
        gpu=readings(end, gpus),
        host=host(end),
        process=process(end),
        now_t=end,
        now_wall=WALL0 + end,
        supervisor_alive=True,
    )


def healthy(gpus: int = 1) -> Situation:
    end = 5.2 * HOUR
    return situation(healthy_story(end), end, gpus=gpus)


def empty() -> Situation:
    """A run of this project that never started."""
    return Situation(now_t=0.0, now_wall=WALL0, supervisor_alive=False)


def hung() -> Situation:
    """No step for 96 s; everything idle."""
    end = 5.2 * HOUR
    hang = Incident(
        id=2,
        t=end - 6,
        wall=WALL0 + end - 6,
        attempt=2,
        kind="hang",
        class_="idle",
        reason="no step for 90 s (usually 2.5 s) while GPU and CPU are idle",
        explanation="A data loader worker is waiting for a lock that nobody holds",
        evidence=(
            Evidence(what="GPU 0 at 0 % for 92 s (98 % before)"),
            Evidence(what="process tree at 0.01 cores for 92 s"),
            Evidence(what="last step 7,302", line=61_404),
        ),
        step=7302,
        detect_s=90.0,
    )
    told = StoryTeller()
    told.story, told._seq = healthy_story(end), 10_000
    story = told.tell(
        end - 6, IncidentOpened(incident=hang), StateChanged(state="hung", reason=hang.reason, until_t=end + 54)
    ).story
    base = situation(story, end)
    assert base.gpu is not None
    idle = msgspec.structs.replace(
        base.gpu, gpus=tuple(msgspec.structs.replace(g, util_pct=0.0, power_w=34.0, temp_c=44.0) for g in base.gpu.gpus)
    )
    return msgspec.structs.replace(base, gpu=idle, process=process(end, 0.0))


def finished() -> Situation:
    end = 7.4 * HOUR
    told = StoryTeller()
    told.story, told._seq = healthy_story(end), 10_000
    story = told.tell(
        end,
        ProgressMade(attempt=2, progress=msgspec.structs.replace(progress(TOTAL, 0.0713), phase="finish")),
        CheckpointKnown(checkpoint=checkpoint(TOTAL, end - 30)),
        AttemptEnded(attempt=2, how="finished", code=0, last_step=TOTAL),
        StateChanged(state="finished", reason="all steps done"),
    ).story
    return msgspec.structs.replace(situation(story, end + 600), supervisor_alive=False)


def crashed() -> Situation:
    """Right after a crash, waiting to restart."""
    end = CRASH.t + 6
    told = StoryTeller().tell(0, *created()).tell(1, *started(1)).tell(90, *training(1, 1))
    for number in range(1, 4):
        t = number * 0.5 * HOUR
        told.tell(t, CheckpointKnown(checkpoint=checkpoint(int(t / STEP_S), t)))
    told.tell(CRASH.t - 10, ProgressMade(attempt=1, progress=progress(2340)))
    told.tell(CRASH.t, IncidentOpened(incident=CRASH), AttemptEnded(attempt=1, how="crashed", code=1, last_step=2340))
    told.tell(CRASH.t + 1, StateChanged(state="backing_off", reason="waits 10 s", until_t=CRASH.t + 20))
    return situation(told.story, end)


def given_up() -> Situation:
    base = crashed()
    told = StoryTeller()
    told.story, told._seq = base.story, 10_000
    story = told.tell(
        base.now_t,
        BudgetChanged(used=3, max=3),
        StateChanged(state="given_up", reason="3 restarts without progress"),
    ).story
    return msgspec.structs.replace(base, story=story, supervisor_alive=False)


def unwatched() -> Situation:
    now = healthy()
    return msgspec.structs.replace(now, now_t=now.now_t + 200, now_wall=now.now_wall + 200, supervisor_alive=False)


def asking(*, asks: bool = True) -> Situation:
    """The hang of ``hung``, and a restart that waits for a person."""
    now = hung()
    held = ActionWithheld(
        action="stop",
        ask="restart",
        would="restarted",
        where="from luca-step00007200-state (step 7200)",
        how="after ending it",
        why="no step for 90 s",
        price="it repeats 102 steps (about 4 min)",
        attempt=2,
        incident=2,
        lost_steps=102,
        asks=asks,
        waits=True,
        verb="restart",
        answers=("yes: trainwatch restart {run} --incident 2",) if asks else ("to do it: trainwatch restart {run}",),
    )
    record = Record(seq=20_000, t=now.now_t - 5, wall=WALL0 + now.now_t - 5, fact=held)
    return msgspec.structs.replace(now, story=apply(now.story, record))


def in_state(state: str, **changes: object) -> Situation:
    now = healthy()
    return msgspec.structs.replace(
        now, story=msgspec.structs.replace(now.story, state=state, state_t=now.now_t - 12, **changes)
    )


PROFILES = (
    Profile(name="conservative", title="12 GB, slow, always fits", settings={"vae_batch_size": 1, "workers": 1}),
    Profile(name="balanced", title="16 GB, the usual one", settings={"vae_batch_size": 2, "workers": 2}),
    Profile(name="aggressive", title="24 GB, fast", settings={"vae_batch_size": 4, "workers": 4, "lowram": False}),
)
PLAN = RunSpec(
    id="luca",
    name="luca",
    command=("accelerate", "launch", "train_network.py", "--config_file", "sdxl.toml"),
    cwd="/data/luca",
    created_wall=0.0,
)


def curve(metric: str, t: float, now: Situation) -> float | None:
    """What a metric was at ``t``."""
    source, _, name = metric.partition(".")
    dead = any(a.ended_t is not None and a.ended_t <= t < _next_start(now, a.number) for a in now.story.attempts)
    stuck = now.story.state == "hung" and t > now.story.state_t - 90
    wave = math.sin(t / 37.0) * math.sin(t / 11.3)
    lively = 0.0 if dead or stuck else 1.0
    table = {
        "util": 97 * lively + 2 * wave * lively,
        "vram": (15.2 if not dead else 0.6) * GB + 0.1 * GB * wave,
        "temp": 44 + 18 * lively + wave,
        "power": 34 + 255 * lively + 8 * wave * lively,
        "ram_used": 12.1 * GB - (0 if not dead else 9 * GB) + 0.1 * GB * wave,
        "ram_available": 17.0 * GB + 0.1 * GB * wave,
        "swap_used": 283e6,
        "disk_free": 212 * GB,
        "cpu": 1.1 * lively + 0.1 * wave * lively,
    }
    if source == "progress":
        if dead or stuck or t < 90:
            return None
        if name == "step":
            return _step_at(now, t)
        if name == "lr":
            return 1e-4 * max(0.05, 0.5 + 0.5 * math.cos(t / 9000))
        if name == "loss":
            return 0.0912 + 0.25 * math.exp(-t / 2600) + 0.004 * wave
        return STEP_S + 0.08 * wave + (1.2 if 0 <= t % 1980 < 120 else 0)
    if source == "metric":
        if dead or stuck or t < 90:
            return None
        logged = {
            "grad_norm": 1.2 + 0.3 * wave,
            "eval/loss": 0.12 + 0.3 * math.exp(-t / 2600),
            "tokens_per_sec": 8300 + 200 * wave,
        }
        return logged.get(name)
    return table.get(name)


def _step_at(now: Situation, t: float) -> float:
    """Steps at the pace of the run, from the step that the attempt resumed from."""
    attempt = [a for a in now.story.attempts if a.t <= t][-1]
    return (attempt.resume_step or 0) + max(0.0, t - attempt.t - 60) / STEP_S


def _next_start(now: Situation, number: int) -> float:
    return next((a.t for a in now.story.attempts if a.number == number + 1), math.inf)


SERIES = (
    "gpu0.util", "gpu0.vram", "gpu0.temp", "gpu0.power", "host.ram_used", "host.ram_available", "host.swap_used",
    "host.disk_free", "process.cpu", "progress.step", "progress.loss", "progress.sec_per_step", "progress.lr",
    "metric.grad_norm", "metric.eval/loss", "metric.tokens_per_sec",
)  # fmt: skip
"""What the fake history has."""


class FakeFeed:
    """A Feed over one situation, which tests may replace; it remembers commands."""

    def __init__(self, now: Situation) -> None:
        self.now = now
        self.sent: list[Command] = []
        self.reply = Reply(ok=True, message="Accepted.")

    def poll(self) -> Situation:
        return self.now

    def series(self, metric: str, since_t: float, until_t: float, points: int) -> Sequence[Point]:
        if not self.now.story.attempts:
            return []
        width = (until_t - since_t) / points
        found = []
        for i in range(points):
            t = since_t + (i + 0.5) * width
            value = curve(metric, t, self.now) if 0 <= t <= self.now.now_t else None
            if value is not None:
                found.append((t, value, value, value))
        return found

    def series_names(self) -> Sequence[str]:
        return SERIES

    def charts(
        self, metrics: Sequence[str], since_t: float, until_t: float, points: int
    ) -> Mapping[str, Sequence[Point]]:
        return {m: self.series(m, since_t, until_t, points) for m in metrics}

    def send(self, command: Command) -> Reply:
        self.sent.append(command)
        return self.reply

    def take_back(self) -> bool:
        return False


BAR = "steps:  71%|███████   | 7302/10260 [5:04:15<2:03:15,  2.50s/it, avr_loss=0.0912]"


def log_lines(count: int = 300) -> list[str]:
    lines = []
    for i in range(count):
        if i % 40 == 7:
            lines.append(f"saving checkpoint: /data/outputs/luca/luca-step{2160 + i * 10:08d}.safetensors")
        elif i % 40 == 8:
            lines.append(f"epoch {i // 40 + 1}/12")
        elif i == 211:
            lines.append("UserWarning: None of the inputs have requires_grad=True. Gradients will be None")
        else:
            lines.append(f"INFO  bucket {i:03d}: resolution (1024, 1024), 4 images, mean ar error 0.0031")
    return lines


class FakeLog:
    """A LogBrowser over lines in memory, whatever the path; an offset is a line's number. ``bar``: the open line."""

    def __init__(self, lines: Sequence[str] | None = None, bar: str = BAR) -> None:
        self.lines_ = list(log_lines() if lines is None else lines)
        self.bar = bar

    def size(self, path: str) -> int:
        return len(self._all())

    def before(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch:
        found = [line for line in self._all() if line.offset < offset and (only is None or only.search(line.text))]
        found = found[-lines:]
        return self._stretch(found, found[0].offset if len(found) == lines else 0, min(offset, len(self.lines_)))

    def after(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch:
        found = [line for line in self._all() if line.offset >= offset and (only is None or only.search(line.text))]
        found = found[:lines]
        end = found[-1].offset + 1 if len(found) == lines else len(self.lines_)
        return self._stretch(found, offset, min(end, len(self.lines_)))

    def find(
        self, path: str, pattern: re.Pattern[str], offset: int, *, backwards: bool, stopped: Stopped
    ) -> int | None:
        lines = [line for line in self._all() if (line.offset < offset) == backwards]
        return next((x.offset for x in (reversed(lines) if backwards else lines) if pattern.search(x.text)), None)

    def line_at(self, path: str, number: int, stopped: Stopped) -> int | None:
        return number - 1 if number <= len(self.lines_) else None

    def _all(self) -> list[LogLine]:
        lines = [LogLine(i, 1, text) for i, text in enumerate(self.lines_)]
        return [*lines, LogLine(len(lines), 1, self.bar, open=True)] if self.bar else lines

    def _stretch(self, lines: list[LogLine], start: int, end: int) -> LogStretch:
        bar = 1 if self.bar else 0
        return LogStretch(lines=tuple(lines), start=start, end=end, file_size=len(self.lines_) + bar, open_size=bar)


class FakePicker:
    """Three runs. Remembers what it was asked to start; ``error`` makes it refuse."""

    def __init__(self, now: Situation | None = None, error: str | None = None) -> None:
        self.now = now or healthy()
        self.started: list[tuple[str, Command | None]] = []
        self.error = error
        self.opened: list[str] = []
        self.hidden: set[str] = set()
        self.there: list[tuple[str, bool]] = []

    def show_there(self, card: RunCard, *, read_only: bool) -> None:
        self.there.append((card.id, read_only))

    def runs(self, *, anew: bool = False) -> Sequence[RunCard]:
        known = self._known()
        return tuple(msgspec.structs.replace(card, hidden=card.id in self.hidden) for card in known)

    def start(self, run_id: str, then: Command | None) -> None:
        if self.error is not None:
            raise RuntimeError(self.error)
        self.started.append((run_id, then))

    def command(self, run_id: str) -> Sequence[str]:
        raise RuntimeError(f"{run_id} has no terminal yet")

    def machine(self) -> MachineFeed:
        raise RuntimeError("the machine is not read here")

    def training(self, seen: GpuDetails | None) -> str:
        return ""

    def verb(self, *words: str) -> Sequence[str]:
        return ("trainwatch", *words)

    def hide(self, run_id: str, hidden: bool) -> None:
        (self.hidden.add if hidden else self.hidden.discard)(run_id)

    def _known(self) -> Sequence[RunCard]:
        return (
            RunCard(id="luca-1", name="luca", state="running", watched=True, created_wall=WALL0, step=7302,
                    total_steps=TOTAL, last_incident="CUDA out of memory"),
            RunCard(id="mira-2", name="mira", state="finished", watched=False, created_wall=WALL0 - 90_000, step=4000,
                    total_steps=4000),
            RunCard(id="old-3", name="old-long-name-of-a-run", state="interrupted", watched=False,
                    created_wall=WALL0 - 900_000),
        )  # fmt: skip

    def open(self, run_id: str) -> OpenRun:
        self.opened.append(run_id)
        if run_id == "old-3":
            raise RuntimeError("run.json is damaged; the journal beside it is still readable")
        return open_run(self.now, run_id)


class Everything(tuple[str, ...]):
    """Somebody has seen all there is."""

    __slots__ = ()

    def __contains__(self, _: object) -> bool:
        return True


NOTHING: dict[str, Any] = {
    "directory": None, "files": lambda _: (), "last": lambda: Look(wall=1e12, needs=Everything()), "keep": lambda _: None,
    "newest": tuple, "changes": lambda _: (), "time_of": lambda *_: None, "trials": dict, "details": MachineDetails,
    "ranks": RankTable, "remedies": lambda _: (), "end_trainer": str,
}  # fmt: skip
"""The services of a run of which nothing is known, and which somebody looks at all the time."""
CALLED = {"incident_files": "files", "launch": "changes", "trials": "trials", "details": "details", "ranks": "ranks",
          "stamps": "time_of", "remedies": "remedies"}  # fmt: skip


def services(**doors: Any) -> Any:
    """The services of a run, of doors by name."""
    found = dict(NOTHING)
    for door in (doors[name] for name in ("checkpoints", "samples", "looks") if name in doors):
        found |= {name: getattr(door, name) for name in dir(door) if not name.startswith("_")}
    return SimpleNamespace(**found | {CALLED[name]: door for name, door in doors.items() if name in CALLED})


def open_run(now: Situation, run_id: str = "luca-1", log: FakeLog | None = None, **doors: Any) -> OpenRun:
    plan, ladder, screen = doors.pop("plan", PLAN), doors.pop("ladder", ()), doors.pop("screen", Screen())
    settings = msgspec.structs.replace(plan.settings, screen=screen, profiles=Profiles(ladder=ladder))
    plan = msgspec.structs.replace(plan, settings=settings)
    more: dict[str, Any] = {"profiles": PROFILES, "plan": plan, "logs": log or FakeLog()}
    served = {name: doors.pop(name) for name in (*CALLED, "looks", "samples", "checkpoints") if name in doors}
    more |= {"feed": FakeFeed(now), "services": services(**served)}
    return OpenRun(run_id=run_id, name="luca", **(more | doors))


SCENES = {
    "empty": empty,
    "healthy": healthy,
    "busy": lambda: healthy(gpus=8),
    "hung": hung,
    "crashed": crashed,
    "given_up": given_up,
    "finished": finished,
    "unwatched": unwatched,
}
"""Situations by name, for snapshots and pictures."""


def told_records(records: Iterable[Record]) -> tuple[Record, ...]:
    """Those that a report tells one by one."""
    untold: set[int] = set()
    return tuple(record for record in records if told_one_by_one(record, untold))

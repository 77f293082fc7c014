"""Builders of tests: small stories of a training run, written as what happens, turned into observations.

``Story`` keeps a clock and emits samples at its period while things happen: ``Story().load().train(200).dead(600)``.
Numbers are made up on the shape of real ones; noise comes from a seeded generator, so every story is always the same.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from tests.shipped import FAILURES, SHAPES
from trainwatch.core.judge.failure.catalogue import CompiledCatalogue
from trainwatch.core.judge.knowledge import Knowledge
from trainwatch.core.judge.run_states import WORDS, name_of
from trainwatch.core.judge.state import changed
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import (
    Decision,
    EndLeftovers,
    EndWatch,
    Entry,
    GiveUp,
    ListCheckpoints,
    NotifyPeople,
    Record,
    StartAttempt,
    StopAttempt,
)
from trainwatch.core.model.fact import AttemptEnded, IncidentOpened, IncidentUpdated, Note, StateChanged
from trainwatch.core.model.observation import (
    CheckpointChange,
    CheckpointEvent,
    Command,
    Exit,
    GpuReading,
    GpuSample,
    HostSample,
    KernelLine,
    LogChunk,
    Meta,
    Observation,
    Outcome,
    ProcessSample,
    Start,
    Tick,
)
from trainwatch.core.model.preset import Preset
from trainwatch.core.model.progress import Why
from trainwatch.core.model.run import Incident
from trainwatch.core.model.settings import Settings
from trainwatch.core.model.shipped import FailureClass, FailureSignature
from trainwatch.core.model.story import RunStory
from trainwatch.core.model.story_fold import apply

GB = 1e9

GpuShow = tuple[float | None, float | None]
"""Utilisation in per cent and power in watts."""
GpuShape = Callable[[random.Random, int], GpuShow]


def busy(rng: random.Random, _gpu: int) -> GpuShow:
    """Training at full power."""
    return 97 + rng.randint(-2, 2), 290 + rng.uniform(-12, 12)


def idle(rng: random.Random, _gpu: int) -> GpuShow:
    """Nothing runs; a monitor causes a per cent now and then."""
    return rng.choice([0, 0, 0, 1]), 44 + rng.uniform(-6, 6)


def spin(rng: random.Random, _gpu: int) -> GpuShow:
    """A kernel that waits."""
    return 99 + rng.randint(0, 1), 115 + rng.uniform(-6, 6)


def jumpy(rng: random.Random, _gpu: int) -> GpuShow:
    """Loader-bound: every sample something else."""
    return rng.choice([(0, 70.0), (100, 240.0), (40, 150.0), (100, 260.0), (0, 62.0)])


def evaluating(rng: random.Random, _gpu: int) -> GpuShow:
    """Forward passes only."""
    return 92 + rng.randint(-6, 6), 235 + rng.uniform(-15, 15)


def first_only(shape: GpuShape, others: GpuShape) -> GpuShape:
    """GPU 0 does one thing, the others another."""
    return lambda rng, gpu: shape(rng, gpu) if gpu == 0 else others(rng, gpu)


class Story:
    """The observations of a run, in order. Every method returns the story itself."""

    def __init__(
        self,
        *,
        seed: int = 1,
        period_s: float = 2.0,
        gpus: int = 1,
        step_s: float = 2.5,
        total: int = 10260,
        util: bool = True,
        power: bool = True,
        telemetry: bool = True,
        workers: int = 8,
        meta: bool = True,
        step: int = 0,
    ) -> None:
        self.rng = random.Random(seed)
        self.period_s = period_s
        self.gpus = gpus
        self.step_s = step_s
        self.total = total
        self.util, self.power = util, power
        self.telemetry = telemetry
        self.processes = True
        self.own = True
        self.held: tuple[int, ...] | None = None
        """GPUs on which the trainer holds memory; None = not known."""
        self.limit_w = 320.0
        self.settings: Settings | None = None
        self.workers = workers
        self.t = 0.0
        self.step = step
        self.read = 1e8
        self.written = 1e7
        self.net = 0.0
        self.wanted = 0.0
        self.observations: list[Observation] = []
        self._next_sample_t = 0.0
        self.attempt = 0
        self.trouble_t = 0.0
        if meta:
            self.observations.append(Meta(t=0.0, command=("python", "train.py"), output_dir="out"))

    # --- what can be seen ---------------------------------------------------------------------------------------

    def start(self, *, resume_from: str | None = None, resume_step: int | None = None) -> "Story":
        self.attempt += 1
        self.read, self.written = 1e8, 1e7
        return self.add(
            Start(
                t=self.t,
                attempt=self.attempt,
                pid=4242 + self.attempt,
                resume_from=resume_from,
                resume_step=resume_step,
            )
        )

    def add(self, observation: Observation) -> "Story":
        """Add one observation."""
        self.observations.append(observation)
        return self

    def log(self, text: str) -> "Story":
        return self.add(LogChunk(t=self.t, text=text))

    def exit(self, code: int | None = None, signal: int | None = None) -> "Story":
        """End the trainer now."""
        return self.add(Exit(t=self.t, code=code, signal=signal))

    def command(self, verb: str, **fields: object) -> "Story":
        """Add an operator command."""
        return self.add(msgspec.convert({"kind": "command", "t": self.t, "verb": verb, **fields}, Command))

    def kernel(self, text: str) -> "Story":
        """A line of the kernel log."""
        return self.add(KernelLine(t=self.t, text=text))

    def checkpoint(
        self, path: str, event: CheckpointChange = "complete", *, size: float = 8.7e8, step: int | None = None
    ) -> "Story":
        return self.add(CheckpointEvent(t=self.t, path=path, event=event, size_bytes=size, step=step))

    def nothing(self, seconds: float) -> "Story":
        """Let time pass without observations (suspend)."""
        self.t += seconds
        self._next_sample_t = self.t
        return self

    def ticks(self, seconds: float, every_s: float = 5.0) -> "Story":
        """Let time pass with ticks only."""
        end = self.t + seconds
        while self.t < end:
            self.t += every_s
            self.add(Tick(t=self.t))
        self._next_sample_t = self.t
        return self

    # --- what happens -------------------------------------------------------------------------------------------

    def go(
        self,
        seconds: float,
        *,
        gpu: GpuShape = idle,
        cpu: float | Callable[[float], float] = 0.002,
        read_per_s: float = 0.0,
        write_per_s: float = 0.0,
        net_per_s: float = 0.0,
        states: dict[str, int] | None = None,
        procs: int | None = None,
        logs: Iterable[tuple[float, str]] = (),
        see_gpu: bool = True,
        see_process: bool = True,
        **process: Any,
    ) -> "Story":
        """Let time pass; ``logs`` are (seconds from now, text). ``cpu`` may be a function of the run's time.

        ``process``: further fields of the process samples.
        """
        begin, end = self.t, self.t + seconds
        process = {**process, "net_bytes": self.net}
        pending = sorted(logs)
        at = 0
        while self._next_sample_t < end:
            t = self._next_sample_t
            while at < len(pending) and begin + pending[at][0] <= t:
                self.t = begin + pending[at][0]
                self.log(pending[at][1])
                at += 1
            self.t = t
            process["net_bytes"] += net_per_s * self.period_s
            if self.telemetry:
                self._sample(
                    gpu, cpu, read_per_s, write_per_s, states, procs, process, see_gpu=see_gpu, see_process=see_process
                )
            self._next_sample_t += self.period_s
        for after, text in pending[at:]:
            self.t = begin + after
            self.log(text)
        self.t, self.net = end, process["net_bytes"]
        return self

    def _sample(
        self,
        gpu: GpuShape,
        cpu: float | Callable[[float], float],
        read_per_s: float,
        write_per_s: float,
        states: dict[str, int] | None,
        procs: int | None,
        process: dict[str, Any],
        *,
        see_gpu: bool,
        see_process: bool,
    ) -> None:
        self.read += read_per_s * self.period_s
        self.written += write_per_s * self.period_s
        if see_gpu and self.gpus:
            shown = [gpu(self.rng, index) for index in range(self.gpus)]
            self.add(
                GpuSample(
                    t=self.t,
                    gpus=tuple(
                        GpuReading(
                            index=index,
                            util_pct=util if self.util else None,
                            power_w=power if self.power else None,
                            power_limit_w=self.limit_w if self.power else None,
                            mem_used_bytes=15.4 * GB,
                            mem_total_bytes=16.3 * GB,
                            temp_c=62,
                            own=self.own,
                            own_mem_bytes=None if self.held is None else 14 * GB * (index in self.held),
                        )
                        for index, (util, power) in enumerate(shown)
                    ),
                )
            )
        self.add(
            HostSample(
                t=self.t,
                ram_used_bytes=12 * GB,
                ram_total_bytes=32 * GB,
                ram_available_bytes=19 * GB,
                swap_used_bytes=0,
                disk_free_bytes=200 * GB,
            )
        )
        if see_process and self.processes:
            cores = cpu(self.t) if callable(cpu) else cpu
            noisy = max(0.0, cores * (1.0 + self.rng.uniform(-0.1, 0.1)))
            count = self.workers + 1 if procs is None else procs
            self.add(
                ProcessSample(
                    t=self.t,
                    cpu_cores=round(noisy, 4),
                    read_bytes=self.read,
                    write_bytes=self.written,
                    procs=count,
                    states=states if states is not None else self._states(cores, count),
                    **process,
                )
            )

    def _states(self, cores: float, count: int) -> dict[str, int]:
        """As often in state R as cores are used."""
        self.wanted = self.wanted % 1.0 + cores
        running = min(count, int(self.wanted))
        return {"S": count - running, **({"R": running} if running else {})}

    def load(self, seconds: float = 60.0) -> "Story":
        """The model is read from disk."""
        lines = [(0.0, "prepare tokenizers\n"), (seconds / 3, "loading model for process 0/1\n")]
        return self.go(seconds, cpu=1.0, read_per_s=9e7, logs=lines)

    def bar(self, step: int) -> str:
        """The trainer's progress bar at a step."""
        share, loss = 100 * step // self.total, 0.1 + self.rng.uniform(-0.005, 0.005)
        pace = f"[{self.t:.0f}<1:00:00, {self.step_s:.2f}s/it, avr_loss={loss:.4f}]"
        return f"\rsteps: {share:3d}%|   | {step}/{self.total} {pace}"

    def train(
        self,
        steps: int,
        *,
        gpu: GpuShape = busy,
        cpu: float | None = None,
        every: int = 1,
        step_s: float | None = None,
        line: Callable[[int], str] | None = None,
        see_gpu: bool = True,
        see_process: bool = True,
        states: dict[str, int] | None = None,
    ) -> "Story":
        """Steps are made. ``every``: a line each so many; ``line``: its text, else the bar."""
        usual = step_s if step_s is not None else self.step_s
        say = line if line is not None else self.bar
        logs = []
        at = 0.0
        for _ in range(steps):
            at += usual * (1.0 + self.rng.uniform(-0.08, 0.08))
            self.step += 1
            if self.step % every == 0:
                logs.append((at, say(self.step)))
        cores = cpu if cpu is not None else 1.3 * max(1, self.gpus)
        return self.go(
            at,
            gpu=gpu,
            cpu=cores,
            read_per_s=4e6,
            write_per_s=1e4,
            states=states,
            logs=logs,
            see_gpu=see_gpu,
            see_process=see_process,
        )

    def dead(
        self,
        seconds: float,
        *,
        cpu: float | Callable[[float], float] = 0.002,
        talk: Callable[[float], str] | None = None,
        every_s: float = 30.0,
        states: dict[str, int] | None = None,
        procs: int | None = None,
        write_per_s: float = 0.0,
    ) -> "Story":
        """Let the trainer be dead. ``talk``: what the log prints all the same, every ``every_s`` seconds."""
        logs = []
        if talk is not None:
            logs = [(n * every_s, talk(n * every_s)) for n in range(1, int(seconds / every_s))]
        return self.go(seconds, cpu=cpu, logs=logs, states=states, procs=procs, write_per_s=write_per_s)

    def spinning(self, seconds: float, *, gpu: GpuShape = spin, **more: object) -> "Story":
        """Let the GPU wait in a kernel; each process keeps a core busy waiting for it."""
        return self.go(seconds, gpu=gpu, cpu=1.0 * max(1, self.gpus), **more)  # type: ignore[arg-type]

    def save(
        self,
        seconds: float,
        path: str = "out/state-000200",
        *,
        announce: bool = True,
        visible: bool = True,
        mmap: bool = False,
        complete: bool = True,
        size: float = 1.3e10,
    ) -> "Story":
        """A checkpoint is written. ``visible``: its growth is seen; ``mmap``: no write bytes are counted."""
        if announce:
            self.log(f"\nsaving checkpoint: {path}\n")
        if visible:
            self.checkpoint(path, "created", size=0.0)
        parts = max(1, int(seconds / 5))
        for part in range(parts):
            rate = 0.0 if mmap else size / seconds
            self.go(seconds / parts, cpu=0.15, write_per_s=rate, states={"D": 1, "S": self.workers})
            if visible:
                self.checkpoint(path, "growing", size=size * (part + 1) / parts)
        if complete and visible:
            self.checkpoint(path, "complete", size=size, step=self.step)
        return self

    def evaluate(
        self, seconds: float, *, gpu: GpuShape = evaluating, announce: bool = True, bar: bool = True
    ) -> "Story":
        """An evaluation, with a bar of its own."""
        if announce:
            self.log("\n***** Running Evaluation *****\n")
        count = max(2, int(seconds / 4))
        pace = "[00:10<00:10, 1.10it/s]"
        logs = [
            (n * seconds / count, f"\rEvaluating: {100 * n // count}%|  | {n}/{count} {pace}") for n in range(count)
        ]
        return self.go(seconds, gpu=gpu, cpu=1.2, read_per_s=3e6, logs=logs if bar else ())

    def finish(self, *, save: bool = True, words: bool = False) -> "Story":
        """The last steps, and the final checkpoint."""
        self.step = self.total - 20
        self.train(20)
        if words:
            self.log("\nTraining completed.\n")
        if save:
            self.save(20.0, "out/model.safetensors", size=8.7e8)
            self.log("\nmodel saved.\n")
        return self

    def write(self, path: Path) -> None:
        """The story as a trace file."""
        encode = msgspec.json.Encoder().encode
        path.write_bytes(b"".join(encode(o) + b"\n" for o in self.observations))


CLASSES = {
    "cuda_oom": (False, "CUDA out of memory"),
    "cuda_unknown_error": (True, "CUDA error: unknown error"),
    "code_bug": (False, "AttributeError"),
    "checkpoint_corrupt": (False, "invalid header in checkpoint"),
    "nan_loss": (False, "loss is nan, stopping"),
    "network_error": (True, "failure in name resolution"),
    "disk_full": (False, "No space left on device"),
}
"""Whether the class is retryable, and its one message."""


def _small(known: FailureClass) -> FailureClass:
    retryable, words = CLASSES.get(known.name, (known.name == "unknown", ""))
    message = FailureSignature(pattern=words, literal=words, weight=0.95, source="test")
    return msgspec.structs.replace(
        known,
        retryable=retryable,
        explanation=f"about {known.name}",
        remedies=(),
        signatures=(message,) if words else (),
    )


SMALL = CompiledCatalogue(
    msgspec.structs.replace(FAILURES, noise=(), classes=(*map(_small, FAILURES.classes),)), SHAPES
)
"""The shipped catalogue with one message per class, so that tests do not depend on the shipped ones."""


def knowledge(
    settings: Settings | None = None,
    preset: Preset | None = None,
    catalogue: CompiledCatalogue = SMALL,
    **fields: object,
) -> Knowledge:
    """Return the knowledge of a judge for tests."""
    return Knowledge(
        catalogue=catalogue,
        settings=settings if settings is not None else Settings(),
        preset=preset if preset is not None else Preset(name="generic"),
        **fields,  # type: ignore[arg-type]
    )


def judge(
    settings: Settings | None = None,
    preset: Preset | None = None,
    catalogue: CompiledCatalogue = SMALL,
    **fields: object,
) -> Judge:
    return Judge(knowledge(settings, preset, catalogue, **fields))


class World:
    """A judge whose decisions are performed as by a supervisor, unless a test sets another outcome.

    ``answers``: by action, the outcomes to give, in order (ok, detail, data); when they run out, all goes well.
    ``silent``: actions that are never answered.
    """

    def __init__(self, mind: Judge | None = None, *, silent: Iterable[str] = ()) -> None:
        self.judge = mind if mind is not None else judge()
        self.state = self.judge.start()
        self.entries: list[tuple[float, Entry]] = []
        self.seen: list[Observation] = []
        self.bodies: list[tuple[float, Entry | Outcome]] = []
        """What a supervisor would have written into the journal."""
        self.answers: dict[str, list[tuple[bool, str, dict[str, object]]]] = {}
        self.silent = set(silent)
        self.live: int | None = None
        self.t = 0.0

    def begin(self) -> "World":
        """Let the supervisor take the run over."""
        self.state, said = self.judge.begin(self.state, self.t)
        return self._hear(said)

    def see(self, *observations: Observation) -> "World":
        """Pass observations to the judge. An earlier time is taken as now."""
        for observation in observations:
            self.t = max(self.t, observation.t)
            if isinstance(observation, Exit):
                self.live = None
            now = msgspec.structs.replace(observation, t=self.t)
            self.seen.append(now)
            if isinstance(now, Outcome):
                self.bodies.append((self.t, now))
            self.state, said = self.judge.step(self.state, now)
            self._hear(said)
        return self

    def watch(self, story: Story) -> "World":
        """Pass a whole story, shifted to now, without its starts."""
        shift = self.t
        for observation in story.observations:
            if not isinstance(observation, Meta | Start):
                self.see(msgspec.structs.replace(observation, t=observation.t + shift))
        return self

    def wait(self, seconds: float, every_s: float = 0.5) -> "World":
        """Let time pass, with a Tick every ``every_s`` seconds."""
        end = self.t + seconds
        while self.t < end:
            self.see(Tick(t=min(end, self.t + every_s)))
        return self

    def command(self, verb: str, **fields: object) -> "World":
        """Pass an operator command."""
        return self.see(msgspec.convert({"kind": "command", "t": self.t, "verb": verb, **fields}, Command))

    def answer(self, action: str, *, ok: bool = True, detail: str = "", **data: object) -> "World":
        """Set the next outcome of an action."""
        self.answers.setdefault(action, []).append((ok, detail, data))
        return self

    def _hear(self, said: Iterable[Entry]) -> "World":
        waiting = deque(said)
        while waiting:
            entry = waiting.popleft()
            self.entries.append((self.t, entry))
            self.bodies.append((self.t, entry))
            if isinstance(entry, Decision):
                waiting.extend(self._do(entry))
        return self

    def _do(self, decision: Decision) -> list[Entry]:
        action = str(decision.__struct_config__.tag)
        if action in self.silent or isinstance(decision, NotifyPeople | GiveUp | EndWatch):
            return []
        scripted = self.answers.get(action)
        ok, detail, data = scripted.pop(0) if scripted else (True, "", {})
        said: list[Entry] = []
        if isinstance(decision, StopAttempt | EndLeftovers) and ok and self.live is not None:
            self.live = None
            self.state, more = self.judge.step(self.state, Exit(t=self.t, signal=2))
            said.extend(more)
        outcome = Outcome(t=self.t, decision=decision.id, action=action, ok=ok, detail=detail, data=dict(data))
        self.bodies.append((self.t, outcome))
        self.state, more = self.judge.step(self.state, outcome)
        said.extend(more)
        if isinstance(decision, StartAttempt) and ok:
            assert self.live is None, f"attempt {decision.attempt} was started while {self.live} lives"
            self.live = decision.attempt
            start = Start(
                t=self.t,
                attempt=decision.attempt,
                pid=5000 + decision.attempt,
                resume_from=decision.resume_from,
                resume_step=decision.resume_step,
                profile=decision.profile,
            )
            self.state, more = self.judge.step(self.state, start)
            said.extend(more)
        return said

    def change(self, part: str, **fields: object) -> "World":
        """Another memory of the judge: fields of a part of its state."""
        self.state = changed(self.state, part, **fields)
        return self

    # --- what came of it ----------------------------------------------------------------------------------------

    @property
    def word(self) -> str:
        """The run's public state."""
        return WORDS[name_of(self.state.machine)]

    @property
    def attempt(self) -> int:
        """The number of the newest attempt."""
        return self.state.attempt.number

    @property
    def step(self) -> int | None:
        """The newest step of the attempt, as its log counts."""
        return self.state.attempt.step

    @property
    def position(self) -> int | None:
        """The same, counted over the attempts."""
        return self.state.attempt.position

    @property
    def resume_from(self) -> str | None:
        """The checkpoint that the newest attempt resumed from."""
        return self.state.attempt.resume_from

    def of(self, kind: Any) -> list[Any]:
        """All entries of a kind, in order."""
        return [entry for _, entry in self.entries if isinstance(entry, kind)]

    @property
    def why(self) -> Why:
        """What the newest state follows from."""
        why: Why = self.of(StateChanged)[-1].why
        return why

    @property
    def decisions(self) -> list[str]:
        """The decisions by name, without notices."""
        return [
            str(e.__struct_config__.tag)
            for _, e in self.entries
            if isinstance(e, Decision) and not isinstance(e, NotifyPeople)
        ]

    @property
    def incidents(self) -> list[Incident]:
        """Every incident as it is known now."""
        known: dict[int, Incident] = {}
        for _, entry in self.entries:
            if isinstance(entry, IncidentOpened | IncidentUpdated):
                known[entry.incident.id] = entry.incident
        return list(known.values())

    @property
    def hangs(self) -> list[Incident]:
        """The incidents of kind ``hang``."""
        return [incident for incident in self.incidents if incident.kind == "hang"]

    def text(self) -> str:
        """The story for people to review: states, incidents, decisions."""
        return story_text(self.entries)


def story_of(entries: Iterable[tuple[float, Entry]]) -> RunStory:
    """The story in a journal of these entries, of a run that began at 0 s of wall time."""
    story = RunStory()
    for seq, (t, entry) in enumerate(entries, 1):
        body: dict[str, Any] = {"decision" if isinstance(entry, Decision) else "fact": entry}
        story = apply(story, Record(seq=seq, t=t, wall=t, **body))
    return story


def story_text(entries: Iterable[tuple[float, Entry]]) -> str:
    """One line per change of state, incident and decision."""
    lines = []
    for t, entry in entries:
        said = _line(entry)
        if said is not None:
            lines.append(f"{t:9.1f}  {said}\n")
    return "".join(lines)


def _line(entry: Entry) -> str | None:
    match entry:
        case StateChanged():
            until = f" (until {entry.until_t:.1f})" if entry.until_t is not None else ""
            return f"state     {entry.state}{until}: {entry.reason}"
        case IncidentOpened():
            seen = "".join(f"\n           . {e.what}" for e in entry.incident.evidence)
            return f"incident  {entry.incident.kind}/{entry.incident.class_}: {entry.incident.reason}{seen}"
        case IncidentUpdated():
            return f"closed    {entry.incident.kind}/{entry.incident.class_}: {entry.incident.ending}"
        case AttemptEnded():
            return f"ended     attempt {entry.attempt} {entry.how}, last step {entry.last_step}"
        case Note():
            return f"note      {entry.text}"
        case NotifyPeople():
            return f"tell      {entry.event}: {entry.title}"
        case ListCheckpoints():
            return None  # before every choice of a resume point, and after its verification
        case _ if isinstance(entry, Decision):
            return f"decide    {entry.__struct_config__.tag}: {entry.reason}"
        case _:
            return None

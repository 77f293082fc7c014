"""A run of a week under the real loop, judge and store, with simulated time: ``python bench/week.py [--days 7]``.

8 GPUs, machine, processes and a line of log each second, 5,000 checkpoints and 200 crashes in a week (fewer in fewer
days). Sensors and actor are simulated; loop, judge, journal, history and trace are those of a supervisor, and write
into a real folder. Then each verb is run on the state (as in growth.py). Prints how memory, descriptors and state grew,
and CPU seconds for a simulated minute. Exit code 1 if a bound is exceeded: memory of the process 5 MB more than after
the first twelfth, state 60 MB, descriptors constant, verbs as in growth.py.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from host_values import host_sample

from tests.builders import knowledge
from trainwatch.core.app.supervise.recorder import RunRecorder
from trainwatch.core.config.shipped import load_failures, load_log_shapes
from trainwatch.core.judge.failure.catalogue import CompiledCatalogue
from trainwatch.core.judge.recovery.attempts import shown_progress
from trainwatch.core.judge.state import SNAPSHOT_VERSION, to_snapshot
from trainwatch.core.judge.step import Judge
from trainwatch.core.judge.text.shapes import ShapeTable
from trainwatch.core.model import observation as observations
from trainwatch.core.model.decision import Decision, EndWatch, Record, StartAttempt
from trainwatch.core.model.fact import IncidentOpened, RunCreated
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.run import ProcessIdentity, RunSpec, StartRecord
from trainwatch.core.model.settings import Settings
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.learned import HabitsFile
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.store.supervision import SafeJournal
from trainwatch.core.store.trace import TraceWriter
from trainwatch.core.supervisor.loop import Supervisor

DAY_S = 86_400.0
WEEK_CHECKPOINTS, WEEK_FAULTS = 5000, 200
GPUS = 8
STEP_S = 2.5
WALL0 = 1_700_000_000.0
MEMORY_MB, STATE_MB = 5.0, 60.0
PATIENCE_S = 60.0
CRASH = "Traceback (most recent call last):\nRuntimeError: CUDA error: unknown error\n"


class SimulatedClock:
    """The time of the newest observation."""

    t = 0.0

    def now(self) -> float:
        return self.t

    def wall(self) -> float:
        return WALL0 + self.t


class SimulatedRun:
    """Inbox and actor in one: what a run shows each second, and a trainer that every decision works on."""

    def __init__(self, clock: SimulatedClock, folder: Path, days: float) -> None:
        self.clock = clock
        self.folder = folder
        self.end_t = days * DAY_S
        self.step = 0
        self.saved: deque[int] = deque(maxlen=64)
        self.faults = self.checkpoints = self.incidents = 0
        self.marks: list[tuple[float, float, int]] = []
        """(day, MB, descriptors), twelve times."""
        self._dice = random.Random(1)
        self._lives = False
        self._decided = 0
        self._queue: deque[observations.Observation] = deque()
        self._changed = threading.Condition()
        self._next = self._observations()

    # --- inbox ---

    def put(self, observation: observations.Observation) -> None:
        with self._changed:
            self._queue.append(observation)
            if isinstance(observation, observations.Outcome):
                self._decided -= 1
            self._changed.notify_all()

    def take(self, timeout_s: float) -> observations.Observation | None:
        """Time stands while a decision is performed."""
        del timeout_s
        with self._changed:
            if not self._changed.wait_for(lambda: self._queue or self._decided <= 0, PATIENCE_S):
                raise SystemExit("a decision has no outcome")
            if self._queue:
                return self._queue.popleft()
        found = next(self._next, None)
        if found is not None:
            self.clock.t = found.t
        return found

    def unread(self) -> int:
        return 0

    def close(self) -> None: ...

    def heard(self, records: Sequence[Record]) -> None:
        """Count what is decided and found."""
        for record in records:
            if record.decision is not None and not isinstance(record.decision, EndWatch):
                with self._changed:
                    self._decided += 1
            self.incidents += isinstance(record.fact, IncidentOpened)

    # --- actor ---

    def perform(self, decision: Decision) -> observations.Outcome:
        data = self._launched(decision) if isinstance(decision, StartAttempt) else {}
        action = str(decision.__struct_config__.tag)
        return observations.Outcome(t=self.clock.t, decision=decision.id, action=action, ok=True, data=data)

    def follow(self, target: AttemptTarget | None) -> None:
        self._lives = target is not None

    def _launched(self, decision: StartAttempt) -> dict[str, object]:
        directory = self.folder / "attempts" / f"{decision.attempt:04d}"
        directory.mkdir(parents=True, exist_ok=True)
        log = directory / "train.log"
        log.touch()
        self.step = decision.resume_step or 0
        start = StartRecord(
            attempt=decision.attempt,
            trainer=ProcessIdentity(boot_id="simulated", pid=5000 + decision.attempt, start_ticks=1),
            runner=None,
            wall=self.clock.wall(),
            log=str(log),
        )
        order = msgspec.to_builtins(decision)
        return {"start": msgspec.to_builtins(start), "order": order, "directory": str(directory)}

    # --- what there is to see ---

    def _observations(self) -> Iterator[observations.Observation]:
        save_s, fault_s = 7 * DAY_S / WEEK_CHECKPOINTS, 7 * DAY_S / WEEK_FAULTS
        next_save, next_fault, next_mark, begun = save_s, fault_s, self.end_t / 12, 0.0
        t = 0.0
        while t < self.end_t:
            t += 1.0
            yield from self._samples(t)
            if not self._lives:
                begun = t
                continue
            if t - begun >= STEP_S and (t - begun) % STEP_S < 1.0:
                self.step += 1
                loss = 2.0 / (1 + t / 3600) + self._dice.random() / 50
                yield observations.LogChunk(
                    t=t, text=f"step {self.step}/{int(self.end_t / STEP_S)} loss={loss:.4f} lr=1e-4\n"
                )
            if t >= next_save and t - begun > 60:
                next_save += save_s
                yield from self._saves(t)
            if t >= next_fault and t - begun > 60:
                next_fault += fault_s
                self.faults += 1
                yield observations.LogChunk(t=t, text=CRASH)
                yield observations.Exit(t=t + 0.1, code=1, died_t=t)
            if t >= next_mark:
                next_mark += self.end_t / 12
                self.marks.append((t / DAY_S, own_memory_mb(), len(list(Path("/proc/self/fd").iterdir()))))
                print(f"day {t / DAY_S:5.2f}: {self.marks[-1][1]:.1f} MB, {self.marks[-1][2]} descriptors", flush=True)

    def _samples(self, t: float) -> Iterator[observations.Observation]:
        dice = self._dice
        yield observations.GpuSample(
            t=t,
            gpus=tuple(
                observations.GpuReading(
                    index=index,
                    util_pct=float(dice.randint(85, 99)),
                    mem_used_bytes=14e9 + dice.randint(0, 1000) * 1e6,
                    mem_total_bytes=17e9,
                    temp_c=float(dice.randint(60, 70)),
                    power_w=280 + dice.random() * 20,
                    power_limit_w=320.0,
                    own=True,
                    clock_mhz=float(dice.randint(2600, 2700)),
                    clock_mem_mhz=float(dice.choice((10_251, 10_501))),
                    fan_pct=float(dice.randint(40, 60)),
                    pcie_received=dice.uniform(1e9, 8e9),
                    pcie_sent=dice.uniform(1e8, 2e9),
                )
                for index in range(GPUS)
            ),
        )
        ram = 12e9 + dice.randint(0, 1000) * 1e6
        yield host_sample(t, ram, 1e8, dice)
        if self._lives:
            done = 1e6 * t
            yield observations.ProcessSample(
                t=t,
                cpu_cores=1 + dice.random(),
                rss_bytes=ram / 2,
                read_bytes=done,
                write_bytes=done,
                procs=9,
                states={"S": 9},
            )

    def _saves(self, t: float) -> Iterator[observations.Observation]:
        """Complete at once; the oldest of sixty-four is removed."""
        self.checkpoints += 1
        path = "/data/out/checkpoint-{}".format
        if len(self.saved) == self.saved.maxlen:
            yield observations.CheckpointEvent(t=t, path=path(self.saved[0]), event="removed")
        self.saved.append(self.step)
        yield observations.CheckpointEvent(
            t=t,
            path=path(self.step),
            event="complete",
            size_bytes=8e8,
            step=self.step,
            verdict="complete",
            mtime=WALL0 + t,
            form="directory",
        )


def own_memory_mb() -> float:
    """Memory of this process that no other one shares."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) / 1024
    return 0.0


def supervise(home: Path, days: float) -> tuple[SimulatedRun, RunDirectory, float]:
    """Run the loop to the end of the week. Returns also the CPU seconds that it took."""
    spec = RunSpec(id="week-00000000", name="week", command=("python", "train.py"), cwd=str(home), created_wall=WALL0)
    run = RunDirectory.create(home, spec)
    clock = SimulatedClock()
    world = SimulatedRun(clock, run.path, days)
    shapes = ShapeTable(load_log_shapes())
    judge = Judge(knowledge(Settings(), catalogue=CompiledCatalogue(load_failures(), shapes), output_dir="/data/out"))
    journal = SafeJournal(run, free=lambda: False, told=lambda _text: None)
    created = RunCreated(run=spec.id, name=spec.name, command=spec.command, cwd=spec.cwd, preset="generic")
    journal.append_all(0.0, WALL0, (created,))
    recorder = RunRecorder(
        HistoryWriter(run.history),
        TraceWriter(run.trace, run.trace_wanted),
        observations.Meta(t=0, command=spec.command),
        HabitsFile(home, spec.command, spec.cwd, None),
        shown=lambda state: shown_progress(judge.knowledge, state),
    )
    supervisor = Supervisor(
        judge=judge,
        state=judge.start(),
        snapshot=to_snapshot,
        snapshot_version=SNAPSHOT_VERSION,
        journal=journal,
        recorder=recorder,
        inbox=world,  # type: ignore[arg-type]
        clock=clock,
        actor=world,
        pid=os.getpid(),
        on_records=(world.heard,),
        turning=lambda: supervisor.end(0, "the week is over") if clock.t >= world.end_t else None,
    )
    began = time.process_time()
    supervisor.run()
    return world, run, time.process_time() - began


def verbs_within(home: Path) -> bool:
    """Each verb on the state at the end, measured by a process of its own."""
    growth = Path(__file__).with_name("growth.py")
    return (
        subprocess.run((sys.executable, str(growth), "--home", str(home), "--run", "week"), check=False).returncode == 0
    )


def main() -> int:
    """Print the figures; 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=7.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="week-") as folder:
        home = Path(folder) / "home"
        world, run, cpu_s = supervise(home, args.days)
        sizes = {each.name: each.stat().st_size for each in run.path.rglob("*") if each.is_file()}
        size_mb = sum(sizes.values()) / 1e6
        (_, first_mb, first_fds), (_, last_mb, last_fds) = world.marks[0], world.marks[-1]
        rows = (
            ("memory gained", last_mb - first_mb, "MB", MEMORY_MB),
            ("state", size_mb, "MB", STATE_MB),
            ("descriptors gained", last_fds - first_fds, "", 0),
        )
        print(
            f"{args.days:g} days: {world.faults} crashes, {world.checkpoints} checkpoints, {world.incidents} incidents"
        )
        print(f"loop, judge and store: {cpu_s / (args.days * 1440):.3f} CPU-s for a simulated minute")
        fine = True
        for name, value, unit, bound in rows:
            fine = fine and value <= bound
            print(f"{name:20} {value:8.1f} {unit:3} (bound {bound:g}) {'PASS' if value <= bound else 'FAIL'}")
        largest = sorted(sizes.items(), key=lambda each: -each[1])[:5]
        print("  " + ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in largest))
        subprocess.run(("sync",), check=False)
        return 0 if verbs_within(home) and fine else 1


if __name__ == "__main__":
    sys.exit(main())

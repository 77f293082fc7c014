"""What a supervisor records beside the journal: metric history for charts, a trace for replay, when the log grew."""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from trainwatch import __version__

from ...act.launch.launching import read_script
from ...judge.handlers.hints import habits_of
from ...judge.progress import MetricReader
from ...judge.state import JudgeState
from ...judge.text.reading import Reading
from ...model.checkpoint import SERIES
from ...model.decision import Record
from ...model.fact import IncidentOpened, RunCreated
from ...model.observation import GpuReading, GpuSample, LogChunk, Meta, MetricValues, Observation, Outcome, Start
from ...model.preset import ScriptState
from ...model.progress import Outlook, Progress
from ...model.run import RunSpec
from ...model.settings import Settings
from ...source.launch_target import find_target
from ...store.history_writer import HistoryWriter
from ...store.latest import ProgressPoint
from ...store.learned import HabitsFile
from ...store.log_index import FILE_NAME, LogIndexWriter
from ...store.trace import TraceWriter
from ..plan.launch_plan import LaunchPlan
from ..preflight.launch_checks import expected_of_run

FIRST_READING_S = 2.0
"""A working driver answers within a second; a launch does not wait longer for one that does not."""
HABITS_S = 300.0
"""Period of writing what was learned, for later runs of the command; it is written at the end, too."""

UNHEARD = Progress()
METRICS_SHARE, METRICS_LONGEST_S = 1 / 600, 60.0
"""Metrics are kept every second for the first 10 minutes, every 6 s after an hour, every minute after ten hours: 64 of
them for a week are about 20 MB."""


class LogMetrics:
    """Numbers by name in the log, for charts and reports."""

    def __init__(self) -> None:
        self._readers: dict[str | None, MetricReader] = {}
        self._next_t = 0.0

    def add(self, source: str | None, number: int, line: str, before: Reading, after: Reading) -> None:
        """Take a line of the log, as the judge has read it."""
        self._readers.setdefault(source, MetricReader()).read(number, line, before, after)

    def begin_attempt(self) -> None:
        """Another log follows. The values stay."""
        for reader in self._readers.values():
            reader.begin_attempt()

    def take(self, t: float, *, last: bool = False) -> Iterator[MetricValues]:
        """The values that are due at ``t`` (run seconds); ``last``: all that were read."""
        if t < self._next_t and not last:
            return
        for reader in self._readers.values():
            if values := reader.take():
                self._next_t = t + min(METRICS_LONGEST_S, t * METRICS_SHARE)
                yield MetricValues(t=t, values=dict(values), left_out=reader.left_out)


class RunRecorder:
    """Implements ``model.ports.Recorder``. If the disk is full, charts have gaps; the supervisor continues.

    ``room``: whether there is room for charts and traces now. ``metrics``: gets the lines of the log from the judge.
    ``shown``: progress for people. ``seen``: gets each observation.
    """

    def __init__(
        self,
        history: HistoryWriter,
        trace: TraceWriter,
        meta: Meta | None,
        habits: HabitsFile,
        *,
        room: Callable[[], bool] = lambda: True,
        metrics: LogMetrics | None = None,
        shown: Callable[[JudgeState], Progress] = lambda state: state.progress,
        outlook: Callable[[JudgeState], Outlook] = lambda _: Outlook(),
        seen: Callable[[Observation], None] = lambda _observation: None,
    ) -> None:
        self._history = history
        self._trace = trace
        self._habits = habits
        self._room = room
        self._seen = seen
        self._metrics = metrics or LogMetrics()
        self.lines_behind: Callable[[], int] = lambda: 0
        """How many lines of the log wait to be judged."""
        self._shown, self._outlook = shown, outlook
        self._t = 0.0
        self.drawn_t = history.drawn_t()
        """Until when an earlier supervisor drew the progress, in run seconds."""
        self._late = False
        self._next_habits_t = HABITS_S
        self._state: JudgeState | None = None
        self._log_growth: LogIndexWriter | None = None
        self._heard = False
        self.newest: ProgressPoint | None = None
        """The newest progress, also if it cannot be written."""
        self._gpu: GpuSample | None = None
        self._gpu_answered = threading.Event()
        self._used_before: dict[int, float] = {}
        self.gpu_peaks: Mapping[int, float] = {}
        """Most memory of the current attempt by GPU, in bytes; a GPU of which it is not known is left out."""
        if meta is not None:
            trace.write(meta)

    @property
    def has_steps(self) -> bool:
        """Whether the log of this attempt has shown a step."""
        return self._state is not None and self._state.attempt.beat_t is not None

    def add(self, observation: Observation) -> None:
        self._seen(observation)
        if isinstance(observation, GpuSample):
            self._gpu = observation
            self._gpu_answered.set()
            self._keep_peaks(observation)
        elif isinstance(observation, LogChunk):
            self._late = observation.written_t is not None
        elif isinstance(observation, Start):
            if observation.log and observation.directory:
                empty_t, place = None if observation.adopted else observation.t, Path(observation.directory) / FILE_NAME
                self._log_growth = LogIndexWriter(place, observation.log, empty_t=empty_t)
            self._metrics.begin_attempt()
            before = self._gpu.gpus if self._gpu is not None and not observation.adopted else ()
            self._used_before = {gpu.index: gpu.mem_used_bytes for gpu in before if gpu.mem_used_bytes is not None}
            self.gpu_peaks = {}
        elif isinstance(observation, Outcome) and observation.action == "evaluate_checkpoint":
            scores = observation.data.get("values") if observation.ok else None
            if scores:
                named = {f"{SERIES}{name}": float(value) for name, value in scores.items()}
                self._history.add(MetricValues(t=observation.t, values=named, source="evaluate"))
        self._history.add(observation)
        if self._room():
            self._trace.write(observation)

    def on_records(self, records: Sequence[Record]) -> None:
        """Write what was observed before an incident."""
        for record in records:
            if isinstance(record.fact, IncidentOpened):
                self._trace.flush()

    def _keep_peaks(self, sample: GpuSample) -> None:
        """Where the driver lists no processes, all memory beyond what was used before the attempt counts."""
        peaks = dict(self.gpu_peaks)
        for gpu in sample.gpus:
            own, used, before = gpu.own_mem_bytes, gpu.mem_used_bytes, self._used_before.get(gpu.index)
            if own is not None and gpu.index in self._used_before:
                del self._used_before[gpu.index]
                peaks[gpu.index] = own
            elif own is None and used is not None and before is not None:
                own = used - before
            if own is not None:
                peaks[gpu.index] = max(own, peaks.get(gpu.index, 0.0))
        self.gpu_peaks = peaks

    def draw(self, written_t: float, state: JudgeState) -> None:
        """Keep the progress of text that was written at this time, while nobody read the log."""
        drawn = written_t <= self.drawn_t
        if not drawn:
            self._history.add(self._point(written_t, state))
        for values in self._metrics.take(written_t):
            if not drawn:
                self._history.add(values)

    def _point(self, t: float, state: JudgeState) -> ProgressPoint:
        return ProgressPoint(
            t=t,
            progress=self._shown(state),
            step_t=state.attempt.beat_t,
            outlook=self._outlook(state),
            lines_behind=self.lines_behind(),
        )

    def commit(self, t: float, state: JudgeState, *, whole: bool = False) -> None:
        """Make the samples visible to readers, with the judge's progress. ``whole``: the curves, too."""
        self._t = t
        self._heard = self._heard or state.progress != UNHEARD
        if self._heard:  # a new supervisor has not read the log yet; the last known progress stays
            self.newest = self._point(t, state)
            self._history.add(self.newest, drawn=not self._late)
        for values in () if self._late else self._metrics.take(t):
            self._history.add(values)
        if self._room():
            self._history.show(t, whole=whole)
            self._trace.flush_if_due(t)
        self._state = state
        if t >= self._next_habits_t:
            self._next_habits_t = t + HABITS_S
            self._keep_habits()

    def _keep_habits(self) -> None:
        habits = habits_of(self._state) if self._state is not None else None
        if habits is not None:
            self._habits.write(habits)

    def close(self) -> None:
        self._keep_habits()
        for values in self._metrics.take(self._t, last=True):
            self._history.add(values)
        self._history.close()
        self._trace.close()

    def look_at_log(self, t: float) -> None:
        """Note how long the log is. Called in the thread that reads it, which may be stuck on its file system."""
        if self._log_growth is not None:
            self._log_growth.look(t)

    def gpus_now(self) -> Sequence[GpuReading] | None:
        """The newest readings; None if no GPU is visible. Called by the acting thread.

        Waits for the first reading, because a launch needs a baseline.
        """
        self._gpu_answered.wait(FIRST_READING_S)
        return self._gpu.gpus if self._gpu is not None and self._gpu.gpus else None


UNJUDGED = frozenset({"notify", "tmux", "screen"})
"""Sections of the settings that the judge does not use; the first holds secrets."""


def run_created(plan: LaunchPlan, home: Path) -> RunCreated:
    """The journal's first record."""
    spec = plan.spec
    return RunCreated(
        run=spec.id,
        name=spec.name,
        command=spec.command,
        cwd=spec.cwd,
        preset=spec.preset,
        preset_why=plan.preset.told(spec.preset_why),
        output_dir=spec.output_dir,
        output_why=spec.output_why,
        profile=spec.settings.profiles.use,
        max_restarts=spec.settings.restart.max_restarts,
        act=spec.settings.restart.act,
        trainwatch_version=__version__,
        expected=harmless("estimating the length", expected_of_run)(plan, home),
        resume=spec.resume_way,
    )


def trace_head(spec: RunSpec) -> Meta:
    """The trace's first line. It holds the settings that differ from the defaults, so that a replay decides alike."""
    settings = msgspec.to_builtins(spec.settings)
    defaults = msgspec.to_builtins(Settings())
    changed = {
        section: {key: value for key, value in values.items() if value != defaults[section][key]}
        for section, values in settings.items()
        if section not in UNJUDGED
    }
    return Meta(
        t=0.0,
        command=spec.command,
        preset=spec.preset,
        output_dir=spec.output_dir,
        settings={section: values for section, values in changed.items() if values},
    )


log = logging.getLogger(__name__)


Compared = TypeVar("Compared")
Given = ParamSpec("Given")


def harmless(what: str, compare: Callable[Given, Compared | None]) -> Callable[Given, Compared | None]:
    """A comparison that fails is noted in the log, and nothing is known then: it must not prevent a launch."""

    def compared(*args: Given.args, **kwargs: Given.kwargs) -> Compared | None:
        try:
            return compare(*args, **kwargs)
        except Exception:
            log.exception("%s failed", what)
            return None

    return compared


def script_now(spec: RunSpec) -> ScriptState | None:
    """The script that a launch of the run would start, as it is at this moment; None if that cannot be told."""
    target = find_target(spec.command, Path(spec.cwd), {**os.environ, **spec.env})
    return None if isinstance(target, str) else read_script(target.file)

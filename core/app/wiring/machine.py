"""The machine as a screen without a run shows it: its GPUs, memory, processor and processes."""

import os
import shutil
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from ...model.machine_details import MachineDetails
from ...model.observation import GpuSample, HostSample, Observation
from ...model.ports import Point
from ...model.settings import Settings
from ...model.story import RunStory, Situation, SupervisorLife
from ...processes import all_processes
from ...sense.gpu.gpu_sensor import GpuSensor
from ...sense.host.host_sensor import Host
from ...sense.process.process_tree import TreeDetailReadings
from ...sense.sampler import SamplersInOneThread
from ...store.history_reader import HistoryReader
from ...store.history_writer import HistoryWriter
from ...store.home import make_private
from ...store.latest import DetailFiles, Latest
from ...store.supervision import RunClock
from ..runs.known_runs import here, home
from ..runs.supervisor_life import situation_of

WAITING = 1000
"""Samples that wait for the next poll."""


class MachineWatch:
    """Implements the screen's MachineFeed with the sensors of a run; its history is gone when it is closed.

    Called in threads; ``poll`` from one only.
    """

    def __init__(self, created_wall: float) -> None:
        self._zero = created_wall
        place = make_private(home() / "machine")
        for left in place.iterdir():  # those of screens that were ended by a signal
            if not Path("/proc", left.name).exists():
                shutil.rmtree(left, ignore_errors=True)
        self._folder = make_private(place / str(os.getpid()))
        self._desk, self._clock = DetailFiles(self._folder), RunClock(created_wall)
        self._came: deque[Observation] = deque(maxlen=WAITING)
        history = self._folder / "history.sqlite"
        self._writer, self._reader = HistoryWriter(history), HistoryReader(history)
        self._latest, self._processes = Latest(), TreeDetailReadings()
        watch = Settings().watch
        host = Host(interval_s=watch.interval_s, output_dir=str(here()), inbox=self, clock=self._clock)
        gpus = GpuSensor(watch=watch, details=self._desk, inbox=self, clock=self._clock)
        self._sensors = (SamplersInOneThread(host), gpus)
        for sensor in self._sensors:
            sensor.start()

    def put(self, observation: Observation) -> None:
        """Take a sample: the sensors' inbox."""
        self._came.append(observation)

    def unread(self) -> int:
        return 0

    def poll(self) -> Situation:
        """The newest samples, in a situation without a run."""
        while self._came:
            sample = self._came.popleft()
            self._writer.add(sample)
            if isinstance(sample, GpuSample):
                self._latest = Latest(gpu=sample, host=self._latest.host)
            elif isinstance(sample, HostSample):
                self._latest = Latest(gpu=self._latest.gpu, host=sample)
        self._writer.show(self._clock.now())
        life, health = SupervisorLife(alive=True, responsive=True), Settings().health
        return situation_of(RunStory(), life, self._latest, created_wall=self._zero, health=health)

    def series(self, metric: str, since_t: float, until_t: float, points: int) -> Sequence[Point]:
        return self._reader.series(metric, since_t, until_t, points)

    def details(self) -> MachineDetails:
        """The processes on the GPUs, and those of this machine that use most CPU or memory."""
        known, now = self._desk.look(), self._clock.now()
        tree = self._processes.look({}, all_processes(), now)
        return MachineDetails(gpus=known.gpus, host=known.host, tree=tree)

    def close(self) -> None:
        for sensor in self._sensors:
            sensor.stop()
        self._reader.close()
        self._writer.close()
        shutil.rmtree(self._folder, ignore_errors=True)

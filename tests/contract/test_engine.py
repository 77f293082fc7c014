"""What holds for every engine: real processes on this machine, jobs of stand-in commands, jobs of a real cluster."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainbeat
from tests.fakes import slurm_commands
from tests.fakes.slurm_cluster import NEEDS_CLUSTER, cluster
from tests.integration.act_world import wait_for
from tests.tiers import SECOND_TIER
from trainwatch.core import processes
from trainwatch.core.act.local_engine import Engine, engine_of
from trainwatch.core.act.stopping import members
from trainwatch.core.model.decision import EndLeftovers, StartAttempt, StopAttempt
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.run import LaunchOrder, RunSpec
from trainwatch.core.model.settings import Restart, Settings, Slurm
from trainwatch.core.processes import is_alive
from trainwatch.core.spool import read_exit

__all__ = ["cluster"]  # pytest finds the fixture here

GRACES = Restart(interrupt_grace_s=1.0)
COMMANDS = ("sbatch", "squeue", "scontrol", "scancel", "srun")
WAITS = "import time; print('it begins', flush=True); time.sleep(600)"


class Place:
    """An engine, and the attempts that a test starts with it."""

    def __init__(self, root: Path, spec: RunSpec) -> None:
        self.root = root
        self.spec = spec
        self.engine = self.another()
        self.targets: list[AttemptTarget] = []

    def another(self) -> Engine:
        """The engine of a supervisor that begins anew."""
        return engine_of(self.spec, base_env=os.environ, save=("USR1", "asked_to_save"))

    def starts(self, code: str) -> AttemptTarget:
        number = len(self.targets) + 1
        folder = self.root / "attempts" / f"{number:04}"
        order = LaunchOrder(
            attempt=number,
            argv=(sys.executable, "-c", code),
            cwd=str(self.root),
            env=dict(os.environ),
            log=str(folder / "train.log"),
        )
        target = self.engine.submit(order, folder, StartAttempt(id=number, reason="", attempt=number))
        self.targets.append(target)
        return target

    def runs(self, target: AttemptTarget) -> None:
        """Wait until the training runs, wherever that is."""
        job = Path(target.directory, "job.json")
        is_job = self.spec.engine == "slurm"
        wait_for(
            lambda: job.exists() and '"running"' in job.read_text() if is_job else is_alive(target.trainer), "it runs"
        )

    def ends(self, target: AttemptTarget) -> int | None:
        """Wait for the end; the exit status of the training."""
        ended = wait_for(lambda: read_exit(Path(target.directory)), "its end")
        return ended.code

    def printed(self, target: AttemptTarget, text: str) -> None:
        log = Path(target.log or "")
        wait_for(lambda: log.exists() and text in log.read_text(errors="replace"), text)

    def clear(self) -> None:
        for number, target in enumerate(self.targets):
            self.engine.stop(target, StopAttempt(id=100 + number, reason="", attempt=target.number, mode="kill"))
            for process in members(target):
                processes.send_signal(process.key, signal.SIGKILL)


@pytest.fixture(
    params=["local", "stand-in", pytest.param("cluster", marks=[SECOND_TIER, *NEEDS_CLUSTER])],
)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    if request.param == "stand-in":
        commands, jobs = tmp_path / "bin", tmp_path / "jobs"
        commands.mkdir()
        jobs.mkdir()
        for name in COMMANDS:
            (commands / name).symlink_to(slurm_commands.__file__)
        monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
        monkeypatch.setenv("FAKE_SLURM", str(jobs))
    elif request.param == "cluster":
        monkeypatch.setenv("SLURM_CONF", request.getfixturevalue("cluster")["SLURM_CONF"])
    spec = RunSpec(
        id=f"r-{tmp_path.name}",
        name="x",
        command=(),
        cwd=str(tmp_path),
        created_wall=0.0,
        engine="local" if request.param == "local" else "slurm",
        settings=Settings(restart=GRACES, slurm=Slurm(poll_s=0.5, sample_s=1.0)),
    )
    made = Place(tmp_path, spec)
    yield made
    made.clear()


def test_of_an_attempt_that_ended_the_exit_status_and_its_log_are_known_and_it_is_asked_for_nothing(
    place: Place, tmp_path: Path
) -> None:
    target = place.starts("import sys; print('it ran', flush=True); sys.exit(7)")
    assert place.ends(target) == 7
    place.printed(target, "it ran")
    assert not place.another().ask_to_save(target, stop=True).pids
    report = place.engine.probe(target, tmp_path / "evidence")
    assert report.frames == {}
    assert any("it ran" in Path(path).read_text() for path in report.files)


def test_an_attempt_is_found_by_a_supervisor_that_begins_anew_and_a_stop_ends_it_for_good(place: Place) -> None:
    """Meanwhile it does what the engine says that it can. A stop may be repeated."""
    target = place.starts(WAITS)
    place.printed(target, "it begins")
    place.engine = later = place.another()
    found = later.adopt(Path(target.directory))
    assert found is not None
    assert found.trainer == target.trainer
    place.runs(found)
    assert later.adopt(place.root / "attempts" / "none") is None

    paused, sentence, _ = place.engine.pause(target)
    assert paused == place.engine.capabilities.here, sentence
    assert place.engine.pause(target, paused=False)[0] == place.engine.capabilities.here
    shown = place.engine.shown(("true",), place.root, 1)
    assert (shown is not None) == place.engine.capabilities.queues

    gone, sentence, _ = place.engine.stop(target, StopAttempt(id=9, reason="", attempt=1))
    assert gone, sentence
    assert place.ends(target) != 0
    assert place.engine.stop(target, EndLeftovers(id=10, reason="", attempt=1))[0]


@SECOND_TIER
def test_after_a_stop_the_next_attempt_runs_in_a_folder_of_its_own(place: Place) -> None:
    first = place.starts(WAITS)
    place.printed(first, "it begins")
    assert place.engine.stop(first, StopAttempt(id=9, reason="", attempt=1))[0]
    second = place.starts("print('it goes on', flush=True)")
    assert second.directory != first.directory
    assert place.ends(second) == 0
    place.printed(second, "it goes on")


HEARTBEAT = f"""
import sys, time
sys.path.insert(0, {str(Path(trainbeat.__file__).parent)!r})
import trainbeat
for step in range(100000):
    wanted = trainbeat.step(step)
    if step == 3:
        print('it makes steps', flush=True)
    if wanted.save:
        print('it saves' + (' and ends' if wanted.stop else ''), flush=True)
    if wanted.stop:
        break
    time.sleep(0.05)
"""
CATCHES = """
import signal, time
signal.signal(signal.SIGUSR1, lambda number, frame: print('it saves', flush=True))
print('it makes steps', flush=True)
while True:
    time.sleep(0.1)
"""


def test_a_training_that_tells_its_steps_is_asked_for_a_checkpoint_and_to_end(place: Place) -> None:
    target = place.starts(HEARTBEAT)
    place.printed(target, "it makes steps")
    place.runs(target)
    report = place.engine.ask_to_save(target, stop=False)
    assert report.asked, report.sentence
    place.printed(target, "it saves\n")
    report = place.engine.ask_to_save(target, stop=True)
    assert "to end then" in report.sentence
    place.printed(target, "it saves and ends")
    assert place.ends(target) == 0


def test_a_training_that_catches_the_signal_gets_it_and_the_file_is_touched(place: Place) -> None:
    target = place.starts(CATCHES)
    place.printed(target, "it makes steps")
    place.runs(target)
    report = place.engine.ask_to_save(target, stop=False)
    assert "SIGUSR1 was sent to" in report.sentence
    place.printed(target, "it saves")
    assert report.file == str(place.root / "asked_to_save")
    assert (place.root / "asked_to_save").exists()

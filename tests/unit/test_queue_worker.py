"""The process that starts queued runs: in their order, nothing twice, whatever is killed in between."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainwatch.core.app import queue
from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.gpu_survey import GpuSeen, GpuSurvey
from trainwatch.core.app.queue import QueueWorker, add_entry, move_entry, queue_now, remove_entry
from trainwatch.core.model.fact import AttemptStarted, RunCreated, StateChanged
from trainwatch.core.model.launch import LABEL, QueueEntry
from trainwatch.core.model.run import RunSpec, RunState
from trainwatch.core.store import learned
from trainwatch.core.store.home import write_atomically
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.learned import QueueFile
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory

GB = 1e9


class Machine:
    """Two GPUs, and runs whose supervisors are locks that this test holds."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = QueueFile(home)
        self.gpus = [GpuSeen(index=n, mem_used_bytes=0.0, mem_total_bytes=16 * GB, users=()) for n in range(2)]
        self.starts: list[tuple[str, tuple[int, ...]]] = []
        self.locks: dict[str, SupervisorLock] = {}
        self.answer: Callable[[QueueEntry], str] = self.launch
        self.read_gpus: Callable[[], GpuSurvey] = lambda: GpuSurvey(gpus=tuple(self.gpus))
        self.boot, self.seconds = "one", itertools.count(0.0, 10.0)
        self.new_worker()

    def new_worker(self) -> None:
        self.worker = QueueWorker(
            self.home,
            start=lambda entry: self.answer(entry),  # noqa: PLW0108  a test replaces it
            read_gpus=lambda: self.read_gpus(),  # noqa: PLW0108  a test replaces it
            boot=self.boot,
            now=lambda: next(self.seconds),
        )

    def add(self, name: str, need: float | None = 10.0, **fields: Any) -> int:
        made, _ = add_entry(
            {"A": "b"}, name=name, words=("--", "x"), need_bytes=None if need is None else need * GB, **fields
        )
        return made.id

    def launch(self, entry: QueueEntry) -> str:
        """Make the run as a start does: its folder, and a supervisor that holds its lock."""
        self.starts.append((entry.name, entry.on))
        run = self.run(entry.name)
        if not run.path.exists():
            RunDirectory.create(
                self.home,
                RunSpec(
                    id=entry.name, name=entry.name, command=("x",), cwd="/", created_wall=0.0, labels={LABEL: entry.key}
                ),
            )
        self.hold(entry.name)
        return entry.name

    def refuse(self, name: str, code: ExitCode, why: str) -> None:
        """Any other entry is started."""

        def answer(entry: QueueEntry) -> str:
            if entry.name == name:
                raise CliError(code, why)
            return self.launch(entry)

        self.answer = answer

    def run(self, name: str) -> RunDirectory:
        return RunDirectory(self.home / "runs" / name)

    def hold(self, name: str) -> None:
        self.locks[name] = SupervisorLock(self.run(name).lock)
        self.locks[name].acquire()

    def ends(self, name: str, state: RunState, *, died: bool = False) -> None:
        writer = JournalWriter(self.run(name).journal)
        writer.append_all(
            1.0, 1.0,
            (RunCreated(run=name, name=name, command=("x",), cwd="/", preset="generic"),
             AttemptStarted(attempt=1, pid=1), StateChanged(state=state, reason="so it is")),
        )  # fmt: skip
        writer.close()
        self.locks[name].crashed = died
        self.locks[name].release()

    def states(self) -> dict[str, str]:
        return {e.name: e.ending or e.state for e in self.file.read().entries}

    def turns(self, count: int = 6) -> bool:
        return [self.worker.turn() for _ in range(count)][-1]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    return Machine(tmp_path / "home")


def test_runs_are_started_in_their_order_each_on_a_gpu_of_its_own(machine: Machine) -> None:
    for name in "abcd":
        machine.add(name)
    assert machine.turns()
    assert machine.starts == [("a", (0,)), ("b", (1,))]
    assert machine.states() == {"a": "started", "b": "started", "c": "queued", "d": "queued"}
    machine.ends("b", "finished")
    machine.turns()
    machine.ends("a", "given_up")
    machine.turns()
    assert machine.starts[2:] == [("c", (1,)), ("d", (0,))]
    machine.ends("c", "finished")
    machine.ends("d", "stopped")
    assert not machine.turns()
    assert machine.states() == {"a": "given_up", "b": "finished", "c": "finished", "d": "stopped"}
    assert not any(entry.environ for entry in machine.file.read().entries)


def test_small_runs_share_a_gpu_and_a_large_one_keeps_its_place(machine: Machine) -> None:
    for name, need in (("a", 10.0), ("b", 10.0), ("large", 12.0), ("small", 2.0)):
        machine.add(name, need)
    machine.turns()
    assert [name for name, _ in machine.starts] == ["a", "b"]
    machine.ends("a", "finished")
    machine.turns()
    assert machine.starts[2:] == [("large", (0,)), ("small", (1,))]


def test_one_that_can_never_fit_lets_the_others_go_first(machine: Machine) -> None:
    machine.add("huge", 40.0)
    machine.add("a")
    machine.turns()
    assert machine.starts == [("a", (0,))]
    assert "the GPUs have" in machine.file.read().entries[0].why


def test_one_that_waits_for_another_run_is_asked_again(machine: Machine) -> None:
    machine.add("a")
    machine.add("b")
    machine.refuse("a", ExitCode.OWNED, "run x writes there")
    machine.turns()
    assert machine.states() == {"a": "queued", "b": "started"}
    assert machine.file.read().entries[0].why == "waits: run x writes there"
    machine.answer = machine.launch
    machine.turns()
    assert machine.states()["a"] == "started"


def test_a_start_that_is_refused_is_over_with_its_reason(machine: Machine) -> None:
    machine.add("a")
    machine.add("b")
    machine.refuse("a", ExitCode.NOT_FOUND, "no such file")
    machine.turns()
    assert machine.states() == {"a": "failed", "b": "started"}
    assert machine.file.read().entries[0].why == "no such file"


def test_a_full_disk_does_not_end_the_worker(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.add("a", wants=0)
    writes = iter([OSError(28, "No space left on device")])

    def on_a_full_disk(path: Path, data: bytes) -> None:
        for error in writes:
            raise error
        write_atomically(path, data)

    def start(entry: QueueEntry) -> str:
        machine.launch(entry)
        machine.ends("a", "finished")
        return "a"

    monkeypatch.setattr(learned, "write_atomically", on_a_full_disk)
    monkeypatch.setattr(queue, "start_entry", start)
    monkeypatch.setattr(queue, "SURVEY_S", 0.0)
    monkeypatch.setattr(queue, "POLL_S", 0.0)
    assert queue.work() == ExitCode.DONE
    assert machine.states() == {"a": "finished"}


class Killed(BaseException):
    """The worker was killed."""


@pytest.mark.parametrize("made", [False, True], ids=["before the run is made", "after the start"])
def test_a_worker_that_is_killed_starts_it_once(machine: Machine, made: bool) -> None:
    machine.add("a")

    def die(entry: QueueEntry) -> str:
        if made:
            machine.launch(entry)
        raise Killed

    machine.answer = die
    with pytest.raises(Killed):
        machine.worker.turn()
    assert machine.states() == {"a": "queued"}
    machine.answer = machine.launch
    if made:  # it has taken its memory, and no GPU has room for another one
        machine.gpus = [GpuSeen(index=n, mem_used_bytes=9 * GB, mem_total_bytes=16 * GB, users=()) for n in range(2)]
    machine.new_worker()
    machine.turns()
    assert machine.starts == [("a", (0,))]
    assert machine.states() == {"a": "started"}
    assert machine.file.read().entries[0].run == "a"


def test_after_a_reboot_interrupted_runs_go_on_before_those_that_wait(machine: Machine) -> None:
    for name in "abc":
        machine.add(name)
    machine.turns()
    for name in "ab":
        machine.ends(name, "running")
    machine.boot = "two"
    machine.new_worker()
    machine.turns()
    assert machine.starts == [("a", (0,)), ("b", (1,)), ("a", (0,)), ("b", (1,))]
    assert machine.states() == {"a": "started", "b": "started", "c": "queued"}


def test_a_run_whose_supervisor_died_is_supervised_again_where_it_was(machine: Machine) -> None:
    machine.add("a")
    machine.add("b")
    machine.turns()
    machine.ends("b", "running", died=True)
    machine.turns()
    assert machine.starts[2:] == [("b", (1,))]
    machine.ends("b", "running", died=True)
    machine.refuse("b", ExitCode.FAILED, "its supervisor did not start")
    machine.turns()
    assert machine.states() == {"a": "started", "b": "failed"}


def test_a_supervisor_that_was_ended_on_purpose_is_not_started_again(machine: Machine) -> None:
    machine.add("a")
    machine.turns()
    machine.ends("a", "running")
    machine.turns()
    assert len(machine.starts) == 1
    assert machine.states() == {"a": "interrupted"}
    assert "trainwatch resume a" in machine.file.read().entries[0].why


def test_a_run_that_was_forgotten_is_over(machine: Machine) -> None:
    machine.add("a")
    machine.turns()
    machine.locks["a"].release()
    machine.run("a").path.rename(machine.home / "gone")
    machine.turns()
    assert machine.states() == {"a": "gone"}


def test_places_can_be_changed_and_only_of_what_waits(machine: Machine) -> None:
    a, b, c = (machine.add(name) for name in "abc")
    assert move_entry(c, 1) == 1
    assert [e.name for e in queue_now()[0].waiting] == ["c", "a", "b"]
    assert move_entry(c, 99) == 3
    assert move_entry(b, 2) == 2
    assert [e.name for e in queue_now()[0].waiting] == ["a", "b", "c"]
    machine.turns()
    for number, said in ((a, "started already"), (99, "no entry 99")):
        with pytest.raises(CliError, match=said):
            move_entry(number, 1)
        with pytest.raises(CliError, match=said):
            remove_entry(number)
    with pytest.raises(CliError, match="first one is 1"):
        move_entry(c, 0)
    assert remove_entry(c).name == "c"
    machine.ends("a", "finished")
    machine.turns()
    with pytest.raises(CliError, match="is over"):
        move_entry(a, 1)
    assert remove_entry(a).name == "a"
    assert machine.states() == {"b": "started"}


def test_a_damaged_queue_is_not_written_over(machine: Machine) -> None:
    machine.add("a")
    machine.file.path.write_text("{")
    with pytest.raises(CliError, match="damaged"):
        machine.add("b")
    assert machine.file.path.read_text() == "{"
    machine.file.path.write_text('{"version": 99}')
    with pytest.raises(CliError, match="newer trainwatch"):
        queue_now()

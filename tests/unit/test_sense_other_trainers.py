"""Which processes a look for other trainers examines, never those of the run itself, and what it tells."""

import os
from collections.abc import Collection
from typing import Any, cast

from trainwatch.core.model.observation import OtherTrainer, OtherTrainersSeen
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.run import ProcessIdentity
from trainwatch.core.processes import read_process
from trainwatch.core.sense.process.ranks import OtherTrainers
from trainwatch.core.sense.process.run_tree import RunTree

TARGET = AttemptTarget(
    number=1,
    trainer=ProcessIdentity(boot_id="b", pid=100, start_ticks=1),
    runner=ProcessIdentity(boot_id="b", pid=99, start_ticks=1),
    log=None,
    directory="/attempts/0001",
)
US = os.getppid()
"""Stands for the other trainer: a process that lives."""


class Machine:
    """Its processes, and what is found among them; keeps what was examined and told."""

    def __init__(self) -> None:
        self.there: set[int] = {1, 99, 100}
        self.own: set[int] = {100}
        self.found: dict[int, OtherTrainer] = {}
        self.looks: list[set[int]] = []
        self.known: list[set[int]] = []
        self.told: list[tuple[int, ...]] = []
        self.t = 0.0
        machine = cast("Any", self)
        self.sensor = OtherTrainers(
            inbox=machine, clock=machine, examine=self.examine, tree=cast("RunTree", machine), pids=lambda: self.there
        )
        self.sensor.follow(TARGET)
        self.sensor.sample()

    def now(self) -> float:
        return self.t

    def put(self, seen: OtherTrainersSeen) -> None:
        self.told.append(tuple(each.pid for each in seen.trainers))

    def look(self, target: AttemptTarget, *, max_age_s: float) -> dict[int, object]:
        assert target == TARGET
        return dict.fromkeys(self.own)

    def examine(self, target: AttemptTarget, pids: Collection[int], known: Collection[int]) -> tuple[OtherTrainer, ...]:
        assert target == TARGET
        self.looks.append(set(pids))
        self.known.append(set(known))
        return tuple(each for pid, each in self.found.items() if pid in pids)

    def after(self, *there: int) -> set[int]:
        """What the next look examines, with these processes there, too."""
        self.there |= set(there)
        self.sensor.sample()
        return self.looks[-1]


def rival(**changes: Any) -> OtherTrainer:
    stat = read_process(US)
    assert stat is not None
    return OtherTrainer(pid=US, start_ticks=stat.start_ticks, command="python train.py", cwd="/", **changes)


def test_at_the_launch_nothing_is_examined() -> None:
    assert Machine().looks == [], "the launch has looked itself"


def test_all_are_examined_but_those_of_the_run() -> None:
    machine = Machine()
    assert [machine.after(7), machine.after()] == [{1, 7}, {1, 7}]


def test_what_was_once_of_the_run_stays_its_own() -> None:
    machine = Machine()
    machine.own |= {101}
    machine.after(101)
    machine.own = {100}
    assert machine.after() == {1}, "its parent has ended"
    machine.there.discard(101)
    machine.after()
    assert machine.after(101) == {1, 101}, "the pid of another process by now"


def test_it_is_told_once_then_if_it_changes_and_when_it_is_over() -> None:
    machine = Machine()
    machine.after()
    machine.found = {US: rival()}
    machine.there.add(US)
    machine.sensor.sample()
    machine.sensor.sample()
    machine.found = {US: rival(files=("out/log",))}
    machine.sensor.sample()
    machine.found = {}
    machine.sensor.sample()
    machine.there.discard(US)
    machine.sensor.sample()
    assert machine.told == [(), (US,), (US,), ()]


def test_one_that_has_no_file_yet_is_looked_at_again() -> None:
    machine = Machine()
    machine.after(US)
    machine.found = {US: rival()}
    assert [US in machine.after() for _ in range(2)] == [True, True]
    machine.found = {US: rival(files=("out/log",))}
    assert [US in machine.after() for _ in range(2)] == [True, False]
    assert machine.known[-1] == {US}, "what it started is not named again"


def test_another_attempt_begins_anew() -> None:
    machine = Machine()
    machine.after()
    machine.sensor.follow(None)
    machine.sensor.sample()
    assert len(machine.looks) == 1
    machine.sensor.follow(TARGET)
    machine.sensor.sample()
    assert machine.after() == {1}
    assert machine.told == [(), ()]

"""Which processes a look for other trainers examines: the new ones, twice; never those of the run itself."""

import os
from collections.abc import Collection
from typing import Any, cast

from trainwatch.core.model.observation import OtherTrainer, OtherTrainersSeen
from trainwatch.core.model.run import ProcessIdentity
from trainwatch.core.model.supervision_ports import AttemptTarget
from trainwatch.core.sense.process.proc_stat import read_stat
from trainwatch.core.sense.process.ranks import ALL_S, FILES_LOOKS, LOOK_S, Examined, OtherTrainers
from trainwatch.core.sense.process.run_tree import RunTree

TARGET = AttemptTarget(
    number=1,
    trainer=ProcessIdentity(boot_id="b", pid=100, start_ticks=1),
    runner=ProcessIdentity(boot_id="b", pid=99, start_ticks=1),
    log=None,
    directory="/attempts/0001",
)
US = os.getpid()
"""Stands for the other trainer: a process that lives."""


class Machine:
    """Its processes, and what is found among them; keeps what was examined and told."""

    def __init__(self) -> None:
        self.there: set[int] = {1, 99, 100}
        self.own: set[int] = {100}
        self.found: dict[int, OtherTrainer] = {}
        self.again: set[int] = set()
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

    def examine(self, target: AttemptTarget, pids: Collection[int], known: Collection[int]) -> Examined:
        assert target == TARGET
        self.looks.append(set(pids))
        self.known.append(set(known))
        found = tuple(each for pid, each in self.found.items() if pid in pids)
        return Examined(found, frozenset(self.again))

    def after(self, *there: int) -> set[int]:
        """What the next look examines, with these processes there, too."""
        self.there |= set(there)
        self.sensor.sample()
        return self.looks[-1]


def rival(**changes: Any) -> OtherTrainer:
    stat = read_stat(US)
    assert stat is not None
    return OtherTrainer(pid=US, start_ticks=stat.start_ticks, command="python train.py", cwd="/", **changes)


def test_at_the_launch_nothing_is_examined() -> None:
    assert Machine().looks == [], "the launch has looked itself"


def test_all_are_examined_at_the_first_look_but_those_of_the_run() -> None:
    assert Machine().after(7) == {1, 7}


def test_a_process_is_examined_at_two_looks() -> None:
    machine = Machine()
    assert [machine.after(), machine.after(), machine.after(), machine.after(7), machine.after(), machine.after()] == [
        {1}, {1}, set(), {7}, {7}, set(),
    ]  # fmt: skip


def test_all_are_examined_again_after_a_while() -> None:
    machine = Machine()
    looks = [machine.after() for _ in range(round(ALL_S / LOOK_S) + 1)]
    assert looks[-2:] == [set(), {1}]


def test_a_doubtful_process_is_examined_until_it_is_not() -> None:
    machine = Machine()
    machine.again = {1}
    assert [machine.after() for _ in range(4)] == [{1}] * 4
    machine.again = set()
    assert [machine.after(), machine.after()] == [{1}, set()]


def test_what_was_once_of_the_run_stays_its_own() -> None:
    machine = Machine()
    machine.own |= {101}
    machine.after(101)
    machine.own = {100}
    assert machine.after() == {1}, "its parent has ended"
    machine.there.discard(101)
    machine.after()
    assert machine.after(101) == {101}, "the pid of another process by now"


def test_it_is_told_once_then_if_it_changes_and_when_it_is_over() -> None:
    machine = Machine()
    machine.after()
    machine.found = {US: rival()}
    machine.there.add(US)
    machine.sensor._examine = lambda target, pids, known: Examined((machine.found[US],), frozenset())
    machine.sensor.sample()
    machine.sensor.sample()
    machine.found = {US: rival(files=("out/log",))}
    machine.sensor.sample()
    machine.sensor._examine = lambda target, pids, known: Examined((), frozenset())
    machine.sensor.sample()
    machine.there.discard(US)
    machine.sensor.sample()
    assert machine.told == [(), (US,), (US,), ()]


def test_one_that_has_no_file_yet_is_looked_at_again_for_a_while() -> None:
    machine = Machine()
    machine.after()
    machine.there.add(US)
    found = Examined((rival(),), frozenset())
    machine.sensor._examine = lambda target, pids, known: found
    machine.sensor.sample()
    machine.sensor._examine = machine.examine
    looks = [machine.after() for _ in range(FILES_LOOKS + 3)]
    assert [US in look for look in looks] == [True] * FILES_LOOKS + [False] * 3
    assert [US in known for known in machine.known[1:]] == [False] * FILES_LOOKS + [True] * 3, "it is known then"


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

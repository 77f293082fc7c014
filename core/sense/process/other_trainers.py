"""The sensor of trainers that begin beside a live attempt and write where it writes.

A look lists the pids of the machine and examines only those that are new: a process is examined at its first two looks
(it may be between fork and exec, or not have opened its files yet). All are examined at the first look of an attempt
and every ``ALL_S`` seconds: a pid may be given again, and a process may load another program or open a file later.
"""

import os
from collections.abc import Callable, Collection
from typing import NamedTuple

from ...model.beside.other_trainer import OtherTrainer, OtherTrainersSeen
from ...model.ports.supervision import AttemptTarget, Clock, Inbox
from ..sampler import Sampler
from ..sensor_problem import OnProblem, ignore_problem
from .proc_stat import all_pids, read_stat
from .run_tree import RunTree

LOOK_S = 30.0
"""Period of the looks: a rival is told of within a minute, before it saves for the first time as a rule."""
ALL_S = 600.0
"""Period in which all processes are examined. Why: it takes about 30 microseconds for each process of the machine."""
FILES_LOOKS = 10
"""Looks at a trainer that was found, until it has a file open there: it may load libraries for minutes."""


class Examined(NamedTuple):
    """``again``: pids that may turn out to be such trainers: they are examined at the next look, too."""

    trainers: tuple[OtherTrainer, ...] = ()
    again: frozenset[int] = frozenset()


Examine = Callable[[AttemptTarget, Collection[int], Collection[int]], Examined]
"""Tells which of these processes (second) are other trainers beside the attempt. Third: pids of those that are known,
whose descendants are not named again."""


class OtherTrainers(Sampler):
    """Puts an ``OtherTrainersSeen`` at the first look of an attempt, and whenever they changed.

    It has a thread of its own: to read of a process that hangs in the kernel may block.
    """

    name = "other trainers"

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        examine: Examine,
        tree: RunTree,
        interval_s: float = LOOK_S,
        pids: Callable[[], Collection[int]] = all_pids,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        super().__init__(interval_s=interval_s, on_problem=on_problem)
        self._inbox, self._clock, self._examine, self._tree, self._pids = inbox, clock, examine, tree, pids
        self._followed: AttemptTarget | None = None
        self._begin(None)

    def _begin(self, target: AttemptTarget | None) -> None:
        self._followed = target
        self._looks = 0
        self._own: set[int] = set()
        self._once: set[int] = set()
        self._twice: set[int] = set()
        self._again: frozenset[int] = frozenset()
        self._known: dict[int, OtherTrainer] = {}
        self._found_at: dict[int, int] = {}
        self._told: tuple[OtherTrainer, ...] | None = None

    def sample(self) -> None:
        target = self.target
        if target != self._followed:
            self._begin(target)  # what runs at the launch was looked at before it: the first look is one period later
            return
        if target is None:
            return
        there = set(self._pids())
        self._known = {pid: each for pid, each in self._known.items() if pid in there and _lives(each)}
        wanted = self._to_examine(target, there)
        found = self._examine(target, wanted, self._known.keys() - wanted)
        for each in found.trainers:
            self._known[each.pid] = each
            self._found_at.setdefault(each.pid, self._looks)
        self._again = found.again
        trainers = tuple(self._known[pid] for pid in sorted(self._known))
        if trainers != self._told:
            self._told = trainers
            self._inbox.put(OtherTrainersSeen(t=self._clock.now(), trainers=trainers))

    def _to_examine(self, target: AttemptTarget, there: set[int]) -> set[int]:
        """New processes, those that were doubtful, and trainers whose files are not known yet; none of the run's own.

        What was once a member of the run's tree stays its own, also without its parent.
        """
        if self._looks % max(1, round(ALL_S / self._interval_s)) == 0:
            self._twice = set()
        self._looks += 1
        runner = () if target.runner is None else (target.runner.pid,)
        own = {*self._tree.look(target, max_age_s=self._interval_s), *runner, os.getpid()}
        self._own = (self._own & there) | own
        young = there - self._twice
        self._twice = (self._twice & there) | (young & self._once)
        self._once = there
        fileless = {
            pid
            for pid, each in self._known.items()
            if not each.files and self._looks - self._found_at[pid] <= FILES_LOOKS
        }
        return ((young | (self._again & there)) - self._own - self._known.keys()) | fileless


def _lives(trainer: OtherTrainer) -> bool:
    stat = read_stat(trainer.pid)
    return stat is not None and stat.start_ticks == trainer.start_ticks and stat.state not in "ZXx"

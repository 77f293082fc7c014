"""The ranks of a distributed training among the processes of a tree, by the environment that their launcher gave them.

Loader workers inherit the environment of their rank: only the topmost process with a rank stands for it. An agent of
torchrun is the parent of a rank whose environment names an error file; it may outlive its workers.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from ...model.observation import Agent, OtherTrainer, OtherTrainersSeen, Rank, RankEnded
from ...model.supervision_ports import AttemptTarget, Clock, Inbox
from ...rank_files import Called, RankFiles, torchrun_in
from ..sampler import OnProblem, Sampler, ignore_problem
from .proc_stat import ProcStat, all_pids, environ_of, kernel_text, read_stat
from .run_tree import RunTree

VARIABLES = (b"RANK=", b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=", b"LOCAL_RANK=")
"""torchrun and accelerate, Open MPI, MPICH; the first that is set."""
ERROR_FILE = b"TORCHELASTIC_ERROR_FILE="
MAX_RESTARTS = b"TORCHELASTIC_MAX_RESTARTS="
WORLD_SIZE = b"WORLD_SIZE="
_Key = tuple[int, int]


class Place(NamedTuple):
    """What the environment of a rank tells. ``folder``: of its log and error files, None = there is none."""

    rank: int
    folder: str | None = None
    max_restarts: int | None = None
    world: int = 1


class Look(NamedTuple):
    """``ended``: those that left something about their end since the last look."""

    ranks: tuple[Rank, ...]
    agents: tuple[Agent, ...]
    ended: tuple[RankEnded, ...]


class Ranks:
    """Knows the rank of each process, read once: a process's environment does not change after its exec."""

    def __init__(self) -> None:
        self._known: dict[_Key, Place | None] = {}
        self._seen: set[_Key] = set()
        self._several = False
        self._agents: dict[_Key, Called] = {}
        self._files = RankFiles()

    def look(self, tree: Mapping[int, ProcStat], t: float = 0.0) -> Look:
        """Return the ranks now, lowest first; none if there never were two. ``t``: run seconds."""
        keys = {(stat.pid, stat.start_ticks) for stat in tree.values()}
        self._known = {key: place for key, place in self._known.items() if key in keys}
        # between fork and exec a process has the environment of its parent: it is read at the second look
        for key in keys & self._seen - self._known.keys():
            self._known[key] = place = place_in(key[0])
            called = torchrun_in(key[0]) if place is None else None
            if called is not None:
                self._agents[key] = called
        self._seen = keys
        places = {stat.pid: self._known.get((stat.pid, stat.start_ticks)) for stat in tree.values()}
        top = [
            (stat, place)
            for stat in tree.values()
            if (place := places[stat.pid]) is not None
            and ((above := places.get(stat.parent)) is None or above.rank != place.rank)
        ]
        self._several = self._several or bool(self._agents) or len(top) > 1 or any(place.world > 1 for _, place in top)
        if not self._several:
            return Look((), (), ())
        told = [self._rank(stat, place, t) for stat, place in top]
        ranks = tuple(sorted(told, key=lambda each: (each.rank, each.pid)))
        return Look(ranks, self._look_at_agents(tree, top), tuple(self._ended(t, over=not tree)))

    def _ended(self, t: float, *, over: bool) -> Iterator[RankEnded]:
        for left in self._files.ended(t, over=over):
            yield RankEnded(t=t, rank=left.rank, pid=left.pid, text=left.text, wall=left.wall)

    def _rank(self, stat: ProcStat, place: Place, t: float) -> Rank:
        if place.folder is None:
            return Rank(rank=place.rank, pid=stat.pid, state=stat.state)
        told = self._files.look(place.folder, place.rank, stat.pid, t)
        return Rank(
            rank=place.rank,
            pid=stat.pid,
            state=stat.state,
            line=told.line,
            line_age_s=told.line_age_s,
            earlier=told.earlier,
            earlier_age_s=told.earlier_age_s,
        )

    def _look_at_agents(self, tree: Mapping[int, ProcStat], top: list[tuple[ProcStat, Place]]) -> tuple[Agent, ...]:
        for stat, place in top:
            above = tree.get(stat.parent)
            if place.folder is not None and above is not None:
                key = (above.pid, above.start_ticks)
                known = self._agents.get(key)
                self._agents[key] = Called(place.max_restarts, None if known is None else known.join_s)
        found = {(stat.pid, stat.start_ticks) for stat in tree.values() if stat.state not in "ZX"}
        living = {key: called for key, called in self._agents.items() if key in found}
        self._agents = living
        workers = [stat.parent for stat, _ in top if stat.state not in "ZX"]
        return tuple(
            Agent(pid=key[0], workers=workers.count(key[0]), max_restarts=called.most, join_s=called.join_s)
            for key, called in sorted(living.items())
        )


def place_in(pid: int) -> Place | None:
    """The rank that the environment of this process names; None = none, or it cannot be read."""
    entries = environ_of(pid)
    for variable in VARIABLES:
        number = _number(entries, variable)
        if number is not None:
            error = next((each[len(ERROR_FILE) :] for each in entries if each.startswith(ERROR_FILE)), b"")
            folder = str(Path(error.decode(errors="surrogateescape")).parent) if error else None
            return Place(number, folder, _number(entries, MAX_RESTARTS), _number(entries, WORLD_SIZE) or 1)
    return None


def _number(entries: list[bytes], variable: bytes) -> int | None:
    for entry in entries:
        if entry.startswith(variable) and entry[len(variable) :].isdigit():
            return int(entry[len(variable) :])
    return None


# The sensor of trainers that begin beside a live attempt and write where it writes.
#
# A look lists the pids of the machine and examines only those that are new: a process is examined at its first two
# looks (it may be between fork and exec, or not have opened its files yet). All are examined at the first look of an
# attempt and every ``ALL_S`` seconds: a pid may be given again, and a process may load another program or open a file
# later.

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


# Whether a process waits for input at its terminal (proc(5): ``fd``, ``syscall``, ``wchan``).
#
# ``syscall`` is reliable but readable only if Yama allows it. ``wchan`` names a function in which sockets wait, too.

Wait = Literal["yes", "maybe"]

CHECKED_PROCESSES = 4
"""Most processes with a terminal that are checked; the trainer and its wrapper come first."""
TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console")
WAITING_IN = frozenset({"n_tty_read", "wait_woken"})
READ = {"x86_64": 0, "aarch64": 63}
"""Number of ``read`` by machine."""
SELECTS = {"x86_64": frozenset({23, 270}), "aarch64": frozenset({72})}
"""Numbers of ``select`` and ``pselect6``. With 1 as first argument they wait only for descriptor 0."""


class TerminalWait:
    """Remembers which processes have a terminal as standard input, so that all others cost nothing."""

    def __init__(self, proc: str = "/proc", machine: str | None = None) -> None:
        self._proc = proc
        self._machine = machine if machine is not None else os.uname().machine
        self._terminal: dict[tuple[int, int], bool] = {}

    def check(self, tree: Iterable[ProcStat]) -> Wait | None:
        """Whether a sleeping process waits for input: "yes", "maybe", or None if none does."""
        known = {(stat.pid, stat.start_ticks): stat for stat in tree}
        self._terminal = {key: held for key, held in self._terminal.items() if key in known}
        found: Wait | None = None
        checked = 0
        for key, stat in sorted(known.items()):
            if key not in self._terminal:
                self._terminal[key] = self._has_terminal(stat.pid)
            if not self._terminal[key] or stat.state != "S" or checked == CHECKED_PROCESSES:
                continue
            checked += 1
            match self._waits(stat.pid):
                case "yes":
                    return "yes"
                case "maybe":
                    found = "maybe"
                case None:
                    pass
        return found

    def _has_terminal(self, pid: int) -> bool:
        try:
            return os.readlink(f"{self._proc}/{pid}/fd/0").startswith(TERMINALS)  # noqa: PTH115  (1 Hz)
        except OSError:
            return False

    def _waits(self, pid: int) -> Wait | None:
        call = kernel_text(f"{self._proc}/{pid}/syscall").split()
        if len(call) > 1:
            try:
                number, first = int(call[0]), int(call[1], 16)
            except ValueError:
                return None
            reads = number == READ.get(self._machine) and first == 0
            return "yes" if reads or (first == 1 and number in SELECTS.get(self._machine, ())) else None
        if call:  # "running"
            return None
        return "maybe" if kernel_text(f"{self._proc}/{pid}/wchan").strip() in WAITING_IN else None

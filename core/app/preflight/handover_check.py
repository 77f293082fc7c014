"""Commands that hand the training to somebody else and end: a container daemon, a tmux server, a scheduler.

Their exit status is that of the hand-over. The training is no process of the run, so nobody sees its steps or its end.
Sources: the manual pages of the programs.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...model.run import RunSpec
from ...source.shell_text import ShellCommand, commands_of
from ..plan.launch_plan import LaunchPlan
from .check import Check, Machine, warned
from .exit_status_check import (
    DEEPEST,
    SHELLS,
    TRAINERS,
    may_train,
    shell_program,
    short,
    status_warnings,
    without_wrappers,
)

INSIDE = "start trainwatch inside it"


class HandOver(NamedTuple):
    """``programs`` with one of the first words ``verbs`` ("" = any) hand the training to ``whom``.

    ``only_with``: if an option matches; ``unless``: not if one matches. ``remedy``: what keeps it in the run.
    """

    programs: frozenset[str]
    verbs: tuple[str, ...]
    whom: str
    remedy: str
    only_with: str = ""
    unless: str = ""


def _letter(letters: str) -> str:
    """Matches short options that hold one of the letters: ``-d``, ``-itd``."""
    return f"-[a-zA-Z]*[{letters}][a-zA-Z]*"


VERBS_AT = 3
"""Words before a verb, at most: options of the program may have values (``docker compose -f FILE up``)."""
CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
COMPOSE = frozenset({*CONTAINERS, "docker-compose", "podman-compose"})
TMUX = frozenset({"tmux"})
DAEMON, SERVER = "the container daemon", "the tmux server"
OWN_WINDOW = "leave tmux out: trainwatch shows the training in a tmux window of its own"
DETACHED = "leave it out: `trainwatch run --detach` outlives this terminal"
IN_JOB = "or start trainwatch in the script that the scheduler runs"
RUN = ("run", "container run", "exec", "container exec")
IN_TMUX = ("send", "send-keys", "neww", "new-window", "splitw", "split-window", "respawnp", "respawn-pane", "respawnw",
           "respawn-window")  # fmt: skip
PBS_WAITS = r"-sync|.*block=true|-I"
FOREGROUND_UNIT = f"{_letter('tP')}|--(scope|wait|pty|pipe)"
IN_POD = f"{_letter('i')}|--attach.*"
IN_BACKGROUND = "a process in the background"
TABLE = (
    HandOver(CONTAINERS, RUN, DAEMON, "leave out -d", only_with=f"{_letter('d')}|--detach(=true)?"),
    HandOver(CONTAINERS, ("start", "container start"), DAEMON, "give it -a", unless=f"{_letter('ai')}|--attach"),
    HandOver(COMPOSE, ("compose up", "up"), DAEMON, "leave out -d", only_with=f"{_letter('d')}|--detach|--wait"),
    HandOver(TMUX, ("new", "new-session"), SERVER, OWN_WINDOW, only_with=_letter("d")),
    HandOver(TMUX, IN_TMUX, SERVER, OWN_WINDOW),
    HandOver(frozenset({"screen"}), ("",), "a screen session", DETACHED, only_with=f"{_letter('d')}|-X"),
    HandOver(frozenset({"sbatch"}), ("",), "Slurm", f"give it --wait, {IN_JOB}", unless=r"-W|--wait"),
    HandOver(frozenset({"qsub"}), ("",), "the scheduler", f"let it wait (-sync y), {IN_JOB}", unless=PBS_WAITS),
    HandOver(frozenset({"bsub"}), ("",), "LSF", f"give it -K, {IN_JOB}", unless=r"-K|-I\w*"),
    HandOver(frozenset({"condor_submit"}), ("",), "HTCondor", INSIDE, unless=r"-i|-interactive"),
    HandOver(frozenset({"at", "batch"}), ("",), "the at daemon", "let it start trainwatch"),
    HandOver(
        frozenset({"kubectl", "oc"}),
        ("apply", "create", "run"),
        "Kubernetes",
        INSIDE,
        unless=IN_POD,
    ),
    HandOver(
        frozenset({"systemd-run"}),
        ("",),
        "systemd",
        "give it --scope",
        unless=FOREGROUND_UNIT,
    ),
    HandOver(frozenset({"ray"}), ("job submit",), "Ray", "leave out --no-wait", only_with=r"--no-wait"),
    HandOver(frozenset({"sky"}), ("launch", "exec", "jobs launch"), "SkyPilot", INSIDE),
    HandOver(frozenset({"ssh"}), ("",), "another host", "start trainwatch there", only_with=_letter("f")),
    HandOver(frozenset({"tsp", "nq", "pueue", "daemonize"}), ("",), "a queue", DETACHED),
    HandOver(frozenset({"setsid"}), ("",), IN_BACKGROUND, "leave out -f", only_with=f"{_letter('f')}|--fork"),
)
FOLLOWED = frozenset({"setsid"})
"""They leave a process of the run behind, which is followed."""


class Found(NamedTuple):
    """``followed``: what goes on is a process of the run, so it is watched."""

    text: str
    remedy: str
    followed: bool


def check_hand_over(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The training is a process of the run."""
    found = hand_over(plan.spec.command, Path(plan.spec.cwd))
    return None if found is None else warned("hand-over", found.text, found.remedy)


def command_warnings(spec: RunSpec) -> list[str]:
    """What the command hides from its supervisor: its end or its status, for ``run`` and its ``--dry-run``."""
    found = hand_over(spec.command, Path(spec.cwd))
    return [*status_warnings(spec), *([] if found is None else [f"{found.text}; {found.remedy}"])]


def handed_over(spec: RunSpec) -> str:
    """Why the exit of the command is not the end of the training, as a clause; "" if it may be."""
    found = hand_over(spec.command, Path(spec.cwd))
    return "" if found is None or found.followed else found.text


def hand_over(command: tuple[str, ...], cwd: Path) -> Found | None:
    """What hands the training on; None if nothing is seen that does.

    What is handed on before a command that trains itself is a helper: a database in a container, a server.
    """
    found = None
    for simple in simple_commands(command, cwd):
        words = without_wrappers(simple.words, keep=FOLLOWED)
        row = next((row for row in TABLE if _matches(row, words)), None)
        if row is not None:
            followed = row.programs == FOLLOWED
            sees = (
                "it is followed as the training" if followed else "trainwatch sees neither its steps nor its end there"
            )
            found = Found(f"`{short(simple)}` hands the training to {row.whom} and ends: {sees}", row.remedy, followed)
        elif not may_train(simple):
            found = None if simple.words[0] == "wait" and found is not None and found.followed else found
        elif simple.after == "&":
            found = Found(
                f"`{short(simple)} &` goes on after the command has ended: it is followed as the training",
                "leave out the `&` (and nohup): `trainwatch run --detach` outlives this terminal",
                followed=True,
            )
        else:
            found = None
    return found


def _matches(row: HandOver, words: tuple[str, ...]) -> bool:
    if not words or Path(words[0]).name not in row.programs:
        return False
    plain = [word for word in words[1:] if not word.startswith("-")]
    texts = [" ".join(plain[at:]) + " " for at in range(VERBS_AT)]
    if not any(text.startswith(f"{verb} ") or not verb for text in texts for verb in row.verbs):
        return False
    if row.unless and any(re.fullmatch(row.unless, word) for word in _options(words)):
        return False
    return not row.only_with or any(re.fullmatch(row.only_with, word) for word in _options(words))


def _options(words: tuple[str, ...]) -> Iterator[str]:
    """The options of the program itself: those before the command that it is given, which has its own."""
    for word in words[1:]:
        if TRAINERS.match(word) or word in SHELLS:
            return
        yield word


def simple_commands(command: tuple[str, ...], cwd: Path, depth: int = 0) -> Iterator[ShellCommand]:
    """The command, and those of the shell scripts in it."""
    program = shell_program(without_wrappers(command), cwd)
    if program is None:
        yield ShellCommand(command, "")
    elif depth < DEEPEST:
        for simple in commands_of(program.text):
            inner = list(simple_commands(simple.words, cwd, depth + 1))
            yield from inner[:-1]
            if inner:
                yield inner[-1]._replace(after=simple.after)

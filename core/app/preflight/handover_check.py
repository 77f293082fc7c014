"""Commands that hand the training to somebody else and end: a container daemon, a tmux server, a scheduler.

Their exit status is that of the hand-over. The training is no process of the run, so nobody sees its steps or its end.
Sources: the manual pages of the programs.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...bound_process import bound
from ...model.run import RunSpec
from ...model.wrappers import Layer
from ...source.shell_text import ShellCommand, commands_of
from ...source.trainer_source import TrainerSource, source_of
from ...views.length_words import deciding_layer, words_of
from ..plan.launch_plan import LaunchPlan
from ..plan.resume_plan import undeclared
from .check import Check, Machine, failed, passed, warned
from .exit_status_check import (
    DEEPEST,
    SHELLS,
    TRAINERS,
    assigned,
    hidden_status,
    may_train,
    shell_program,
    short,
    without_wrappers,
)
from .gpu_checks import interpreter

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
    HandOver(frozenset({"kubectl", "oc"}), ("apply", "create", "run"), "Kubernetes", INSIDE, unless=IN_POD),
    HandOver(frozenset({"systemd-run"}), ("",), "systemd", "give it --scope", unless=FOREGROUND_UNIT),
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
    return None if found is None else warned(found.text, found.remedy)


def command_warnings(spec: RunSpec) -> list[str]:
    """What the command hides from its supervisor: its end or its status, for ``run`` and its ``--dry-run``."""
    found, hidden = hand_over(spec.command, Path(spec.cwd)), hidden_status(spec.command, Path(spec.cwd))
    status = [] if hidden is None else [f"{hidden[0]}, so a failure can look like success; {hidden[1]}"]
    return [*status, *([] if found is None else [f"{found.text}; {found.remedy}"])]


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
    program = shell_program(without_wrappers(command), cwd)
    if program is None:
        yield ShellCommand(command, "")
    elif depth < DEEPEST:
        for simple in commands_of(program.text):
            inner = list(simple_commands(simple.words, cwd, depth + 1))
            yield from inner[:-1]
            if inner:
                yield inner[-1]._replace(after=simple.after)


# Checks of the trainer's own script: the options that the profile in use gives it, and what it imports.

SHOWN = 6
LIMIT_S = 5.0
"""Longest time for the question which packages there are; an interpreter needs a tenth of a second for it."""
SAME_PYTHON = frozenset({"accelerate", "torchrun", "deepspeed"})
"""Launchers that run the script with their own interpreter."""
PROBE = """import importlib.util, json, sys
sys.path[:0] = json.loads(sys.argv[2])
def missing(name):
    try:
        return importlib.util.find_spec(name) is None
    except (ImportError, ValueError):
        return False
print(json.dumps([name for name in json.loads(sys.argv[1]) if missing(name)]))
"""
"""Nothing is imported: the first part of a name is only looked for."""


def check_profile_options(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The trainer's script declares the options of the profile in use: it would end at one that it does not know."""
    profile = plan.profile
    missing = undeclared(plan.spec, profile) if profile is not None and profile.flags else None
    if profile is None or missing is None:
        return None
    if missing:
        return failed(
            f"the script declares no {', '.join(missing[:SHOWN])} (profile {profile.name})",
            "use another profile (`trainwatch profiles`), or write one with the options that it has",
        )
    return passed(f"the script declares all {len(profile.flags)} words of {profile.name}")


def check_imports(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The packages that the script imports are installed for the trainer's interpreter.

    Its source is read, never run. Packages that it imports only under a condition are not looked for.
    """
    source = source_of(plan.spec)
    python = interpreter(plan.spec)
    if python is None or not source.needs:
        return None
    missing = _missing(plan, python, source)
    words = " ".join(python)
    if missing is None:
        return None
    if not missing:
        names = [each.name for each in source.needs]
        return passed(f"{len(names)} {'package' if len(names) == 1 else 'packages'} found by {words}")
    places = [f"{each.name} ({each.place})" for each in source.needs if each.name in missing]
    found = f"not installed for {words}: {', '.join(places[:SHOWN])}"
    if source.finds_modules_itself:
        return warned(found, "nothing to do if the script finds or installs them itself")
    if not is_certain_interpreter(plan.spec, python, source.target.file):
        first = plan.spec.command[0]
        return warned(found, f"nothing to do if {first} runs the script with another Python")
    return failed(found, "install them there, or use the interpreter that has them")


def is_certain_interpreter(spec: RunSpec, python: Sequence[str], script: Path) -> bool:
    """Whether this interpreter runs the script: named in the command, or that of a launcher or of the script itself.

    ``conda run``, ``pdm run`` and the like are programs of one interpreter, and run the script with another one.
    """
    words = without_wrappers(spec.command)
    before = spec.command[: len(spec.command) - len(words)]
    if not words or len(python) != 1 or any(word.startswith("-") for word in before if "env" in before):
        return False  # `env -i` and the like give it another environment
    name = Path(words[0]).name
    itself = Path(spec.cwd, words[0]).resolve() == script.resolve()
    return name.startswith("python") or name in SAME_PYTHON or itself


def _missing(plan: LaunchPlan, python: list[str], source: TrainerSource) -> list[str] | None:
    """Names that this interpreter does not find; None if it could not be asked in time."""
    roots = [str(root) for root in source.target.roots]
    argv = [*python, "-c", PROBE, json.dumps([each.name for each in source.needs]), json.dumps(roots)]
    env = {**os.environ, **plan.spec.env, **assigned(plan.spec.command)}
    key = (*argv, plan.spec.cwd, *sorted(map("=".join, env.items())))
    if key in _all_found:
        return []
    try:
        done = subprocess.run(
            bound(argv, tree=True, cwd=plan.spec.cwd, path=env.get("PATH")),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=True, cwd=plan.spec.cwd,
            env=env,
        )  # fmt: skip
        found = json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError):
        return None
    if not found:
        _all_found.add(key)
    return [str(name) for name in found]


_all_found = set[tuple[str, ...]]()
"""Sets of names that were all found, kept for this process: a start asks twice. If one is missing it is asked again."""


# Where the command lets the training run: a container, another user, another host. What works there, and what not.
#
# Sources: the manual pages of the programs; ``conda run --help`` (``--no-capture-output``); moby's documentation of
# ``docker exec``, which passes no signals on.

NEVER_TWICE = "nothing is started again then, so that it does not run twice"
THERE = "start trainwatch there"


class Told(NamedTuple):
    """``works``: what is done there. ``problems``: (what does not work, what to do)."""

    works: str
    problems: tuple[tuple[str, str], ...]


def check_place(plan: LaunchPlan, _machine: Machine) -> Check | None:
    told = place_told(plan.spec)
    if told is None:
        return None
    if not told.problems:
        return passed(told.works)
    found = "; ".join(filter(None, (told.works, *(problem for problem, _ in told.problems))))
    return warned(found, "; ".join(dict.fromkeys(remedy for _, remedy in told.problems)))


def place_told(spec: RunSpec) -> Told | None:
    """None if the training runs as any process of this user, or if the command only hands it on."""
    cwd = Path(spec.cwd)
    if hand_over(spec.command, cwd) is not None:
        return None
    found = deciding_layer(spec.command)
    if found is not None:
        return _told(found, spec)
    for simple in simple_commands(spec.command, cwd):
        inner = deciding_layer(simple.words)
        if inner is not None:
            return _told_of_script(inner, spec)
    return None


def _told(layer: Layer, spec: RunSpec) -> Told:
    works, name = words_of(layer), layer.names[0] if layer.names else ""
    match layer.kind:
        case "container" | "service":
            return Told(works, tuple(_of_container(layer, spec)))
        case "in_container":
            return Told("", ((f"{works}; {NEVER_TWICE}", f"use `{layer.program} run`, or start trainwatch inside"),))
        case "services":
            compose = layer.verb.rpartition(" ")[0]
            use = " ".join(filter(None, (layer.program, compose, "run --rm SERVICE")))
            return Told("", ((f"{works}; {NEVER_TWICE}", f"use `{use}`"),))
        case "host":
            return Told("", ((f"{works}; {NEVER_TWICE}", f"{THERE}: `ssh {name} -t trainwatch run --detach -- …`"),))
        case "pod":
            return Told("", ((f"{works}; {NEVER_TWICE}", THERE),))
        case "step":
            return Told("", ((works, 'set engine = "slurm" under [run], or start trainwatch in the job'),))
        case "environment":
            return _of_environment(layer, works)
        case "user" | "plain":
            return _of_user(layer, works)


def _of_environment(layer: Layer, works: str) -> Told:
    if layer.program != "conda" or layer.has("--no-capture-output", "--live-stream"):
        return Told(works, ())
    why = "conda run keeps all output until the end: no step, loss or error is seen before"
    return Told("", ((why, "write `conda run --no-capture-output …`"),))


def _of_user(layer: Layer, works: str) -> Told:
    problems = []
    if os.geteuid() != 0:
        tool = layer.program
        why = f"a stop, a pause and a restart work only if `{tool} -n` asks for no password"
        problems.append((why, f"let {tool} ask for none, or leave {tool} out"))
    if not layer.has("-E", "--preserve-env") and not any("PYTHONUNBUFFERED" in word for word in layer.names):
        why = f"{layer.program} drops variables: the output comes in blocks, and CUDA_VISIBLE_DEVICES does not reach it"
        problems.append((why, f"give {layer.program} the option -E"))
    return Told(works, tuple(problems))


def _of_container(layer: Layer, spec: RunSpec) -> Iterator[tuple[str, str]]:
    tool = layer.program
    if tool == "docker" and layer.has("-t", "--tty") and layer.has("-i", "--interactive") and spec.terminal == "file":
        yield "docker refuses -it here, because there is no terminal", "leave out -t"
    again = [value for value in layer.values("--restart") if value != "no"]
    if again:
        yield f"{tool} starts it again by itself (--restart {again[0]})", "leave out --restart"
    names = layer.values("--name")
    if names and not layer.has("--rm", "--replace"):
        yield f"a further attempt cannot have the name {names[0]} while this container exists", "give it --rm"
    if layer.values("--cidfile"):
        yield "a further attempt is refused while the file of --cidfile exists", "leave out --cidfile"
    if layer.kind == "container" and spec.output_dir and not _mounted(layer, spec.output_dir):
        yield (
            f"{spec.output_dir} is not mounted under its own path: checkpoints are not seen, or not found inside",
            f"mount it with -v {spec.output_dir}:{spec.output_dir}",
        )


def _mounted(layer: Layer, folder: str) -> bool:
    for value in layer.values("-v", "--volume"):
        source, _, rest = value.partition(":")
        if _holds(source, rest.partition(":")[0], folder):
            return True
    for value in layer.values("--mount"):
        fields = dict(part.partition("=")[::2] for part in value.split(","))
        source = fields.get("source") or fields.get("src", "")
        target = fields.get("target") or fields.get("dst") or fields.get("destination", "")
        if _holds(source, target, folder):
            return True
    return False


def _holds(source: str, target: str, folder: str) -> bool:
    if "$" in source or "$" in target:  # a shell fills it in later
        return True
    return os.path.normpath(source) == os.path.normpath(target) and Path(folder).is_relative_to(source)


def _told_of_script(layer: Layer, spec: RunSpec) -> Told | None:
    """Of a command in a shell script or line. A container that a script starts gets no label, and is not found."""
    if layer.kind in {"container", "service"}:
        how = re.sub(r"\s+", " ", f"{layer.program} {layer.verb}")
        why = f"`{how}` stands in a shell script: its container is not known, and SIGKILL would leave it running"
        return Told("", ((why, f"give `{how} …` itself to trainwatch"), *_of_container(layer, spec)))
    return _told(layer, spec)

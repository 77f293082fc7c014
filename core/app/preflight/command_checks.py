"""What the command hides from its supervisor: the trainer's exit status, its processes, or where it runs.

Pipes, ``;`` and ``wait`` in a shell can hide an exit status. A container daemon, a tmux server or a scheduler takes the
training over, and the command ends: nobody sees its steps or its end. A container, another user or another host limits
what can be done to it. Sources: the manual pages of the programs; ``conda run --help`` (``--no-capture-output``);
moby's documentation of ``docker exec``, which passes no signals on.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...model.run import RunSpec
from ...model.wrappers import POSIX_SHELLS, Layer
from ...source.launch_target import training_of
from ...source.shell_text import ShellCommand, commands_of, shell_at, shell_program, without_wrappers
from ...source.trainer_source import read_source, source_of
from ...views.length_words import deciding_layer, words_of
from ..plan.launch_plan import LaunchPlan
from .check import Check, Machine, passed, warned

TRAINERS = re.compile(
    r"(?:.*/)?(?:python[\d.]*|pypy\d*|accelerate|torchrun|deepspeed|mpi(?:run|exec)|srun|horovodrun|ray|composer|uv|poetry"
    r"|pipenv|pixi|hatch|conda|mamba|micromamba|docker|podman|singularity|apptainer|julia|Rscript|matlab|make|just"
    r"|lightning|fairseq-train|tune|axolotl|llamafactory-cli|yolo|trainwatch)$|.*\.(?:py|sh|bash)$|\./.*"
)
"""First words of commands that may be the training."""
NO_TRAINING = frozenset({"activate", "deactivate", "install", "pull", "build", "--version", "-V", "sync", "login"})
"""Words that make such a command a preparation: ``conda activate``, ``docker pull``."""
DEEPEST = 4
"""Scripts that call scripts are followed this deep."""
PIPES = frozenset({"|", "|&"})
PIPE_REMEDY = "write `set -o pipefail` (bash) before it, or leave the pipe out: the output is kept in the run's own log"
CHAIN_REMEDY = "join the commands with `&&`, or begin with `set -e`"
_ERREXIT = re.compile(r"-[a-zA-Z]*e")


def check_exit_status(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The exit status of the command is that of the trainer."""
    command, cwd = plan.spec.command, Path(plan.spec.cwd)
    if (found := hidden_status(command, cwd)) is not None:
        return warned(*found)
    return passed("that of the trainer") if shell_at(command) is not None else None


def is_timed(spec: RunSpec) -> bool:
    """Whether a ``timeout`` stands before what may be the training, or that cannot be read."""
    parts = (ShellCommand(spec.command, ""), *simple_commands(spec.command, Path(spec.cwd)))
    timed = (without_wrappers(each.words, keep={"timeout"})[0] for each in parts if may_train(each))
    return training_of(spec) is None or any(Path(word).name == "timeout" for word in timed)


def trains_in_stages(spec: RunSpec) -> bool:
    """Whether the sources of several commands of its shell text train; the same file behind an ``else`` counts once."""
    parts = [each.words for each in simple_commands(spec.command, Path(spec.cwd)) if may_train(each)]
    sources = [read_source(words, spec.cwd, spec.env) for words in parts if len(parts) > 1]
    files = [source.target.file for source in sources if source.trains]
    either = any("else" in text.split() for _, text in source_of(spec).target.shells)
    return len(set(files) if either else files) > 1


def hidden_status(command: tuple[str, ...], cwd: Path, depth: int = 0) -> tuple[str, str] | None:
    """What hides the exit status of the trainer, and the remedy; None if nothing is seen that does."""
    if depth > DEEPEST or not command:
        return None
    if Path(command[0]).name == "script":  # it gives 0 unless it is told to pass the status on
        if any(word == "--return" or _ERREXIT.match(word) for word in command[1:]):
            return None
        return "`script` gives its own exit status, not that of the trainer", "give it the option -e (--return)"
    program = shell_program(without_wrappers(command), cwd)
    if program is None:
        return None
    text, commands, named = program.text, commands_of(program.text), f"{program.file}: " if program.file else ""
    pipefail, stops = "pipefail" in program.options, any(map(_ERREXIT.match, program.options))
    for at, each in enumerate(commands):
        words = each.words
        if words[0] in {"set", "shopt"}:
            pipefail = (pipefail or "pipefail" in words) and "+o" not in words
            stops = stops or "errexit" in words or any(map(_ERREXIT.match, words[1:]))
        if not may_train(each):
            continue
        if (inner := hidden_status(without_wrappers(words), cwd, depth + 1)) is not None:
            return f"{named}{inner[0]}", inner[1]
        if each.after in PIPES and not pipefail and "PIPESTATUS" not in text:
            last = next((later.words for later in commands[at + 1 :] if later.after not in PIPES), None)
            if last is not None:
                of = Path((without_wrappers(last) or last)[0]).name
                why = f"`{short(each)} | {of}`: without pipefail the exit status is that of `{of}`"
                return f"{named}{why}", PIPE_REMEDY
        if each.condition or "$?" in text or "PIPESTATUS" in text:
            continue
        if (hides := _hides(commands[at:], stops=stops)) is not None:
            return f"{named}`{short(each)}`: its exit status is hidden by `{hides}` after it", CHAIN_REMEDY
    return None


def _hides(rest: list[ShellCommand], *, stops: bool) -> str | None:
    """What follows the first command, runs whatever it did, and decides the status instead; None if nothing does."""
    place = 0
    while rest[place].after in {*PIPES, "&&"} and place + 1 < len(rest):
        place += 1
    after, following = rest[place].after, rest[place + 1 :]
    if after == "||" and following:
        told = " ".join(command.text for command in following[:4])
        return None if re.search(r"\b(?:exit|return|false|kill)\b", told) else f"|| {short(following[0])}"
    if after == "&":
        waits = next((command for command in following if command.words[0] == "wait"), None)
        return "wait" if waits is not None and len(waits.words) == 1 and waits is following[-1] else None
    if stops or not following or after in {"", "||"}:
        return None
    last = following[-1]
    passes_on = last.words[0] == "exit" and len(last.words) > 1 and last.words[1] != "0"
    return None if passes_on else short(last)


def may_train(command: ShellCommand) -> bool:
    words = without_wrappers(command.words)
    if not words or NO_TRAINING & set(words[1:3]):
        return False
    return TRAINERS.match(words[0]) is not None or Path(words[0]).name in POSIX_SHELLS


def short(command: ShellCommand) -> str:
    text = command.text
    return text if len(text) <= 60 else f"{text[:57]}..."


# Commands that hand the training to somebody else and end. Their exit status is that of the hand-over.


class HandOver(NamedTuple):
    """``programs`` with one of the first words ``verbs`` ("" = any) hand the training to ``whom``.

    ``only_with``: if an option matches; ``unless``: not if one matches. ``remedy``: what keeps it in the run.
    """

    programs: str
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
CONTAINERS = "docker podman nerdctl"
DAEMON, SERVER, IN_BACKGROUND = "the container daemon", "the tmux server", "a process in the background"
OWN_WINDOW = "leave tmux out: trainwatch shows the training in a tmux window of its own"
DETACHED = "leave it out: `trainwatch run --detach` outlives this terminal"
IN_JOB = "or start trainwatch in the script that the scheduler runs"
INSIDE = "start trainwatch inside it"
RUN = ("run", "container run", "exec", "container exec")
IN_TMUX = ("send", "send-keys", "neww", "new-window", "splitw", "split-window", "respawnp", "respawn-pane", "respawnw",
           "respawn-window")  # fmt: skip
IN_POD = f"{_letter('i')}|--attach.*"
TABLE = (
    HandOver(CONTAINERS, RUN, DAEMON, "leave out -d", only_with=f"{_letter('d')}|--detach(=true)?"),
    HandOver(CONTAINERS, ("start", "container start"), DAEMON, "give it -a", unless=f"{_letter('ai')}|--attach"),
    HandOver(f"{CONTAINERS} docker-compose podman-compose", ("compose up", "up"), DAEMON, "leave out -d",
             only_with=f"{_letter('d')}|--detach|--wait"),
    HandOver("tmux", ("new", "new-session"), SERVER, OWN_WINDOW, only_with=_letter("d")),
    HandOver("tmux", IN_TMUX, SERVER, OWN_WINDOW),
    HandOver("screen", ("",), "a screen session", DETACHED, only_with=f"{_letter('d')}|-X"),
    HandOver("sbatch", ("",), "Slurm", f"give it --wait, {IN_JOB}", unless=r"-W|--wait"),
    HandOver("qsub", ("",), "the scheduler", f"let it wait (-sync y), {IN_JOB}", unless=r"-sync|.*block=true|-I"),
    HandOver("bsub", ("",), "LSF", f"give it -K, {IN_JOB}", unless=r"-K|-I\w*"),
    HandOver("condor_submit", ("",), "HTCondor", INSIDE, unless=r"-i|-interactive"),
    HandOver("at batch", ("",), "the at daemon", "let it start trainwatch"),
    HandOver("kubectl oc", ("apply", "create", "run"), "Kubernetes", INSIDE, unless=IN_POD),
    HandOver("systemd-run", ("",), "systemd", "give it --scope", unless=f"{_letter('tP')}|--(scope|wait|pty|pipe)"),
    HandOver("ray", ("job submit",), "Ray", "leave out --no-wait", only_with=r"--no-wait"),
    HandOver("sky", ("launch", "exec", "jobs launch"), "SkyPilot", INSIDE),
    HandOver("ssh", ("",), "another host", "start trainwatch there", only_with=_letter("f")),
    HandOver("tsp nq pueue daemonize", ("",), "a queue", DETACHED),
    HandOver("setsid", ("",), IN_BACKGROUND, "leave out -f", only_with=f"{_letter('f')}|--fork"),
)  # fmt: skip


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
    found, follows = None, "it is followed as the training"
    for simple in simple_commands(command, cwd):
        words = without_wrappers(simple.words, keep={"setsid"})
        row = next((row for row in TABLE if _matches(row, words)), None)
        if row is not None:
            followed = row.whom == IN_BACKGROUND  # it leaves a process of the run behind
            sees = follows if followed else "trainwatch sees neither its steps nor its end there"
            found = Found(f"`{short(simple)}` hands the training to {row.whom} and ends: {sees}", row.remedy, followed)
        elif not may_train(simple):
            found = None if simple.words[0] == "wait" and found is not None and found.followed else found
        elif simple.after == "&":
            remedy = "leave out the `&` (and nohup): `trainwatch run --detach` outlives this terminal"
            found = Found(f"`{short(simple)} &` goes on after the command has ended: {follows}", remedy, followed=True)
        else:
            found = None
    return found


def _matches(row: HandOver, words: tuple[str, ...]) -> bool:
    if not words or Path(words[0]).name not in row.programs.split():
        return False
    plain = [word for word in words[1:] if not word.startswith("-")]
    texts = [" ".join(plain[at:]) + " " for at in range(VERBS_AT)]
    if not any(text.startswith(f"{verb} ") or not verb for text in texts for verb in row.verbs):
        return False
    own = list(words[1:])  # those before the command that it is given, which has its own options
    for at, word in enumerate(own):
        if TRAINERS.match(word) or word in POSIX_SHELLS:
            del own[at:]
            break
    if row.unless and any(re.fullmatch(row.unless, word) for word in own):
        return False
    return not row.only_with or any(re.fullmatch(row.only_with, word) for word in own)


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


# Where the command lets the training run: a container, another user, another host. What works there, and what not.

NEVER_TWICE = "nothing is started again then, so that it does not run twice"


class PlaceReport(NamedTuple):
    """``works``: what is done there. ``problems``: (what does not work, what to do)."""

    works: str
    problems: tuple[tuple[str, str], ...]


def check_place(plan: LaunchPlan, _machine: Machine) -> Check | None:
    told = place_told(plan.spec)
    if told is None or not told.problems:
        return None if told is None else passed(told.works)
    found = "; ".join(filter(None, (told.works, *(problem for problem, _ in told.problems))))
    return warned(found, "; ".join(dict.fromkeys(remedy for _, remedy in told.problems)))


def place_told(spec: RunSpec) -> PlaceReport | None:
    """None if the training runs as any process of this user, or if the command only hands it on."""
    cwd = Path(spec.cwd)
    if hand_over(spec.command, cwd) is not None:
        return None
    layer, in_script = deciding_layer(spec.command), False
    if layer is None:
        found = (deciding_layer(simple.words) for simple in simple_commands(spec.command, cwd))
        layer, in_script = next((each for each in found if each is not None), None), True
    if layer is None:
        return None
    problems = tuple(_problems(layer, spec, in_script=in_script))
    shown = layer.kind in {"user", "plain"} or (layer.kind in {"container", "service"} and not in_script)
    return PlaceReport(words_of(layer) if shown or not problems else "", problems)


def _problems(layer: Layer, spec: RunSpec, *, in_script: bool) -> Iterator[tuple[str, str]]:
    """``in_script``: a shell script or line starts it. A container of one gets no label, and is not found."""
    tool, never, there = layer.program, f"{words_of(layer)}; {NEVER_TWICE}", "start trainwatch there"
    match layer.kind:
        case "container" | "service":
            if in_script:
                how = re.sub(r"\s+", " ", f"{tool} {layer.verb}")
                why = "stands in a shell script: its container is not known, and SIGKILL would leave it running"
                yield f"`{how}` {why}", f"give `{how} …` itself to trainwatch"
            yield from _of_container(layer, spec)
        case "in_container":
            yield never, f"use `{tool} run`, or start trainwatch inside"
        case "services":
            yield never, f"use `{' '.join(filter(None, (tool, layer.verb.rpartition(' ')[0], 'run --rm SERVICE')))}`"
        case "host":
            name = layer.names[0] if layer.names else ""
            yield never, f"{there}: `ssh {name} -t trainwatch run --detach -- …`"
        case "pod":
            yield never, there
        case "step":
            yield words_of(layer), 'set engine = "slurm" under [run], or start trainwatch in the job'
        case "environment":
            if tool == "conda" and not layer.has("--no-capture-output", "--live-stream"):
                why = "conda run keeps all output until the end: no step, loss or error is seen before"
                yield why, "write `conda run --no-capture-output …`"
        case "user" | "plain":
            if os.geteuid() != 0:
                why = f"a stop, a pause and a restart work only if `{tool} -n` asks for no password"
                yield why, f"let {tool} ask for none, or leave {tool} out"
            if not layer.has("-E", "--preserve-env") and not any("PYTHONUNBUFFERED" in word for word in layer.names):
                why = "drops variables: the output comes in blocks, and CUDA_VISIBLE_DEVICES does not reach it"
                yield f"{tool} {why}", f"give {tool} the option -E"


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
    folder = spec.output_dir
    mounted = (
        "$" in source + target  # a shell fills it in later
        or (os.path.normpath(source) == os.path.normpath(target) and Path(folder or "").is_relative_to(source))
        for source, target in _mounts(layer)
    )
    if layer.kind == "container" and folder and not any(mounted):
        why = "is not mounted under its own path: checkpoints are not seen, or not found inside"
        yield f"{folder} {why}", f"mount it with -v {folder}:{folder}"


def _mounts(layer: Layer) -> Iterator[tuple[str, str]]:
    """(folder here, folder there)."""
    for value in layer.values("-v", "--volume"):
        source, target, *_ = (*value.split(":"), "")
        yield source, target
    for value in layer.values("--mount"):
        fields = dict(part.partition("=")[::2] for part in value.split(","))
        target = fields.get("target") or fields.get("dst") or fields.get("destination", "")
        yield fields.get("source") or fields.get("src", ""), target

"""Whether the exit status of the command is that of the trainer: pipes, ``;`` and ``wait`` in a shell can hide it."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...model.run import RunSpec
from ...model.wrappers import peel
from ...source.shell_text import ShellCommand, commands_of, without_assignments
from ..plan.launch_plan import LaunchPlan
from .check import Check, Machine, passed, warned

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
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
LONGEST_BYTES = 1 << 18
PIPE_REMEDY = "write `set -o pipefail` (bash) before it, or leave the pipe out: the output is kept in the run's own log"
CHAIN_REMEDY = "join the commands with `&&`, or begin with `set -e`"


def check_exit_status(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The exit status of the command is that of the trainer."""
    found = hidden_status(plan.spec.command, Path(plan.spec.cwd))
    if found is not None:
        return warned(found[0], found[1])
    return passed("that of the trainer") if _shell_at(plan.spec.command) is not None else None


def what_hides_status(spec: RunSpec) -> str:
    """What hides the trainer's exit status, as a clause; "" if nothing is seen that does."""
    found = hidden_status(spec.command, Path(spec.cwd))
    return "" if found is None else found[0]


def hidden_status(command: tuple[str, ...], cwd: Path, depth: int = 0) -> tuple[str, str] | None:
    """What hides the exit status of the trainer, and the remedy; None if nothing is seen that does."""
    if depth > DEEPEST or not command:
        return None
    if Path(command[0]).name == "script":
        return _typescript(command)
    program = shell_program(without_wrappers(command), cwd)
    found = None if program is None else _of_text(program.text, program.options, cwd, depth)
    if program is None or found is None:
        return None
    return (f"{program.file}: {found[0]}", found[1]) if program.file else found


class ShellProgram(NamedTuple):
    """The text that a shell runs. ``file``: its name; "" for the text behind ``-c``."""

    text: str
    options: tuple[str, ...] = ()
    file: str = ""


def shell_program(words: tuple[str, ...], cwd: Path) -> ShellProgram | None:
    """The program of a command that is a shell or a shell script; None if it is neither, or cannot be read."""
    at = _shell_at(words)
    if at is None:
        return _read_script(words[0], (), cwd) if words else None
    options: list[str] = []
    for place in range(at + 1, len(words)):
        word = words[place]
        if word.startswith(("-", "+")) or (options and options[-1].endswith("o") and options[-1].startswith("-")):
            options.append(word)
            if re.match(r"-[a-zA-Z]*c", word):
                text = next((each for each in words[place + 1 :] if not each.startswith("-")), "")
                return ShellProgram(text, tuple(options))
        else:
            return _read_script(word, tuple(options), cwd)
    return None


def _shell_at(words: tuple[str, ...]) -> int | None:
    """Where the shell stands: first, or after a launcher such as ``srun -n 1``."""
    for at, word in enumerate(words):
        if Path(word).name in SHELLS:
            return at
        if re.match(r"(?:.*/)?python[\d.]*$|.*\.py$", word):
            return None
    return None


def without_wrappers(words: tuple[str, ...], keep: Collection[str] = ()) -> tuple[str, ...]:
    """The command behind ``nohup``, ``env A=1``, ``timeout 3h``, ``sudo -u bob`` …; ``keep``: wrappers that stay."""
    words = without_assignments(words)
    while (layer := peel(words)) is not None and layer.kind in {"plain", "user"} and layer.program not in keep:
        words = without_assignments(layer.inner)
    return words


def assigned(command: Sequence[str]) -> dict[str, str]:
    """The variables that ``A=1 python …`` and ``env A=1 python …`` set."""
    words = without_wrappers(tuple(command))
    pairs = (word.partition("=") for word in command[: len(command) - len(words)] if not word.startswith("-"))
    return {name: value for name, equals, value in pairs if equals}


def _typescript(command: tuple[str, ...]) -> tuple[str, str] | None:
    """``script -c`` gives 0 unless it is told to pass the status on."""
    options = [word for word in command[1:] if word.startswith("-")]
    if any(word == "--return" or re.match(r"-[a-zA-Z]*e", word) for word in options):
        return None
    return "`script` gives its own exit status, not that of the trainer", "give it the option -e (--return)"


def _read_script(name: str, options: tuple[str, ...], cwd: Path) -> ShellProgram | None:
    path = cwd / name
    try:
        if "/" not in name and not path.is_file():
            return None
        with path.open("rb") as file:
            text = file.read(LONGEST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    first = text.partition("\n")[0]
    shebang = first[2:].split() if first.startswith("#!") else []
    if shebang and not any(Path(word).name in SHELLS for word in shebang):
        return None
    if not shebang and not options and Path(name).suffix not in {".sh", ".bash"}:
        return None
    given = tuple(word for word in shebang[1:] if word.startswith("-") or word == "pipefail")
    return ShellProgram(text, (*options, *given), name)


def _of_text(text: str, options: tuple[str, ...], cwd: Path, depth: int) -> tuple[str, str] | None:
    commands = commands_of(text)
    pipefail, stops = "pipefail" in options, any(re.match(r"-[a-zA-Z]*e", word) for word in options)
    asks = "$?" in text or "PIPESTATUS" in text
    for at, command in enumerate(commands):
        words = command.words
        if words[0] in {"set", "shopt"}:
            pipefail = (pipefail or "pipefail" in words) and "+o" not in words
            stops = stops or "errexit" in words or any(re.match(r"-[a-zA-Z]*e", word) for word in words[1:])
        if not may_train(command):
            continue
        inner = hidden_status(without_wrappers(words), cwd, depth + 1)
        if inner is not None:
            return inner
        if command.after in {"|", "|&"} and not pipefail and "PIPESTATUS" not in text:
            last = next(_ends_of_pipe(commands[at + 1 :]), None)
            if last is not None:
                of = _name(last)
                return f"`{short(command)} | {of}`: without pipefail the exit status is that of `{of}`", PIPE_REMEDY
        if command.condition or asks:
            continue
        hides = _hides(commands[at:], stops=stops)
        if hides is not None:
            return f"`{short(command)}`: its exit status is hidden by `{hides}` after it", CHAIN_REMEDY
    return None


def _hides(rest: list[ShellCommand], *, stops: bool) -> str | None:
    """What follows the first command, runs whatever it did, and decides the status instead; None if nothing does."""
    place = 0
    while rest[place].after in {"|", "|&", "&&"} and place + 1 < len(rest):
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
    if last.words[0] == "exit" and len(last.words) > 1 and last.words[1] != "0":
        return None
    return short(last)


def _ends_of_pipe(rest: list[ShellCommand]) -> Iterator[ShellCommand]:
    for command in rest:
        if command.after not in {"|", "|&"}:
            yield command
            return


def may_train(command: ShellCommand) -> bool:
    words = without_wrappers(command.words)
    if not words or NO_TRAINING & set(words[1:3]):
        return False
    return TRAINERS.match(words[0]) is not None or Path(words[0]).name in SHELLS


def _name(command: ShellCommand) -> str:
    return Path(without_wrappers(command.words)[0]).name if without_wrappers(command.words) else command.words[0]


def short(command: ShellCommand) -> str:
    text = command.text
    return text if len(text) <= 60 else f"{text[:57]}..."

"""Which Python file a command runs in the end, where an option must stand to reach it, and what trains the same.

Followed: ``python file.py``, ``python -m module``, launchers (``torchrun``, ``accelerate launch``, ``uv run`` …: the
first word that is a Python file or a module of the project), installed commands (a script with ``from x import
main``), shell scripts and shell lines. Nothing is run.
"""

import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from ..model.run import RunSpec
from ..model.wrappers import POSIX_SHELLS, end_of_word
from ..processes import file_text
from . import shell_text
from .shell_text import LONGEST_BYTES, ShellCommand, Variables, commands_run, shell_program, without_assignments

DEEPEST = 4
_PYTHON = re.compile(r"(python|pypy)[\d.]*$")
_STARTERS = frozenset(
    {"torch", "accelerate", "deepspeed", "coverage", "pdb", "cProfile", "debugpy", "ipdb", "kernprof", "line_profiler",
     "memory_profiler", "scalene", "trace", "viztracer", "ddtrace", "mpi4py", "horovod", "paddle", "colossalai"}
)  # fmt: skip
"""Modules that run the Python file that follows them."""
_ENTRY = re.compile(r"^\s*from\s+([\w.]+)\s+import\s+(\w+)", re.MULTILINE)
ALL_ARGUMENTS = re.compile(r'"?\$[@*]"?|"?\$\{[@*]\}"?')
_OPTIONS_WITH_FILE = re.compile(r"--?[\w-]*(config|hostfile|log|env)[\w-]*")

Place = Literal["command", "line", "script", "nowhere"]
"""Where an option reaches the trainer: at the end of the command, in its shell line, in its shell script."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """``file``: what runs. ``roots``: folders in which its imports are looked for, the nearest first.

    ``args``: the trainer's own words as far as they are seen. ``word``: the script or module as it is written.
    ``why_not``: why no option can be added. ``shells``: all shell texts on the way. ``env``: what they set.
    """

    file: Path
    roots: tuple[Path, ...]
    args: tuple[str, ...] = ()
    place: Place = "command"
    word: str = ""
    why_not: str = ""
    shells: tuple[tuple[str, str], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    package: str = ""
    """The top-level package if the file is an installed one: only its own modules are read."""


def find_target(command: Sequence[str], cwd: Path, env: Mapping[str, str], depth: int = 0) -> Target | str:
    """The target of a command; a sentence if it cannot be told. ``env``: the trainer's environment."""
    if depth > DEEPEST:
        return "scripts start scripts, too deep to follow"
    words = without_assignments(tuple(command))
    for at, word in enumerate(words):
        path = _file(cwd, word)
        if Path(word).name in POSIX_SHELLS or (path is not None and path.suffix in {".sh", ".bash"}):
            program = shell_program(words[at:], cwd)
            if program is None:
                return f"{' '.join(words[at : at + 2])}: this shell script cannot be read"
            script = _file(cwd, program.file)
            args = words[words.index(program.file) + 1 :] if program.file in words else None
            return _in_text(program.text, script, cwd, Variables(env, program.text, args), depth)
        if path is not None and (path.suffix == ".py" or (at == 0 and _is_python_text(path))):
            if at and _OPTIONS_WITH_FILE.fullmatch(words[at - 1]):
                continue
            return Target(file=path, roots=_roots(path.parent, cwd, env), args=words[at + 1 :], word=word)
        if word == "-c" and at and _PYTHON.fullmatch(Path(words[at - 1]).name):
            return "the trainer is a line of Python (-c), which is not read"
        if word in {"-m", "--module"} and at + 1 < len(words):
            found = _module(words[at + 1], cwd, env, words[0])
            if found is not None:
                return msgspec.structs.replace(found, args=words[at + 2 :], word=words[at + 1])
            if _PYTHON.fullmatch(Path(words[at - 1]).name) and words[at + 1].partition(".")[0] not in _STARTERS:
                return f"the module {words[at + 1]} is not found"
    return _of_program(words, cwd, env, depth)


def _in_text(text: str, path: Path | None, cwd: Path, variables: Variables, depth: int) -> Target | str:
    """The target of a shell text: that of the one command in it which runs Python of the project."""
    where = "the shell line" if path is None else path.name
    folder, env = cwd, variables.exports
    found: list[tuple[ShellCommand, Target]] = []
    for command, runs, _ in commands_run(text, variables, lambda _path: False):
        variables.read(command.words, folder, runs)
        words = tuple(variables.expanded(command.words))
        if words[:1] == ("cd",) and len(words) > 1 and "$" not in words[1] and (folder / words[1]).is_dir():
            folder = folder / words[1]
        elif words[:1] == ("cd",) and path is not None and re.search(r"dirname|BASH_SOURCE|\$0", command.text):
            folder = path.parent
        given = {**variables.exports, **shell_text.assigned(words)}
        target = find_target(words, folder, given, depth + 1)
        if isinstance(target, Target):
            written = next((word for word in command.words if variables.filled(word) == target.word), target.word)
            own = tuple((name, value) for name, value in given.items() if env.get(name) != value)
            found.append((command, msgspec.structs.replace(target, word=written, env=(*own, *target.env))))
    if not found:
        return f"{where} starts no Python of this project that can be read"
    if len({target.file for _, target in found}) > 1:
        trains = [each for each in found if re.search(r"train|finetune|main|fit", each[1].file.name)]
        found = trains if len({target.file for _, target in trains}) == 1 else found
    command, target = found[-1]
    shells = ((str(path or "the shell line"), text), *target.shells)
    place: Place = target.place
    if len(found) > 1:
        why = f"{where} starts Python more than once"
    elif any(ALL_ARGUMENTS.fullmatch(word) for word in command.words) and path is not None:
        return msgspec.structs.replace(target, shells=shells) if place == "command" else target
    elif place != "command" or depth:
        why = f"{where} does not pass its arguments on"
    elif target.word not in command.words or end_of_word(text, target.word) is None:
        why = f"{where} names {target.word} more than once, or in a variable"
    else:
        place = "line" if path is None else "script"
        return msgspec.structs.replace(target, place=place, shells=shells)
    return msgspec.structs.replace(target, place="nowhere", why_not=why, shells=shells)


def _of_program(words: tuple[str, ...], cwd: Path, env: Mapping[str, str], depth: int) -> Target | str:
    """The target of an installed command (``yolo``), or of a word that is a shell script by its first line."""
    if not words:
        return "there is no command"
    for at, word in enumerate(words[:3]):
        plain = "/" not in word and not word.startswith("-")
        which = shutil.which(word, path=env.get("PATH")) if plain else None
        path = Path(which) if which else _file(cwd, word) if "/" in word else None
        text = "" if path is None else _script(path)
        first = text.partition("\n")[0]
        if path is None or not first.startswith("#!"):
            continue
        if any(Path(part).name in POSIX_SHELLS for part in first[2:].split()):
            return _in_text(text, path, cwd, Variables(env, text, words[at + 1 :]), depth)
        entry = _ENTRY.search(text)
        if "python" in first and entry is not None:
            found = _module(entry[1], cwd, env, first[2:].split()[0])
            if found is not None:
                return msgspec.structs.replace(found, args=words[at + 1 :], word=word)
    return f"{Path(words[0]).name} starts no Python file that can be read"


def _module(name: str, cwd: Path, env: Mapping[str, str], python: str) -> Target | None:
    relative, top = Path(*name.split(".")), name.partition(".")[0]
    main, file, package = relative / "__main__.py", relative.with_suffix(".py"), relative / "__init__.py"
    for root in _roots(cwd, cwd, env):
        if path := _first_of(root, main, file, package):
            return Target(file=path, roots=_roots(root, cwd, env))
    for root in installed_in(python, env) if top not in _STARTERS else ():
        if path := _first_of(root, main, file, package):
            return Target(file=path, roots=(root,), package=top)
        linked = _editable(root, top)
        if linked is not None and (path := _first_of(linked, file, main)):
            return Target(file=path, roots=(linked,), package=top)
    return None


def _first_of(root: Path, *names: Path) -> Path | None:
    return next((root / name for name in names if (root / name).is_file()), None)


def _editable(root: Path, top: str) -> Path | None:
    """The folder of a package that is installed as a link (a ``.pth`` file beside the others)."""
    for path in sorted(root.glob("*.pth"))[:50]:
        for line in file_text(path).splitlines():
            folder = Path(line.strip()) if line.strip().startswith("/") else None
            if folder is not None and (folder / top).is_dir():
                return folder
    return None


def installed_in(python: str, env: Mapping[str, str]) -> tuple[Path, ...]:
    """The folders of installed packages of an interpreter, found by its place."""
    which = python if "/" in python else shutil.which(python, path=env.get("PATH"))
    if not which:
        return ()
    prefix = Path(which).parent.parent
    return tuple(sorted(p for p in prefix.glob("lib/python3*/*-packages") if p.is_dir()))


def _roots(nearest: Path, cwd: Path, env: Mapping[str, str]) -> tuple[Path, ...]:
    path = [Path(cwd, each) for each in env.get("PYTHONPATH", "").split(os.pathsep) if each]
    return tuple(dict.fromkeys((nearest, *path, cwd, cwd / "src")))


def _file(cwd: Path, word: str) -> Path | None:
    if not word or word.startswith("-") or "\0" in word or len(word) > 4000:
        return None
    path = Path(os.path.normpath(cwd / word))
    try:
        return path if path.is_file() else None
    except OSError:
        return None


def _is_python_text(path: Path) -> bool:
    text = _script(path)
    first = text.partition("\n")[0]
    return first.startswith("#!") and "python" in first and _ENTRY.search(text[:2000]) is None


def _script(path: Path) -> str:
    """The text of a file; "" if it is too large for a script."""
    return file_text(path) if path.stat().st_size < LONGEST_BYTES else ""


_OF_ONE_LAUNCH = re.compile(
    r"\d{4}[-_.]?\d\d[-_.]?\d\d|\d\d[-_:]\d\d[-_:]\d\d|\d{8,}|(?:^|/)(?:version|exp|run|train|lightning_logs|trial)[-_]?\d+",
    re.IGNORECASE,
)
"""Parts of a folder's path that a trainer makes for one launch: a date, a time, a number."""


class Training(NamedTuple):
    """``options``: name and values of each, as often as it is given; ``places``: the words before the first option."""

    script: Path
    places: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]


_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})
"""Options of the interpreter that take the next word as their value."""
_LAST_OPTION = re.compile(r"-[bBdEiIOPqRsSuvx]*([mc])(.*)|-()()")
"""The option after which the words belong to the program: a module, a line of Python, or standard input."""


def training_of(spec: RunSpec) -> Training | None:
    """What the command of a run trains; None if the script cannot be told. ``--a=b`` is ``--a b``, in any order."""
    return training_in(spec.command, Path(spec.cwd), {**os.environ, **spec.env})


def training_in(command: Sequence[str], cwd: Path, env: Mapping[str, str], word: str | None = None) -> Training | None:
    """What a command trains; None if the script cannot be told, or if it is not the one that is written ``word``."""
    target = find_target(command, cwd, env)
    if isinstance(target, str) or word not in {None, target.word}:
        return None
    places: list[str] = []
    options: list[list[str]] = []
    for each in target.args:
        if re.match(r"--?[A-Za-z]", each):
            name, equals, value = each.partition("=")
            options.append([_name(name), *([value] if equals else [])])
        elif options:
            options[-1].append(each)
        else:
            places.append(each)
    named = tuple(sorted(tuple(option) for option in options))
    return Training(Path(os.path.realpath(target.file)), tuple(places), named)


def training_run_by(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Training | None:
    """What a Python process itself runs: the script or module right behind the interpreter and its options.

    A file that is named further behind is only given to a program (``pylint train.py``), or run by a child of it.
    """
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        ends = _LAST_OPTION.fullmatch(argv[at])
        if ends is not None:
            module = ends[2] or next(iter(argv[at + 1 : at + 2]), "")
            after = argv[at + 1 if ends[2] else at + 2 :]
            return None if ends[1] != "m" else training_in((argv[0], "-m", module, *after), cwd, env, module)
        at += 2 if argv[at] in _WITH_VALUE else 1
    return None if at >= len(argv) else training_in(argv[at:], cwd, env, argv[at])


def without_options(training: Training, names: Collection[str]) -> Training:
    """The training without these options, in whatever spelling: ``--a b``, ``--a=b`` and ``a=b``."""
    left_out = {_name(name) for name in names}
    return Training(
        training.script,
        tuple(
            word
            for word in training.places
            if "=" not in word or _name(word.partition("=")[0].lstrip("+")) not in left_out
        ),
        tuple(option for option in training.options if option[0] not in left_out),
    )


def _name(option: str) -> str:
    return option.replace("_", "-")


def is_same(known: RunSpec, spec: RunSpec) -> bool:
    if known.command == spec.command:
        return True
    # A cheap look before files are read: both name a file of the same name, or one of them is a shell line.
    scripts = [{Path(w.strip("\"'")).name for w in " ".join(each.command).split()} for each in (known, spec)]
    named = any(name.endswith((".py", ".sh")) for name in scripts[0] & scripts[1])
    if len(known.command) != len(spec.command) and not named:
        return False
    first, second = training_of(known), training_of(spec)
    return first is not None and first == second


def may_save_alike(known: RunSpec, spec: RunSpec) -> bool:
    """Whether the script, started with other options, may save where it saved before.

    Not if the folder was made for that launch (by a date or a number in its path), or if its path has a value that the
    command does not have any more.
    """
    before, now = training_of(known), training_of(spec)
    if known.output_dir is None or before is None or now is None or before.script != now.script:
        return False
    folder = _from_cwd(known.output_dir, known.cwd)
    if _OF_ONE_LAUNCH.search(folder):
        return False
    gone = {word for group in (before.places, *before.options) for word in group} - {
        word for group in (now.places, *now.options) for word in group
    }
    return not any(len(word.strip("-./")) > 1 and word.strip("-./") in folder for word in gone)


def is_of_one_launch(folder: str, cwd: str) -> bool:
    """Whether a folder was made for one launch, by a date or a number in its path: the next launch makes another."""
    return _OF_ONE_LAUNCH.search(_from_cwd(folder, cwd)) is not None


def _from_cwd(folder: str, cwd: str) -> str:
    return os.path.relpath(os.path.realpath(folder), os.path.realpath(cwd))

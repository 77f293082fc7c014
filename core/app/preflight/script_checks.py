"""Checks of the trainer's own script: the options that the profile in use gives it, and what it imports."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ...bound_process import bound
from ...model.run import RunSpec
from ...source.trainer_source import TrainerSource, read_source
from ..plan.declared_options import undeclared
from ..plan.launch_plan import LaunchPlan
from .check import Check, Machine, failed, passed, warned
from .exit_status_check import without_wrappers
from .machine.gpu_checks import interpreter

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
            "profile options",
            f"the script declares no {', '.join(missing[:SHOWN])} (profile {profile.name})",
            "use another profile (`trainwatch profiles`), or write one with the options that it has",
        )
    return passed("profile options", f"the script declares all {len(profile.flags)} words of {profile.name}")


def check_imports(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The packages that the script imports are installed for the trainer's interpreter.

    Its source is read, never run. Packages that it imports only under a condition are not looked for.
    """
    source = read_source(plan.spec.command, plan.spec.cwd, plan.spec.env)
    python = interpreter(plan.spec)
    if isinstance(source, str) or python is None or not source.needs:
        return None
    missing = _missing(plan, python, source)
    words = " ".join(python)
    if missing is None:
        return None
    if not missing:
        names = [each.name for each in source.needs]
        return passed("imports", f"{len(names)} {'package' if len(names) == 1 else 'packages'} found by {words}")
    places = [f"{each.name} ({each.place})" for each in source.needs if each.name in missing]
    found = f"not installed for {words}: {', '.join(places[:SHOWN])}"
    if source.finds_modules_itself:
        return warned("imports", found, "nothing to do if the script finds or installs them itself")
    if not is_certain_interpreter(plan.spec, python, source.target.file):
        first = plan.spec.command[0]
        return warned("imports", found, f"nothing to do if {first} runs the script with another Python")
    return failed("imports", found, "install them there, or use the interpreter that has them")


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


def _assigned(command: Sequence[str]) -> dict[str, str]:
    """The variables that ``env A=1 python …`` sets."""
    words = without_wrappers(tuple(command))
    pairs = (word.partition("=") for word in command[: len(command) - len(words)] if not word.startswith("-"))
    return {name: value for name, equals, value in pairs if equals}


def _missing(plan: LaunchPlan, python: list[str], source: TrainerSource) -> list[str] | None:
    """Names that this interpreter does not find; None if it could not be asked in time."""
    roots = [str(root) for root in source.target.roots]
    argv = [*python, "-c", PROBE, json.dumps([each.name for each in source.needs]), json.dumps(roots)]
    env = {**os.environ, **plan.spec.env, **_assigned(plan.spec.command)}
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

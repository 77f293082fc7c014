"""Checks of GPUs, of memory, and of what the trainer's interpreter has: torch, and the packages of its script."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...act.launch.spawn import first_line
from ...act.stopping import members
from ...bound_process import NoAnswerError, answer
from ...model.run import RunSpec
from ...model.text import GIB, memory
from ...source.launch_target import installed_in
from ...source.shell_text import assigned, without_wrappers
from ...source.trainer_source import source_of
from ...views.quantity import plural
from ..gpu_survey import GpuSeen, process_name
from ..plan.launch_plan import LaunchPlan
from ..plan.resume_plan import undeclared
from ..runs.ended_attempt import newest_attempt
from .check import GB, Check, Machine, failed, passed, warned
from .launch_checks import is_sdxl

SDXL_MIN_BYTES = 12 * GB
"""Below this, sd-scripts cannot train SDXL with its usual settings."""
FOREIGN_BYTES = 1.0 * GB
"""More memory than a desktop session usually holds."""
PROBE_TIMEOUT_S = 60.0
"""``import torch`` takes seconds on a cold disk."""
PROBE = """import json, torch
n = torch.cuda.device_count() if torch.cuda.is_available() else 0
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "available": torch.cuda.is_available(),
    "names": [torch.cuda.get_device_name(i) for i in range(n)]}))
"""


def check_gpus(machine: Machine, own_pids: frozenset[int] = frozenset(), wanted: Sequence[int] | None = None) -> Check:
    """Each GPU answers, and no other process uses it. Names the processes that do."""
    gpus = machine.gpus
    if gpus.stuck:
        return failed(gpus.trouble or "the driver does not answer", "look at dmesg; a reboot may be needed")
    if not gpus.gpus:
        why = gpus.trouble or "the driver lists none"
        return warned(f"no NVIDIA GPU is visible ({why})", "nothing to do on a machine without a GPU")
    looked_at = [g for g in gpus.gpus if wanted is None or g.index in wanted]
    if absent := sorted(set(wanted or ()) - {g.index for g in gpus.gpus}):
        found = f"run.gpus names GPU {', '.join(map(str, absent))}, but there are {len(gpus.gpus)}"
        return failed(found, "see: nvidia-smi -L")
    if dead := [g for g in looked_at if g.mem_total_bytes is None]:
        return failed(f"GPU {dead[0].index} does not answer", "look at dmesg for Xid lines; a reboot may be needed")
    if busy := [text for g in looked_at if (text := _others(g, own_pids))]:
        return warned(f"in use already: {'; '.join(busy)}", "end the processes that are not needed, or wait for them")
    return passed(f"{', '.join(f'{g.index}: {g.name}' for g in looked_at)}; free")


def check_gpus_of(plan: LaunchPlan, machine: Machine) -> Check:
    target = newest_attempt(machine.run(plan.spec))
    own = frozenset(process.pid for process in members(target)) if target is not None else frozenset[int]()
    return check_gpus(machine, own, plan.spec.gpus)


def check_vram(plan: LaunchPlan, machine: Machine) -> Check | None:
    """SDXL does not fit into less than 12 GB."""
    vram = machine.vram_bytes
    if vram is None or not is_sdxl(plan):
        return None
    found = f"{memory(vram)} of GPU memory"
    if vram >= SDXL_MIN_BYTES:
        return passed(f"{found}, enough for SDXL")
    why = f"{found}: SDXL cannot be trained with less than 12 GB"
    return failed(why, "train an SD 1.5 model on this card instead")


def check_torch(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The torch of the trainer's interpreter sees CUDA. Runs that interpreter."""
    spec = plan.spec
    python = interpreter(spec)
    if python is None or plan.preset.torch == "unused":
        return None
    words, needs = " ".join(python), plan.preset.torch == "needed"
    visible = {} if spec.gpus is None else {"CUDA_VISIBLE_DEVICES": ",".join(map(str, spec.gpus))}
    try:
        printed = _asked(spec, [*python, "-c", PROBE], spec.env | visible, PROBE_TIMEOUT_S)
    except NoAnswerError as error:
        if error.kind == "late":
            found = f"{words}: asking torch for CUDA took over {PROBE_TIMEOUT_S:g} s"
            return failed(found, "is the driver stuck? see dmesg")
        if error.kind != "failed":
            return warned(f"{words} could not be run: {error}", "check the command")
        found = f"{words}: {(error.said.strip().splitlines() or ['no reason given'])[-1]}"
        if needs:
            return failed(found, "install torch there, or use another interpreter")
        return warned(found, "nothing to do if the trainer does not need torch")
    report = json.loads(printed.strip().splitlines()[-1])
    version = f"torch {report['torch']}"
    if report["available"]:
        return passed(f"{version} (CUDA {report['cuda']}) sees {', '.join(report['names'])}")
    found, remedy = f"{version} in {words} is built without CUDA", NO_CUDA
    if report["cuda"] is not None:
        found = f"{version} (CUDA {report['cuda']}) in {words} sees no GPU"
        remedy = "training would run on the CPU: compare the driver's CUDA version (nvidia-smi)"
    imports = {each.name for each in source_of(spec).needs}
    if imports and "torch" not in imports and not needs:
        return warned(found, f"nothing to do if the trainer does not use torch; else {remedy}")
    return (failed if machine.gpus.gpus else warned)(found, remedy)


NO_CUDA = "install a CUDA build of torch there (see pytorch.org), or train on the CPU (--device cpu)"


def _asked(spec: RunSpec, argv: list[str], env: Mapping[str, str], limit_s: float) -> str:
    """What a short program in the trainer's interpreter prints. Raises NoAnswerError."""
    return answer(argv, limit_s, env={**os.environ, **env}, cwd=spec.cwd, tree=True)


def interpreter(spec: RunSpec) -> list[str] | None:
    """The words that start the trainer's Python; None if that is unknown (a shell script, a binary)."""
    words = list(without_wrappers(spec.command))
    if words[:2] in (["uv", "run"], ["poetry", "run"]):
        return [*words[:2], "python"]
    if not words:
        return None
    path = spec.env.get("PATH", os.environ.get("PATH"))
    here = Path(spec.cwd, words[0])
    program = str(here) if "/" in words[0] and here.is_file() else shutil.which(words[0], path=path)
    if program is None:
        return None
    if Path(program).name.startswith("python"):
        return [program]
    first = first_line(program).decode("utf-8", "replace")  # ``torchrun`` is a script of the interpreter it names
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    if len(words) > 1 and Path(words[0]).name == "env":
        words = [shutil.which(words[-1], path=path) or words[-1]]
    return words[:1] if words and Path(words[0]).name.startswith("python") else None


_CPU_KEYS = ("device", "accelerator", "devices", "device_type")
_CPU_FLAGS = ("cpu", "no_cuda", "use_cpu", "force_cpu")


def asks_for_cpu(plan: LaunchPlan) -> bool:
    """Whether command, config or environment ask for a training on the CPU."""
    visible = {**os.environ, **plan.spec.env, **assigned(plan.spec.command)}.get("CUDA_VISIBLE_DEVICES")
    return (
        visible in {"", "-1"}
        or any(str(plan.settings.get(key, "")).lower().startswith("cpu") for key in _CPU_KEYS)
        or any(plan.truth(key) for key in _CPU_FLAGS)
    )


_VERSION = re.compile(r"^(cuda|hip)(?:: [\w\[\]. |]+)? = (.+)$", re.MULTILINE)


def torch_version(spec: RunSpec) -> str:
    """The text of ``torch/version.py`` that the trainer's interpreter would import; "" if that is not certain."""
    python, env = interpreter(spec), {**os.environ, **spec.env}
    if python is None or len(python) != 1 or env.get("PYTHONPATH"):
        return ""
    files = [folder / "torch" / "version.py" for folder in installed_in(python[0], env)]
    texts = [file.read_text("utf-8", "replace") for file in files if file.is_file()]
    return texts[0] if len(texts) == 1 else ""


def check_torch_build(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The torch of the trainer's interpreter is built for GPUs, as its ``version.py`` says; nothing is imported."""
    built = dict(_VERSION.findall(torch_version(plan.spec)))
    if not machine.gpus.gpus or built.get("cuda") != "None" or built.get("hip", "None") != "None":
        return None
    source = source_of(plan.spec)
    names = {each.name for each in source.needs}
    uses = "torch" in names or (not source.is_own and (bool(names) or plan.preset.torch == "needed"))
    if plan.preset.torch == "unused" or (not uses and source.is_own and not names - sys.stdlib_module_names):
        return None
    found = f"the torch of {' '.join(interpreter(plan.spec) or ())} is built without CUDA"
    return (failed if uses else warned)(found, NO_CUDA)


def _others(gpu: GpuSeen, own: frozenset[int]) -> str:
    """The other processes on a GPU; empty if there are none."""
    users = gpu.users or ()
    foreign = [user for user in users if user.pid not in own]
    if foreign:
        named = [process_name(u.pid) + (f" {memory(u.mem_bytes)}" if u.mem_bytes is not None else "") for u in foreign]
        return f"GPU {gpu.index}: {', '.join(named)}"
    used = gpu.mem_used_bytes or 0.0
    if not users and used > FOREIGN_BYTES:
        return f"GPU {gpu.index}: {memory(used)} (the driver does not report by which process)"
    return ""


# Checks of memory, and advice on settings by the size of the machine.

CARD_SLACK_GB = 1.0
"""GPU memory is sold in GiB: a card of 16 GB has 15.99 GiB, or 15.2 after the driver's share."""
OVER_GB = 2.0
"""A profile for "over 16 GB" counts as 16 GB plus this, so that a card of 16 GB is too small for it."""
MIN_RAM_AVAILABLE_BYTES = 10 * GB
"""sd-scripts with SDXL needs about this much available RAM at its start."""


class Advice(NamedTuple):
    """Values for a machine on which ``when`` holds. ``must``: without them the machine may run out of memory."""

    why: str
    when: Callable[[Machine], bool]
    values: dict[str, Any]
    must: bool


ADVICE: tuple[Advice, ...] = (
    Advice("RAM below 24 GB", lambda m: 0 < (m.ram_total_bytes or 0) < 24 * GB, must=True, values={
        "lowram": True, "max_data_loader_n_workers": 1, "persistent_data_loader_workers": False,
        "cache_latents_to_disk": True,
    }),
    Advice("less than 8 GB of RAM available", lambda m: m.ram_available_bytes is not None
           and m.ram_available_bytes < 8 * GB, must=True, values={"lowram": True}),
    Advice("more than 500 MB of swap in use", lambda m: (m.swap_used_bytes or 0) > 0.5 * GB, must=True,
           values={"lowram": True}),
    Advice("RAM above 48 GB", lambda m: (m.ram_total_bytes or 0) > 48 * GB, must=False,
           values={"max_data_loader_n_workers": 4, "vae_batch_size": 4}),
    Advice("GPU memory above 20 GB", lambda m: (m.vram_bytes or 0) > 20 * GB, must=False,
           values={"gradient_checkpointing": True, "train_batch_size": 2, "gradient_accumulation_steps": 4}),
)  # fmt: skip


def check_memory(machine: Machine) -> Check | None:
    available, total = machine.ram_available_bytes, machine.ram_total_bytes
    if available is None:
        return None
    found = f"{memory(available)} available{'' if total is None else f' of {memory(total)}'}"
    needs = f"a training needs {memory(MIN_RAM_AVAILABLE_BYTES)}"
    if available < MIN_RAM_AVAILABLE_BYTES:
        return warned(found, f"close other programs ({needs}), or use --profile conservative")
    return passed(found)


def check_advice(plan: LaunchPlan, machine: Machine) -> Check | None:
    """Settings of kohya that suit this machine better than those of the launch."""
    if plan.spec.preset != "kohya":
        return None
    values: dict[bool, dict[str, Any]] = {True: {}, False: {}}  # by ``must``
    reasons: list[str] = []
    for advice in (each for each in ADVICE if each.when(machine)):
        differing = {
            key: value
            for key, value in advice.values.items()
            if (plan.truth(key) or False if isinstance(value, bool) else plan.number(key)) != value
        }
        values[advice.must].update(differing)
        reasons += [advice.why] if differing else []
    if values[True]:
        return warned(f"{', '.join(reasons)}: the launch may run out of memory", f"set {_listed(values[True])}")
    if values[False]:
        return passed(f"{', '.join(reasons)} would allow {_listed(values[False])}")
    known = [word for word, value in (("RAM", machine.ram_total_bytes), ("GPU memory", machine.vram_bytes)) if value]
    if not known:
        return passed("RAM and GPU memory are unknown here: no advice")
    return passed(f"by its {' and '.join(known)} the settings fit")


def check_need(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The GPU memory that the profile usually needs fits into the smallest GPU."""
    needs, profile = plan.expect.get("vram", ""), plan.spec.settings.profiles.use
    number = re.search(r"(\d+(?:\.\d+)?)", needs)  # the smaller one of a range
    if number is None or "GB" not in needs:
        return None
    least = float(number[1]) + (OVER_GB if needs.startswith("over") else 0.0)
    if machine.vram_bytes is None:
        return passed(f"profile {profile} usually takes {needs}; the GPU's memory is unknown here")
    found = f"profile {profile} usually takes {needs}, the smallest GPU has {memory(machine.vram_bytes)}"
    if machine.vram_bytes / GIB < least - CARD_SLACK_GB:
        return warned(found, "use a smaller profile (`trainwatch profiles`), or measure it: trainwatch trial")
    return passed(found)


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{k} = {str(v).lower() if isinstance(v, bool) else v}" for k, v in values.items())


# The trainer's own script: the options that the profile in use gives it, and what it imports.

SHOWN = 6
LIMIT_S = 5.0
"""Longest time for the question which packages there are; an interpreter needs a tenth of a second for it."""
SAME_PYTHON = frozenset({"accelerate", "torchrun", "deepspeed"})
"""Launchers that run the script with their own interpreter."""
IMPORTS = """import importlib.util, json, sys
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
    if not missing:
        return passed(f"the script declares all {len(profile.flags)} words of {profile.name}")
    return failed(
        f"the script declares no {', '.join(missing[:SHOWN])} (profile {profile.name})",
        "use another profile (`trainwatch profiles`), or write one with the options that it has",
    )


def check_imports(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The packages that the script imports are installed for the trainer's interpreter.

    Its source is read, never run. Packages that it imports only under a condition are not looked for.
    """
    source, python = source_of(plan.spec), interpreter(plan.spec)
    if python is None or not source.needs:
        return None
    names = [each.name for each in source.needs]
    asked = names if python != [sys.executable] else [each for each in names if each not in sys.stdlib_module_names]
    missing = _missing(plan.spec, [*python, "-c", IMPORTS], asked, [str(root) for root in source.target.roots])
    if missing is None:
        return None
    words = " ".join(python)
    if not missing:
        return passed(f"{plural(len(names), 'package')} found by {words}")
    places = [f"{each.name} ({each.place})" for each in source.needs if each.name in missing]
    found = f"not installed for {words}: {', '.join(places[:SHOWN])}"
    if source.finds_modules_itself:
        return warned(found, "nothing to do if the script finds or installs them itself")
    if not _is_certain_interpreter(plan.spec, python, source.target.file):
        return warned(found, f"nothing to do if {plan.spec.command[0]} runs the script with another Python")
    return failed(found, "install them there, or use the interpreter that has them")


def _is_certain_interpreter(spec: RunSpec, python: Sequence[str], script: Path) -> bool:
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


def _missing(spec: RunSpec, program: list[str], names: list[str], roots: list[str]) -> list[str] | None:
    """Names that this interpreter does not find; None if it could not be asked in time."""
    argv, env = [*program, json.dumps(names), json.dumps(roots)], {**spec.env, **assigned(spec.command)}
    key = (*argv, spec.cwd, *sorted(map("=".join, {**os.environ, **env}.items())))
    if not names or key in _all_found:
        return []
    try:
        found = json.loads(_asked(spec, argv, env, LIMIT_S).strip().splitlines()[-1])
    except (NoAnswerError, ValueError, IndexError):
        return None
    if not found:
        _all_found.add(key)
    return [str(name) for name in found]


_all_found = set[tuple[str, ...]]()
"""Sets of names that were all found, kept for this process: a start asks twice. If one is missing it is asked again."""

"""Checks of GPUs and of the trainer's own torch."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...act.stopping import members
from ...bound_process import bound
from ...model.run import RunSpec
from ...model.text import GIB, memory
from ...source.launch_target import installed_in
from ...source.trainer_source import source_of
from ...store.run_directory import RunDirectory
from ..gpu_survey import GpuSeen, process_name
from ..plan.launch_plan import LaunchPlan
from ..runs.ended_attempt import newest_attempt
from ..runs.known_runs import home
from .check import GB, Check, Machine, failed, passed, warned
from .exit_status_check import assigned as _assigned
from .exit_status_check import without_wrappers
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
    absent = sorted(set(wanted or ()) - {g.index for g in gpus.gpus})
    if absent:
        return failed(
            f"run.gpus names GPU {', '.join(map(str, absent))}, but there are {len(gpus.gpus)}",
            "see: nvidia-smi -L",
        )
    dead = [g for g in looked_at if g.mem_total_bytes is None]
    if dead:
        return failed(f"GPU {dead[0].index} does not answer", "look at dmesg for Xid lines; a reboot may be needed")
    busy = [text for g in looked_at if (text := _others(g, own_pids))]
    if busy:
        return warned(f"in use already: {'; '.join(busy)}", "end the processes that are not needed, or wait for them")
    return passed(f"{', '.join(f'{g.index}: {g.name}' for g in looked_at)}; free")


def check_gpus_of(plan: LaunchPlan, machine: Machine) -> Check:
    return check_gpus(machine, own_pids(plan.spec), plan.spec.gpus)


def check_vram(plan: LaunchPlan, machine: Machine) -> Check | None:
    """SDXL does not fit into less than 12 GB."""
    vram = machine.vram_bytes
    if vram is None or not is_sdxl(plan):
        return None
    found = f"{memory(vram)} of GPU memory"
    if vram < SDXL_MIN_BYTES:
        return failed(
            f"{found}: SDXL cannot be trained with less than 12 GB",
            "train an SD 1.5 model on this card instead",
        )
    return passed(f"{found}, enough for SDXL")


def check_torch(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The torch of the trainer's interpreter sees CUDA. Runs that interpreter."""
    spec = plan.spec
    python = interpreter(spec)
    if python is None or plan.preset.torch == "unused":
        return None
    env = {**os.environ, **spec.env}
    if spec.gpus is not None:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, spec.gpus))
    words = " ".join(python)
    try:
        done = subprocess.run(
            bound([*python, "-c", PROBE], tree=True, cwd=spec.cwd, path=env.get("PATH")),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S,
            check=False, cwd=spec.cwd, env=env,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return failed(
            f"{words}: asking torch for CUDA took over {PROBE_TIMEOUT_S:g} s", "is the driver stuck? see dmesg"
        )
    except OSError as error:
        return warned(f"{words} could not be run: {error}", "check the command")
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        needs = plan.preset.torch == "needed"
        make = failed if needs else warned
        remedy = (
            "install torch there, or use another interpreter"
            if needs
            else "nothing to do if the trainer does not need torch"
        )
        return make(f"{words}: {last}", remedy)
    return _torch(plan, words, json.loads(done.stdout.strip().splitlines()[-1]), machine)


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
    return [program] if Path(program).name.startswith("python") else _from_first_line(Path(program), path)


def own_pids(spec: RunSpec) -> frozenset[int]:
    target = newest_attempt(RunDirectory(home() / "runs" / spec.id))
    return frozenset() if target is None else frozenset(process.pid for process in members(target))


def _torch(plan: LaunchPlan, words: str, report: dict[str, Any], machine: Machine) -> Check:
    version = f"torch {report['torch']}"
    if report["available"]:
        return passed(f"{version} (CUDA {report['cuda']}) sees {', '.join(report['names'])}")
    if report["cuda"] is None:
        found = f"{version} in {words} is built without CUDA"
        remedy = "install a CUDA build of torch there (see pytorch.org), or train on the CPU"
    else:
        found = f"{version} (CUDA {report['cuda']}) in {words} sees no GPU"
        remedy = "training would run on the CPU: compare the driver's CUDA version (nvidia-smi)"
    needs = {each.name for each in source_of(plan.spec).needs}
    if needs and "torch" not in needs and plan.preset.torch != "needed":
        return warned(found, f"nothing to do if the trainer does not use torch; else {remedy}")
    return (failed if machine.gpus.gpus else warned)(found, remedy)


_CPU_KEYS = ("device", "accelerator", "devices", "device_type")
_CPU_FLAGS = ("cpu", "no_cuda", "use_cpu", "force_cpu")


def asks_for_cpu(plan: LaunchPlan) -> bool:
    """Whether command, config or environment ask for a training on the CPU."""
    visible = {**os.environ, **plan.spec.env, **_assigned(plan.spec.command)}.get("CUDA_VISIBLE_DEVICES")
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
    uses = _uses_torch(plan)
    unused = uses is False or plan.preset.torch == "unused"
    if not machine.gpus.gpus or unused or built.get("cuda") != "None" or built.get("hip", "None") != "None":
        return None
    found = f"the torch of {' '.join(interpreter(plan.spec) or ())} is built without CUDA"
    return (failed if uses else warned)(
        found, "install a CUDA build of torch there (see pytorch.org), or train on the CPU (--device cpu)"
    )


def _uses_torch(plan: LaunchPlan) -> bool | None:
    """Whether the trainer's source imports torch; None: it imports packages that may, or is not read."""
    source = source_of(plan.spec)
    names = {each.name for each in source.needs}
    if "torch" in names or not source.is_own:
        return True if names or plan.preset.torch == "needed" else None
    return None if names - sys.stdlib_module_names else False


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


def _from_first_line(script: Path, path: str | None) -> list[str] | None:
    """``accelerate``, ``torchrun`` and the like are scripts of the interpreter that they name."""
    try:
        with script.open("rb") as file:
            first = file.readline(512).decode("utf-8", "replace")
    except OSError:
        return None
    words = first.removeprefix("#!").split()
    if not first.startswith("#!") or not words:
        return None
    if Path(words[0]).name == "env" and len(words) > 1:
        words = [shutil.which(words[-1], path=path) or words[-1]]
    return [words[0]] if Path(words[0]).name.startswith("python") else None


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
    Advice(
        "RAM below 24 GB",
        lambda m: _below(m.ram_total_bytes, 24 * GB),
        {
            "lowram": True,
            "max_data_loader_n_workers": 1,
            "persistent_data_loader_workers": False,
            "cache_latents_to_disk": True,
        },
        must=True,
    ),
    Advice(
        "less than 8 GB of RAM available", lambda m: _below(m.ram_available_bytes, 8 * GB), {"lowram": True}, must=True
    ),
    Advice(
        "more than 500 MB of swap in use", lambda m: _above(m.swap_used_bytes, 0.5 * GB), {"lowram": True}, must=True
    ),
    Advice(
        "RAM above 48 GB",
        lambda m: _above(m.ram_total_bytes, 48 * GB),
        {"max_data_loader_n_workers": 4, "vae_batch_size": 4},
        must=False,
    ),
    Advice(
        "GPU memory above 20 GB",
        lambda m: _above(m.vram_bytes, 20 * GB),
        {"gradient_checkpointing": True, "train_batch_size": 2, "gradient_accumulation_steps": 4},
        must=False,
    ),
)


def check_memory(machine: Machine) -> Check | None:
    available = machine.ram_available_bytes
    if available is None:
        return None
    found = f"{memory(available)} available"
    if machine.ram_total_bytes is not None:
        found += f" of {memory(machine.ram_total_bytes)}"
    if available < MIN_RAM_AVAILABLE_BYTES:
        return warned(
            found,
            f"close other programs (a training needs {memory(MIN_RAM_AVAILABLE_BYTES)}), or use --profile conservative",
        )
    return passed(found)


def check_advice(plan: LaunchPlan, machine: Machine) -> Check | None:
    """Settings of kohya that suit this machine better than those of the launch."""
    if plan.spec.preset != "kohya":
        return None
    needed: dict[str, Any] = {}
    possible: dict[str, Any] = {}
    reasons: list[str] = []
    for advice in ADVICE:
        if not advice.when(machine):
            continue
        differing = {key: value for key, value in advice.values.items() if not _is_set(plan, key, value)}
        if differing:
            (needed if advice.must else possible).update(differing)
            reasons.append(advice.why)
    if needed:
        return warned(f"{', '.join(reasons)}: the launch may run out of memory", f"set {_listed(needed)}")
    if possible:
        return passed(f"{', '.join(reasons)} would allow {_listed(possible)}")
    known = [word for word, value in (("RAM", machine.ram_total_bytes), ("GPU memory", machine.vram_bytes)) if value]
    if not known:
        return passed("RAM and GPU memory are unknown here: no advice")
    return passed(f"by its {' and '.join(known)} the settings fit")


def check_need(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The GPU memory that the profile usually needs fits into the smallest GPU."""
    needs, profile = plan.expect.get("vram"), plan.spec.settings.profiles.use
    least = _least_gb(needs or "")
    if least is None:
        return None
    if machine.vram_bytes is None:
        return passed(f"profile {profile} usually takes {needs}; the GPU's memory is unknown here")
    found = f"profile {profile} usually takes {needs}, the smallest GPU has {memory(machine.vram_bytes)}"
    if machine.vram_bytes / GIB < least - CARD_SLACK_GB:
        return warned(found, "use a smaller profile (`trainwatch profiles`), or measure it: trainwatch trial")
    return passed(found)


def _least_gb(words: str) -> float | None:
    """The smallest size that "12–13 GB", "~14 GB" or "over 16 GB" means."""
    number = re.search(r"(\d+(?:\.\d+)?)", words)
    if number is None or "GB" not in words:
        return None
    return float(number[1]) + (OVER_GB if words.startswith("over") else 0.0)


def _is_set(plan: LaunchPlan, key: str, value: Any) -> bool:
    if isinstance(value, bool):
        return (plan.truth(key) or False) is value
    return plan.number(key) == float(value)


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{k} = {str(v).lower() if isinstance(v, bool) else v}" for k, v in values.items())


def _below(value: float | None, bound: float) -> bool:
    return value is not None and value < bound


def _above(value: float | None, bound: float) -> bool:
    return value is not None and value > bound

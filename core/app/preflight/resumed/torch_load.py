"""What the trainer's torch reads of a checkpoint: its keys and shapes, and whether it would load it at a resume."""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ....bound_process import bound
from ....checkpoints import inspect
from ....model.checkpoints.checkpoint import Checkpoint, LoadRefusal
from ....model.run import RunSpec
from ....model.shipped.preset import Preset
from ....source.launch_target import installed_in
from ...plan.launch_plan import LaunchPlan
from ...plan.resume_plan import weights_only_load
from ..check import Check, Machine, warned
from ..machine.gpu_checks import interpreter
from .checkpoint_checks import point_of

WEIGHTS_ONLY_SINCE = (2, 6)
"""From this version of torch on, ``torch.load`` takes weights only if nothing else is said."""
NOT_WEIGHTS_ONLY = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


def check_load(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The trainer's torch would take what the newest checkpoint holds."""
    point = point_of(plan)
    found = None if point is None else inspect(point, layout=plan.preset.layout)
    refusal = None if found is None else load_refusal(plan.spec, plan.preset, found)
    if found is None or refusal is None:
        return None
    cure = f"write weights_only=False there{'' if refusal.explicit else f', or set {NOT_WEIGHTS_ONLY}=1: {COST}'}"
    return warned("load", f"{found.name} {refusal.words}", cure)


COST = "then every file that the trainer loads can run code of whoever made it, downloaded ones too"


def load_refusal(spec: RunSpec, preset: Preset, checkpoint: Checkpoint) -> LoadRefusal | None:
    """Why the trainer's own ``torch.load`` would not take a checkpoint; None if that is not known."""
    if not checkpoint.objects:
        return None
    load = weights_only_load(spec, preset)
    if load is None or not (load.explicit or _is_default(spec)):
        return None
    return LoadRefusal(place=load.place, objects=checkpoint.objects, explicit=load.explicit)


def _is_default(spec: RunSpec) -> bool:
    """Whether the trainer's torch is known to take weights only, if nothing else is said."""
    env = {**os.environ, **spec.env}
    python = interpreter(spec)
    if python is None or len(python) != 1 or any(env.get(name) for name in (NOT_WEIGHTS_ONLY, "PYTHONPATH")):
        return False
    files = [folder / "torch" / "version.py" for folder in installed_in(python[0], env)]
    texts = [file.read_text("utf-8", "replace") for file in files if file.is_file()]
    found = re.search(r"__version__ = '(\d+)\.(\d+)", texts[0]) if len(texts) == 1 else None
    return found is not None and (int(found[1]), int(found[2])) >= WEIGHTS_ONLY_SINCE


TIMEOUT_S = 120.0
PROGRAM = """import json, sys
import torch
def walk(value, prefix, found, depth=0):
    if isinstance(value, torch.Tensor):
        found[prefix] = list(value.shape)
    elif isinstance(value, dict) and depth < 4:
        for key, inner in value.items():
            walk(inner, f"{prefix}.{key}" if prefix else str(key), found, depth + 1)
found = {}
walk(torch.load(sys.argv[1], map_location="cpu", weights_only=True, mmap=True), "", found)
print(json.dumps(found))
"""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}


def torch_shapes(
    python: Sequence[str], path: Path, *, cwd: str, env: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> dict[str, tuple[int, ...]] | None:
    """Shape by key, for files that only torch can open; None if that interpreter has none, or it refuses the file.

    A child process with a time limit, ``weights_only`` (no pickled object is built), without network.
    """
    try:
        done = subprocess.run(
            bound([*python, "-c", PROGRAM, str(path)], tree=True, cwd=cwd, path=env.get("PATH")),
            stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s,
            check=False, cwd=cwd, env={**os.environ, **env, **OFFLINE},
        )  # fmt: skip
        if done.returncode != 0:
            return None
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return {str(key): tuple(int(length) for length in shape) for key, shape in found.items()}

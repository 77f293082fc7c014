"""Keys and shapes of a checkpoint, read by torch in the trainer's interpreter, for files that only torch can open.

A child process with a time limit, ``weights_only`` (no pickled object is built), without network.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ....bound_process import bound

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
    """Shape by key; None if that interpreter has no torch, or torch refuses the file."""
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

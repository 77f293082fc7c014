"""What the driver says of all GPUs and their processes now, as the JSON of a ``GpuSurvey`` on standard output.

Run as ``python -P -m trainwatch.core.app.driver_answer`` by ``gpu_survey``, which waits for it: it loads little.
"""

import json
import os
from typing import Any

import pynvml


def answer() -> dict[str, Any]:
    """The fields of a ``GpuSurvey``; what the driver does not tell is None."""
    try:
        pynvml.nvmlInit()
        count = int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError as error:
        return {"trouble": str(error)}
    cuda = _try(pynvml.nvmlSystemGetCudaDriverVersion)
    return {
        "gpus": [_gpu(index) for index in range(count)],
        "driver": _try(pynvml.nvmlSystemGetDriverVersion),
        "cuda": None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
    }


def _gpu(index: int) -> dict[str, Any]:
    handle = _try(pynvml.nvmlDeviceGetHandleByIndex, index)
    if handle is None:
        return {"index": index}
    memory = _try(pynvml.nvmlDeviceGetMemoryInfo, handle)
    users = _try(pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
    return {
        "index": index,
        "name": _try(pynvml.nvmlDeviceGetName, handle),
        "mem_used_bytes": None if memory is None else float(memory.used),
        "mem_total_bytes": None if memory is None else float(memory.total),
        "users": None if users is None else [{"pid": u.pid, "mem_bytes": _bytes(u.usedGpuMemory)} for u in users],
    }


def _bytes(value: Any) -> float | None:
    return None if value is None else float(value)


def _try(call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except Exception:  # unknown stays unknown
        return None


if __name__ == "__main__":
    os.write(1, json.dumps(answer()).encode())
    os._exit(0)  # no clean-up: it may hang in the driver

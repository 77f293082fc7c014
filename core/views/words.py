"""Names of states, phases and failures as people say them."""

CLASS_TITLES: dict[str, str] = {
    "cuda_oom": "CUDA out of memory",
    "host_oom": "out of RAM: the kernel ended it",
    "cuda_unknown_error": "CUDA unknown error",
    "cuda_illegal_access": "CUDA illegal memory access",
    "cuda_device_assert": "CUDA device-side assert",
    "cuda_launch_failure": "CUDA launch failure",
    "gpu_lost": "GPU lost",
    "driver_mismatch": "GPU driver mismatch",
    "nccl_timeout": "NCCL timeout",
    "cudnn_cublas_error": "cuDNN or cuBLAS error",
    "triton_compile": "Triton compile error",
    "nan_loss": "loss is NaN",
    "dataloader_crash": "data loader died",
    "disk_full": "disk full",
    "io_error": "I/O error",
    "network_error": "network error",
    "checkpoint_corrupt": "checkpoint corrupt",
    "checkpoint_mismatch": "checkpoint does not fit the model",
    "config_error": "config error",
    "import_error": "import error",
    "dtype_error": "dtype error",
    "code_bug": "bug in the training code",
    "port_in_use": "port in use",
    "segfault": "segmentation fault",
    "killed_by_user": "killed by a person",
    "unknown": "cause unknown",
    "idle": "no step, nothing working",
    "spin": "no step, spinning",
    "starved": "no step, waiting for data",
    "exiting": "done but not exiting",
    "asks": "waits for an answer",
    "missing": "no checkpoint",
    "ram_tight": "RAM is tight",
    "slow_steps": "slow steps",
}

PHASE_WORDS: dict[str, str] = {
    "load": "Loading",
    "preprocess": "Preparing data",
    "compile": "Compiling",
    "train": "Training",
    "eval": "Evaluating",
    "sample": "Drawing samples",
    "save": "Saving",
    "finish": "Finishing",
    "unknown": "Running",
}

STATE_WORDS: dict[str, str] = {
    "idle": "not started",
    "starting": "starting",
    "running": "running",
    "hung": "looks stuck",
    "stopping": "stopping",
    "cleaning": "cleaning up",
    "backing_off": "to restart soon",
    "paused": "paused",
    "stopped": "stopped",
    "interrupted": "interrupted",
    "finished": "finished",
    "given_up": "given up",
}


def title_of(kind: str, class_: str) -> str:
    """``cuda_oom`` → CUDA out of memory; a class without a title is spelled with spaces."""
    del kind
    return CLASS_TITLES.get(class_, class_.replace("_", " "))


def shown(value: object) -> str:
    """A setting's value for people; a path by its name."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return "…/" + text.rstrip("/").rpartition("/")[2] if text.startswith("/") and text.count("/") > 2 else text

"""Failure classes: stable names of mechanisms that end a run, and what was concluded about one run."""

from typing import Literal, get_args

import msgspec

FailureClass = Literal[
    "cuda_oom",
    "host_oom",
    "cuda_unknown_error",
    "cuda_illegal_access",
    "cuda_device_assert",
    "cuda_launch_failure",
    "gpu_lost",
    "driver_mismatch",
    "nccl_timeout",
    "cudnn_cublas_error",
    "triton_compile",
    "nan_loss",
    "dataloader_crash",
    "disk_full",
    "io_error",
    "network_error",
    "checkpoint_corrupt",
    "checkpoint_mismatch",
    "config_error",
    "import_error",
    "dtype_error",
    "code_bug",
    "port_in_use",
    "segfault",
    "killed_by_user",
    "hang",
    "success",
    "unknown",
]
FAILURE_CLASSES: tuple[str, ...] = get_args(FailureClass)


class EvidenceLine(msgspec.Struct, frozen=True):
    """A line of the trainer's log, counted from 1 in the whole log of the attempt."""

    line: int
    text: str


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What ended a run. Field names are the contract of ``trainwatch diagnose --json``.

    ``unknown`` is an honest answer; a wrong confident one is a defect. ``confidence`` 0..1.
    """

    failure: FailureClass
    retryable: bool
    confidence: float
    cause: EvidenceLine | None = None
    cascade: tuple[EvidenceLine, ...] = ()
    explanation: str = ""
    remedies: tuple[str, ...] = ()


class FailureRule(msgspec.Struct, frozen=True, kw_only=True):
    """What a failure class means for people and for the restart policy (one entry of ``failures.toml``)."""

    failure: FailureClass
    retryable: bool
    explanation: str
    remedies: tuple[str, ...] = ()


SignatureRole = Literal["root", "cascade", "confirmation", "noise"]


class FailureSignature(msgspec.Struct, frozen=True, kw_only=True):
    """One line shape that speaks of a failure (one entry of ``failures.toml``).

    ``pattern`` is a regular expression searched in one line. ``literal`` is a fixed string that every match contains,
    for the fast scan. ``weight`` 0..1: how much one match alone proves.
    """

    failure: FailureClass
    pattern: str
    role: SignatureRole
    weight: float
    literal: str
    scope: str = "any"
    source: str = ""


class FailureCatalogue(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of ``configs/failures.toml``."""

    rules: tuple[FailureRule, ...] = ()
    signatures: tuple[FailureSignature, ...] = ()

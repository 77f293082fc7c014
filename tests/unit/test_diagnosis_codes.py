"""Status codes in the spellings of programs, and kernel messages in a trainer's log."""

import pytest

from tests.shipped import CATALOGUE
from trainwatch.core.judge.recovery.ending import diagnosis_of

ILLEGAL = [
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "CUDA error 700 at engine.cu:81",
    "CUDA error(700), illegal address.",
    "cuda runtime error (700) : at x.cu:3",
    "cuda runtime error (77) : at x.cu:3",
    "Check failed: e == cudaSuccess (700 vs. 0)",
    "CudaAPIError: [700] Call to cuCtxSynchronize results in a fault",
    "cuMemcpyDtoHAsync failed: 700",
    "launch: CUDA_ERROR_ILLEGAL_ADDRESS",
    "cudaErrorIllegalAddress in kernel",
    "hipErrorIllegalAddress in kernel",
    "HIP error: an illegal memory access was encountered",
    "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: the agent failed",
    "Memory access fault by GPU node-4 (Agent handle: 0x1) on address 0x2. Reason: Unknown.",
    "NVRM: Xid (PCI:0000:41:00): 31, pid=7, name=python, Ch 00000008",
]


@pytest.mark.parametrize("line", ILLEGAL)
def test_one_code_is_read_in_every_spelling(line: str) -> None:
    assert diagnosis_of([f"{line}\n"], CATALOGUE, 134).failure == "cuda_illegal_access"


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        ("CUDA error: unknown error (999)", "cuda_unknown_error"),
        ("CUDA driver error: unknown error", "cuda_unknown_error"),
        ("Cuda failure 803 'whatever it says'", "driver_mismatch"),
        ("CUBLAS failure 14 in gemm", "cudnn_cublas_error"),
        ("cudnn error 8 in conv", "cudnn_cublas_error"),
        ("Error out of memory at line 380 in file /src/csrc/x.c", "cuda_oom"),
        ("write failed: ENOSPC", "disk_full"),
        ("write error, errno=122", "disk_full"),
        ("Custom { kind: Other } (os error 5)", "io_error"),
        ("bind: EADDRINUSE", "port_in_use"),
        ("XID error 79 on GPU 3", "gpu_lost"),
        ("NVRM: Xid (PCI:0000:41:00): 54, pid=7, cable missing", "gpu_lost"),
        ("NVRM: Xid (PCI:0000:41:00): 171, pid=7", "gpu_lost"),
        ("NVRM: Xid (PCI:0000:41:00): 137, pid=7, fault", "cuda_illegal_access"),
        ("CUDA error: unspecified error code 226", "gpu_lost"),
        ("CUDA failure 720 in stage 2", "cuda_launch_failure"),
        ("hip error code: 1053", "cuda_unknown_error"),
        ("CUDA error 8123", "cuda_unknown_error"),
        ("nvmlDeviceGetCount returned 8", "gpu_lost"),
        ("aclrtSynchronizeStream failed, error code is 507015", "cuda_launch_failure"),
        ("NPU function error: call rtMalloc, error code:207018", "cuda_oom"),
        ("ACL stream error, ret=507010", "gpu_lost"),
        ("OSError: [Errno 36] File name too long: 'x'", "config_error"),
        ("OSError: [Errno 27] File too large", "disk_full"),
        ("OSError: [Errno 110] Connection timed out", "network_error"),
        ("NVRM: Xid (PCI:0000:9b:00): 119, pid=7, Timeout after 6s of waiting for RPC response", "gpu_lost"),
        ("[99.123456] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", "gpu_lost"),
        ("[99.123456] INFO: task python:7 blocked for more than 122 seconds.", "hang"),
        ("thread '<unnamed>' panicked at src/x.rs:3:4:\nexplicit panic", "code_bug"),
    ],
)
def test_code_of_any_system_names_its_class(line: str, failure: str) -> None:
    assert diagnosis_of([f"{line}\n"], CATALOGUE, 1).failure == failure


@pytest.mark.parametrize(
    "line",
    [
        "cuda error rate 7.00 %",
        "CUDA error: 0",
        "CUDA error code 0 in probe",
        "saved 700 files of CUDA errors",
        "errno is 0",
        "the cuBLAS status 0",
        "ENOSPCX",
        "NCCL error 1.5 %",
    ],
)
def test_other_numbers_are_no_codes(line: str) -> None:
    assert list(CATALOGUE.codes.find(line)) == []

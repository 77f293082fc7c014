"""Kinds of words that stand together in a message, in any order."""

import re

import pytest

from tests.shipped import CATALOGUE
from trainwatch.core.judge.failure.catalogue import pattern_of_meaning
from trainwatch.core.judge.failure.tracebacks import proof_of_message
from trainwatch.core.judge.recovery.ending import diagnosis_of
from trainwatch.core.judge.recovery.policy import PERSON_SURE

CONCEPTS = {"device": ("gpus?", "npu"), "memory": ("memory",), "lack": ("not enough", "exhausted")}


@pytest.mark.parametrize(
    ("meaning", "text", "found"),
    [
        ("device memory lack", "not enough memory on npu 3", True),
        ("device memory lack", "the gpus have exhausted their memory", True),
        ("device memory lack", "not enough memory", False),
        ("device memory lack", "memory: exhausted, dgpux", False),
        ("memory~lack", "memory is exhausted", True),
        ("memory~lack", f"memory{' of the' * 9} job is exhausted", False),
        ("memory lack !device", "memory is exhausted", True),
        ("memory lack !device", "memory of the gpu is exhausted", False),
    ],
)
def test_meaning_is_found_in_any_order(meaning: str, text: str, found: bool) -> None:
    assert (re.search(pattern_of_meaning(meaning, CONCEPTS), text) is not None) == found


def test_meaning_of_a_kind_that_is_not_listed_is_named() -> None:
    with pytest.raises(ValueError, match=r"'device odd': no \[concepts\] entry 'odd'"):
        pattern_of_meaning("device odd", CONCEPTS)


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        ("Device(id:3) memory isn't enough and alloc failed", "cuda_oom"),
        ("the accelerator could not be given 3 GB: its memory is full", "cuda_oom"),
        ("the workers of the input pipeline died", "dataloader_crash"),
        ("rank 3 has not joined the barrier", "nccl_timeout"),
        ("storage of the pod exceeds its limit", "disk_full"),
        ("failed to compile the fused kernel", "triton_compile"),
        ("card 4 needs a reset", "gpu_lost"),
        ("the sha256 of shard 2 differs", "checkpoint_corrupt"),
        ("the snapshot was written with 4 hosts, different from this run", "checkpoint_mismatch"),
        ("clip 7 could not be decoded", "io_error"),
        ("the vm got a preemption notice", "killed_by_user"),
    ],
)
def test_message_that_no_signature_knows_is_understood_by_its_kinds_of_words(message: str, failure: str) -> None:
    proof = proof_of_message("RuntimeError", message, CATALOGUE)
    assert proof is not None
    assert proof.failure == failure


def test_other_makers_parts_are_read_as_those_of_the_same_role() -> None:
    assert CATALOGUE.in_known_words("HIP error in RCCL, not in WHIP") == "CUDA error in NCCL, not in WHIP"


@pytest.mark.parametrize(
    ("log", "code"),
    [
        ("step 4\nthe node was cordoned for maintenance, job stopped by operator\n", 1),
        ("step 4\nrequeue after maintenance event\n", 1),
        ("step 4\n训练被用户中断\n", 1),
        ("RuntimeError: DataLoader worker (pid 8) is killed by signal: Terminated.\n", 1),
        ("step 4\n", 124),
        ("step 4\n", 138),
    ],
)
def test_words_and_rare_statuses_alone_do_not_make_a_run_wait_for_a_person(log: str, code: int) -> None:
    found = diagnosis_of([log], CATALOGUE, code)
    assert found.failure == "killed_by_user"
    assert found.confidence < PERSON_SURE

"""One judge of an end: what ``trainwatch diagnose`` and the supervisor say of the same log and exit status."""

import pytest

from tests.builders import World
from tests.shipped import CATALOGUE
from trainwatch.core.judge.failure.catalogue import Circumstances
from trainwatch.core.judge.knowledge import Knowledge
from trainwatch.core.judge.recovery.ending import diagnosis_of
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.observation import Exit, HostSample, KernelLine, LogChunk

STEPS = "".join(f"step {n}/1000 loss {2 - n / 1000:.3f}\n" for n in range(10, 310, 10))
WHOLE = "".join(f"step {n}/1000 loss {2 - n / 1000:.3f}\n" for n in range(100, 1001, 100))
NAN_GRADS = "".join(
    f" iteration {n}/ 1000 | lr: 1.0E-04 | grad norm: nan | number of skipped iterations: 0 |\n"
    for n in range(965, 1001)
)
SIGKILLED = """\
Traceback (most recent call last):
  File "/env/bin/accelerate", line 8, in <module>
    sys.exit(main())
  File "/env/lib/python3.10/site-packages/accelerate/commands/launch.py", line 763, in simple_launcher
    raise subprocess.CalledProcessError(returncode=process.returncode, cmd=cmd)
subprocess.CalledProcessError: Command '['python', 'train.py', {}]' died with <Signals.SIGKILL: 9>.
"""


def raised(words: str, code: str = "main()", rank: int | None = None) -> str:
    text = f'Traceback (most recent call last):\n  File "/job/train.py", line 88, in run\n    {code}\n{words}\n'
    return text if rank is None else "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


OOM = raised("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "loss.backward()")
ILLEGAL = "RuntimeError: CUDA error: an illegal memory access was encountered"
IMAGE = "PIL.UnidentifiedImageError: cannot identify image file 'a.jpg'"
XID = "NVRM: Xid (PCI:0000:01:00): 79, pid=4711, GPU has fallen off the bus."
TIME_LIMIT = "slurmstepd: error: *** JOB 123 ON n1 CANCELLED AT 2025-01-01T10:00:00 DUE TO TIME LIMIT ***\n"
MISSING = raised("ModuleNotFoundError: No module named 'torhc'")
QUOTED = f"first example:\n{MISSING}the fix is to install it\n4000 examples\n"
ASIDE = "During handling of the above exception, another exception occurred:"
REFUSED = "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, if you trust its source."

ENDS = {
    "a launcher's traceback around SIGKILL": (STEPS + SIGKILLED.format("'--lr=1'"), 1, "host_oom"),
    "a prompt in a quoted command": (STEPS + SIGKILLED.format("'--prompt=CUDA error: out of memory'"), 1, "host_oom"),
    "a launcher's traceback around SIGTERM": (
        STEPS + SIGKILLED.format("").replace("SIGKILL: 9", "SIGTERM: 15"),
        1,
        "killed_by_user",
    ),
    "one rank was killed, another one shouts": (
        f"[rank0]: {ILLEGAL}\nE0401 10:00 9 torch/x.py:8] failed (exitcode: -9) local_rank: 2 (pid: 36) of binary: py\n",
        1,
        "host_oom",
    ),
    "one rank raised first, the others shout": (
        STEPS + raised(IMAGE, rank=2) + raised(ILLEGAL, rank=0) + raised(ILLEGAL, rank=1),
        1,
        "io_error",
    ),
    "words of the scheduler before a traceback": (
        STEPS + TIME_LIMIT + raised("RuntimeError: CUDA error: unspecified launch failure"),
        143,
        "killed_by_user",
    ),
    "a traceback before SIGKILL": (OOM, 137, "cuda_oom"),
    "an ordinary last line": (STEPS + "Iteration 31\n", 1, "unknown"),
    "a rename at a save": (
        STEPS + raised("FileNotFoundError: [Errno 2] No such file or directory: 'out/tmp-5' -> 'out/5'", rank=1),
        1,
        "io_error",
    ),
    "a folder that another rank made": (STEPS + raised("FileExistsError: [Errno 17] File exists: 'o'"), 1, "io_error"),
    "a folder that another rank made, and a status that a pipe hides": (
        STEPS + raised("FileExistsError: [Errno 17] File exists: 'o'"),
        0,
        "io_error",
    ),
    "a folder that was there at the start": (raised("FileExistsError: [Errno 17] File exists: 'o'"), 1, "config_error"),
    "nothing to resume": (
        raised("AssertionError: last.pt training to 100 epochs is finished, nothing to resume."),
        1,
        "success",
    ),
    "whole objects in a checkpoint": (raised(REFUSED), 1, "checkpoint_mismatch"),
    "no gradient is finite": (NAN_GRADS, 0, "nan_loss"),
    "a NaN as the last word, without steps": ("avg. train_loss 25.2\navg. test_loss nan\n", 0, "unknown"),
    "a NaN before a number, without steps": ("avg. train_loss nan\navg. test_loss 25.2\n", 0, "success"),
    "no data": ("ERROR No data found. Please verify arguments\n", 0, "config_error"),
    "a traceback before a pipe": (STEPS + raised("KeyError: 'pixels'"), 0, "code_bug"),
    "success before the last step": (STEPS, 0, "unknown"),
    "success at the last step": (WHOLE, 0, "success"),
    "a sample that quotes a traceback": (WHOLE.replace("step 1000", f"sample 3:\n{OOM}step 1000"), 0, "success"),
    "the same sample after each step": (WHOLE.replace("\n", f"\n{OOM}"), 0, "success"),
    "a traceback at the last step": (WHOLE + OOM, 0, "cuda_oom"),
    "a sample that quotes a traceback, and another failure": (QUOTED + raised("KeyError: 'mask'"), 1, "code_bug"),
    "an older run above a text of usage": (
        f"{STEPS}{raised(ILLEGAL)}usage: train.py [-h]\n"
        + "    [--lr LR]\n" * 9
        + "train.py: error: unrecognized arguments: -x\n",
        2,
        "config_error",
    ),
    "a lost network above what it made fail": (
        raised("socket.gaierror: [Errno -3] Temporary failure in name resolution")
        + "looking for a copy\nno copy\n"
        + raised("OSError: Can't load tokenizer for 'x'."),
        1,
        "network_error",
    ),
    "a missing package that was done without": (f"{MISSING}\n{ASIDE}\n\n{OOM}", 1, "cuda_oom"),
    "an assertion of a kernel and what it broke in the next batch": (
        raised("RuntimeError: CUDA error: device-side assert triggered")
        + "step 1 loss 2.0\nstep 2 loss 2.0\n"
        + raised("RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(handle)`"),
        1,
        "cuda_device_assert",
    ),
    "a trial of which Optuna warned": (
        "[W 2026-11-28 10:10:10,000] Trial 3 failed because of: OutOfMemoryError('CUDA out of memory.').\n"
        + raised("KeyError: 'mask'"),
        1,
        "code_bug",
    ),
    "a loss beyond its limit": (STEPS + "loss=1e12 exceeds limit, stop\n", 1, "nan_loss"),
    "words of an end to come": (STEPS + "Upload starts once training is done\n", 0, "unknown"),
    "ranks that leave one after the other": (
        f"{WHOLE}training done\n[rank3]:[W903 22:18:02.4 TCPStore.cpp:125] [c10d] recvValue failed: got 0 bytes\n",
        0,
        "success",
    ),
    "an early stop": (STEPS + "Early stopping: val_loss did not improve\n", 0, "success"),
}


def supervised(log: str, code: int) -> World:
    world = World(Judge(Knowledge(catalogue=CATALOGUE))).begin()
    for line in log.splitlines(keepends=True):
        world.see(LogChunk(t=world.t + 1.0, text=line))
    return world.see(Exit(t=world.t + 1.0, code=code))


@pytest.mark.parametrize(("log", "code", "failure"), ENDS.values(), ids=ENDS)
def test_end_is_judged_alike_from_a_log_and_by_the_supervisor(log: str, code: int, failure: str) -> None:
    found = diagnosis_of([log], CATALOGUE, code)
    assert found.failure == failure
    crashes = [each.class_ for each in supervised(log, code).incidents if each.kind == "crash"]
    assert crashes == ([] if failure == "success" else [failure])


@pytest.mark.parametrize(
    "line",
    [
        "Epoch[5] Iteration[30/40] Loss: 0.58",
        "INFO:root:Iteration 1200 saved",
        "saved graph.png",
        "reading paragraph 14",
        "Capturing CUDA graph shapes 12/35",
        "Interrupt handler installed",
        "building index fatalities_by_year.csv",
    ],
)
@pytest.mark.parametrize("code", [137, -9])
def test_sigkill_after_an_ordinary_line_is_no_bug_of_the_code(line: str, code: int) -> None:
    found = diagnosis_of([f"{STEPS}{line}\n"], CATALOGUE, code)
    assert (found.failure, found.retryable, found.cause) == ("unknown", True, None)


def test_kernel_and_its_counter_come_first() -> None:
    assert diagnosis_of([OOM], CATALOGUE, 1, kernel=XID).failure == "gpu_lost"
    killed = diagnosis_of([STEPS + SIGKILLED.format("")], CATALOGUE, 1, Circumstances(oom_kills=1))
    assert (killed.failure, killed.confidence) == ("host_oom", 0.94)
    assert diagnosis_of([STEPS + SIGKILLED.format("")], CATALOGUE, 1, Circumstances(oom_kills=0)).failure == "unknown"
    world = World(Judge(Knowledge(catalogue=CATALOGUE))).begin().see(HostSample(t=0.1, oom_kills=3))
    world.see(HostSample(t=1.0, oom_kills=4)).see(KernelLine(t=2.0, text="usb 1-1: new device"))
    assert world.see(Exit(t=3.0, code=None, signal=9)).incidents[0].class_ == "host_oom"

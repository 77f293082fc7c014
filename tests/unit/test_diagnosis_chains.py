"""Chained exceptions come down to the one that is the cause; several ranks are told apart."""

import pytest

from tests.shipped import CATALOGUE
from trainwatch.core.judge.failure.diagnosis import diagnosis_of

HANDLING = "\nDuring handling of the above exception, another exception occurred:\n\n"
DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"
LIBRARY = "/venv/lib/python3.10/site-packages/tool/core.py"


def trace(raised: str, *frames: tuple[str, str, str]) -> str:
    told = "".join(f'  File "{file}", line 7, in {function}\n    {source}\n' for file, function, source in frames)
    return f"Traceback (most recent call last):\n{told}{raised}\n"


MINE = ("train.py", "step", "y = f(x)")
MAIN = ("train.py", "<module>", "main()")


@pytest.mark.parametrize(
    ("log", "failure"),
    [
        # a report fails while the error is handled
        (trace("KeyError: 'm'", MINE) + HANDLING + trace("wandb.errors.CommError: network error", MAIN), "code_bug"),
        # a handler raises at once, in its own words
        (
            trace("KeyError: 'nett'", ("train.py", "build", "return NETS[name]"))
            + HANDLING
            + trace(
                "ValueError: unknown model nett, choose from: net, mesh",
                MAIN,
                ("train.py", "build", "raise ValueError(name)"),
            ),
            "config_error",
        ),
        # a library looks into its cache, misses, and fails at its work
        (
            trace("KeyError: 118", (LIBRARY, "run", "return cache[key]"))
            + HANDLING
            + trace("triton.compiler.errors.CompilationError: at 3:1", MAIN, (LIBRARY, "run", "compile()")),
            "triton_compile",
        ),
        # the wrapper says less than what it wraps
        (
            trace("OSError: [Errno 5] Input/output error", MINE)
            + DIRECT
            + trace("RuntimeError: sample 3 failed", MAIN),
            "io_error",
        ),
        # a wrapper without any meaning of its own
        (
            trace("NameError: name 'n' is not defined", MINE)
            + DIRECT
            + trace("subprocess.CalledProcessError: Command 'x'", MAIN),
            "code_bug",
        ),
        # what is wrapped says nothing
        (
            trace("SystemExit: 1", MINE) + HANDLING + trace("torch.OutOfMemoryError: CUDA out of memory.", MAIN),
            "cuda_oom",
        ),
        # three exceptions
        (
            trace("torch.OutOfMemoryError: CUDA out of memory.", MINE)
            + HANDLING
            + trace("AttributeError: 'NoneType' object has no attribute 'log'", MAIN)
            + HANDLING
            + trace("ConnectionError: refused", MAIN),
            "cuda_oom",
        ),
        # the beginning of the first one is not in the log
        ("KeyError: 'm'\n" + HANDLING + trace("ConnectionError: refused", MAIN), "code_bug"),
    ],
)
def test_root_of_a_chain_is_the_cause(log: str, failure: str) -> None:
    assert diagnosis_of([log], CATALOGUE, 1).failure == failure


def test_what_follows_in_a_chain_is_a_consequence() -> None:
    log = trace("KeyError: 'm'", MINE) + HANDLING + trace("ConnectionError: refused", MAIN)
    found = diagnosis_of([log], CATALOGUE, 1)
    assert found.cause is not None
    assert found.cause.text == "KeyError: 'm'"
    assert [each.text for each in found.cascade] == ["ConnectionError: refused"]


def test_chains_of_two_ranks_may_be_interleaved() -> None:
    log = (
        trace("torch.OutOfMemoryError: CUDA out of memory.", MINE) + HANDLING + trace("ConnectionError: refused", MAIN)
    )
    lines = log.split("\n")
    both = "".join(f"[rank0]: {line}\n[rank1]: {line}\n" for line in lines)
    assert diagnosis_of([both], CATALOGUE, 1).failure == "cuda_oom"


def test_exception_of_a_worker_that_is_passed_on_is_the_cause() -> None:
    log = trace("RuntimeError: Caught IndexError in DataLoader worker process 0.", MAIN)
    log += "Original " + trace("IndexError: list index out of range", MINE)
    found = diagnosis_of([log], CATALOGUE, 1)
    assert found.cause is not None
    assert (found.failure, found.cause.text) == ("code_bug", "IndexError: list index out of range")


def test_step_between_a_warning_and_the_end_clears_the_warning() -> None:
    log = "could not connect: [Errno 101] Network is unreachable\nstep 1/9 loss 1\nstep 2/9 loss 1\n"
    assert diagnosis_of([log + trace("NameError: name 'n' is not defined", MAIN)], CATALOGUE, 1).failure == "code_bug"


def test_traceback_at_the_end_is_the_failure_although_the_status_is_0() -> None:
    found = diagnosis_of(["step 1/9 loss 1\n" + trace("KeyError: 'm'", MAIN)], CATALOGUE, 0)
    assert found.failure == "code_bug"
    assert found.confidence <= 0.6
    after = trace("KeyError: 'm'", MAIN) + "".join(f"line {n}\n" for n in range(40))
    assert diagnosis_of([after], CATALOGUE, 0).failure == "success"

"""Chained exceptions come down to the one that is the cause; several ranks are told apart."""

import pytest

from tests.shipped import CATALOGUE
from trainwatch.core.config.shipped import load_failures
from trainwatch.core.judge.failure.catalogue import CompiledCatalogue
from trainwatch.core.judge.recovery.ending import diagnosis_of

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
    assert found.confidence <= 0.65


def test_chain_whose_first_exception_was_not_printed_is_the_second_one() -> None:
    cut = 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n'
    log = cut + HANDLING + trace("NameError: name 'n' is not defined", MAIN)
    assert diagnosis_of([log], CATALOGUE, 1).failure == "code_bug"


@pytest.mark.parametrize("raised", ["zap.Zapped: 3", "what is this", "ERROR: LoadError: MethodError: no method of f"])
def test_type_that_nobody_knows_is_weak_evidence(raised: str) -> None:
    found = diagnosis_of([trace(raised, MAIN)], CATALOGUE, 1)
    assert found.failure in {"code_bug", "unknown"}
    assert found.confidence <= 0.8


def test_message_of_an_exception_of_c_is_read_by_its_words() -> None:
    log = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  {}\nAborted (core dumped)\n"
    assert diagnosis_of([log.format("the shelf fell")], CATALOGUE, 134).failure == "code_bug"
    assert diagnosis_of([log.format("device memory: allocation failed")], CATALOGUE, 134).failure == "cuda_oom"


def test_report_before_a_line_that_says_the_program_goes_on_was_handled() -> None:
    lost = "ERROR: could not connect to hub: [Errno 101] Network is unreachable\n"
    assert diagnosis_of([lost], CATALOGUE, 1).failure == "network_error"
    assert diagnosis_of([f"{lost}Trying to resume the download\n"], CATALOGUE, 1).failure == "unknown"
    assert diagnosis_of([f"Trying to resume the download\n{lost}"], CATALOGUE, 1).failure == "network_error"


def test_message_counts_more_than_the_type_of_another_exception() -> None:
    log = "MemoryError:\nResourceExhaustedError: Out of memory error on GPU 2. Cannot allocate 1.9GB memory on GPU 2\n"
    assert diagnosis_of([log], CATALOGUE, 1).failure == "cuda_oom"


def test_nan_that_recurs_on_each_step_line_is_not_survived() -> None:
    lines = "".join(f"{{'loss': 0.0, 'grad_norm': nan, 'epoch': 0.{n}}}\n" for n in range(9))
    assert diagnosis_of([lines], CATALOGUE, 0).failure == "nan_loss"


def test_kernel_message_in_a_prompt_is_no_event() -> None:
    log = '[eval] prompt: "Out of memory: Killed process 3122 (python)"\n'
    assert diagnosis_of([log], CATALOGUE, 1).failure == "unknown"
    assert diagnosis_of(["NVRM: Xid (PCI:0000:41:00): 63, row remapped\n"], CATALOGUE, 1).failure == "unknown"


@pytest.mark.parametrize(
    "log",
    [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=3.batch.\nRuntimeError: DataLoader worker (pid 91) is killed by signal: Killed.\n",
        "RuntimeError: DataLoader worker (pid 91) is killed by signal: Killed.\nslurmstepd: error: Detected 1 oom_kill event in StepId=3.batch.\n",
    ],
)
def test_kill_by_the_kernel_explains_a_dead_loader(log: str) -> None:
    assert diagnosis_of([log], CATALOGUE, 1).failure == "host_oom"


def test_the_last_words_count_if_nothing_else_does() -> None:
    assert (
        diagnosis_of(["step 1\nthe training loop did not make progress for 30 minutes\n"], CATALOGUE, 1).failure
        == "hang"
    )
    assert (
        diagnosis_of(["step 1\nif the loop makes no progress for 30 minutes, look at it\n"], CATALOGUE, 1).failure
        == "unknown"
    )


def test_tables_of_line_shapes_are_bounded() -> None:
    few = CompiledCatalogue(load_failures(), CATALOGUE.shapes)
    for n in range(2100):
        word = "".join(chr(97 + int(digit)) for digit in f"{n:04d}")
        assert few.matches(f"some {word}") == []
        assert list(few.codes.find(f"some {word}")) == []


def test_exit_status_that_agrees_with_the_log_makes_it_surer() -> None:
    log = "bash: accelerate: command not found\n"
    assert diagnosis_of([log], CATALOGUE, 127).confidence > diagnosis_of([log], CATALOGUE, 1).confidence

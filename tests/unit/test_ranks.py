"""Ranks of a distributed training: which one is silent, and which one ended first by itself."""

from pathlib import Path

import pytest

from tests.builders import World
from tests.shipped import CATALOGUE
from trainwatch.core.app.runs.run_usage import ranks_now
from trainwatch.core.judge.hang.ranks import Ranks, silent, with_processes, with_text
from trainwatch.core.judge.recovery.ending import diagnosis_of
from trainwatch.core.model.observation import LogChunk, ProcessSample, Rank


def processes(*states: str) -> tuple[Rank, ...]:
    """One process for each letter; "-" is a rank without a process."""
    return tuple(Rank(rank=n, pid=100 + n, state=state) for n, state in enumerate(states) if state != "-")


def seen(*samples: tuple[str, ...]) -> Ranks:
    found: Ranks = ()
    for t, states in enumerate(samples):
        found = with_processes(found, processes(*states), float(t))
    return found


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (("S", "D", "S"), "rank 1 (pid 101) is blocked in the kernel (state D)"),
        (("S", "-"), "rank 1 (pid 101) has ended, and the others wait for it"),
        (("S", "Z"), "rank 1 (pid 101) has ended, and the others wait for it"),
        (("-", "S", "-"), "ranks 0 (pid 100), 2 (pid 102): each has ended, and the others wait for it"),
        (("S", "R"), ""),
        (("D", "D"), ""),
    ],
)
def test_silent_rank_is_known_from_its_process(states: tuple[str, ...], expected: str) -> None:
    before = tuple("S" for _ in states)
    assert silent(seen(before, states), 9.0) == expected


@pytest.mark.parametrize("prefix", ["[rank{}]: ", "[default{}]:", "[RANK {}] ", "[rank: {}] ", "rank {}: "])
def test_silent_rank_is_known_from_its_lines(prefix: str) -> None:
    text = "".join(f"{prefix.format(rank)}step {step}/40 loss 0.5\n" for step, rank in ((1, 0), (1, 1), (2, 0)))
    found = with_text((), text, 3.0)
    assert silent(found, 9.0) == "rank 1 is behind at step 1, the others are at 2"
    found = with_text(found, f"{prefix.format(1)}step 2/40 loss 0.5\n{prefix.format(1)}saving\n", 4.0)
    assert silent(found, 9.0) == ""
    assert found[1].step == 2
    found = with_text(found, f"{prefix.format(0)}waiting\n", 30.0)
    assert silent(found, 40.0) == 'rank 1 printed nothing for 36 s; its last line: "saving"'


def test_rank_that_has_ended_is_named_by_the_hang_of_the_others() -> None:
    # Given two ranks that make steps
    world = World().begin()
    for n in range(1, 40):
        world.see(ProcessSample(t=world.t + 1.0, cpu_cores=2.0, procs=3, states={"S": 3}, ranks=processes("S", "S")))
        world.see(LogChunk(t=world.t, text=f"step {n}/900 loss 0.5\n"))

    # When one is gone, and the other waits
    for _ in range(400):
        world.see(ProcessSample(t=world.t + 1.0, cpu_cores=0.0, procs=2, states={"S": 2}, ranks=processes("S")))

    # Then the hang names it
    (hang,) = [i for i in world.incidents if i.kind == "hang"]
    assert hang.reason.endswith("; rank 1 (pid 101) has ended, and the others wait for it")
    assert any(e.what.startswith("rank 1 (pid 101) has ended") for e in hang.evidence)


LOST = "[rank0]: RuntimeError: [/pytorch/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:42212: Connection reset by peer\n"
WATCHDOG = "[rank0]:[E1122 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)\n"
CLOSED = "W1122 13:56:19.803000 12027 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 303 closing signal SIGTERM\n"
FAILED = "E1122 13:56:20.066000 12027 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: {}) local_rank: {} (pid: {}) of binary: /usr/bin/python\n"
SUMMARY = """torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Failures:
[1]:
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 303)  (SIGTERM)
  traceback : Signal 15 (SIGTERM) received by PID 303
Root Cause (first observed failure):
[0]:
  rank      : 1 (local_rank: 1)
  exitcode  : {0} (pid: 311)
  traceback : Signal {1} received by PID 311
"""


@pytest.mark.parametrize("victim", [LOST, WATCHDOG, ""])
def test_rank_that_was_killed_is_the_cause_and_not_the_ones_that_lost_it(victim: str) -> None:
    log = victim + CLOSED + FAILED.format(-9, 1, 311) + SUMMARY.format(-9, 9)
    found = diagnosis_of([log], CATALOGUE, exit_code=1)
    assert found.failure == "host_oom"
    assert found.confidence < 0.6  # a SIGKILL alone proves little
    assert found.cause is not None
    assert "exitcode: -9) local_rank: 1" in found.cause.text
    assert found.explanation.startswith("Rank 1 (pid 311) ended first, by signal 9.")


def test_rank_with_a_segmentation_fault_is_the_cause() -> None:
    found = diagnosis_of(
        [WATCHDOG + CLOSED + FAILED.format(-11, 1, 311) + SUMMARY.format(-11, 11)], CATALOGUE, exit_code=1
    )
    assert found.failure == "segfault"
    assert "Rank 1" in found.explanation


def test_killed_rank_that_the_launcher_noticed_second_is_the_cause() -> None:
    # The rank that lost contact exits with 1 before the launcher looks, so its summary calls that the root cause
    log = LOST + FAILED.format(1, 0, 303) + "  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 311)\n"
    found = diagnosis_of([log], CATALOGUE, exit_code=1)
    assert found.failure == "host_oom"
    assert found.explanation.startswith("Rank 1 (pid 311) ended first, by signal 9.")


@pytest.mark.parametrize("victim", [LOST, WATCHDOG])
def test_rank_with_an_error_of_its_own_is_the_cause(victim: str) -> None:
    own = "[rank1]: Traceback (most recent call last):\n[rank1]: ValueError: bad sample on this rank\n"
    for log in (own + victim, victim + own):
        found = diagnosis_of([log + FAILED.format(1, 0, 303)], CATALOGUE, exit_code=1)
        assert found.failure == "code_bug"
        assert found.cause is not None
        assert "bad sample" in found.cause.text
        assert found.explanation.startswith("Rank 1 ended first, by an error of its own.")


@pytest.mark.parametrize("victim", [LOST, ""])
def test_rank_that_exited_by_itself_is_the_cause_and_not_the_ones_that_lost_it(victim: str) -> None:
    found = diagnosis_of([victim + CLOSED + FAILED.format(3, 1, 311)], CATALOGUE, exit_code=1)
    assert found.failure == "unknown"
    assert found.explanation.startswith("Rank 1 (pid 311) ended first, with exit code 3.")
    assert found.cause is not None
    assert "failed (exitcode: 3) local_rank: 1" in found.cause.text
    assert ("lost contact" in found.explanation) is bool(victim)


def test_rank_that_exited_and_that_the_launcher_noticed_second_is_the_cause() -> None:
    second = "  rank      : 1 (local_rank: 1)\n  exitcode  : 3 (pid: 311)\n"
    found = diagnosis_of([LOST + FAILED.format(1, 0, 303) + second], CATALOGUE, exit_code=1)
    assert found.explanation.startswith("Rank 1 (pid 311) ended first, with exit code 3.")


@pytest.mark.parametrize(
    "log",
    [
        LOST.removeprefix("[rank0]: ") + CLOSED + FAILED.format(3, 1, 311),  # which rank lost it is not told
        LOST + "  exitcode  : 3 (pid: 311)\n",  # this may be the end of the one that lost it
        LOST + FAILED.format(3, 1, 311) + FAILED.format(4, 2, 312),
        FAILED.format(3, 1, 311),  # one rank only: nothing to tell apart
    ],
)
def test_no_rank_is_named_if_the_lines_do_not_tell_which_exited_by_itself(log: str) -> None:
    assert "ended first" not in diagnosis_of([log], CATALOGUE, exit_code=1).explanation


def test_ranks_that_lost_each_other_have_no_other_cause() -> None:
    both = WATCHDOG + WATCHDOG.replace("rank0", "rank1").replace("Rank 0", "Rank 1")
    log = both + CLOSED + FAILED.format(-6, 1, 311) + SUMMARY.format(-6, 6)
    found = diagnosis_of([log], CATALOGUE, exit_code=1)
    assert found.failure == "nccl_timeout"
    assert "ended first" not in found.explanation
    # one that the launcher had to kill is no cause either
    closed = log.replace("-6", "-9").replace("process 303", "process 311")
    assert diagnosis_of([closed], CATALOGUE, exit_code=1).failure == "nccl_timeout"


def test_ranks_of_a_run_are_shown_with_their_newest_lines(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("[rank0]: step 7/40 loss 0.5\n[rank1]: step 6/40 loss 0.5\n", encoding="utf-8")
    shown = ranks_now(ProcessSample(t=1.0, ranks=processes("S", "T")), str(log))
    assert [(each["rank"], each["pid"], each["state"], each["step"]) for each in shown] == [
        (0, 100, "S", 7),
        (1, 101, "T", 6),
    ]
    assert ranks_now(ProcessSample(t=1.0, ranks=processes("S", "T")), str(tmp_path / "none"))[1]["step"] is None
    assert ranks_now(None, str(log)) == ranks_now(ProcessSample(t=1.0), None) == []


def test_pace_and_age_of_a_rank_come_from_its_own_file() -> None:
    lines = (
        (0, "step 30/90", 2.0, "step 20/90", 12.0),
        (1, "step 5/90", 1.0, "step 9/90", 11.0),
        (2, "", None, "", None),
    )
    ranks = tuple(
        Rank(rank=n, pid=n + 1, state="S", node="n1", line=a, line_age_s=b, earlier=c, earlier_age_s=d)
        for n, a, b, c, d in lines
    )
    shown = ranks_now(ProcessSample(t=50.0, ranks=ranks), None)
    assert [(each["step"], each["sec_per_step"], each["last_line_age_s"], each["node"]) for each in shown] == [
        (30, 1.0, 2.0, "n1"),
        (5, None, 1.0, "n1"),  # its workers began again between the two lines
        (None, None, None, "n1"),
    ]


def test_rank_of_another_agent_with_the_same_local_number_is_told_apart() -> None:
    # Two agents with one worker each: both are local rank 0, and only torchrun's summary has the rank of the run
    summary = "  rank      : 1 (local_rank: 0)\n  exitcode  : -9 (pid: 311)  (SIGKILL)\n"
    found = diagnosis_of([LOST + FAILED.format(-9, 0, 311) + summary], CATALOGUE, exit_code=1)
    assert found.failure == "host_oom"
    assert found.explanation.startswith("Rank 1 (pid 311) ended first, by signal 9. The others lost contact with it.")

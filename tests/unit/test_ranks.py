"""Ranks of a distributed training: which one is silent, and which one ended first by itself."""

from pathlib import Path

import pytest

from tests.builders import World
from trainwatch.core.app.runs.run_usage import ranks_now
from trainwatch.core.judge.hang.pauses import Ranks, silent, with_processes, with_text
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

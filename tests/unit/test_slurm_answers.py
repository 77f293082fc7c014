"""What Slurm's commands print, as its 22.05 printed it on a two-node cluster, and what is unknown."""

from pathlib import Path

import pytest

from trainwatch.core.act.slurm.answers import (
    SEPARATOR,
    Seen,
    duration_s,
    limit_of,
    phase_of,
    read_sacct,
    read_scontrol,
    read_squeue,
)
from trainwatch.core.model.launch.job import never_ends

RECORDED = Path(__file__).parents[1] / "fixtures" / "slurm"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("PENDING", ("queued", None)),
        ("REQUEUE_HOLD", ("queued", None)),
        ("RUNNING", ("running", None)),
        ("COMPLETING", ("ending", None)),
        ("COMPLETED", ("ended", "ok")),
        ("CANCELLED by 1000", ("ended", "cancelled")),
        ("CANCELLED+", ("ended", "cancelled")),
        ("TIMEOUT", ("ended", "time_limit")),
        ("PREEMPTED", ("ended", "preempted")),
        ("NODE_FAIL", ("ended", "node")),
        ("OUT_OF_MEMORY", ("ended", "memory")),
        ("A_STATE_OF_LATER", ("unknown", None)),
        ("", ("unknown", None)),
    ],
)
def test_a_state_that_is_not_known_is_no_end(state: str, expected: tuple[str, str | None]) -> None:
    assert phase_of(state) == expected


def line(*fields: str) -> str:
    return SEPARATOR.join(fields) + "\n"


def test_reasons_and_comments_may_hold_blanks_and_bars() -> None:
    text = line(
        "7", "PENDING", "job requeued in held state", "", "2026-11-22T23:05:28", "1-00:00:30", "trainwatch:a|b:1"
    ) + line("8", "RUNNING", "None", "n[1-2]", "2026-11-22T23:05:29", "UNLIMITED", "(null)")
    found = read_squeue(text)
    assert found["7"] == Seen(
        "7", "queued", None, "PENDING", "job requeued in held state", "", "2026-11-22T23:05:28", 86430.0,
        "trainwatch:a|b:1",
    )  # fmt: skip
    assert (found["8"].nodes, found["8"].left_s, found["8"].reason, found["8"].comment) == ("n[1-2]", None, "", "")


def test_an_odd_line_blinds_no_other() -> None:
    good = line("7", "RUNNING", "None", "n1", "2026-11-22T23:05:28", "9:59", "x")
    assert list(read_squeue("slurm_load_jobs error: odd\n" + good + "6_[2-3%2]" + good)) == ["7"]


def test_scontrol_shows_state_nodes_and_comment() -> None:
    done = read_scontrol((RECORDED / "scontrol-22.05-completed.txt").read_text())
    assert done is not None
    assert (done.phase, done.cause, done.nodes, done.submitted) == ("ended", "ok", "n1", "2026-11-22T23:05:28")
    assert done.comment == "trainwatch:limit-092fcd41:2"
    assert read_scontrol("slurm_load_jobs error: Invalid job id specified") is None


def test_accounting_has_the_newest_row_last() -> None:
    text = "9|PREEMPTED|2026-11-22T23:00:00|n1\n9|CANCELLED by 0|2026-11-22T23:02:00|n2\n10|RUNNING|x|n1\n"
    found = read_sacct(text, "9")
    assert found is not None
    assert (found.cause, found.nodes) == ("cancelled", "n2")
    assert read_sacct("Slurm accounting storage is disabled\n", "9") is None


@pytest.mark.parametrize(
    ("number", "phase", "cause"),
    [
        ("40", "ended", "cancelled"),
        ("41", "ended", "memory"),
        ("42", "queued", None),
        ("43", "ended", "time_limit"),
        ("44", "unknown", None),
        ("4", None, None),
    ],
)
def test_accounting_of_later_versions(number: str, phase: str | None, cause: str | None) -> None:
    found = read_sacct((RECORDED / "sacct-24.11.txt").read_text(), number)
    assert (None if found is None else found.phase) == phase
    assert (None if found is None else found.cause) == cause


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3:04", 184.0),
        ("02:03:04", 7384.0),
        ("1-02:03:04", 93784.0),
        ("UNLIMITED", None),
        ("INVALID", None),
        ("", None),
    ],
)
def test_time_that_is_left(text: str, seconds: float | None) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize(
    ("version", "cause"),
    [
        ("22.05-completed", "ok"),
        ("23.11-preempted", "preempted"),
        ("24.11-node-fail", "node"),
        ("25.05-timeout", "time_limit"),
    ],
)
def test_scontrol_of_each_version(version: str, cause: str) -> None:
    found = read_scontrol((RECORDED / f"scontrol-{version}.txt").read_text())
    assert found is not None
    assert (found.id, found.cause, found.nodes, found.restarts) == ("16", cause, "n1", 0)
    assert (found.submitted, found.comment) == ("2026-11-22T23:05:28", "trainwatch:limit-092fcd41:2")


def test_squeue_as_it_was_printed() -> None:
    found = read_squeue((RECORDED / "squeue-22.05.txt").read_text())
    assert {
        seen.comment: (seen.phase, seen.reason) for seen in found.values() if seen.comment.startswith("trainwatch")
    } == {
        "trainwatch:r:1": ("queued", "PartitionNodeLimit"),
        "trainwatch:r:2": ("running", ""),
        "trainwatch:r:3": ("queued", "JobHeldUser"),
    }


def test_states_and_reasons_of_later_versions() -> None:
    found = read_squeue((RECORDED / "squeue-25.05.txt").read_text())
    assert [(seen.phase, never_ends(seen.reason) is not None) for seen in found.values()] == [
        ("queued", True),
        ("queued", False),
        ("queued", True),
        ("queued", False),
        ("queued", False),
        ("ended", False),
        ("unknown", False),
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400.0),
        ("2:30", 150.0),
        ("1:00:00", 3600.0),
        ("2-12", 216000.0),
        ("2-12:30", 217800.0),
        ("", None),
        ("UNLIMITED", None),
    ],
)
def test_a_time_limit_as_sbatch_takes_it(text: str, seconds: float | None) -> None:
    assert limit_of(text) == seconds

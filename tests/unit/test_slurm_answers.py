"""What Slurm's commands print, as five of its releases printed it on a two-node cluster, and what is unknown."""

from pathlib import Path

import pytest

from trainwatch.core.act.slurm.commands import Seen, limit_of, phase_of, read_scontrol, read_squeue
from trainwatch.core.model.run import never_ends

RECORDED = Path(__file__).parents[1] / "fixtures" / "slurm"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("REQUEUE_HOLD", ("queued", None)),
        ("STOPPED", ("queued", None)),
        ("COMPLETING", ("ending", None)),
        ("CANCELLED by 1000", ("ended", "cancelled")),
        ("CANCELLED+", ("ended", "cancelled")),
        ("OUT_OF_MEMORY", ("ended", "memory")),
        ("A_STATE_OF_LATER", ("unknown", None)),
        ("", ("unknown", None)),
    ],
)
def test_a_state_that_is_not_known_is_no_end(state: str, expected: tuple[str, str | None]) -> None:
    assert phase_of(state) == expected


RELEASES = ["23.11", "24.11", "25.11", "26.05"]
ENDS: dict[str, tuple[str, str | None]] = {
    "completed": ("ended", "ok"),
    "failed": ("ended", "error"),
    "cancelled": ("ended", "cancelled"),
    "time_limit": ("ended", "time_limit"),
    "preempted": ("ended", "preempted"),
    "node_fail": ("ended", "node"),
    "running": ("running", None),
    "held": ("queued", None),
    "requeued": ("queued", None),
    "too_many_nodes": ("queued", None),
    "never_satisfied": ("queued", None),
}
"""What was done with each job whose answers were recorded, by its name (tests/cluster/record.sh)."""


def recorded(command: str, release: str) -> str:
    return (RECORDED / f"{command}-{release}.txt").read_text()


def shown_jobs(release: str) -> dict[str, Seen]:
    """What ``scontrol show job`` printed of each, by name."""
    found = [read_scontrol(text) for text in recorded("scontrol", release).split("\n\n") if text.strip()]
    return {seen.comment.removeprefix("trainwatch:recorded:"): seen for seen in found if seen is not None}


@pytest.mark.parametrize("release", RELEASES)
def test_each_end_is_told_the_same_by_each_command_of_each_release(release: str) -> None:
    shown = shown_jobs(release)
    assert {name: (seen.phase, seen.cause) for name, seen in shown.items()} == ENDS
    queued = read_squeue(recorded("squeue", release))
    for seen in shown.values():
        beside = queued[seen.id]
        assert (beside.phase, beside.cause, beside.reason) == (seen.phase, seen.cause, seen.reason)
        assert (beside.nodes, beside.submitted, beside.comment) == (seen.nodes, seen.submitted, seen.comment)


@pytest.mark.parametrize("release", RELEASES)
def test_what_never_ends_is_told_from_what_may(release: str) -> None:
    waits = {name: never_ends(seen.reason) is not None for name, seen in shown_jobs(release).items()}
    assert [name for name, never in waits.items() if never] == ["never_satisfied", "too_many_nodes", "held"]


@pytest.mark.parametrize("release", RELEASES)
def test_the_nodes_of_a_job_and_what_is_left_of_its_time(release: str) -> None:
    shown = shown_jobs(release)
    assert shown["running"].nodes == "n2"
    assert shown["held"].nodes == ""
    left_s = read_squeue(recorded("squeue", release))[shown["running"].id].left_s
    assert left_s is not None
    assert 0.0 < left_s < 86400.0


def test_words_that_a_person_typed_are_no_fields() -> None:
    text = recorded("scontrol", "25.11").replace("--wrap true", "--wrap Comment=mine NodeList=n9", 1)
    seen = read_scontrol(text)
    assert seen is not None
    assert (seen.comment, seen.nodes) == ("trainwatch:recorded:completed", "n1")


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
        ("02:03:04", 7384.0),
        ("1-02:03:04", 93784.0),
        ("INVALID", None),
        ("NOT_SET", None),
        ("1:00:00", 3600.0),
        ("2-12", 216000.0),
        ("2-12:30", 217800.0),
        ("", None),
        ("UNLIMITED", None),
    ],
)
def test_a_time_limit_as_sbatch_takes_it_and_the_time_that_is_left(text: str, seconds: float | None) -> None:
    assert limit_of(text) == seconds

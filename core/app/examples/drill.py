"""``trainwatch drill``: one short real training for each fault, and whether it was detected and survived."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ...model.record import Record
from ...model.story import RunStory
from ...store.journal import load_story
from .example_run import example_run


class Exercise(msgspec.Struct, frozen=True, kw_only=True):
    """One fault. ``flags``: options of the example trainer; ``kind``/``class_``: the incident that must be seen.

    ``restarts``: another attempt must follow (True), must not (False), or may (None).
    """

    name: str
    flags: tuple[str, ...]
    kind: str
    class_: str
    restarts: bool | None = True


EXERCISES = (
    Exercise(name="CUDA error", flags=("--crash-at", "50"), kind="crash", class_="cuda_unknown_error"),
    # The batch is halved before the restart: the same settings would run out of memory again.
    Exercise(name="out of memory", flags=("--oom-at", "50"), kind="crash", class_="cuda_oom"),
    Exercise(name="deadlock", flags=("--hang-at", "50"), kind="hang", class_="idle"),
    Exercise(name="dead loader worker", flags=("--kill-loader-at", "50"), kind="crash", class_="dataloader_crash"),
    Exercise(name="torn newest checkpoint", flags=("--torn-save-at", "50"), kind="crash", class_="cuda_unknown_error"),
    # 70 steps are left: after 50 of them the attempt is ended, if it has not reached its end by then.
    Exercise(name="NaN in the loss", flags=("--nan-at", "50"), kind="loss", class_="nan", restarts=None),
    Exercise(name="done but does not exit", flags=("--exit-hang",), kind="hang", class_="exiting", restarts=False),
)


def drill() -> Iterator[dict[str, Any]]:
    """The outcome of each exercise, yielded when it ends."""
    for exercise in EXERCISES:
        yield outcome_of(exercise, play(exercise))


def play(exercise: Exercise) -> RunStory:
    """Run one exercise to its end."""
    from trainwatch.core.app.foreground import supervise

    words = ", ".join(f'"{flag}"' for flag in exercise.flags)
    run = example_run("drill", "drill.toml", {"@FAULT@": words})
    supervise(run, listener=lambda _story: _unheard)
    return load_story(run.journal)


def _unheard(_records: Sequence[Record]) -> None:
    """Print nothing: the lines of the exercise would hide the table."""


def outcome_of(exercise: Exercise, story: RunStory) -> dict[str, Any]:
    """Whether the fault was detected and survived (a row of ``drill --json``)."""
    incidents = [i for i in story.incidents if (i.kind, i.class_) == (exercise.kind, exercise.class_)]
    seen = incidents[0] if incidents else None
    survived = story.state == "finished" and exercise.restarts in {None, len(story.attempts) > 1}
    return {
        "fault": exercise.name,
        "expected": f"{exercise.kind} {exercise.class_}",
        "seen": [f"{i.kind} {i.class_}" for i in story.incidents if i.kind != "health"],
        "detect_s": seen.detect_s if seen else None,
        "attempts": len(story.attempts),
        "lost_steps": sum(i.lost_steps or 0 for i in story.incidents),
        "state": story.state,
        "passed": seen is not None and survived,
    }

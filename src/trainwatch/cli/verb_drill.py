"""``trainwatch drill``: cause real faults in an example trainer, to see that each is detected and survived."""

import argparse
from collections.abc import Sequence
from typing import Any

import msgspec

from trainwatch.core.app.errors import ExitCode
from trainwatch.core.app.start.stand_in import stand_in_run
from trainwatch.core.model.record import Record
from trainwatch.core.model.story import RunStory

from .output import print_json


class Exercise(msgspec.Struct, frozen=True, kw_only=True):
    """One fault. ``flags``: options of the example trainer; ``kind``/``class_``: the incident that must be seen.

    ``restarts``: another attempt must follow.
    """

    name: str
    flags: tuple[str, ...]
    kind: str
    class_: str
    restarts: bool = True


EXERCISES = (
    Exercise(name="CUDA error", flags=("--crash-at", "50"), kind="crash", class_="cuda_unknown_error"),
    # The batch is halved before the restart: the same settings would run out of memory again.
    Exercise(name="out of memory", flags=("--oom-at", "50"), kind="crash", class_="cuda_oom"),
    Exercise(name="deadlock", flags=("--hang-at", "50"), kind="hang", class_="idle"),
    Exercise(name="dead loader worker", flags=("--kill-loader-at", "50"), kind="crash", class_="dataloader_crash"),
    Exercise(name="torn newest checkpoint", flags=("--torn-save-at", "50"), kind="crash", class_="cuda_unknown_error"),
    Exercise(name="NaN in the loss", flags=("--nan-at", "50"), kind="loss", class_="nan", restarts=False),
    Exercise(name="done but does not exit", flags=("--exit-hang",), kind="hang", class_="exiting", restarts=False),
)


SECTION = "practise"
HELP = "real faults in an example trainer: is each detected and survived?"
DESCRIPTION = (
    "Runs a short real training once per fault and shows what was detected, after how long, and how it ended. "
    "Takes about a minute. State goes to TRAINWATCH_HOME/drill."
)
EXAMPLE = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object")


def act(args: argparse.Namespace) -> int:
    """Run all exercises; 1 when one was not caught or not survived."""
    rows = []
    for exercise in EXERCISES:
        rows.append(_row(exercise, _play(exercise)))
        if not args.json:
            _print(rows[-1])
    passed = all(row["passed"] for row in rows)
    if args.json:
        print_json({"passed": passed, "exercises": rows})
    else:
        print("all were caught and survived" if passed else "not all were caught and survived: see the lines above")
    return ExitCode.DONE if passed else ExitCode.FAILED


def _play(exercise: Exercise) -> RunStory:
    from trainwatch.core.app.supervise.headless import supervise
    from trainwatch.core.store.journal import load_story

    words = ", ".join(f'"{flag}"' for flag in exercise.flags)
    run = stand_in_run("drill", "drill.toml", {"@FAULT@": words})
    supervise(run, listener=lambda _story: _unheard)
    return load_story(run.journal)


def _unheard(_records: Sequence[Record]) -> None:
    """The exercise's own lines would bury the table."""


def _row(exercise: Exercise, story: RunStory) -> dict[str, Any]:
    incidents = [i for i in story.incidents if (i.kind, i.class_) == (exercise.kind, exercise.class_)]
    seen = incidents[0] if incidents else None
    survived = story.state == "finished" and (len(story.attempts) > 1) == exercise.restarts
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


def _print(row: dict[str, Any]) -> None:
    mark = "ok  " if row["passed"] else "FAIL"
    after = f"after {row['detect_s']:.1f} s" if row["detect_s"] is not None else ""
    print(
        f"{mark}  {row['fault']:24} {', '.join(row['seen']) or 'nothing seen':32} {after:14} "
        f"attempts {row['attempts']}, steps lost {row['lost_steps']}, {row['state']}",
        flush=True,
    )

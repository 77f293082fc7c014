"""``trainwatch demo`` and ``trainwatch drill``: short real trainings with faults."""

import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.resources import as_file, files
from itertools import count
from typing import Any

import msgspec

from ..config.location import FILE_NAME
from ..config.project import Overrides
from ..model.story import RunStory
from ..store.home import make_private
from ..store.journal import load_story
from ..store.run_directory import RunDirectory
from .errors import CliError, ExitCode
from .plan.specs import read_definitions, spec_of_project
from .runs.known_runs import home

# ``trainwatch demo``: a short real training with one crash and one hang.


def demo_run(*, torch: bool, simulated_gpu: bool) -> RunDirectory:
    """A new run of the demo's trainer. Raises CliError if ``torch`` is requested and not installed here."""
    from importlib.util import find_spec

    if torch and find_spec("torch") is None:
        raise CliError(
            ExitCode.FAILED,
            f"demo --torch needs PyTorch in {sys.prefix}: install it there (./trainwatch.sh demo --torch does)",
        )
    return example_run("demo", "demo_torch.toml" if torch else "demo.toml", simulated_gpu=simulated_gpu)


def demo_result(run: RunDirectory) -> dict[str, Any]:
    """The object that ends ``demo --headless --json``. ``detect_s``: seconds from death, or from the last step."""
    story = load_story(run.journal)
    troubles = [i for i in story.incidents if i.kind in {"crash", "hang"}]
    return {
        "finished": story.state == "finished",
        "attempts": len(story.attempts),
        "incidents": [
            {"kind": i.kind, "class": i.class_, "reason": i.reason, "step": i.step, "ending": i.ending}
            for i in troubles
        ],
        "resumed_steps": [a.resume_step for a in story.attempts if a.resume_from is not None],
        "lost_steps": sum(i.lost_steps or 0 for i in troubles),
        "detect_s": {kind: next((i.detect_s for i in troubles if i.kind == kind), None) for kind in ("crash", "hang")},
        "checkpoints": len(story.checkpoints),
        "state": story.state,
    }


# ``trainwatch drill``: one short real training for each fault, and whether it was detected and survived.


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
    supervise(run)  # its lines would hide the table
    return load_story(run.journal)


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


# Runs of the shipped example trainers for ``demo`` and ``drill``, each in a new folder with its trainwatch.toml.


def example_run(
    purpose: str, template: str, fill: Mapping[str, str] | None = None, *, simulated_gpu: bool = False
) -> RunDirectory:
    """A new run of an example trainer under ``TRAINWATCH_HOME/PURPOSE``. Earlier ones stay as they are.

    ``template``: a file of ``configs/examples``; ``@PYTHON@``, ``@EXAMPLES@`` and the keys of ``fill`` are replaced.
    """
    parent, stamp = make_private(home() / purpose), time.strftime("%Y%m%d-%H%M%S")
    for number in count(1):
        folder = parent / (stamp if number == 1 else f"{stamp}-{number}")
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            break
    with as_file(files("trainwatch.configs") / "examples") as examples:
        text = (examples / template).read_text(encoding="utf-8")
        for mark, value in {"@PYTHON@": sys.executable, "@EXAMPLES@": str(examples), **(fill or {})}.items():
            text = text.replace(mark, value)
        (folder / FILE_NAME).write_text(text, encoding="utf-8")
        shutil.copyfile(examples / "dit_demo.yaml", folder / "dit_demo.yaml")  # of demo_torch.toml
    project = folder / FILE_NAME
    spec = spec_of_project(project, None, Overrides(), read_definitions(project), fresh=True)
    if simulated_gpu:
        spec = msgspec.structs.replace(spec, labels={"simulated_gpu": True})
    return RunDirectory.create(home(), spec)

"""The estimated length of a training before its first step: settings, samples, and the pace of earlier runs."""

from pathlib import Path
from typing import Any

import pytest

from trainwatch.core.app.plan.launch_plan import LaunchPlan, plan_launch
from trainwatch.core.app.preflight.check import Machine
from trainwatch.core.app.preflight.launch_checks import check_length, expected_of, expected_of_run
from trainwatch.core.config.shipped import load_presets
from trainwatch.core.model.fact import RunCreated
from trainwatch.core.model.progress import ExpectedLength, Progress, expected_length, guide_pace
from trainwatch.core.model.run import Habits, RunSpec
from trainwatch.core.model.story import RunStory, Situation
from trainwatch.core.store.learned import HabitsFile
from trainwatch.core.views.length_words import length_words
from trainwatch.core.views.state.status import status_object
from trainwatch.core.views.state.verdict import expected

KEYS = {name: preset.length for name, preset in load_presets().items()}


def steps_of(preset: str, samples: int | None, **settings: Any) -> int | None:
    keys = KEYS[preset]
    assert keys is not None
    found = expected_length(keys, settings, samples=samples, pace=None)
    return None if found is None else found.steps


@pytest.mark.parametrize(
    ("preset", "samples", "settings", "steps"),
    [
        ("kohya", 855, {"max_train_epochs": 12, "train_batch_size": 1}, 10_260),
        ("kohya", 855, {"max_train_epochs": 12, "train_batch_size": 2, "gradient_accumulation_steps": 4}, 12 * 107),
        ("kohya", 855, {"max_train_epochs": "12", "max_train_steps": "99"}, 10_260),
        ("kohya", 855, {"max_train_steps": 99}, 99),
        ("kohya", None, {}, 1600),
        ("kohya", None, {"max_train_epochs": 12}, None),
        ("kohya", 800, {"max_train_epochs": 1, "num_processes": 2}, 400),
        ("dit", 5000, {"num_epochs": 50, "batch_size": 4, "gradient_accumulation_steps": 4}, 62_500),
        ("dit", 5000, {}, None),
        ("hf", None, {"max_steps": 500, "num_train_epochs": 3}, 500),
        ("hf", 100, {"max_steps": -1, "num_train_epochs": 2}, 26),
        ("hf", 100, {"num_train_epochs": "many"}, 39),
        ("hf", None, {"num_train_epochs": 3}, None),
    ],
)
def test_steps_of_a_training(preset: str, samples: int | None, settings: dict[str, Any], steps: int | None) -> None:
    assert steps_of(preset, samples, **settings) == steps


def images(folder: Path, number: int) -> None:
    folder.mkdir(parents=True)
    for at in range(number):
        (folder / f"{at}.png").touch()
        (folder / f"{at}.txt").touch()


def spec(tmp_path: Path, preset: str = "kohya", command: tuple[str, ...] = ("python", "train_network.py")) -> RunSpec:
    return RunSpec(id="r", name="r", command=command, cwd=str(tmp_path), created_wall=0.0, preset=preset)


def test_kohya_dataset_config_gives_folders_repeats_and_batch(tmp_path: Path) -> None:
    images(tmp_path / "a", 3)
    images(tmp_path / "b", 4)
    subsets = [{"image_dir": "a", "num_repeats": 5}, {"image_dir": "b"}]
    dataset = {"datasets": [{"batch_size": 2, "num_repeats": 2, "subsets": subsets}]}
    found = expected_of(spec(tmp_path), KEYS["kohya"], {"max_train_epochs": 3}, dataset, tmp_path)
    assert found is not None
    assert found.steps == 3 * 12  # (3 x 5 + 4 x 2) / 2, rounded up


def planned(run: RunSpec, settings: dict[str, Any]) -> LaunchPlan:
    return LaunchPlan(spec=run, preset=load_presets()[run.preset], settings=settings)


def test_check_and_new_run_use_the_pace_of_the_last_run(tmp_path: Path) -> None:
    images(tmp_path / "data" / "sub", 8)
    command = ("python", "src/scripts/train.py", "--data.dataset_path", "data", "--training.num_epochs", "5")
    run = spec(tmp_path, "dit", (*command, "--training.batch_size", "4"))
    home = tmp_path / "home"
    settings = {"dataset_path": "data", "num_epochs": "5", "batch_size": "4"}
    first = check_length(planned(run, settings), Machine(home=home))
    assert first is not None
    assert first.found.endswith("; about 10 steps: 5 epochs x 2 steps (8 samples, batch 4)")
    HabitsFile(home, run.command, run.cwd).write(Habits(runs=1, step_s=600.0))
    again = check_length(planned(run, settings), Machine(home=home))
    assert again is not None
    assert again.found.startswith("about 1 h 40 m at 600 s/step as earlier; about 10 steps")
    created = expected_of_run(planned(run, settings), home)
    assert created is not None
    assert (created.steps, created.seconds) == (10, 6000.0)


def guessed(preset: str, samples: int, models: frozenset[str] = frozenset(), speed: str = "", **settings: Any) -> str:
    keys = KEYS[preset]
    assert keys is not None
    pace = guide_pace(keys, settings, models=models, speed=speed)
    found = expected_length(keys, settings, samples=samples, pace=pace)
    assert found is not None
    return length_words(found).partition("; ")[0]


SDXL = frozenset({"sdxl"})


@pytest.mark.parametrize(
    ("speed", "hours"),
    [("", "about 7 h 07 m at 2.50"), ("standard", "about 7 h 07 m at 2.50"), ("−30 %", "about 10 h 10 m at 3.57"),
     ("+15 %", "about 6 h 11 m at 2.17")],
)  # fmt: skip
def test_without_an_earlier_run_the_time_is_a_guess_by_the_guides_pace(speed: str, hours: str) -> None:
    """The guide: 7 to 8 hours balanced, about 10 conservative, about 6 aggressive."""
    said = guessed("kohya", 855, SDXL, speed, max_train_epochs=12)
    assert said.startswith(f"{hours} s/step (a guess from a guide's SDXL LoRA on 16 GB"), said


def generic(folder: Path, home: Path, *words: str, text: str = "") -> str | None:
    """What the check says of a script that no preset knows."""
    (folder / "train.py").write_text(text)
    run = spec(folder, "generic", ("python", "train.py", *words))
    found = check_length(plan_launch(run), Machine(home=home))
    return None if found is None else found.found


UNKNOWN = "the time per step is known after a first run or a trial"


def test_a_script_that_no_preset_knows_is_estimated_by_the_usual_names(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert generic(tmp_path, home, "--max_steps", "1440") == (f"about 1,440 steps: max_steps = 1440; {UNKNOWN}")
    assert generic(tmp_path, home, "max_iters=1440") == (f"about 1,440 steps: max_iters = 1440; {UNKNOWN}")
    images(tmp_path / "data", 40)
    found = generic(tmp_path, home, "--data_dir", "data", "--epochs", "36", text="batch_size = 4\n")
    assert found == f"about 360 steps: 36 epochs x 10 steps (40 samples, batch 4); {UNKNOWN}"
    unknown = "--epochs 36: the time of an epoch is known after a first run or a trial"
    assert generic(tmp_path, home, "--epochs", "36") == unknown
    assert generic(tmp_path, home, text="EPOCHS = 36\n") == unknown.replace("--epochs 36", "EPOCHS 36 in train.py:1")
    assert generic(tmp_path, home) is None


def test_status_and_dashboard_show_the_estimate_until_the_first_step() -> None:
    estimate = ExpectedLength(steps=10_260, by="12 epochs", seconds=25_650.0, pace_s=2.5)
    created = RunCreated(run="r", name="r", command=("x",), cwd="/", preset="kohya", expected=estimate)
    story = RunStory(run=created)
    assert expected(Situation(story=story)) == ("expected: 10,260 steps in about 7 h 07 m",)
    assert expected(Situation()) == ()

    def said(progress: Progress) -> Any:
        story_then = RunStory(run=created, progress=progress)
        return status_object(Situation(story=story_then, now_wall=1.0), run="r")["expected"]

    assert said(Progress())["steps"] == 10_260
    assert said(Progress(step=1)) is None

"""How long a trial will take is said before it starts."""

from pathlib import Path

import pytest

from tests.unit.test_expected_length import images
from trainwatch.core.app.trial.trial_run import Trial, TrialLength, trial_outlook
from trainwatch.core.model.run import RunSpec


@pytest.mark.parametrize(
    ("length", "takes"),
    [
        (TrialLength(), "about 5 min (it ends 5 minutes after its first step)"),
        (TrialLength(steps=40), "about 100 s (it ends after 40 steps, a guess)"),
        (TrialLength(limit_s=120.0), "about 2 min (it ends 2 min after its start)"),
        (TrialLength(limit_s=900.0), "about 5 min (it ends 5 minutes after its first step)"),
    ],
)
def test_a_trial_takes_what_its_first_limit_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: TrialLength, takes: str
) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    images(tmp_path / "images" / "15_luca", 57)
    (tmp_path / "sdxl.toml").write_text('train_data_dir = "images"\nmax_train_epochs = 12\n')
    command = ("python", "sdxl_train_network.py", "--config_file", "sdxl.toml")
    spec = RunSpec(id="r", name="r", command=command, cwd=str(tmp_path), created_wall=0.0, preset="kohya")
    said, whole = trial_outlook(spec, Trial(profile="balanced", length=length))
    assert said == takes
    assert "(a guess from a guide's SDXL LoRA on 16 GB of VRAM); about 1,716 steps: 12 epochs x 143 steps" in whole
    short = Trial(profile="none", length=length, extra=("--max_train_epochs", "1"))
    assert "about 855 steps: 1 epoch x 855 steps (855 samples, batch 1)" in trial_outlook(spec, short)[1]


def test_a_trial_of_which_nobody_knows_the_pace_takes_at_most_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    command = ("python", "train.py", "--max_steps", "20")
    spec = RunSpec(id="r", name="r", command=command, cwd=str(tmp_path), created_wall=0.0, preset="generic")
    assert trial_outlook(spec, Trial(profile="none"))[0] == (
        "at most about 5 min (it ends 5 minutes after its first step; the time per step is not known)"
    )

"""Settings that a person changes for a run: ``--lr X`` and ``--set KEY=VALUE``."""

import json
from pathlib import Path

import msgspec
import pytest

from trainwatch.cli import main
from trainwatch.core.app.errors import CliError
from trainwatch.core.app.plan.launch_plan import LaunchPlan, plan_command, plan_launch
from trainwatch.core.app.plan.trainer_folders import trainer_values
from trainwatch.core.app.plan.trainer_settings import asked_changes, with_asked, without_a_place, words_of
from trainwatch.core.config.project import Overrides
from trainwatch.core.config.shipped import load_remedies

DIT = "training:\n  learning_rate: 1.0e-4\n  num_epochs: 50\n"
KOHYA = 'network_weights = "out/name-000004.safetensors"\nlearning_rate = 1e-4\nunet_lr = 2e-4\nmax_train_epochs = 12\n'


@pytest.fixture(autouse=True)
def folder(folder: Path) -> Path:
    (folder / "src" / "scripts").mkdir(parents=True)
    for name, text in {
        "dit.yaml": DIT,
        "kohya.toml": KOHYA,
        "src/scripts/train.py": "",
        "sdxl_train_network.py": "",
    }.items():
        (folder / name).write_text(text)
    return folder


def plan_of(*command: str) -> LaunchPlan:
    return plan_command(command, Overrides(output_dir="out"))


def changed(plan: LaunchPlan, *given: str, rate: float | None = None) -> LaunchPlan:
    return plan_launch(msgspec.structs.replace(plan.spec, changes=asked_changes(plan, given, rate)))


def test_the_learning_rate_is_changed_where_the_config_has_it(folder: Path) -> None:
    plan = plan_of("python3", "src/scripts/train.py", "--config", "dit.yaml")
    derived = changed(plan, rate=5e-5).derived
    assert derived is not None
    assert [(c.key, c.before, c.after, c.why) for c in derived.changes if c.where == "config"] == [
        ("training.learning_rate", 1e-4, 5e-5, "asked for by --lr")
    ]
    assert "learning_rate: 5.0e-05" in (derived.config_text or "")
    assert (folder / "dit.yaml").read_text() == DIT


def test_rates_of_parts_of_the_network_are_changed_by_the_same_factor_and_epochs_can_be_set() -> None:
    plan = plan_of("accelerate", "launch", "sdxl_train_network.py", "--config_file", "kohya.toml")
    found = asked_changes(plan, ("max_train_epochs=6",), 5e-5)
    assert [(c.key, c.before, c.after) for c in found] == [
        ("max_train_epochs", 12, 6), ("learning_rate", 1e-4, 5e-5), ("unet_lr", 2e-4, pytest.approx(1e-4)),
    ]  # fmt: skip
    assert words_of(found[1:2]) == "learning_rate 0.0001 -> 5e-05"


def test_a_script_of_nobody_known_gets_the_option_that_it_declares(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float)\n"
    )
    plan = plan_of("python3", "mine.py")
    derived = changed(plan, rate=5e-5).derived
    assert derived is not None
    assert derived.argv[-2:] == ("--lr", "5.0e-05")
    (folder / "mine.py").write_text("print('no options')\n")
    with pytest.raises(CliError, match="which setting is the learning rate cannot be told"):
        asked_changes(plan_of("python3", "mine.py"), (), 5e-5)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(CliError, match="--lr: must be more than 0"):
        asked_changes(plan_of("python3", "src/scripts/train.py", "--config", "dit.yaml"), (), rate)


def test_a_later_choice_replaces_the_earlier_one_and_remedies_begin_from_it() -> None:
    plan = plan_of("python3", "src/scripts/train.py", "--config", "dit.yaml")
    first = asked_changes(plan, (), 5e-5)
    spec = msgspec.structs.replace(plan.spec, changes=with_asked(asked_changes(plan, (), 2e-5), first))
    assert [c.after for c in spec.changes] == [2e-5]
    assert trainer_values(spec, plan.preset, {}, load_remedies(), {})[""]["learning_rate"] == 2e-5


def test_a_dry_run_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = "run --dry-run --json --lr 5e-5 -- python3 src/scripts/train.py --config dit.yaml"
    assert main(words.split()) == 0
    (change,) = [c for c in json.loads(capsys.readouterr().out)["changes"] if c["where"] == "config"]
    assert (change["key"], change["before"], change["after"]) == ("training.learning_rate", 1e-4, 5e-5)


def test_a_setting_that_the_script_does_not_declare_is_refused_with_the_nearest(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--step-time', type=float)\na = p.parse_args()\n"
    )
    plan = plan_of("python3", "mine.py")
    with pytest.raises(CliError, match=r'mine\.py has no such option; did you mean "step-time"\?; keys are those of'):
        asked_changes(plan, ("step_tim=3",), None)
    with pytest.raises(CliError, match=r"mine\.py has no such option; keys are those of"):
        asked_changes(plan, ("nix=3",), None)
    assert [c.key for c in asked_changes(plan, ("step_time=3", "$OMP_NUM_THREADS=2"), None)] == [
        "step_time",
        "OMP_NUM_THREADS",
    ]


def test_a_setting_of_which_nobody_can_tell_is_passed_on_and_told() -> None:
    plan = plan_of("python3", "src/scripts/train.py", "--config", "dit.yaml")
    found = asked_changes(plan, ("learnin_rate=3", "training.num_epochs=2"), None)
    (doubt,) = without_a_place(plan, found)
    assert doubt.startswith("learnin_rate: neither the command nor the config has it")
    assert 'did you mean "training.learning_rate"?' in doubt or 'did you mean "learning_rate"?' in doubt

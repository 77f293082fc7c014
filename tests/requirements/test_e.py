"""CUDA runtime errors in an architecture search: safer modes, sizes, the trial of a repair, the way back."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.builders import Story
from tests.tiers import SECOND_TIER
from trainwatch.core.model.observation import CheckpointEvent, Meta

from .past_runs import PastRun
from .test_a import SWIFT, guide_project, order_of
from .user import User

SEARCH = Path(__file__).parents[1] / "fakes" / "search_trainer.py"
LADDER = """[profiles]
use = "safe_mode"
ladder = ["safe_mode", "disable_triton", "normal"]
ramp = ["10 epochs", "20 epochs"]
"""


def search_project(user: User, *options: str, more: str = "") -> None:
    """The stand-in of the architecture search, which has the options of the guide."""
    shutil.copy(SEARCH, user.folder / "train_search.py")
    command = json.dumps([sys.executable, "train_search.py", *options])
    user.writes(
        "trainwatch.toml", f'[run]\nname = "search"\ncommand = {command}\noutput_dir = "search-out"\n{SWIFT}{more}'
    )


@pytest.mark.requirement("E1")
def test_an_unknown_error_of_triton_kernels_is_diagnosed_with_the_safer_modes_by_name(user: User) -> None:
    user.writes("train.log", "Traceback (most recent call last):\n  File 'k.py', line 9, in sepconv\nRuntimeError: CUDA error: unknown error\n")  # fmt: skip
    said = user.types("diagnose", "train.log", "--exit-code", "1")
    user.finds(said, "cuda_unknown_error")
    user.finds(said, "--safe_mode, or --disable_triton with --force_pytorch_sepconv")
    user.finds(said, "gradient checkpointing off")
    user.finds(said, "clear the CUDA cache every 50 steps")


@pytest.mark.requirement("E2")
@pytest.mark.parametrize(
    ("profile", "flags"), [("safe_mode", "--safe_mode"), ("disable_triton", "--disable_triton --force_pytorch_sepconv")]
)
def test_safer_modes_are_flags_of_the_command(user: User, profile: str, flags: str) -> None:
    search_project(user)
    said = user.types("run", "--dry-run", "--profile", profile)
    assert said.code == 0, said.err
    user.finds(said, f"command .*train_search.py {flags}$")


SIZES = {
    "safe-quick": "--epochs 10 --batch_size 16 --init_channels 8 --layers 4 --weight_epochs 2 --arch_epochs 1",
    "safe-medium": "--epochs 80 --batch_size 32 --init_channels 20 --layers 12 --weight_epochs 4 --arch_epochs 1 "
    "--warmup_epochs 10",
    "safe-large": "--epochs 150 --batch_size 48 --init_channels 28 --layers 16 --weight_epochs 5 --arch_epochs 1 "
    "--warmup_epochs 15 --train_portion 0.8",
    "safe-conservative": "--epochs 30 --batch_size 16 --init_channels 12 --layers 6 --use_checkpoint",
    "safe-default": "--epochs 50 --batch_size 32 --init_channels 16 --layers 8",
}


@pytest.mark.requirement("E3")
@pytest.mark.parametrize("profile", SIZES)
def test_the_size_presets_are_usable_for_the_command_of_the_guide(user: User, profile: str) -> None:
    search_project(user)
    said = user.types("run", "--dry-run", "--profile", profile)
    assert said.code == 0, said.err
    user.finds(said, f"command .*train_search.py --mode separated --safe_mode {SIZES[profile]}$")
    assert not any(line.startswith("problem") for line in said.lines), said.out


@pytest.mark.requirement("E4")
def test_a_repair_is_tried_with_options_of_its_own_under_a_limit_and_nothing_is_left(user: User) -> None:
    guide_project(user, "--steps_each", "3", "--output_dir", "{output_dir}")
    said = user.runs(
        "trial", "--profile", "safe_mode", "--timeout", "300", "--json",
        "--", "--epochs", "5", "--batch_size", "16", "--quiet",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert user.reads(said, "trials", 0, "started") is True
    assert user.reads(said, "trials", 0, "no_error") is True
    assert user.reads(said, "trials", 0, "eval_rising") is True
    log = Path(user.reads(said, "trials", 0, "log")).read_text()
    assert "Epoch 5/5, Step 15/15" in log
    assert not (user.folder / "outputs").exists()


@SECOND_TIER
@pytest.mark.requirement("E4")
def test_a_script_that_names_no_output_folder_is_tried_behind_overlays(user: User) -> None:
    search_project(user)
    said = user.runs("trial", "--timeout", "300", "--json", "--", "--epochs", "5", "--batch_size", "16", "--quiet")
    assert said.code == 0, said.err
    assert user.reads(said, "trials", 0, "exit") == "finished, exit code 0"
    assert not (user.folder / "search-out").exists()


@pytest.mark.requirement("E5")
def test_ten_epochs_of_safe_mode_lead_one_step_back_to_normal(user: User) -> None:
    night = Story(period_s=10.0, total=1000, meta=False).start().load()
    for epoch in range(1, 12):
        night.log(f"\nepoch {epoch}/50\n").train(20)
        path = f"search-out/checkpoint-epoch-{epoch}"
        night.add(
            CheckpointEvent(t=night.t, path=path, event="complete", size_bytes=1e6, step=night.step, epoch=epoch - 1)
        )
    ladder = {
        "use": "safe_mode",
        "ladder": ["safe_mode", "disable_triton", "normal"],
        "ramp": ["10 epochs", "20 epochs"],
    }
    meta = Meta(t=0.0, command=("python", "train_search.py"), output_dir="search-out", settings={"profiles": ladder})
    user.records("search.jsonl", [meta, *night.observations])
    said = user.types("replay", "search.jsonl", "--json")
    stops = [d for d in said.json["decisions"] if d["decision"] == "stop_attempt"]
    assert [d["reason"] for d in stops] == ["profile disable_triton at a checkpoint, by the ramp"]
    user.keeps(said, f"decision: {json.dumps(stops[0])}")


@pytest.mark.requirement("E6")
def test_the_report_has_what_support_asks_for(user: User, crashed: PastRun) -> None:
    report = user.types("report")
    user.finds(report, r"train.py --resume .\{resume\}. --crash_at 15")
    user.finds(report, "Traceback .most recent call last.")
    user.finds(report, "RuntimeError: CUDA error: unknown error")
    user.finds(report, "RTX 4080")
    user.finds(report, r"570\.133")


@SECOND_TIER
@pytest.mark.requirement("E5")
def test_the_way_back_goes_one_step_at_a_time_and_one_back_where_the_size_is_too_large(user: User) -> None:
    """Safe mode 10 epochs, only Triton off 20, normal: there the kernels fail, and the run goes on one step below."""
    guide_project(
        user, "--epochs", "40", "--steps_each", "2", "--step_time", "0.1", "--triton_limit", "32", more=LADDER
    )
    said = user.runs("--headless")
    assert said.code == 0, said.err
    up, further, back = (
        r"RAMP up: safe_mode -> disable_triton: [1-3]\d epochs on safe_mode without trouble",
        r"RAMP up: disable_triton -> normal: [23]\d epochs on disable_triton without trouble",
        r"RAMP back: normal -> disable_triton: normal died",
    )
    assert order_of(said, up, further, back)
    for pattern in (up, further, back, "finished: the training is done: step 80 of 80"):
        user.finds(said, pattern)


@SECOND_TIER
@pytest.mark.requirement("E1", "E2")
def test_eight_unknown_errors_in_a_row_propose_safer_modes_and_smaller_sizes_by_name(user: User) -> None:
    search_project(user, "--epochs", "9", "--step_time", "0.03")
    said = user.runs("--headless", patience_s=150.0)
    assert said.code == 0, said.err
    user.finds(said, "INCIDENT 8: crash cuda_unknown_error")
    user.finds(said, "proposed disable-triton: disable_triton False -> True, force_pytorch_sepconv False -> True")
    user.finds(said, "proposed safe-mode: safe_mode False -> True")
    user.finds(said, "proposed use-checkpoint: use_checkpoint False -> True")
    user.finds(said, "proposed smaller-batch: batch_size 32 -> 16")
    user.finds(said, "proposed smaller-network: layers 8 -> 4, init_channels 16 -> 12")

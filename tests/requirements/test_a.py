"""Safety and auto-recovery: SDXL LoRA with kohya sd-scripts, 16 GB of VRAM, WSL2."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import GB, Story
from tests.fakes.e2e_world import until
from tests.tiers import SECOND_TIER
from trainwatch.core.model.observation import Meta

from .conftest import Driver
from .past_runs import PastRun
from .test_b import in_use
from .user import Said, User

TRAINER = Path(__file__).parents[1] / "fakes" / "guide_trainer.py"
SWIFT = """[watch]
interval_s = 0.2
summary_s = 1
settle_s = 0.1
[restart]
backoff_s = [0]
gpu_clear_timeout_s = 1
[tmux]
enabled = false
"""
OPTIMISED = """pretrained_model_name_or_path = "base.safetensors"
output_dir = "outputs"
output_name = "luca"
gradient_checkpointing = true
gradient_accumulation_steps = 8
max_train_epochs = 20
learning_rate = 1e-4
"""


def guide_project(user: User, *options: str, more: str = "", run: str = "") -> None:
    """A project whose trainer is the stand-in of the guides."""
    shutil.copy(TRAINER, user.folder / "train.py")
    command = json.dumps([sys.executable, "train.py", "--resume", "{resume}", *options])
    user.writes(
        "trainwatch.toml", f'[run]\nname = "luca"\ncommand = {command}\noutput_dir = "outputs"\n{run}{SWIFT}{more}'
    )


def order_of(said: Said, *patterns: str) -> list[int]:
    """The line of each pattern, the first after that of the one before."""
    at, found = 0, []
    for pattern in patterns:
        at = next(n for n, line in enumerate(said.lines) if n >= at and re.search(pattern, line))
        found.append(at)
    return found


@pytest.mark.requirement("A1")
@pytest.mark.parametrize(
    ("line", "failure"),
    [
        ("RuntimeError: CUDA error: unknown error", "cuda_unknown_error"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 16.00 GiB total capacity)", "cuda_oom"),
    ],
)
def test_the_kinds_of_crashes_are_named_with_their_remedies(user: User, line: str, failure: str) -> None:
    user.writes("train.log", f"steps:  12%|#2 | 1230/10260 [51:15<6:16:15,  2.50s/it, avr_loss=0.0912]\n{line}\n")
    said = user.types("diagnose", "train.log", "--exit-code", "1", "--json")
    assert user.reads(said, "failure") == failure
    assert user.reads(said, "remedies", 0)


@pytest.mark.requirement("A1", "A4", "A7")
def test_a_process_that_lives_at_less_than_5_percent_without_steps_for_30_minutes_is_a_hang(user: User) -> None:
    night = Story(period_s=10.0).start().load().train(300).checkpoint("out/luca-000002.safetensors", step=300)
    user.records("hang.jsonl", night.dead(1900).observations)
    said = user.types("replay", "hang.jsonl", "--json")
    hang = next(i for i in said.json["incidents"] if i["kind"] == "hang")
    user.keeps(said, f"incident: {json.dumps(hang)}")
    assert hang["class"] == "idle"
    stop = next(d for d in said.json["decisions"] if d["decision"] == "stop_attempt")
    user.keeps(said, f"decision: {json.dumps(stop)}")
    evidence = next(d for d in said.json["decisions"] if d["decision"] == "capture_stacks")
    assert evidence["t"] <= stop["t"]


@pytest.mark.requirement("A2")
def test_the_stable_profile_gives_the_values_of_the_guide(user: User) -> None:
    user.writes("sdxl.toml", OPTIMISED)
    user.writes("base.safetensors", b"")
    user.writes("sdxl_train_network.py", "")
    words = ("--", sys.executable, "sdxl_train_network.py", "--config_file", "sdxl.toml")
    said = user.types("run", "--dry-run", "--profile", "stable", "--output-dir", "outputs", *words)
    assert said.code == 0, said.err
    user.finds(said, "gradient_checkpointing: true -> false")
    user.finds(said, "gradient_accumulation_steps: 8 -> 4")
    user.finds(said, "save_every_n_epochs: .* -> 2")
    user.finds(said, "save_last_n_epochs: .* -> 3")
    user.finds(said, "optimizer_type: .* -> AdamW8bit")
    user.finds(said, "mixed_precision: .* -> bf16")
    user.finds(said, "full_bf16: .* -> true")
    assert (user.folder / "sdxl.toml").read_text() == OPTIMISED


@pytest.mark.requirement("A3", "A5", "A6", "A7")
def test_a_crash_is_told_and_the_run_goes_on_from_the_newest_checkpoint_in_the_order_of_the_guide(
    user: User, crashed: PastRun
) -> None:
    said = crashed.said["headless"]
    assert said.code == 0, said.err
    user.finds(said, r"INCIDENT 1: crash cuda_unknown_error")
    places = order_of(
        said, "end leftover processes first", "wait until the GPU memory", "verify the resume point checkpoint-epoch-2",
        r"start attempt 2 from checkpoint-epoch-2 \(step 12\)", "attempt 2 runs", "running: training advances",
    )  # fmt: skip
    assert places == sorted(places)
    for pattern in ("end leftovers done", "clear gpu done", "verify checkpoint done", r"start attempt 2 from"):
        user.finds(said, pattern)
    user.finds(said, r"incident 1 closed: recovered: resumed from checkpoint-epoch-2 at step 12")
    user.finds(said, r"health: luca: .*. restarts? left")
    assert "cuda_unknown_error" in (user.folder / "notices.jsonl").read_text()
    user.finds(user.types("status"), r"luca: finished")
    user.finds(user.types("checkpoints", "list", "outputs"), r"checkpoint-epoch-6 .*step 36")
    user.finds(user.types("events"), r"resume verified: checkpoint-epoch-2 holds step 12")
    user.finds(user.types("runs"), r"luca.* finished")


@pytest.mark.requirement("A4")
@pytest.mark.parametrize(
    ("gpu", "settings", "metric", "words"),
    [
        ({"temp_c": 86}, {}, "gpu0.temp", "GPU 0 too hot: 86 °C (limit 85)"),
        (
            {"mem_used_bytes": 0.96 * 16.3 * GB},
            {"profiles": {"use": "stable"}},
            "gpu0.vram",
            "GPU 0 memory nearly full: 96 % (limit 95 %)",
        ),
    ],
)
def test_temperature_and_memory_beyond_the_thresholds_are_told(
    user: User, gpu: dict[str, float], settings: dict[str, object], metric: str, words: str
) -> None:
    night = in_use(Story(period_s=10.0, meta=False).start().load().train(800, every=15), **gpu)
    meta = Meta(t=0.0, command=("python", "sdxl_train_network.py"), output_dir="out", settings=settings)
    user.records("warm.jsonl", [meta, *night.observations])
    said = user.types("replay", "warm.jsonl", "--json")
    incident = next(i for i in said.json["incidents"] if i["kind"] == "health")
    user.keeps(said, f"incident: {json.dumps(incident)}")
    assert incident["class"] == metric
    assert incident["reason"] == words


@pytest.mark.requirement("A4")
def test_the_age_of_the_newest_checkpoint_alone_ends_nothing_while_the_step_advances(user: User) -> None:
    night = Story(period_s=10.0).start().load().train(100).checkpoint("out/luca-000002.safetensors", step=100)
    user.records("slow-saves.jsonl", night.train(1680, every=15).observations)  # 70 minutes
    said = user.types("replay", "slow-saves.jsonl", "--json")
    assert user.reads(said, "final_state") == "running"
    assert not [d for d in said.json["decisions"] if d["decision"] == "stop_attempt"]


@pytest.mark.requirement("A9")
def test_a_new_run_begins_from_the_newest_checkpoint_with_a_lower_rate_and_fewer_epochs(user: User) -> None:
    user.writes("sdxl.toml", OPTIMISED)
    user.writes("base.safetensors", b"")
    user.writes("sdxl_train_network.py", "")
    for name in ("luca-000002", "luca-000004"):
        user.writes(f"outputs/{name}.safetensors", (8).to_bytes(8, "little") + b"{}      ")
    words = ("--", sys.executable, "sdxl_train_network.py", "--config_file", "sdxl.toml")
    said = user.types(
        "run", "--dry-run", "--from", "luca-000004.safetensors", "--lr", "5e-5", "--set", "max_train_epochs=6", *words
    )
    assert said.code == 0, said.err
    user.finds(said, r"start +a new run from .*luca-000004\.safetensors")
    user.finds(said, r"learning_rate: 0\.0001 -> 5e-05")
    user.finds(said, r"max_train_epochs: 20 -> 6")
    user.finds(said, r"network_weights: not set -> .*luca-000004\.safetensors")
    user.finds(said, r"Resume: yes")


@SECOND_TIER
@pytest.mark.requirement("A7")
def test_out_of_memory_changes_what_keeps_the_result_and_then_accumulation_4_to_2(user: User, driver: Driver) -> None:
    driver.shows(used=15900, util=90)
    user.writes("sdxl_train_network.py", "import sys\nsys.exit('torch.OutOfMemoryError: CUDA out of memory.')\n")
    user.writes("base.safetensors", b"")
    stable = OPTIMISED.replace("= true", "= false").replace("steps = 8", "steps = 4")
    user.writes("sdxl.toml", f"{stable}vae_batch_size = 2\ncache_latents = true\n")
    command = json.dumps([sys.executable, "sdxl_train_network.py", "--config_file", "{config}"])
    run = f'[run]\nname = "luca"\ncommand = {command}\nconfig = "sdxl.toml"\noutput_dir = "outputs"\n'
    user.writes("trainwatch.toml", run + SWIFT.replace("gpu_clear_timeout_s = 1", "gpu_clear_timeout_s = 0.2"))
    said = user.runs("--headless", "--max-restarts", "5")
    assert said.code == 1, said.err
    user.finds(said, r"vae_batch_size 2 -> 1")
    user.finds(said, r"cache_latents_to_disk .* -> True")
    user.finds(said, r"REMEDY accumulation-2: gradient_accumulation_steps 4 -> 2 .*half the effective batch")
    user.finds(said, r"proposed 8bit-optimizer: optimizer_type .* -> AdamW8bit")
    user.finds(said, r"given up: ")
    user.finds(said, r"where to look|failures: attempt 1: crash \(cuda_oom\)")


EPOCHS_WITHOUT_TOTAL = """import sys, time
for step in range(1, 3001):
    time.sleep(0.05)
    epoch, at = divmod(step - 1, 30)
    print(f"\\rEpoch {epoch + 1}: {at * 3}%|##| {at + 1}/30 [00:01<00:02, 20.00it/s, loss={2 / (1 + step):.4f}]", end="")
    sys.stdout.flush()
"""


@SECOND_TIER
@pytest.mark.requirement("A3", "A5")
def test_adopt_finds_the_training_in_tmux_and_waits_for_its_gpu_memory_after_it_died(
    user: User, driver: Driver
) -> None:
    driver.shows(used=15000, util=97)
    user.writes("train.py", EPOCHS_WITHOUT_TOTAL)
    typed = f"{sys.executable} train.py --epochs 100 2>&1 | tee train.log"
    subprocess.run(["tmux", "new-session", "-d", "-s", "sd_training", typed], cwd=user.folder, check=True)
    log = user.folder / "train.log"
    try:
        until(lambda: log.exists() and "Epoch 2" in log.read_text(), "the second epoch")
        with user.watches("adopt", "--headless", "--interval", "1") as line:
            assert str(log) in line(r"adopts process \d+ .* log ")
            line(r"health: .* step \d+ of 3,000 .* done about .*by --epochs 100")
            os.kill(json.loads(user.types("status", "--json").out)["pid"], signal.SIGKILL)
            line("cleaning: waiting for the GPU memory")
            line(r"health: .*cleaning.* 14\.6 of 16\.0 GiB")
            driver.shows(used=600)
            line("clear gpu done: GPU memory is released")
            line("start attempt 2")
    finally:
        subprocess.run(["tmux", "kill-server"], check=False, capture_output=True)

"""Balanced configuration: SDXL LoRA with 30 GB of RAM and 16 GB of VRAM, about 400 images, 12 epochs."""

import sys

import msgspec
import pytest

from tests.builders import GB, Story
from trainwatch.core.model.observation import GpuSample, HostSample, Meta

from .conftest import Driver
from .past_runs import PastRun
from .user import User

CONFIG = """pretrained_model_name_or_path = "sdxl_base_1.0.safetensors"
train_data_dir = "images"
output_dir = "out"
output_name = "luca"
network_module = "networks.lora"
resolution = "1024,1024"
gradient_accumulation_steps = {accumulation}
max_train_epochs = 12
"""
PROJECT = """[run]
name = "luca"
command = ["{python}", "sdxl_train_network.py", "--config_file", "{{config}}"]
config = "sdxl.toml"
output_dir = "out"
preset = "kohya"
[profiles]
use = "{profile}"
ladder = ["conservative", "balanced", "aggressive"]
"""


def sdxl_project(user: User, *, profile: str = "balanced", accumulation: int = 4, images: int = 342) -> None:
    """The project of the guide: a kohya config, about 400 images with 15 repeats, the ladder of three profiles."""
    user.has_torch()
    user.writes("sdxl_train_network.py", "import argparse\nargparse.ArgumentParser().add_argument('--config_file')\n")
    user.writes("sdxl.toml", CONFIG.format(accumulation=accumulation))
    user.writes("trainwatch.toml", PROJECT.format(python=sys.executable, profile=profile))
    user.writes("sdxl_base_1.0.safetensors", b"")
    user.fills("images/15_luca", images)


def in_use(story: Story, **gpu: float) -> Story:
    """The story with these GPU readings all along."""
    story.observations = [
        msgspec.structs.replace(o, gpus=tuple(msgspec.structs.replace(g, **gpu) for g in o.gpus))
        if isinstance(o, GpuSample)
        else o
        for o in story.observations
    ]
    return story


@pytest.mark.requirement("B1")
def test_eight_hours_within_the_targets_raise_no_incident(user: User) -> None:
    night = Story(period_s=30.0).start().load()
    for epoch in range(2, 14, 2):
        night.train(1710, every=15)
        night.checkpoint(f"out/luca-{epoch:06d}.safetensors", "created", size=0).go(5).checkpoint(
            f"out/luca-{epoch:06d}.safetensors", step=night.step
        )
    night.log("\nmodel saved.\n")
    user.records("night.jsonl", in_use(night, mem_used_bytes=0.95 * 16.3 * GB, temp_c=74).exit(0).observations)
    said = user.types("replay", "night.jsonl", "--json")
    assert user.reads(said, "incidents") == []
    assert user.reads(said, "final_state") == "finished"


@pytest.mark.requirement("B2")
def test_the_three_profiles_are_those_of_the_guide(user: User) -> None:
    said = user.types("profiles", "diff", "conservative", "balanced")
    user.finds(said, r"gradient_accumulation_steps +conservative 4 +balanced 6")
    user.finds(said, r"vae_batch_size +conservative 1 +balanced 2")
    user.finds(said, r"max_data_loader_n_workers +conservative 1 +balanced 2")
    user.finds(said, r"persistent_data_loader_workers +conservative False +balanced True")
    user.finds(said, r"lowram +conservative True +balanced False")
    said = user.types("profiles", "diff", "balanced", "aggressive")
    user.finds(said, r"gradient_accumulation_steps +balanced 6 +aggressive 8")
    user.finds(said, r"vae_batch_size +balanced 2 +aggressive 4")
    user.finds(said, r"max_data_loader_n_workers +balanced 2 +aggressive 4")
    user.finds(said, r"gradient_checkpointing +balanced False +aggressive True")
    said = user.types("profiles", "show", "balanced")
    user.finds(said, r'ram = "12–14 GB"')
    user.finds(said, r'vram = "15–16 GB"')


@pytest.mark.requirement("B2")
def test_a_dry_run_lists_what_the_profile_changes(user: User) -> None:
    sdxl_project(user, images=1)
    said = user.types(
        "run", "--dry-run", "--preset", "kohya", "--profile", "balanced", "--config", "sdxl.toml", "--output-dir", "out",
        "--", sys.executable, "sdxl_train_network.py", "--config_file", "{config}",
    )  # fmt: skip
    user.finds(said, r"gradient_accumulation_steps: 4 -> 6 +profile balanced")


LEVELS = [
    ("ram_used", {"ram_used_bytes": 0.86 * 32 * GB}, "RAM nearly full: 86 % (limit 85 %)"),
    ("ram_available", {"ram_available_bytes": 3.9 * GB}, "almost no RAM available: 3.63 GiB (limit 3.73 GiB)"),
    ("swap_used", {"swap_used_bytes": 2.1 * GB}, "much swap in use: 1.96 GiB (limit 1.86 GiB)"),
]


@pytest.mark.requirement("B3")
@pytest.mark.parametrize(("metric", "host", "words"), LEVELS, ids=[row[0] for row in LEVELS])
def test_memory_beyond_the_danger_level_is_an_incident(
    user: User, metric: str, host: dict[str, float], words: str
) -> None:
    story = Story().start().load().train(40)
    story.observations = [
        msgspec.structs.replace(o, **host) if isinstance(o, HostSample) and o.t > 60 else o for o in story.observations
    ]
    user.records("run.jsonl", story.observations)
    said = user.types("replay", "run.jsonl", "--json")
    classes = [incident["class"] for incident in said.json["incidents"]]
    assert classes[0] == metric
    assert user.reads(said, "incidents", 0, "reason") == words


@pytest.mark.requirement("B3")
@pytest.mark.parametrize(
    ("metric", "gpu"),
    [("gpu0.temp", {"temp_c": 86.0}), ("gpu0.vram", {"mem_used_bytes": 0.99 * 16.3 * GB})],
    ids=["temperature", "vram"],
)
def test_a_gpu_beyond_its_level_is_an_incident(user: User, metric: str, gpu: dict[str, float]) -> None:
    user.records("run.jsonl", in_use(Story().start().load().train(40), **gpu).observations)
    said = user.types("replay", "run.jsonl", "--json")
    assert [incident["class"] for incident in said.json["incidents"]] == [metric]
    user.reads(said, "incidents", 0, "reason")


@pytest.mark.requirement("B3")
def test_vram_below_90_per_cent_is_a_hint_for_a_bigger_profile_and_no_alarm(user: User) -> None:
    story = in_use(Story().start().load().train(300), mem_used_bytes=0.8 * 16.3 * GB)
    profiles = {"use": "conservative", "ladder": ["conservative", "balanced", "aggressive"]}
    story.observations[0] = Meta(t=0.0, command=("python", "t.py"), output_dir="out", settings={"profiles": profiles})
    user.records("run.jsonl", story.observations)
    said = user.types("replay", "run.jsonl", "--json")
    assert [incident["class"] for incident in said.json["incidents"]] == ["vram_spare"]
    assert said.json["incidents"][0]["severity"] == "info"
    assert "`trainwatch profile balanced`" in user.reads(said, "incidents", 0, "reason")


@pytest.mark.requirement("B3")
def test_health_has_the_values_of_now_while_the_gpu_gets_hot(user: User, night: PastRun) -> None:
    """It showed the 45 °C at which the level had changed last."""
    cool = {reading["metric"]: (reading["value"], reading["level"]) for reading in night.said["cool"].json["health"]}
    assert cool["gpu0.temp"] == (66, "safe")
    hot = {reading["metric"]: (reading["value"], reading["level"]) for reading in night.said["hot"].json["health"]}
    assert hot["gpu0.temp"] == (85, "warning")
    assert (round(hot["gpu0.vram"][0]), hot["gpu0.vram"][1]) == (95, "safe")
    assert hot["gpu0.util"] == (97, "safe")
    number = [reading["metric"] for reading in night.said["hot"].json["health"]].index("gpu0.temp")
    user.reads(night.said["hot"], "health", number)


@pytest.mark.requirement("B4")
def test_out_of_gpu_memory_is_restarted_with_vae_batch_size_1(user: User, night: PastRun) -> None:
    said = user.types("events")
    user.finds(said, r"INCIDENT 1: crash cuda_oom")
    user.finds(said, r"REMEDY vae-batch-1: vae_batch_size 2 -> 1")
    assert "vae_batch_size: 1" in night.log(2)


@pytest.mark.requirement("B4")
def test_ram_above_80_per_cent_and_steps_of_more_than_3_seconds_are_told(user: User) -> None:
    story = Story(step_s=3.4).start().load().train(80)
    tight = {"ram_used_bytes": 0.82 * 32 * GB, "ram_available_bytes": 5.7 * GB}
    story.observations = [
        msgspec.structs.replace(o, **tight) if isinstance(o, HostSample) else o for o in story.observations
    ]
    story.observations[0] = Meta(t=0.0, command=("python", "sdxl_train_network.py"), output_dir="out", preset="kohya")
    user.records("run.jsonl", story.observations)
    said = user.types("replay", "run.jsonl", "--json")
    told = {incident["class"]: number for number, incident in enumerate(said.json["incidents"])}
    assert "82 % used, 5.31 GiB available" in user.reads(said, "incidents", told["ram_tight"], "reason")
    assert "more than 3 s" in user.reads(said, "incidents", told["slow_steps"], "reason")


@pytest.mark.requirement("B5")
def test_sdxl_on_8_gb_is_refused_by_check_with_sd_15_as_the_way_out(user: User, driver: Driver) -> None:
    sdxl_project(user, images=1)
    driver.shows(total=8192)
    said = user.types("check")
    assert said.code == 1
    user.finds(said, r"FAIL +vram +8\.00 GiB of GPU memory: SDXL cannot be trained with less than 12 GB")
    user.finds(said, r"-> train an SD 1\.5 model")
    user.finds(said, r"profile balanced usually takes 15–16 GB, the smallest GPU has 8\.00 GiB")


@pytest.mark.requirement("B5")
def test_a_launch_says_what_check_says_about_a_card_that_is_too_small(user: User, driver: Driver) -> None:
    sdxl_project(user, images=1)
    driver.shows(total=8192)
    said = user.types("run", "--dry-run")
    user.finds(said, r"check +vram: FAIL: 8\.00 GiB of GPU memory: SDXL cannot be trained with less than 12 GB")
    user.finds(said, r"check +vram need: warn: profile balanced usually takes 15–16 GB, the smallest GPU has 8\.00 GiB")


@pytest.mark.requirement("B6")
def test_before_any_run_the_10260_steps_of_12_epochs_are_estimated_at_the_guides_pace(user: User) -> None:
    sdxl_project(user)
    said = user.types("run", "--dry-run")
    user.finds(said, r"length: about 7 h 07 m at 2\.50 s/step \(a guess from a guide's SDXL LoRA on 16 GB of VRAM\)")
    user.finds(said, r"about 10,260 steps: 12 epochs x 855 steps \(5,130 samples, batch 1, accumulation 6\)")


@pytest.mark.requirement("B7")
def test_a_profile_outside_the_ladder_is_told_because_the_ramp_moves_along_it(user: User) -> None:
    sdxl_project(user, profile="stable", images=1)
    said = user.types("run", "--dry-run")
    user.finds(said, r"ladder: warn: profile stable is not in profiles.ladder \(conservative, balanced, aggressive\)")


@pytest.mark.requirement("B7")
def test_two_checkpoints_without_trouble_go_one_profile_up(user: User) -> None:
    story = Story().start().load()
    for epoch in (2, 4):
        path = f"out/luca-{epoch:06d}.safetensors"
        story.train(200).checkpoint(path, "created", size=0).go(5).checkpoint(path, step=story.step)
    ladder = ["conservative", "balanced", "aggressive"]
    profiles = {"use": "conservative", "ladder": ladder, "ramp": ["2 checkpoints"]}
    story.observations[0] = Meta(t=0.0, command=("python", "t.py"), output_dir="out", settings={"profiles": profiles})
    user.records("run.jsonl", story.train(20).observations)
    said = user.types("replay", "run.jsonl", "--json")
    assert user.reads(said, "decisions", 0, "reason") == "profile balanced at a checkpoint, by the ramp"
    last = len(said.json["decisions"]) - 1
    assert "start attempt 2 from luca-000004.safetensors (step 400)" in user.reads(said, "decisions", last, "reason")


@pytest.mark.requirement("B8")
def test_after_the_run_all_checkpoints_are_verified_and_the_record_is_one_command(user: User, night: PastRun) -> None:
    said = user.types("check", "--after")
    assert said.code == 0, said.out
    user.finds(said, r"ok +ended +finished, in 2 attempts")
    user.finds(said, r"ok +checkpoints +all 6 are complete; every byte of the newest 3 was read")
    user.finds(said, r"ok +final model +luca.*safetensors, step 240")
    user.finds(said, r"trainwatch checkpoints prune .* --keep 3 shows what could be deleted")
    user.finds(said, r"trainwatch checkpoints backup")
    user.finds(said, r"everything in one file: trainwatch report")


@pytest.mark.requirement("B1")
def test_the_report_compares_the_run_with_the_targets(user: User, night: PastRun) -> None:
    said = user.types("report")
    user.finds(said, r"GPU utilisation \| 97 % \| > 95 % \| yes")
    user.finds(said, r"GPU memory \| 95 % \| 90–98 % \| yes")
    user.finds(said, r"hottest GPU \| 85 °C \| < 80 °C \| no")

"""Hints at what could be better while the training goes on."""

from typing import Any

import msgspec
import pytest

from tests.builders import GB, Story, World, judge
from trainwatch.core.config.shipped import load_profiles, load_remedies
from trainwatch.core.judge.knowledge import Knowledge
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import NotifyPeople
from trainwatch.core.model.fact import RemedyApplied, RemedyProposed
from trainwatch.core.model.observation import GpuReading, GpuSample, HostSample, LogChunk
from trainwatch.core.model.preset import Preset
from trainwatch.core.model.run import Incident
from trainwatch.core.model.settings import Profiles, Remedies, Settings


def mind(preset: str, values: dict[str, Any], profile: str = "") -> Judge:
    known = judge().knowledge
    return Judge(
        Knowledge(
            catalogue=known.catalogue,
            preset=Preset(name=preset),
            remedies=load_remedies(),
            values={"": values, profile: values},
            families={name: p.family for name, p in load_profiles().items()},
            settings=Settings(profiles=Profiles(use=profile or None, ladder=("conservative", "balanced"))),
        )
    )


def training(brain: Judge, step_s: float = 2.5, steps: int = 80) -> World:
    return World(brain).begin().watch(Story(meta=False, step_s=step_s, period_s=5.0).load(10).train(steps))


def ram(world: World, used_gb: float, seconds: float = 60.0) -> World:
    for _ in range(int(seconds / 5.0)):
        world.see(
            HostSample(
                t=world.t + 5.0,
                ram_used_bytes=used_gb * GB,
                ram_total_bytes=32 * GB,
                ram_available_bytes=(32 - used_gb) * GB,
            )
        )
    return world


def hints(world: World, class_: str) -> list[Incident]:
    assert world.of(NotifyPeople) == []
    return [i for i in world.incidents if i.class_ == class_]


def test_tight_ram_hint_names_remedies_once() -> None:
    world = training(mind("kohya", {"cache_latents": True}, "balanced"))
    ram(ram(ram(world, 26.5), 20.0), 26.5)
    told = hints(world, "ram_tight")
    assert [(i.severity, i.open) for i in told] == [("info", False)]
    assert told[0].reason.startswith("RAM is 83 % used, 5.12 GiB available; what may help: ")
    assert "(`trainwatch restart --with one-worker`)" in told[0].reason
    assert world.decisions == ["start_attempt"]


def test_no_hint_for_a_short_peak_or_a_small_machine() -> None:
    world = ram(ram(training(mind("kohya", {})), 26.5, 20.0), 10.0)
    assert hints(world, "ram_tight") == []
    for n in range(20):
        world.see(HostSample(t=world.t + n, ram_used_bytes=3e9, ram_total_bytes=8e9, ram_available_bytes=5e9))
    assert hints(world, "ram_tight") == []
    assert hints(ram(World(mind("kohya", {})), 26.5), "ram_tight") == []


def test_more_than_three_seconds_a_step_is_slow_for_kohya_alone() -> None:
    world = training(mind("kohya", {"max_data_loader_n_workers": 1}), step_s=4.0)
    told = hints(world, "slow_steps")
    assert len(told) == 1
    assert told[0].reason.startswith("a step takes 4.0 s, more than 3 s; what may help: two data-loading workers")
    assert "restart --with vae-batch-2" in told[0].reason
    assert hints(training(mind("kohya", {})), "slow_steps") == []
    assert hints(training(mind("dit", {}), step_s=4.0), "slow_steps") == []


def curve(brain: Judge, *, rises: bool = False, lr: str = "") -> World:
    """A loss that falls and then stands still, or rises."""
    world = World(brain).begin()
    line = "\rsteps: 1%| | {}/9000 [01:00<1:00:00, 1.0s/it, avr_loss={:.4f}" + lr + "]"
    for n in range(1, 4800):
        value = max(0.5, 2.0 - n / 1000) if not rises else 0.5 if n < 250 else 0.5 + (n - 250) / 300
        world.see(LogChunk(t=float(n), text=line.format(n, value)))
    return world


@pytest.mark.parametrize("rises", [False, True])
def test_a_lower_learning_rate_is_proposed_from_the_curve_and_never_taken(rises: bool) -> None:
    brain = mind("dit", {"learning_rate": 1e-4})
    settings = msgspec.structs.replace(brain.knowledge.settings, remedies=Remedies(apply="all"))
    world = curve(Judge(msgspec.structs.replace(brain.knowledge, settings=settings)), rises=rises)
    (proposed,) = world.of(RemedyProposed)
    assert (proposed.name, proposed.failure) == ("half-learning-rate", "plateau")
    assert [(c.key, c.before, c.after) for c in proposed.changes] == [("learning_rate", 1e-4, 5e-5)]
    assert ("keeps rising" in proposed.why) is rises
    (found,) = world.incidents
    assert (found.id, found.kind, found.open) == (proposed.incident, "loss", False)
    assert (found.class_, found.severity) == (("diverging", "warning") if rises else ("plateau", "info"))
    assert world.of(RemedyApplied) == []
    assert world.decisions == ["start_attempt"]


def test_no_learning_rate_is_proposed_if_the_scheduler_lowered_it_already() -> None:
    values = {"learning_rate": 1e-4}
    assert len(curve(mind("dit", values), lr=", lr=8e-05").of(RemedyProposed)) == 1
    world = curve(mind("dit", values), lr=", lr=3e-06")
    assert world.of(RemedyProposed) == []
    assert len(hints(world, "plateau")) == 1


# --- GPU memory that is left over ---


def of_size(share: float, steps: int, *, gpus: int = 1, others: float | None = None) -> Story:
    """Training with this share of the GPU memory in use. ``others``: share on all GPUs but the first."""
    story = Story(meta=False, period_s=5.0, gpus=gpus).load(10).train(steps)

    def sized(gpu: GpuReading) -> GpuReading:
        part = share if gpu.index == 0 or others is None else others
        return msgspec.structs.replace(gpu, mem_used_bytes=part * 16 * GB, mem_total_bytes=16 * GB)

    story.observations = [
        msgspec.structs.replace(o, gpus=tuple(map(sized, o.gpus))) if isinstance(o, GpuSample) else o
        for o in story.observations
    ]
    return story


def left_over(profile: str, *stories: Story) -> list[str]:
    world = World(mind("kohya", {}, profile)).begin()
    for story in stories:
        world.watch(story)
    assert all(i.severity == "info" for i in hints(world, "vram_spare"))
    return [i.reason for i in hints(world, "vram_spare")]


def test_gpu_memory_that_is_left_over_hints_at_the_next_profile_once() -> None:
    assert left_over("conservative", of_size(0.75, 300), of_size(0.95, 20), of_size(0.75, 300)) == [
        "GPU memory is less than 90 % used: profile balanced uses more of it (`trainwatch profile balanced`)"
    ]


@pytest.mark.parametrize(
    ("profile", "stories"),
    [
        ("balanced", [of_size(0.75, 300)]),
        ("", [of_size(0.75, 300)]),
        ("conservative", [of_size(0.95, 300)]),
        ("conservative", [of_size(0.75, 200), of_size(0.95, 20), of_size(0.75, 200)]),
        ("conservative", [of_size(0.75, 300, gpus=2, others=0.95)]),
        ("conservative", [of_size(0.75, 40)]),
    ],
    ids=["the highest profile", "no profile", "well used", "peaks", "one GPU is well used", "not for long"],
)
def test_no_hint_at_a_bigger_profile_if_there_is_none_or_no_room(profile: str, stories: list[Story]) -> None:
    assert left_over(profile, *stories) == []

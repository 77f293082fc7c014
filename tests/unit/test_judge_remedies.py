"""What is changed after a failure, what only proposed, and how it is taken back."""

from typing import Any

import pytest

from tests.builders import World, judge, story_of
from tests.unit.test_judge_recovery import crash, running, save, story
from trainwatch.core.config.shipped import load_profiles, load_remedies
from trainwatch.core.judge.recovery.remedies import Option, RemedyInput, fit, is_allowed, merged, number, options
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import GiveUp, NotifyPeople, StartAttempt
from trainwatch.core.model.fact import BudgetChanged, ProfileChanged, RemediesDropped, RemedyApplied, RemedyProposed
from trainwatch.core.model.preset import Change, Preset, usual_ladders
from trainwatch.core.model.settings import Profiles, Remedies, Restart, Settings
from trainwatch.core.model.shipped import UNKNOWN, AppliedRemedy, Condition, Remedy, RemedyChange

OOM = "\ntorch.cuda.OutOfMemoryError: CUDA out of memory\n"
NAN = "\nloss is nan, stopping\n"
FAMILIES = {name: profile.family for name, profile in load_profiles().items()}
PLAIN = {"$PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128"}
"""Nothing for the allocator: it has its setting."""


def around(preset: str, values: dict[str, Any], **more: Any) -> RemedyInput:
    return RemedyInput(preset=preset, values={"": {**PLAIN, **values}}, families=FAMILIES, **more)


def names(failure: str, here: RemedyInput) -> list[str]:
    return [option.remedy.name for option in options(load_remedies(), failure, here)]


def first(failure: str, here: RemedyInput) -> Option:
    return next(options(load_remedies(), failure, here))


def row(*changes: RemedyChange, when: tuple[Condition, ...] = ()) -> Remedy:
    return Remedy(
        name="x", title="x", failures=("cuda_oom",), equivalent=True, cost="", source="", when=when, changes=changes
    )


def after(option: Option) -> dict[str, Any]:
    return {change.key: change.after for change in option.changes}


@pytest.mark.parametrize(
    ("preset", "values", "changed"),
    [
        ("kohya", {"train_batch_size": 4, "gradient_accumulation_steps": 2},
         {"train_batch_size": 2, "gradient_accumulation_steps": 4}),
        ("kohya", {"train_batch_size": "4"}, {"train_batch_size": 2, "gradient_accumulation_steps": 2}),
        ("dit", {"batch_size": 4, "gradient_accumulation_steps": 4}, {"batch_size": 2, "gradient_accumulation_steps": 8}),
        ("hf", {}, {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}),
        ("kohya", {"train_batch_size": 1, "vae_batch_size": 2}, {"vae_batch_size": 1}),
        ("kohya", {"cache_latents": True}, {"cache_latents_to_disk": True}),
        ("dit", {"batch_size": 3}, {"vae.use_slicing": True}),
    ],
)  # fmt: skip
def test_out_of_memory(preset: str, values: dict[str, Any], changed: dict[str, Any]) -> None:
    option = first("cuda_oom", around(preset, values))
    assert after(option) == changed
    assert is_allowed(option.remedy, "equivalent")


@pytest.mark.parametrize("option", ["image_size", "img_size", "resolution"])
def test_smaller_images_are_proposed_by_the_option_that_the_script_declares(option: str) -> None:
    here = around("generic", {option: "512"}, options=frozenset({f"--{option}"}))
    found = {o.remedy.name: o for o in options(load_remedies(), "cuda_oom", here)}
    assert after(found["smaller-images"]) == {option: 256}
    unset = around("generic", {}, options=frozenset({f"--{option}"}))
    assert "smaller-images" not in names("cuda_oom", unset), "what it is now is not known"


SEARCH = frozenset({"--safe_mode", "--disable_triton", "--force_pytorch_sepconv", "--use_checkpoint", "--batch_size"})
"""Options of the script of an architecture search, as its source declares them."""


@pytest.mark.parametrize("failure", ["cuda_unknown_error", "cuda_launch_failure", "triton_compile"])
def test_safer_modes_of_the_script_are_proposed_without_a_ladder(failure: str) -> None:
    """Nine unknown errors in a row proposed nothing."""
    found = {o.remedy.name: o for o in options(load_remedies(), failure, around("generic", {}, options=SEARCH, seen=9))}
    assert after(found["disable-triton"]) == {"disable_triton": True, "force_pytorch_sepconv": True}
    assert after(found["safe-mode"]) == {"safe_mode": True}
    assert not any(is_allowed(found[name].remedy, "equivalent") for name in ("disable-triton", "safe-mode"))
    plain = names(failure, around("generic", {}, seen=9))
    assert not {"disable-triton", "safe-mode"} & set(plain), "a script without these options is not given them"


@pytest.mark.parametrize(
    ("profile", "ladder", "lower"),
    [
        ("stable", ("conservative", "balanced", "aggressive"), "conservative"),
        ("aggressive", ("conservative", "balanced", "aggressive"), "balanced"),
        ("conservative", ("conservative", "balanced", "aggressive"), None),
        ("stable", (), None),
    ],
)
def test_a_profile_beside_the_ladder_leads_to_its_safest_rung(
    profile: str, ladder: tuple[str, ...], lower: str | None
) -> None:
    here = around("kohya", {"gradient_checkpointing": True}, profile=profile, ladder=ladder)
    found = [o.profile for o in options(load_remedies(), "cuda_oom", here) if o.remedy.name == "lower-profile"]
    assert found == ([] if lower is None else [lower])


def test_without_a_ladder_the_profiles_of_the_family_are_one() -> None:
    world = running(
        judge(
            Settings(profiles=Profiles(use="stable")),
            Preset(name="kohya", resume="state"),
            remedies=load_remedies(),
            values={"stable": {"gradient_checkpointing": True}, "": {"gradient_checkpointing": True}},
            families=FAMILIES | {"stable": "kohya-sdxl"},
            usual_ladders=usual_ladders(load_profiles().values()),
        )
    )
    crash(world, OOM)
    assert ("lower-profile", "conservative") in [(p.name, p.profile) for p in world.of(RemedyProposed)]


@pytest.mark.parametrize(
    ("profile", "lower"), [(None, "disable_triton"), ("normal", "disable_triton"), ("disable_triton", "safe_mode")]
)
def test_cuda_trouble_gets_the_same_settings_once_and_then_a_safer_mode(profile: str | None, lower: str) -> None:
    ladder = ("safe_mode", "disable_triton", "normal")
    assert names("cuda_unknown_error", around("generic", {}, profile=profile, ladder=ladder)) == []
    assert first("cuda_unknown_error", around("generic", {}, profile=profile, ladder=ladder, seen=1)).profile == lower
    assert names("cuda_unknown_error", around("generic", {}, profile="safe_mode", ladder=ladder, seen=1)) == []


def test_loaders_that_deadlock_get_fewer_workers_down_to_none() -> None:
    seen = []
    here = around("kohya", {"max_data_loader_n_workers": 4, "persistent_data_loader_workers": True})
    while names("hang:starved", here):
        option = first("hang:starved", here)
        seen.append(after(option))
        done = AppliedRemedy(name=option.remedy.name, changes=option.changes)
        here = around("kohya", dict(here.values[""]), applied=(*here.applied, done))
    assert seen == [
        {"max_data_loader_n_workers": 2},
        {"max_data_loader_n_workers": 1},
        {"max_data_loader_n_workers": 0, "persistent_data_loader_workers": False},
    ]
    (workers, _) = merged(here.applied)
    assert (workers.before, workers.after) == (4, 0)


def test_what_nobody_could_read_is_not_changed() -> None:
    half = row(RemedyChange(key="size", times=0.5))
    assert fit(half, around("generic", {})) is None
    assert fit(half, around("generic", {"size": "large"})) is None
    assert fit(half, around("generic", {"size": True})) is None


def test_values_of_command_lines_are_text() -> None:
    assert [number(v) for v in ("4", "1e-4", "true", "False", "", "bf16", 3, None)] == [
        4, 1e-4, True, False, True, "bf16", 3, None,
    ]  # fmt: skip


# --- in a run ---------------------------------------------------------------------------------------------------------


def mind(values: dict[str, Any], apply: str = "equivalent", preset: str = "kohya", **profiles: Any) -> Judge:
    settings = Settings(
        remedies=Remedies(apply=apply),  # type: ignore[arg-type]
        restart=Restart(max_restarts=3, backoff_s=(0.0, 10.0)),
        profiles=Profiles(**profiles),
    )
    return judge(
        settings,
        Preset(name=preset, resume="state"),
        remedies=load_remedies(),
        values={"": {**PLAIN, **values}},
        families=FAMILIES,
    )


def test_a_remedy_is_one_entry_with_before_and_after_and_goes_with_every_launch() -> None:
    world = crash(save(running(mind({"train_batch_size": 4}))), OOM)
    (fact,) = world.of(RemedyApplied)
    assert (fact.name, fact.failure, fact.incident, fact.equivalent) == ("half-batch", "cuda_oom", 1, True)
    assert fact.changes == (
        Change(where="config", key="train_batch_size", before=4, after=2, why="remedy half-batch"),
        Change(where="config", key="gradient_accumulation_steps", before=None, after=2, why="remedy half-batch"),
    )
    start = world.of(StartAttempt)[-1]
    assert start.changes == fact.changes
    assert "train_batch_size 4 -> 2" in start.reason
    assert [b.used for b in world.of(BudgetChanged)] == [1]
    on = story(0)
    on.step = 40
    world.watch(on.train(10))
    crash(world)
    assert world.of(StartAttempt)[-1].changes == fact.changes


def test_memory_that_another_process_holds_changes_no_setting() -> None:
    said = "Including non-PyTorch memory, this process has {} memory in use."
    neighbour = OOM.rstrip() + ". Process 4242 has 14.90 GiB memory in use. " + said + "\n"
    world = save(running(mind({"train_batch_size": 4})))
    for _ in range(2):
        crash(world, neighbour.format("512.00 MiB")).watch(story(12))
    assert world.of(RemedyApplied) == [] == world.of(RemedyProposed)
    assert [s.changes for s in world.of(StartAttempt)[-2:]] == [(), ()]
    crash(save(world), neighbour.format("15.10 GiB"))
    assert [r.name for r in world.of(RemedyApplied)] == ["half-batch"], "this one has more"


def test_remedies_run_out_and_the_others_are_named() -> None:
    world = running(mind({"train_batch_size": 2, "gradient_accumulation_steps": 8}))
    crash(world, OOM).watch(story(12))
    crash(world, OOM).watch(story(12))
    assert world.of(StartAttempt)[-1].changes == world.of(StartAttempt)[-2].changes, "nothing more can be changed"
    crash(world, OOM)
    assert world.word == "given_up"
    assert "at step 12 again" in world.of(GiveUp)[0].reason
    assert [p.name for p in world.of(RemedyProposed)] == [
        "cache-latents", "8bit-optimizer", "accumulation-4", "gradient-checkpointing",
    ]  # fmt: skip
    assert "`trainwatch resume --with gradient-checkpointing`" in world.of(NotifyPeople)[-1].body


def test_a_remedy_that_changes_the_result_waits_for_a_person() -> None:
    world = save(running(mind({"learning_rate": 1e-4})))
    crash(world.wait(5.0), NAN)
    assert world.of(RemedyApplied) == []
    (proposed,) = world.of(RemedyProposed)
    assert proposed.changes[0].after == 5e-5
    assert world.of(StartAttempt)[-1].changes == ()
    assert world.of(StartAttempt)[-1].resume_from == "out/step-40"


def test_a_safer_mode_is_a_profile_of_the_ladder() -> None:
    ladder = ("safe_mode", "disable_triton", "normal")
    world = running(mind({}, preset="generic", use="normal", ladder=ladder))
    crash(world).watch(story(10))
    assert world.of(StartAttempt)[-1].profile == "normal"
    crash(world).wait(11.0)
    assert world.of(StartAttempt)[-1].profile == "disable_triton"
    assert "remedy safer-mode" in world.of(ProfileChanged)[0].why


def test_a_person_applies_and_takes_back() -> None:
    world = crash(running(mind({"train_batch_size": 4}, apply="none")), OOM)
    world.watch(story(10)).command("restart", remedies=["half-batch"])
    assert world.of(RemedyApplied)[0].failure == "asked for by operator"
    assert len(world.of(StartAttempt)[-1].changes) == 2
    world.silent = {"stop_attempt"}  # what is asked for while a stop is under way was accepted and forgotten
    world.watch(story(10)).command("stop").command("restart", without_remedies=True)
    assert world.of(RemediesDropped)[0].names == ("half-batch",)
    assert world.state.policy.applied == ()


def test_a_remedy_that_is_not_known_is_said() -> None:
    world = running(mind({})).command("stop").command("resume", remedies=["magic", "half-batch"])
    assert (
        "there is no remedy 'magic'; known: 8bit-optimizer, accumulation-2, accumulation-4, cache-latents"
        in world.text()
    )
    assert world.word == "stopped", "a typing error starts nothing"
    world.command("resume", remedies=["half-batch"])
    assert "remedy half-batch: it would change nothing here" in world.text()


def test_the_story_knows_what_is_in_force_and_a_new_supervisor_does_too() -> None:
    world = crash(running(mind({"train_batch_size": 4, "gradient_accumulation_steps": 8})), OOM)
    told = story_of(world.entries)
    assert [r.name for r in told.remedies] == ["half-batch"]
    assert [p.name for p in told.proposals][2:] == ["accumulation-4", "gradient-checkpointing"]
    again = World(world.judge)
    again.state = world.judge.start(told)
    assert [a.name for a in again.state.policy.applied] == ["half-batch"]
    dropped = RemediesDropped(names=("half-batch",), why="asked")
    assert story_of([*world.entries, (world.t, dropped)]).remedies == ()


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        (Condition(key="mode", is_not="eager"), False),
        (Condition(key="mode", is_not="fast"), True),
        (Condition(key="mode", above=1.0), False),
        (Condition(key="cache", above=0.0), False),
        (Condition(key="size", above=1.0), True),
    ],
)
def test_a_condition_on_a_number_is_not_met_by_a_word(condition: Condition, fits: bool) -> None:
    smaller = row(RemedyChange(key="size", to=1), when=(condition,))
    assert (fit(smaller, around("hf", {"mode": "eager", "cache": True, "size": 4})) is not None) == fits


def test_a_remedy_one_of_whose_settings_cannot_be_told_is_not_applied_in_part() -> None:
    smaller = row(RemedyChange(key="size", to=2), RemedyChange(key="mode", to="eager"))
    assert fit(smaller, around("generic", {"size": 4, "mode": "fast"})) is not None
    assert fit(smaller, around("generic", {"size": 4, "mode": UNKNOWN})) is None

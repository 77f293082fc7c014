"""Which checkpoints a restart takes by itself: those it can be told of, whole before weights, of the branch it is on."""

import pytest

from tests.builders import Story, World, judge
from tests.unit.test_judge_recovery import crash, quick, running
from tests.unit.test_judge_takeover import journal_of
from trainwatch.core.judge.run_states import Stopped
from trainwatch.core.model.checkpoint import Form, Holds
from trainwatch.core.model.decision import EndWatch, GiveUp, NotifyPeople, StartAttempt
from trainwatch.core.model.fact import CheckpointsSetAside, Note
from trainwatch.core.model.observation import CheckpointEvent
from trainwatch.core.model.preset import Preset, ResumeStyle, resume_support

HF = Preset(name="hf", resume_directory=ResumeStyle(args=("--resume_from_checkpoint", "{path}")))
KOHYA = Preset(
    name="kohya",
    resume="weights",
    resume_file=ResumeStyle(key="network_weights"),
    resume_directory=ResumeStyle(args=("--resume", "{path}")),
)
GENERIC = Preset(name="generic")
ANYWHERE = ("python", "train.py", "--resume={resume}")
NOWHERE = ("python", "train.py")


def run_of(preset: Preset, command: tuple[str, ...] = NOWHERE, **restart: object) -> World:
    return running(judge(quick(**restart), preset, resume_support=resume_support(preset, command)))


def saved(world: World, path: str, step: int, holds: Holds | None = "state", form: Form | None = None) -> World:
    event = CheckpointEvent(
        t=world.t, path=path, event="complete", step=step, size_bytes=1e6, mtime=world.t, holds=holds, form=form
    )
    return world.see(event).wait(1.0)


def resumed(world: World) -> str | None:
    start: StartAttempt = world.of(StartAttempt)[-1]
    return start.resume_from


def at_step(world: World, step: int, steps: int = 10) -> World:
    return world.watch(Story(meta=False, period_s=5.0, step=step).train(steps))


def notes(world: World) -> str:
    return "\n".join(n.text for n in world.of(Note))


def test_an_export_does_not_displace_the_state_that_the_trainer_can_be_told_of() -> None:
    world = saved(run_of(HF), "out/checkpoint-20", 20, form="directory")
    saved(world, "out/model.safetensors", 20, "weights", "file")
    saved(world, "out/final", 20, "weights", "directory")
    assert resumed(crash(world)) == "out/checkpoint-20"
    aside = {told.paths[0]: told.why for told in world.of(CheckpointsSetAside)}
    assert aside["out/model.safetensors"] == "hf resumes from a directory, not from a file"
    assert "weights alone" in aside["out/final"]
    assert set(journal_of(world).set_aside) == {"out/model.safetensors", "out/final"}


def test_with_nothing_but_exports_it_is_held_and_does_not_write_over_them() -> None:
    world = crash(saved(run_of(HF), "out/model.safetensors", 20, "weights", "file"))
    assert len(world.of(StartAttempt)) == 1
    assert isinstance(world.state.machine, Stopped)
    held = world.of(NotifyPeople)[-1].body
    assert "model.safetensors cannot be resumed from (complete); hf resumes from a directory, not from a file" in held


def test_any_trainer_goes_on_from_a_whole_state_before_newer_weights() -> None:
    world = saved(run_of(GENERIC, ANYWHERE), "out/state-20.pt", 20)
    assert resumed(crash(saved(world, "out/weights-30.safetensors", 30, "weights"))) == "out/state-20.pt"


def test_from_weights_where_there_is_nothing_else() -> None:
    world = crash(saved(run_of(GENERIC, ANYWHERE), "out/weights-30.safetensors", 30, "weights"))
    assert resumed(world) == "out/weights-30.safetensors"
    assert "contains only weights, and there is no complete training state: the trainer starts from these" in notes(
        world
    )


@pytest.mark.parametrize("names", [("model000020.pt", "ema_0.9999_000020.pt"), ("step_20.pt", "step_20_ema.pt")])
def test_the_main_file_of_a_save_comes_before_its_average(names: tuple[str, str]) -> None:
    world = run_of(GENERIC, ANYWHERE)
    for name in names:
        saved(world, f"out/{name}", 20, "weights")
    assert resumed(crash(world)) == f"out/{names[0]}"


def test_weights_count_like_a_state_where_that_is_how_the_framework_goes_on() -> None:
    world = saved(run_of(KOHYA), "out/luca-000001-state", 10)
    assert resumed(crash(saved(world, "out/luca-000002.safetensors", 20, "weights"))) == "out/luca-000002.safetensors"


# --- a branch that was left -----------------------------------------------------------------------------------------


def went_back() -> World:
    """Saved at 20, 30 and 40; a person went back to 20; it trained on to 29 and saved nothing."""
    world = run_of(GENERIC, ANYWHERE)
    for step in (20, 30, 40):
        saved(world, f"out/step-{step}", step)
    world.command("restart", checkpoint="out/step-20")
    return at_step(world, 20)


def test_what_is_newer_than_where_a_person_went_back_to_is_no_resume_point() -> None:
    world = went_back()
    (told,) = world.of(CheckpointsSetAside)
    assert (told.paths, told.left) == (("out/step-30", "out/step-40"), True)
    assert told.why == "the run went back to step-20 with attempt 2"
    crash(world)
    assert resumed(world) == "out/step-20"
    at_step(world, 20)
    assert [i.lost_steps for i in world.incidents] == [10]


def test_what_is_written_after_it_counts() -> None:
    world = saved(went_back(), "out/step-30", 30)
    assert resumed(crash(world)) == "out/step-30"
    assert set(journal_of(world).set_aside) == {"out/step-40"}


def test_what_was_written_before_it_and_seen_after_it_does_not() -> None:
    world = went_back()
    start_t = world.state.attempt.start_t
    late = CheckpointEvent(
        t=world.t, path="out/step-45", event="complete", step=45, size_bytes=1e6, mtime=start_t - 0.5
    )
    world.judge = judge(quick(), GENERIC, resume_support=resume_support(GENERIC, ANYWHERE), created_wall=1e-9)
    assert resumed(crash(world.see(late))) == "out/step-20"


def test_a_person_may_choose_it_all_the_same() -> None:
    world = went_back().command("restart", checkpoint="out/step-40")
    assert resumed(world) == "out/step-40"
    assert resumed(crash(at_step(world, 40))) == "out/step-40"
    assert set(journal_of(world).set_aside) == {"out/step-30"}


def test_after_a_nan_what_came_later_is_not_taken_by_the_next_crash() -> None:
    world = run_of(GENERIC, ANYWHERE)
    saved(world, "out/step-20", 20)
    world.watch(Story(meta=False).log("\nstep 41/10260, loss: nan\n"))
    saved(world, "out/step-41", 41)
    crash(world, "\nValueError: loss is nan, stopping\n")
    assert resumed(world) == "out/step-20"
    assert resumed(crash(at_step(world, 20))) == "out/step-20"


# --- a command that cannot be told ----------------------------------------------------------------------------------


def untold(**restart: object) -> World:
    return saved(run_of(GENERIC, NOWHERE, **restart), "out/step-20", 20)


def test_a_command_that_cannot_be_told_is_not_started_over_what_it_saved() -> None:
    world = crash(untold())
    assert world.word == "given_up"
    assert len(world.of(StartAttempt)) == 1
    reason = world.of(GiveUp)[0].reason
    assert reason == (
        "step-20: it cannot be passed to the command (write {resume} where its path belongs); "
        "a start would begin anew and write over it"
    )
    assert "--fresh" in world.of(NotifyPeople)[-1].body
    end = world.of(EndWatch)[-1].reason
    assert "`trainwatch resume --fresh`" in end
    assert "`trainwatch resume -- NEW COMMAND`" in end


def test_unless_there_is_nothing_to_write_over() -> None:
    assert len(crash(run_of(GENERIC, NOWHERE)).of(StartAttempt)) == 2


def test_or_a_person_says_so() -> None:
    world = untold().command("stop")
    world.command("resume")
    assert world.word == "stopped"
    assert "`trainwatch resume --fresh` from the beginning, over what was saved" in notes(world)
    assert "`trainwatch resume -- NEW COMMAND` with a command that has one" in notes(world)
    world.command("resume", fresh=True)
    assert resumed(world) is None
    assert world.of(StartAttempt)[-1].reason.endswith("start attempt 2 from the beginning")


@pytest.mark.parametrize("verb", ["restart", "profile"])
def test_a_healthy_training_is_not_ended_for_a_start_from_the_beginning(verb: str) -> None:
    world = untold().command(verb, **({"profile": "calm"} if verb == "profile" else {}))
    assert world.word == "running"
    assert "begin" in notes(world)


def test_a_checkpoint_that_it_cannot_be_told_of_is_refused() -> None:
    world = run_of(HF).command("stop").command("resume", checkpoint="out/model.safetensors")
    assert world.word == "stopped"
    assert "model.safetensors: hf resumes from a directory, not from a file" in notes(world)


# --- no profile -----------------------------------------------------------------------------------------------------


def test_a_person_goes_back_to_the_own_config() -> None:
    world = running(judge(resume_support=resume_support(GENERIC, ANYWHERE), profiles=("calm",))).command(
        "profile", profile="calm"
    )
    saved(world, "out/step-40", 40).command("profile", profile="none")
    assert journal_of(world).profile_pending
    saved(at_step(world, 40), "out/step-50", 50)
    assert [s.profile for s in world.of(StartAttempt)] == [None, "calm", None]
    story = journal_of(world)
    assert (story.profile, story.profile_pending) == (None, False)


@pytest.mark.parametrize("now", [False, True])
def test_before_anything_is_saved_only_a_switch_at_once_is_possible(*, now: bool) -> None:
    """At a checkpoint there would be one that nobody can tell the trainer of."""
    world = run_of(GENERIC, NOWHERE).command("profile", profile="calm", now=now)
    assert len(world.of(StartAttempt)) == (2 if now else 1)
    assert ("a switch needs a restart, and a checkpoint cannot be passed to the command" in notes(world)) != now


def test_a_preset_that_never_resumes_refuses_the_checkpoint_that_a_person_names() -> None:
    world = run_of(Preset(name="plain", resume="none")).command("stop").command("resume", checkpoint="out/step-20")
    assert world.word == "stopped"
    assert 'step-20: the preset plain never resumes (resume = "none")' in notes(world)


def test_where_nothing_is_known_of_newer_ones_it_goes_on_from_where_it_was_sent() -> None:
    world = running(judge(quick(backoff_s=(0.0,)))).command("stop").command("resume", checkpoint="elsewhere/step-7")
    assert resumed(world) == "elsewhere/step-7"
    assert resumed(crash(world)) == "elsewhere/step-7"


@pytest.mark.parametrize(
    ("wait_s", "name", "holds", "given"),
    [(20.0, "data.pt", "weights", False), (0.0, "data.pt", "weights", True), (20.0, "data.pt", "state", True),
     (20.0, "last.pt", "weights", True), (-1.0, "data.pt", "weights", True)],
)  # fmt: skip
def test_data_that_was_written_before_the_first_step_is_not_given_to_the_trainer(
    wait_s: float, name: str, holds: Holds, given: bool
) -> None:
    mind = judge(quick(backoff_s=(0.0,)), GENERIC, resume_support=resume_support(GENERIC, ANYWHERE), created_wall=1.0)
    world = World(mind).begin().wait(20.0)
    mtime = 1.0 + (world.t if wait_s >= 0.0 else at_step(world, 0, 20).t)
    if wait_s < 0.0:  # a save of the first attempt is seen only in the second one, which began anew
        at_step(crash(world).wait(20.0), 0)
    world.see(CheckpointEvent(t=world.t, path=name, event="complete", mtime=mtime, holds=holds)).wait(max(0.0, wait_s))
    assert resumed(crash(at_step(world, 0, 40))) == (name if given else None)

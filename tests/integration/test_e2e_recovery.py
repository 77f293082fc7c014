"""Recovery with real processes: what a resume must prove, and what is changed so that a restart can succeed."""

import hashlib
import resource
import sys
from pathlib import Path

from tests.fakes.e2e_world import World, until
from tests.tiers import SECOND_TIER
from trainwatch.core.model.decision import GiveUp, StartAttempt


def test_a_resume_that_the_trainer_ignores_is_stopped_and_reported(world: World) -> None:
    world.write("--steps", "400", "--save-every", "40", "--crash-at", "90", "--forget")

    watcher = world.headless()

    assert watcher.ends() == 1, watcher.said
    story = world.story()
    assert story.state == "given_up"
    assert [(i.kind, i.class_) for i in story.incidents] == [
        ("crash", "cuda_unknown_error"), ("resume", "started_over"),
    ]  # fmt: skip
    assert "resume did not take: the loss begins again" in world.decisions(GiveUp)[0].reason
    assert len(world.lives()) == 2
    assert world.steps(2)[-1] < 80, "ended before it reached what it would have overwritten"
    assert "if_resume_not_taken" in watcher.said


@SECOND_TIER
def test_a_trainer_that_restores_and_counts_from_the_beginning_trains_on(world: World) -> None:
    world.write("--steps", "120", "--save-every", "40", "--crash-at", "90", "--count-anew")

    watcher = world.headless()

    assert watcher.ends() == 0, watcher.said
    assert [(i.kind, i.open) for i in world.story().incidents] == [("crash", False)]
    assert "resume verified: the loss goes on" in watcher.said
    assert len(world.lives()) == 2
    assert world.steps(2)[0] == 1
    assert world.steps(2)[-1] == 120


@SECOND_TIER
def test_a_checkpoint_that_the_trainer_cannot_load_gives_way_to_the_one_before(world: World) -> None:
    world.write("--steps", "120", "--save-every", "40", "--crash-at", "90", "--unreadable", "80")

    watcher = world.headless()

    assert watcher.ends() == 0, watcher.said
    starts = [order.resume_from for order in world.decisions(StartAttempt)]
    assert [None if path is None else path.removesuffix(".safetensors")[-2:] for path in starts] == [
        None,
        "80",
        "80",
        "40",
    ]
    assert world.story().state == "finished"


KOHYA = Path(__file__).parent.parent / "fakes" / "kohya_trainer.py"
CONFIG = """# My own notes stay where they are.
[training_arguments]
output_dir = "{out}"
output_name = "luca"
train_batch_size = {batch}            # as much as fits
gradient_accumulation_steps = 1
max_train_epochs = {epochs}
gradient_checkpointing = false
[memory_arguments]
vae_batch_size = 1
"""


def kohya(
    world: World, *options: str, batch: int, epochs: int, more: dict[str, dict[str, object]] | None = None
) -> Path:
    """A project whose trainer reads a TOML; returns that file."""
    config = world.project / "luca.toml"
    config.write_text(CONFIG.format(out=world.out, batch=batch, epochs=epochs))
    command = [sys.executable, str(KOHYA), "--config_file", "{config}", *options]
    world.write(command=command, config="luca.toml", preset="kohya", more=more)
    return config


def effective(world: World) -> list[list[str]]:
    """What each attempt read: batch, accumulation, epochs, weights."""
    return [line.split() for line in (world.out / "effective.txt").read_text().splitlines()]


@SECOND_TIER
def test_out_of_memory_halves_the_batch_and_keeps_the_effective_batch(world: World) -> None:
    config = kohya(world, batch=8, epochs=2)
    before = hashlib.sha256(config.read_bytes()).hexdigest()

    watcher = world.headless()

    assert watcher.ends() == 0, watcher.said
    assert [row[:2] for row in effective(world)] == [["8", "1"], ["8", "1"], ["4", "2"], ["2", "4"]]
    story = world.story()
    assert [r.name for r in story.remedies] == ["expandable-segments", "half-batch", "half-batch"]
    changed = [(c.key, c.before, c.after) for c in story.attempts[-1].changes]
    assert ("training_arguments.train_batch_size", 8, 2) in changed
    assert ("training_arguments.gradient_accumulation_steps", 1, 4) in changed
    assert [i.class_ for i in story.incidents] == ["cuda_oom", "cuda_oom", "cuda_oom"]
    assert "REMEDY half-batch: train_batch_size 8 -> 4, gradient_accumulation_steps 1 -> 2" in watcher.said
    assert hashlib.sha256(config.read_bytes()).hexdigest() == before


@SECOND_TIER
def test_a_remedy_that_may_not_be_applied_is_proposed_and_can_be_accepted(world: World) -> None:
    kohya(world, batch=4, epochs=1, more={"remedies": {"apply": "none"}})

    watcher = world.headless()

    assert watcher.ends() == 1, watcher.said
    assert [p.name for p in world.story().proposals][:2] == ["expandable-segments", "half-batch"]
    assert "--with half-batch`" in watcher.said
    done = world.asks("resume", "--with", "half-batch")
    assert done.code == 0, done.err
    world.in_state("finished")
    assert [row[:2] for row in effective(world)] == [["4", "1"], ["2", "2"]]


def test_a_weights_only_resume_trains_the_remaining_epochs_and_overwrites_no_earlier_checkpoint(world: World) -> None:
    kohya(world, "--crash-in-epoch", "3", "--crash-twice", batch=2, epochs=6)

    watcher = world.headless()

    assert watcher.ends() == 0, watcher.said
    first, second, third = effective(world)
    assert first[2:] == ["6", "None"]
    assert (second[2], Path(second[3]).name) == ("4", "luca-000002.safetensors")
    assert (third[2], Path(third[3]).name) == ("2", "luca-try2-000002.safetensors")
    assert sorted(p.name for p in world.out.glob("*.safetensors")) == [
        "luca-000001.safetensors",
        "luca-000002.safetensors",
        "luca-try2-000001.safetensors",
        "luca-try2-000002.safetensors",
        "luca-try3-000001.safetensors",
        "luca-try3-000002.safetensors",
        "luca-try3.safetensors",
    ]
    assert "it saves as luca-try2: if the trainer uses this name, it does not overwrite what" in watcher.said
    assert "named in the derived config and the log; the printed step starts again" in watcher.said
    story = world.story()
    assert story.overall_step == 6 * 16
    assert world.status()["overall"] == {"step": 6 * 16, "total_steps": 6 * 16}
    assert "step 96 of 96" in world.asks("status").out
    assert [i.open for i in story.incidents] == [False, False]


@SECOND_TIER
def test_a_failing_compiler_is_disabled_by_an_environment_variable(world: World) -> None:
    kohya(world, "--needs-no-compile", batch=2, epochs=1)

    watcher = world.headless()

    assert watcher.ends() == 0, watcher.said
    assert [r.name for r in world.story().remedies] == ["no-compile"]


@SECOND_TIER
def test_a_restart_that_finds_no_open_file_free_is_made_again_once_there_are_some(world: World) -> None:
    world.write(
        "--steps", "60", "--hold-at", "30", "--crash-at", "31", more={"restart": {"network_wait_s": [0.5, 0.5]}}
    )
    watch = world.headless()
    world.at_step(29)
    soft, hard = resource.prlimit(watch.pid, resource.RLIMIT_NOFILE)
    assert soft == min(hard, 65_536), "raised at the start"
    resource.prlimit(watch.pid, resource.RLIMIT_NOFILE, (3, hard))  # the standard streams have these numbers
    (world.out / "go").touch()
    held = "Too many open files"
    until(lambda: held in watch.said, "nothing can be opened")
    resource.prlimit(watch.pid, resource.RLIMIT_NOFILE, (soft, hard))
    assert watch.ends() == 0
    assert world.steps(world.story().attempts[-1].number)[-1] == 60
    assert "given up" not in watch.said

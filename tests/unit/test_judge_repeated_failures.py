"""What the second failure at the same place shows: known cures are applied, and what no restart cures ends the run."""

from pathlib import Path

import pytest

from tests.builders import Story, World, judge
from tests.shipped import CATALOGUE
from tests.unit.test_judge_recovery import crash, quick, running, save
from trainwatch.core.app.plan.resume_plan import decided
from trainwatch.core.config.shipped import load_remedies
from trainwatch.core.judge.recovery.ending import diagnosis_of
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import GiveUp, NotifyPeople, StartAttempt
from trainwatch.core.model.fact import RemedyApplied, RemedyProposed
from trainwatch.core.model.observation import Exit, LogChunk
from trainwatch.core.model.preset import OwnEnd, Preset
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Remedies, Settings


def traced(error: str, code: str = "check(data)", file: str = "/w/train.py") -> str:
    return f'Traceback (most recent call last):\n  File "{file}", line 3, in <module>\n    {code}\n{error}\n'


def ends_at_once(
    text: str, *, starts: int = 4, code: int = 1, after_s: float = 1.0, own_ends: tuple[OwnEnd, ...] = ()
) -> World:
    """A run whose command ends so before any step, each time."""
    mind = judge(quick(backoff_s=(0.0, 10.0, 60.0)), catalogue=CATALOGUE, own_ends=own_ends)
    world = World(mind).begin()
    for _ in range(starts):
        if world.word not in {"starting", "running"}:
            break
        world.see(
            LogChunk(t=world.t + after_s, text=text), Exit(t=world.t + after_s, code=code, died_t=world.t + after_s)
        )
        world.wait(70.0, every_s=5.0) if world.word == "backing_off" else None
    return world


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            traced("RuntimeError: 0 images in the data set", 'raise RuntimeError(f"{n} images")'),
            "RuntimeError: 0 images",
        ),
        (traced("AssertionError: lora rank", "assert rank > 0"), "AssertionError: lora rank"),
        (
            traced("mine.BadRecipe: no stage", "raise BadRecipe('no stage')", "/home/me/recipes/run.py"),
            "mine.BadRecipe",
        ),
    ],
)
def test_two_starts_that_end_with_one_line_of_the_own_code_end_the_run(text: str, line: str) -> None:
    """It was started four times in 80 s, with eight notices."""
    world = ends_at_once(text)
    assert world.word == "given_up"
    assert len(world.of(StartAttempt)) <= 2
    assert world.t <= 5.0
    assert line in world.of(GiveUp)[0].reason


def ends_of(folder: Path, source: str, module: str = "pass\n") -> tuple[OwnEnd, ...]:
    """The texts with which a project ends itself, as a run takes them from its source."""
    (folder / "train.py").write_text(f"import sys\nimport recipe\n{source}\n")
    (folder / "recipe.py").write_text(module)
    spec = RunSpec(id="r", name="r", command=("python", "train.py"), cwd=str(folder), created_wall=0.0)
    return decided(spec, Preset(name="generic")).own_ends


@pytest.mark.parametrize(
    ("source", "module", "said"),
    [
        ('if rank < 1:\n    sys.exit(f"fatal: rank {rank} is too small")', "", "fatal: rank 0 is too small"),
        (
            "recipe.read()",
            'def read():\n    raise SystemExit("No stage in the " + name)\n',
            "No stage in the small.toml",
        ),
        ("", 'from sys import exit as leave\nleave("%s: %d heads do not divide" % (a, 3))', "b: 3 heads do not divide"),
        ("rank or sys.exit('see above\\nError: {} is no mode\\n'.format(mode))", "", "see above\nError: x is no mode"),
    ],
)
def test_two_starts_that_the_own_source_ends_with_one_text_end_the_run(
    tmp_path: Path, source: str, module: str, said: str
) -> None:
    """A text of sys.exit has no traceback: the source shows who ended it."""
    world = ends_at_once(f"loading\n{said}\n", own_ends=ends_of(tmp_path, source, module))
    assert world.word == "given_up"
    assert len(world.of(StartAttempt)) <= 2
    assert said.splitlines()[-1] in world.of(NotifyPeople)[-1].title


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('sys.exit(f"fatal: port {port} is taken")', "fatal: port 29500 is taken"),
        ('if not os.path.ismount(data):\n    sys.exit(f"fatal: {data} is empty")', "fatal: /mnt/a is empty"),
        ('sys.exit("fatal: no network yet")', "fatal: no network yet"),
        ('try:\n    ask()\nexcept Exception as e:\n    sys.exit(f"it did not work: {e}")', "it did not work: later"),
        ('sys.exit(f"fatal: {why}")', "fatal: rank 0 is too small"),
        ('sys.exit(f"rank {rank} is odd")', "fatal: rank 0 is too small"),
        ('print("fatal: rank 0 is too small")', "fatal: rank 0 is too small"),
    ],
)
def test_a_text_that_waiting_may_cure_or_that_the_source_has_not_is_started_again(
    tmp_path: Path, source: str, said: str
) -> None:
    assert len(ends_at_once(f"{said}\n", own_ends=ends_of(tmp_path, source)).of(StartAttempt)) > 2


def sparse(world: World, first: int, last: int) -> World:
    """A line every twenty steps."""
    return world.watch(Story(meta=False, period_s=5.0, step=first).load(2).train(last - first, every=20, step_s=1.0))


@pytest.mark.parametrize(
    "error",
    ["ValueError: sample 4711 has no mask", "RuntimeError: Caught RuntimeError in DataLoader worker process 0."],
)
def test_the_same_words_at_the_same_printed_step_are_no_accident(error: str) -> None:
    """A bad sample at step 150, a line every 20 steps: five attempts ended at the last printed step 140."""
    world = sparse(World(judge(quick(max_restarts=9, backoff_s=(0.0,)), catalogue=CATALOGUE)).begin(), 0, 101)
    save(world, "out/step-100", 100)
    crash(sparse(world, 100, 145), traced(error, "loss = step(batch)"))
    assert world.of(StartAttempt)[-1].resume_from == "out/step-100"
    crash(sparse(world, 100, 145), traced(error, "loss = step(batch)"))
    assert world.word == "given_up"
    assert len(world.of(StartAttempt)) == 2


def remedied(values: dict[str, object], preset: str, apply: str = "guide", options: tuple[str, ...] = ()) -> Judge:
    settings = Settings(remedies=Remedies(apply=apply), restart=quick(backoff_s=(0.0,), max_restarts=6).restart)  # type: ignore[arg-type]
    return judge(
        settings, catalogue=CATALOGUE, remedies=tuple(load_remedies()), values={"": values}, options=frozenset(options),
        preset=Preset(name=preset),
    )  # fmt: skip


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
KOHYA = {
    "gradient_accumulation_steps": 4,
    "train_batch_size": 1,
    "$PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
}


def applied(world: World) -> list[str]:
    return [fact.name for fact in world.of(RemedyApplied)]


def test_the_cure_of_the_guide_is_applied_when_the_failure_comes_back() -> None:
    world = running(remedied(KOHYA, "kohya"))
    crash(world, OOM)
    assert "accumulation-2" not in applied(world)
    for _ in range(4):
        crash(world.watch(Story(meta=False, period_s=5.0).load(5).train(40)), OOM)
    assert applied(world)[-1] == "accumulation-2"
    change = world.of(RemedyApplied)[-1].changes[0]
    assert (change.key, change.before, change.after) == ("gradient_accumulation_steps", 4, 2)


@pytest.mark.parametrize("apply", ["equivalent", "none"])
def test_the_settings_can_forbid_it(apply: str) -> None:
    world = running(remedied(KOHYA, "kohya", apply))
    for _ in range(5):
        crash(world.watch(Story(meta=False, period_s=5.0).load(5).train(40)), OOM)
    assert "accumulation-2" not in applied(world)


@pytest.mark.parametrize(
    "text",
    [
        (
            "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder, and outgoing "
            "traffic has been disabled. To enable downloads, set 'HF_HUB_OFFLINE=0' as environment variable.\n"
        ),
        (
            "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/a: offline mode is "
            "enabled. To disable it, please unset the `HF_HUB_OFFLINE` environment variable.\n"
        ),
    ],
)
def test_a_file_that_is_missing_offline_is_no_network_that_comes_back(text: str) -> None:
    found = diagnosis_of([traced("").rstrip() + "\n" + text], CATALOGUE, 1)
    assert found.failure == "config_error"
    assert "offline" in found.title
    assert ends_at_once(text).word == "given_up"


REFUSED = """Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/mmengine/runner/checkpoint.py", line 347, in load_from_local
    checkpoint = torch.load(filename, map_location=map_location)
  File "/usr/lib/python3.11/site-packages/torch/serialization.py", line 1529, in load
    raise pickle.UnpicklingError(_get_wo_message(str(e))) from None
_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options.
	(1) In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`.
Check the documentation of torch.load: https://pytorch.org/docs/stable/generated/torch.load.html.
"""


def refused(before: str) -> World:
    """A resume that the trainer refuses; ``before``: what it says first."""
    world = save(running(remedied({}, "generic")), "out/epoch_6.pth", 40)
    return crash(crash(world, "\nRuntimeError: CUDA error: unknown error\n"), f"{before}\n{REFUSED}")


@pytest.mark.parametrize(
    "before", ["Loads checkpoint by local backend from path: /w/out/epoch_6.pth", "resume epoch_6.pth"]
)
def test_a_checkpoint_of_the_run_that_torch_refuses_is_loaded_whole_and_told(before: str) -> None:
    """Three identical attempts, while a variable that changes nothing else cured it."""
    world = refused(before)
    (fact,) = world.of(RemedyApplied)
    assert [(c.where, c.key, c.after) for c in fact.changes] == [("env", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")]
    assert "downloaded ones too" in fact.cost
    assert world.of(StartAttempt)[-1].resume_from == "out/epoch_6.pth"


@pytest.mark.parametrize(
    "before",
    ["", "load /w/out/epoch_6.pth\nload /home/me/.cache/hub/base.bin", "Downloaded https://host.example/m/base.pth"],
)
def test_another_file_that_torch_refuses_is_left_to_a_person(before: str) -> None:
    """The variable lets every load of the process run what is in the file."""
    world = refused(before)
    assert applied(world) == []
    assert [fact.name for fact in world.of(RemedyProposed)] == ["load-whole-checkpoints"]

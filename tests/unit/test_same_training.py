"""A command in another spelling is the same training; the same script with other options may save into its folder."""

from pathlib import Path

import msgspec
import pytest

from tests.unit.test_start_choice import chosen, ran, refused, saved
from trainwatch.core.store.run_directory import RunDirectory

TYPED = ("python3", "src/train.py", "--config", "a.yaml", "--lr", "1e-4")


@pytest.fixture(autouse=True)
def script(folder: Path) -> Path:
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text("")
    (folder / "a.yaml").write_text("lr: 1\n")
    return folder / "src" / "train.py"


def saved_into(run: RunDirectory, name: str = "out") -> None:
    """As the supervisor stores it when it has seen where the trainer saves."""
    run.save_spec(msgspec.structs.replace(run.load_spec(), output_dir=str(Path(name).absolute())))


@pytest.mark.parametrize(
    "words",
    [
        ("python3", "src/train.py", "--config=a.yaml", "--lr=1e-4"),
        ("python3", "src/train.py", "--lr", "1e-4", "--config", "a.yaml"),
        ("python", "-u", "./src/train.py", "--config", "a.yaml", "--lr", "1e-4"),
        ("env", "CUDA_VISIBLE_DEVICES=0", "python3", "src/train.py", "--config", "a.yaml", "--lr", "1e-4"),
        ("bash", "-c", "python3 src/train.py --config a.yaml --lr 1e-4"),
        ("torchrun", "--nproc_per_node", "2", "src/train.py", "--config", "a.yaml", "--lr", "1e-4"),
    ],
)
def test_another_spelling_does_not_begin_over_what_the_command_made(words: tuple[str, ...]) -> None:
    run = ran(TYPED, state="finished")
    assert f"run {run.id} of this command is finished" in refused(words)
    again = ran(TYPED, state="interrupted")
    saved_into(again)
    known = chosen(words).known
    assert known is not None
    assert known.id == again.id


OTHER = ("python3", "src/train.py", "--config", "a.yaml", "--lr", "5e-5")


@pytest.mark.parametrize("words", [OTHER, TYPED[:4], (*TYPED, "--epochs", "3"), ("python3", "src/train.py")])
def test_other_options_of_the_script_do_not_begin_over_its_checkpoints(words: tuple[str, ...]) -> None:
    run = ran(TYPED, state="finished")
    saved_into(run)
    saved()
    said = refused(words)
    assert f"run {run.id} of the same script saved into {Path('out').absolute()}" in said
    assert "model-step00000020.safetensors" in said
    assert chosen(words, fresh=True).known is None
    assert chosen((*words, "--output_dir", "elsewhere")).known is None


@pytest.mark.parametrize("name", ["runs/2026-11-22_18-03-11", "runs/exp3", "logs/version_4", "out-1e-4"])
def test_a_folder_that_was_made_for_that_launch_refuses_nothing(name: str) -> None:
    saved_into(ran(TYPED, state="finished"), name)
    Path(name).mkdir(parents=True)
    saved().rename(Path(name) / "model-step00000020.safetensors")
    assert chosen(OTHER).known is None


def test_a_script_that_saved_into_two_folders_makes_one_for_each_launch() -> None:
    for name in ("out", "other"):
        saved_into(ran((*TYPED, "--note", name), state="finished"), name)
    saved()
    assert chosen(OTHER).known is None


def test_another_script_or_a_folder_without_checkpoints_refuses_nothing(script: Path) -> None:
    saved_into(ran(TYPED, state="finished"))
    assert chosen(OTHER).known is None
    saved()
    script.with_name("other.py").write_text("")
    assert chosen(("python3", "src/other.py", "--lr", "5e-5")).known is None


def test_a_start_that_names_a_checkpoint_of_that_folder_goes_on_from_it(script: Path) -> None:
    saved_into(ran(TYPED, state="finished"))
    point = saved()
    script.write_text("import argparse\np = argparse.ArgumentParser()\np.add_argument('--resume')\n")
    words = "python3 src/train.py --lr 5e-5"
    assert chosen(("bash", "-c", f"{words} --resume {point}")).known is None
    assert "of the same script" in refused(("bash", "-c", words))

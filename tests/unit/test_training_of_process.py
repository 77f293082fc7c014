"""What a process itself runs, and when that is the training of a command."""

from pathlib import Path

import pytest

from trainwatch.core.model.preset import written_in
from trainwatch.core.source.launch_target import training_in, training_run_by, without_options


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "fit.py").write_text("print(1)\n")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("python train.py --a 1 --b=2", "/venv/bin/python3 -u train.py --b 2 --a=1"),
        ("torchrun --nproc_per_node 2 train.py --a 1", "/venv/bin/python -u train.py --a 1"),
        ("python -m pkg.fit --a 1", "/venv/bin/python -Xfaulthandler -W ignore -um pkg.fit --a 1"),
        ("python train.py --resume {resume} --a 1", "python train.py --a 1 --resume out/step_40.pt"),
        ("python train.py lr=1 resume={resume}", "python train.py lr=1 resume=out/step_40.pt"),
        ("python train.py lr=1 resume={resume}", "python train.py lr=1"),
    ],
)
def test_the_same_training_in_another_spelling(folder: Path, command: str, argv: str) -> None:
    words = command.split()
    options = {each.name for each in written_in(words)}
    wanted, seen = training_in(words, folder, {}), training_run_by(argv.split(), folder, {})
    assert wanted is not None
    assert seen is not None
    assert without_options(seen, options) == without_options(wanted, options)


@pytest.mark.parametrize(
    "argv", ["python train.py --a 2", "python train.py --a 1 --out other", "python -m pkg.fit --a 1"]
)
def test_other_options_are_another_training(folder: Path, argv: str) -> None:
    assert training_run_by(argv.split(), folder, {}) != training_in(["python", "train.py", "--a", "1"], folder, {})


@pytest.mark.parametrize(
    "argv",
    [
        "python /venv/bin/pylint train.py --a 1",
        "python -m pylint train.py --a 1",
        "python -m pdb train.py --a 1",
        "python -c 1 train.py",
        "python - train.py",
        "python -u",
        "python",
    ],
)
def test_a_script_that_is_only_given_to_a_program_is_not_run_by_it(folder: Path, argv: str) -> None:
    assert training_run_by(argv.split(), folder, {}) is None

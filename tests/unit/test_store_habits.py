"""Habits on disk: which launches are one job, and that the file is never a reason to fail."""

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from trainwatch.core.model.run import GpuHabit, Habits, PhaseHabit
from trainwatch.core.store import learned as store
from trainwatch.core.store.learned import HabitsFile, job_key, normalised

PACE: dict[str, Any] = {"line_s": 2.0, "cpu_cores": 1.0, "gpus": (GpuHabit(index=0, busy_w=300.0),)}
SAVE, LESS = PhaseHabit(times=2, longest_s=100.0, quiet_s=50.0), PhaseHabit(times=2, longest_s=90.0, quiet_s=45.0)
START = PhaseHabit(times=1, longest_s=40.0, quiet_s=4.0)
TAUGHT = Habits(runs=1, start=START, phases={"save": SAVE}, lull_s=10.0, pause_s=20.0, spin_s=30.0, **PACE)
FADED = Habits(runs=1, start=PhaseHabit(quiet_s=3.6), phases={"save": LESS}, lull_s=9.0, pause_s=18.0, spin_s=27.0)


@pytest.mark.parametrize(
    ("command", "same"),
    [
        ("python3.11 train.py --lr 1e-4", True),
        ("/opt/env/bin/python train.py --lr 1e-4", True),
        ("python train.py --resume out/checkpoint-40 --lr 1e-4", True),
        ("python train.py --resume --lr 1e-4", True),
        ("python train.py --resume_from_checkpoint=out/c --lr 1e-4", True),
        ("python train.py --resume-from-ckpt out/c --lr 1e-4", True),
        ("python train.py --ckpt_path out/c --lr 1e-4", True),
        ("python train.py --load_from out/c --lr 1e-4", True),
        ("python train.py --output_dir out/7 --lr 1e-4 --run_name seven --seed 7", True),
        ("python train.py --resume {resume} --lr 1e-4 --out-dir {output_dir}", True),
        ("python train.py trainer.resume_from=x +seed=4 --lr 1e-4 --master_port 29501", True),
        ("python train.py --lr 2e-4", False),
        ("python train.py --lr 1e-4 --batch_size 8", False),
        ("python train.py --lr 1e-4 --init_lr_from_scratch", False),
        ("torchrun train.py --lr 1e-4", False),
        ("python train.py --lr 1e-4 --model_name llama", False),
    ],
)
def test_only_other_training_options_than_resume_and_output_change_the_normalised_command(
    command: str, same: bool
) -> None:
    assert (normalised(command.split()) == ("python", "train.py", "--lr", "1e-4")) is same


def test_job_key_depends_on_the_working_folder() -> None:
    assert job_key(["python"], "/a") != job_key(["python"], "/b")
    assert job_key(["\udcff"], "/a")


def test_habits_are_decayed_when_they_are_read(tmp_path: Path) -> None:
    HabitsFile(tmp_path, ["python", "t.py"], "/a").write(TAUGHT)
    again = HabitsFile(tmp_path, ["python3", "t.py", "--resume", "x"], "/a").read()
    assert again == replace(FADED, start=PhaseHabit(times=1, longest_s=36.0, quiet_s=3.6), **PACE)
    assert HabitsFile(tmp_path, ["python", "other.py"], "/a").read() is None


def test_a_changed_config_discards_the_learned_pace(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text("batch = 1")
    HabitsFile(tmp_path, ["t"], "/a", config).write(TAUGHT)
    same = HabitsFile(tmp_path, ["t"], "/a", config).read()
    config.write_text("batch = 2")
    changed = HabitsFile(tmp_path, ["t"], "/a", config).read()
    config.unlink()
    gone = HabitsFile(tmp_path, ["t"], "/a", config).read()
    assert same is not None
    assert same.gpus
    assert changed == gone == FADED, "lengths stay, but a silence of the start makes no deadline shorter"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"version":2,"habits":{}}', b'{"version":1}', b"\xff\xfe", b"[" * 50_000, b" " * 70_000, None],
)
def test_an_unreadable_habits_file_counts_as_absent(tmp_path: Path, content: bytes | None) -> None:
    file = HabitsFile(tmp_path, ["t"], "/a")
    file.path.parent.mkdir()
    if content is None:
        file.path.mkdir()
    else:
        file.path.write_bytes(content)
    assert file.read() is None


def test_a_habits_folder_that_cannot_be_created_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "habits").write_text("in the way")
    file = HabitsFile(tmp_path, ["t"], "/a")
    file.write(TAUGHT)
    assert file.read() is None


def test_only_the_habits_of_the_newest_jobs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "FILES", 3)
    for n in range(5):
        file = HabitsFile(tmp_path, ["t", str(n)], "/a")
        file.write(TAUGHT)
        os.utime(file.path, (1000.0 + n, 1000.0 + n))
    assert HabitsFile(tmp_path, ["t", "0"], "/a").read() is None
    assert HabitsFile(tmp_path, ["t", "4"], "/a").read() is not None
    assert len(list((tmp_path / "habits").iterdir())) == 3

"""Prune, back up, compare and show: what they do, and what they must not touch."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.fakes.checkpoint_layouts import dcp, legacy_file, sharded, training_state, transformers, weights, zip_file
from tests.fakes.torch_files import write_zip
from trainwatch.cli import main
from trainwatch.core.checkpoints.inspection import verify
from trainwatch.core.checkpoints.listing import show
from trainwatch.core.checkpoints.manage.comparison import ComparisonRefusedError, compare
from trainwatch.core.checkpoints.manage.copies import BackupRefusedError, backup
from trainwatch.core.checkpoints.manage.pruning import apply_prune, plan_prune


def epochs(root: Path, *numbers: int) -> list[Path]:
    root.mkdir(exist_ok=True)
    paths = [root / f"luca-{number:06}.safetensors" for number in numbers]
    for place, path in enumerate(paths):
        save_file(weights(place), path)
        os.utime(path, (1000 + place, 1000 + place))
    return paths


def cut(path: Path) -> None:
    status = path.stat()
    os.truncate(path, status.st_size - 9)
    os.utime(path, (status.st_atime, status.st_mtime))


def poison(path: Path) -> None:
    status = path.stat()
    arrays = weights()
    arrays["unet.up.bias"][:] = np.nan
    save_file(arrays, path)
    os.utime(path, (status.st_atime, status.st_mtime))


def names(paths: object) -> list[str]:
    return [Path(path).name for path in paths]  # type: ignore[attr-defined]


def test_a_prune_plan_deletes_nothing_and_keeps_the_newest(tmp_path: Path) -> None:
    paths = epochs(tmp_path, 2, 4, 6, 8)

    plan = plan_prune(tmp_path, 2)

    assert names(c.path for c in plan.delete) == ["luca-000004.safetensors", "luca-000002.safetensors"]
    assert [(Path(k.checkpoint.path).name, k.why) for k in plan.keep] == [
        ("luca-000008.safetensors", "resume point"),
        ("luca-000006.safetensors", "newest"),
    ]
    assert plan.freed_bytes == sum(path.stat().st_size for path in paths[:2])
    assert all(path.exists() for path in paths)


def test_prune_does_not_count_a_checkpoint_with_nan_as_kept(tmp_path: Path) -> None:
    paths = epochs(tmp_path, 2, 4, 6)
    poison(paths[2])

    plan = plan_prune(tmp_path, 1)

    assert plan.resume_point == str(paths[1])
    assert {Path(k.checkpoint.path).name: k.why for k in plan.keep} == {
        "luca-000006.safetensors": "deep check failed",
        "luca-000004.safetensors": "resume point",
    }
    apply_prune(plan)
    assert [path.exists() for path in paths] == [False, True, True]


def test_prune_keeps_damaged_checkpoints_and_the_complete_one_before_each(tmp_path: Path) -> None:
    paths = epochs(tmp_path, 1, 2, 3, 4, 5)
    cut(paths[2])

    plan = plan_prune(tmp_path, 1)

    assert {Path(k.checkpoint.path).name: k.why for k in plan.keep} == {
        "luca-000005.safetensors": "resume point",
        "luca-000003.safetensors": "not complete",
        "luca-000002.safetensors": "next to a damaged one",
    }
    assert names(c.path for c in plan.delete) == ["luca-000004.safetensors", "luca-000001.safetensors"]


def test_prune_keeps_links_and_their_targets(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    far = epochs(outside, 1)[0]
    out = tmp_path / "out"
    paths = epochs(out, 1, 2, 3)
    (out / "best.safetensors").symlink_to(paths[0].name)
    for number in (1, 2):
        (out / f"epoch_{number}").mkdir()
        write_zip(out / f"epoch_{number}" / "net.pth", weights(number))
    (out / "best").symlink_to("epoch_1")
    (out / "luca-000009.safetensors").symlink_to(far)

    apply_prune(plan_prune(out, 1))

    assert [path.exists() for path in paths] == [True, False, True]
    assert far.exists()
    assert (out / "best.safetensors").exists()
    assert (out / "best" / "net.pth").exists()


OPTIMIZER = {"state": {0: {"exp_avg": np.zeros(3, dtype=np.float32)}}, "param_groups": []}


def saves(root: Path, *names: str, steps: tuple[int, ...] = (100, 200, 300)) -> None:
    """A file of each name at each step; what is called ``opt`` holds the state of an optimizer."""
    root.mkdir(exist_ok=True)
    for step in steps:
        for place, name in enumerate(names):
            path = root / name.format(step)
            write_zip(path, OPTIMIZER if name.startswith("opt") else weights(step))
            os.utime(path, (1e6 + 10 * step + place, 1e6 + 10 * step + place))


@pytest.mark.parametrize("names", [
    ("model_{}.pth", "optimizer_{}.pth", "scaler_{}.pt", "rng_state_{}.pth"),
    ("opt{:06}.pt", "model{:06}.pt", "ema_0.9999_{:06}.pt"),
    ("G_{}.pth", "D_{}.pth", "opt_{}.pth"),
])  # fmt: skip
def test_prune_deletes_the_whole_save(tmp_path: Path, names: tuple[str, ...]) -> None:
    saves(tmp_path, *names)
    plan = plan_prune(tmp_path, 1)
    assert plan.freed_bytes == sum(path.stat().st_size for path in tmp_path.iterdir() if "300" not in path.name)
    outcome = apply_prune(plan)
    assert (outcome.refused, outcome.freed_bytes) == ((), plan.freed_bytes)
    assert {path.name for path in tmp_path.iterdir()} == {name.format(300) for name in names}


def test_prune_keeps_parts_of_something_else(tmp_path: Path) -> None:
    """Numbers of ranks, caches, an unknown make, a save that is gone, the target of a link, a number that is kept."""
    saves(tmp_path, "model_epoch_{}.pth", "optimizer_epoch_{}.pth", steps=(1, 2, 3, 4))
    saves(tmp_path, "cache_latents_{}.pt", steps=(1, 2))
    saves(tmp_path, "best_{}.pth", steps=(3,))
    saves(tmp_path, "optimizer_epoch_{}.pth", steps=(50,))
    (tmp_path / "newest_optimizer.pth").symlink_to("optimizer_epoch_2.pth")
    for name in ("optimizer_{}.bin", "rng_state_{}.pth", "optimizer_{}.npz"):
        saves(tmp_path, name, steps=(1, 2, 3))
        for step in (1, 2, 3):
            os.utime(tmp_path / name.format(step), (1e6 + 40, 1e6 + 40))
    for step in (1, 2, 3):
        (tmp_path / f"scaler_{step}.pth").write_bytes(b"of an unknown make")
        os.utime(tmp_path / f"scaler_{step}.pth", (1e6 + 10 * step, 1e6 + 10 * step))
    before = {path.name for path in tmp_path.iterdir()}
    apply_prune(plan_prune(tmp_path, 1))
    mains = {f"model_epoch_{step}.pth" for step in (1, 2, 3)}
    assert before - {path.name for path in tmp_path.iterdir()} == {*mains, "optimizer_epoch_1.pth"}


def test_prune_keeps_the_newest_save_that_has_parts(tmp_path: Path) -> None:
    saves(tmp_path, "model_{}.pth", "optimizer_{}.pth")
    saves(tmp_path, "model_{}.pth", steps=(400, 500))
    apply_prune(plan_prune(tmp_path, 2))
    left = {"model_300.pth", "optimizer_300.pth", "model_400.pth", "model_500.pth"}
    assert {path.name for path in tmp_path.iterdir()} == left


def test_prune_of_chosen_names_leaves_parts_to_the_others_of_their_save(tmp_path: Path) -> None:
    saves(tmp_path, "model_{}.pth", "ema_{}.pth", "opt_{}.pth")
    outcome = apply_prune(plan_prune(tmp_path, 1, globs=("model_*.pth",)))
    assert ([Path(path).name for path in outcome.deleted], outcome.refused) == (["model_100.pth", "model_200.pth"], ())


def test_a_part_that_is_written_again_after_the_plan_is_kept(tmp_path: Path) -> None:
    saves(tmp_path, "model_{}.pth", "opt_{}.pth")
    plan = plan_prune(tmp_path, 1)
    os.utime(tmp_path / "opt_100.pth")
    assert [why for _, why in apply_prune(plan).refused] == ["has parts that were written again"]
    assert (tmp_path / "opt_100.pth").exists()


def test_prune_keeps_a_save_of_which_one_file_is_kept(tmp_path: Path) -> None:
    saves(tmp_path, "G_{}.pth", "D_{}.pth", "opt_{}.pth")
    kept = str(tmp_path / "G_200.pth")
    apply_prune(plan_prune(tmp_path, 1, good=lambda _found: {kept: "rated 4 or 5 stars"}))
    assert not [path.name for path in tmp_path.iterdir() if "100" in path.name]
    assert len([*tmp_path.iterdir()]) == 6


def test_prune_keeps_what_the_trainer_calls_its_best(tmp_path: Path) -> None:
    """transformers loads that one at its end (``load_best_model_at_end``), if it is still there."""
    first = transformers(tmp_path)
    for number, best in ((1000, None), (1500, "out/checkpoint-500")):
        later = shutil.copytree(first, tmp_path / f"checkpoint-{number}")
        (later / "trainer_state.json").write_text(json.dumps({"global_step": number, "best_model_checkpoint": best}))
        os.utime(later, (4e9 + number, 4e9 + number))
    assert names(c.path for c in plan_prune(tmp_path, 1).delete) == ["checkpoint-1000"]


def test_prune_does_not_delete_a_checkpoint_that_changed_since_the_plan(tmp_path: Path) -> None:
    paths = epochs(tmp_path, 1, 2, 3)
    plan = plan_prune(tmp_path, 1)
    save_file(weights(9), paths[0])
    paths[1].unlink()
    paths[1].symlink_to(paths[2])

    outcome = apply_prune(plan)

    assert outcome.deleted == ()
    assert {Path(path).name: why for path, why in outcome.refused} == {
        "luca-000001.safetensors": "changed since the plan was made",
        "luca-000002.safetensors": "is a link",
    }
    assert all(path.exists() for path in paths)


def test_prune_deletes_directories_and_shards_as_a_whole_and_follows_no_link(tmp_path: Path) -> None:
    out = tmp_path / "out"
    old = training_state(out)
    index = sharded(out)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").write_text("x")
    (old / "link").symlink_to(precious)
    for place, path in enumerate([*sorted(out.glob("model*")), old]):
        os.utime(path, (1000 + place, 1000 + place))
    newer = out / "checkpoint-epoch-119"
    shutil.copytree(old, newer, symlinks=True)
    save_file(weights(3), out / "model.safetensors")

    outcome = apply_prune(plan_prune(out, 1))

    assert set(names(outcome.deleted)) == {"checkpoint-epoch-118", index.name}
    assert {path.name for path in out.iterdir()} == {newer.name, "model.safetensors"}
    assert (precious / "data").read_text() == "x"


def test_prune_counts_two_models_in_one_directory_apart(tmp_path: Path) -> None:
    anna = [tmp_path / name for name in ("anna-000002.safetensors", "anna-000004.safetensors", "anna.safetensors")]
    luca = epochs(tmp_path, 1, 2, 3)
    for place, path in enumerate(anna):
        save_file(weights(place), path)
        os.utime(path, (500 + place, 500 + place))

    apply_prune(plan_prune(tmp_path, 1))

    assert [path.exists() for path in (*anna, *luca)] == [False, False, True, False, False, True]


@pytest.mark.parametrize("build", [zip_file, legacy_file, training_state, dcp])
def test_a_backup_is_verified_and_equal(build: Callable[[Path], Path], tmp_path: Path) -> None:
    source = build(tmp_path / "out")
    (tmp_path / "safe").mkdir()
    seen: list[int] = []

    done = backup(source, tmp_path / "safe", progress=lambda part, _: seen.append(part))

    copy = tmp_path / "safe" / source.name
    assert done.destination == str(copy)
    assert done.checkpoint.verdict == "complete"
    files = [path.relative_to(source) for path in source.rglob("*")] if source.is_dir() else [Path()]
    for file in files:
        assert (copy / file).read_bytes() == (source / file).read_bytes()
        assert (copy / file).stat().st_mtime_ns == (source / file).stat().st_mtime_ns
    assert [path.name for path in (tmp_path / "safe").iterdir()] == [source.name]
    assert seen[-1] == done.size_bytes


def test_a_backup_never_overwrites_and_never_keeps_a_damaged_copy(tmp_path: Path) -> None:
    paths = epochs(tmp_path / "out", 2, 4, 6)
    target = tmp_path / "safe"
    target.mkdir()
    backup(paths[0], target)
    with pytest.raises(BackupRefusedError, match="exists already"):
        backup(paths[0], target)
    cut(paths[1])
    with pytest.raises(BackupRefusedError, match="torn, not complete"):
        backup(paths[1], target)
    poison(paths[2])
    with pytest.raises(BackupRefusedError, match="nonfinite, not complete"):
        backup(paths[2], target)
    with pytest.raises(BackupRefusedError, match="does not exist"):
        backup(paths[0], tmp_path / "no" / "where")
    folder = training_state(tmp_path / "out")
    with pytest.raises(BackupRefusedError, match="inside"):
        backup(folder, folder / "copy")

    assert [path.name for path in target.iterdir()] == [paths[0].name]


def test_compare_names_what_moved(tmp_path: Path) -> None:
    first, second = weights(), weights()
    second["unet.down.weight"] = second["unet.down.weight"] * np.float32(1.5)
    second["unet.up.bias"][1] = np.inf
    second["new"] = np.zeros(3, dtype=np.float32)
    second["steps"] = np.arange(6, dtype=np.int64)
    save_file(first, tmp_path / "a.safetensors")
    write_zip(tmp_path / "model_2.pt", {f"_orig_mod.{name}": array for name, array in second.items()})

    found = compare(tmp_path / "a.safetensors", tmp_path / "model_2.pt")

    changes = {change.name: change for change in found.changes}
    assert found.only_in_b == ("new",)
    assert found.other_shape == (("steps", (5,), (6,)),)
    assert changes["unet.down.weight"].relative_change == pytest.approx(0.5, rel=1e-6)
    assert changes["unet.down.weight"].norm_a == pytest.approx(float(np.linalg.norm(first["unet.down.weight"])))
    assert changes["unet.up.weight"].relative_change == 0
    assert (found.nonfinite_a, found.nonfinite_b, changes["unet.up.bias"].nonfinite_b) == (0, 1, 1)


def test_compare_reads_directories_and_refuses_what_it_cannot_compare(tmp_path: Path) -> None:
    folder = training_state(tmp_path)
    other = transformers(tmp_path)

    assert compare(folder, other).relative_change == 0
    with pytest.raises(ComparisonRefusedError, match="DCP"):
        compare(dcp(tmp_path), folder)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(ComparisonRefusedError, match="not a checkpoint"):
        compare(tmp_path / "notes.txt", folder)


def test_show_describes_without_reading_values(tmp_path: Path) -> None:
    found = show(training_state(tmp_path))

    assert found is not None
    assert found.layout == "training_state"
    assert found.state == {"global_step": 6100, "current_epoch": 117}
    assert (found.has_optimizer, found.has_ema, found.compiled) == (True, True, False)
    assert found.parameters == sum(array.size for array in weights().values())
    assert {tensor.name: tensor.shape for tensor in found.tensors}["unet.down.weight"] == (8, 16)


def test_show_a_single_file(tmp_path: Path) -> None:
    path = zip_file(tmp_path / "out")
    found = show(path)

    assert found is not None
    assert found.has_optimizer
    assert found.state == {"global_step": 500}
    assert verify(path, deep=True) == found.checkpoint
    assert show(tmp_path) is None
    assert show(tmp_path / "out") is None


def unknown_folder(path: Path, weights: bytes) -> Path:
    path.mkdir()
    (path / "weights.q7").write_bytes(b"Q7\x00\x01" + weights)
    (path / "state.json").write_text('{"global_step": 50}')
    return path


def test_show_says_what_is_known_of_one_that_is_not_understood(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unknown_folder(tmp_path / "checkpoint-50", b"abc")
    overview = show(folder)

    assert overview is not None
    assert "cannot be told" in overview.unknown
    assert {m.name: m.size_bytes for m in overview.members} == {"state.json": 19, "weights.q7": 7}
    assert main(["checkpoints", "show", str(folder / "weights.q7")]) == 0
    assert "cannot be told" in capsys.readouterr().out


def test_what_is_not_understood_is_not_compared(tmp_path: Path) -> None:
    a, b = unknown_folder(tmp_path / "checkpoint-50", b"abc"), transformers(tmp_path)
    for one, other in ((a, a), (a, b), (b, a)):
        with pytest.raises(ComparisonRefusedError, match="of an unknown format"):
            compare(one, other)


def test_backup_copies_what_is_not_understood_byte_for_byte(tmp_path: Path) -> None:
    folder = unknown_folder(tmp_path / "checkpoint-50", b"abc")
    (tmp_path / "copies").mkdir()

    done = backup(folder, tmp_path / "copies")

    assert (done.checkpoint.verdict, done.checkpoint.understood) == ("opaque", False)
    assert (tmp_path / "copies" / "checkpoint-50" / "weights.q7").read_bytes() == b"Q7\x00\x01abc"

"""How long a run of weights has to train after a resume."""

from pathlib import Path

import msgspec

from tests.unit.test_derive_launch import KOHYA, SDXL, checkpoint, preset, profile, run
from trainwatch.core.act.config.trainer_config import counted, remaining
from trainwatch.core.model.preset import Change


def test_the_number_comes_from_profile_or_command_line_too(tmp_path: Path) -> None:
    spec = run(tmp_path, "python", "sdxl_train_network.py", "--max_train_epochs", "20")
    saved = checkpoint(tmp_path, "a-000006.safetensors")
    (change,) = remaining(spec, preset("kohya"), None, saved, epochs_done=6, steps_done=None)
    assert (change.before, change.after) == (20, 14)
    (change,) = remaining(spec, preset("kohya"), profile("stable"), saved, epochs_done=6, steps_done=None)
    assert (change.before, change.after) == (20, 14)
    open_end = run(tmp_path, "python", "sdxl_train_network.py")
    (change,) = remaining(open_end, preset("kohya"), profile("stable"), saved, epochs_done=6, steps_done=None)
    assert (change.before, change.after) == (12, 6)


def test_steps_are_subtracted_if_no_epochs_are_set(tmp_path: Path) -> None:
    spec = run(tmp_path, "python", "sdxl_train_network.py", "--max_train_steps=1600")
    saved = checkpoint(tmp_path, "a.safetensors")
    (change,) = remaining(spec, preset("kohya"), None, saved, epochs_done=3, steps_done=600)
    assert (change.key, change.after) == ("max_train_steps", 1000)


def test_unknown_length_is_not_changed(tmp_path: Path) -> None:
    spec = run(tmp_path, *KOHYA, config=SDXL)
    saved = checkpoint(tmp_path, "a-000002.safetensors")
    state = checkpoint(tmp_path, "a-000002-state", directory=True)
    assert remaining(spec, preset("kohya"), None, saved, epochs_done=None, steps_done=100) == ()
    assert remaining(spec, preset("kohya"), None, None, epochs_done=2, steps_done=100) == ()
    assert remaining(spec, preset("kohya"), None, state, epochs_done=2, steps_done=100) == ()
    assert remaining(spec, preset("dit"), None, saved, epochs_done=2, steps_done=100) == ()


def test_a_length_that_was_asked_for_with_a_checkpoint_is_that_of_the_new_run(tmp_path: Path) -> None:
    """``run --from luca-000004.safetensors --set max_train_epochs=6`` trained two epochs."""
    spec = run(tmp_path, *KOHYA, config=SDXL)
    asked = Change(where="config", key="max_train_epochs", before=12, after=6, why="asked for by --set")
    new = msgspec.structs.replace(spec, begin_from="/out/luca-000004.safetensors", changes=(asked,))
    assert counted(new, preset("kohya"), (4, 4), (80, 80)) == (0, 0), "its first attempt"
    assert counted(new, preset("kohya"), (6, 4), (120, 80)) == (2, 40), "a restart from its own checkpoint"
    assert counted(new, preset("kohya"), (None, 4), (120, None)) == (None, 120)
    longer = msgspec.structs.replace(spec, changes=(asked,))
    assert counted(longer, preset("kohya"), (4, None), (80, None)) == (4, 80), "a longer run from its beginning"
    going_on = msgspec.structs.replace(spec, begin_from="/out/luca-000004.safetensors")
    assert counted(going_on, preset("kohya"), (4, 4), (80, 80)) == (4, 80), "the same length: the rest of it"

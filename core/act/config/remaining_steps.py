"""What is left to do, for frameworks that begin their count anew with the weights of a checkpoint.

kohya sd-scripts trains ``max_train_epochs`` from wherever it starts: without this a run of 12 epochs that is resumed
at epoch 8 would train 20.
"""

from pathlib import Path
from typing import Any

from ...model.profile import Change, Preset, Profile
from ...model.run import RunSpec
from .derive import effective


def remaining(
    spec: RunSpec,
    preset: Preset,
    profile: Profile | None,
    resume_from: Path | None,
    *,
    epochs_done: int | None,
    steps_done: int | None,
) -> tuple[Change, ...]:
    """The lowered number of epochs (or of steps, where no epochs are set); nothing where it is not known.

    A directory holds the whole state, its count included, so nothing is lowered. Raises DeriveError as ``effective``.
    """
    if resume_from is None or preset.resume != "weights" or (Path(spec.cwd) / resume_from).is_dir():
        return ()
    for key, done, what in (
        (preset.epochs_key, epochs_done, "epochs"),
        (preset.steps_key, steps_done, "steps"),
    ):
        if key is None:
            continue
        before = _whole(effective(spec, preset, profile, key))
        if before is None:
            continue
        if not done:
            return ()
        after = max(1, before - done)
        why = f"{done} of {before} {what} are in {resume_from.name}; {preset.name} counts from zero again"
        return (Change(where="config", key=key, before=before, after=after, why=why),)
    return ()


def _whole(value: Any) -> int | None:
    """A count from a config, or text from a command line."""
    if isinstance(value, bool):
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        return None

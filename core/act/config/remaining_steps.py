"""The remaining epochs or steps, for frameworks that count from zero when they resume from weights.

kohya sd-scripts always trains ``max_train_epochs`` more: a run of 12 epochs that resumes at epoch 8 would train 20.
"""

from pathlib import Path
from typing import Any

from ...model.launch.change import Change
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...model.shipped.profile import Profile
from .trainer_settings import effective


def remaining(
    spec: RunSpec,
    preset: Preset,
    profile: Profile | None,
    resume_from: Path | None,
    *,
    epochs_done: int | None,
    steps_done: int | None,
) -> tuple[Change, ...]:
    """The change that lowers the number of epochs (of steps if no epochs are set); empty if it is unknown.

    A directory has the whole state with its count, so nothing is lowered. Raises DeriveError as ``effective``.
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


def counted(
    spec: RunSpec, preset: Preset, epochs: tuple[int | None, int | None], steps: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    """(epochs, steps) that count as done; each given as those of the whole run, and those it began from.

    A length that was asked for with ``run --from CHECKPOINT --set max_train_epochs=6`` is that of the new run.
    """
    keys = (preset.epochs_key, preset.steps_key)
    asked = spec.begin_from is not None and any(change.key in keys for change in spec.changes)
    if not asked:
        return epochs[0], steps[0]
    return _less(*epochs), _less(*steps)


def _less(done: int | None, begun: int | None) -> int | None:
    return done if done is None or begun is None else max(0, done - begun)


def _whole(value: Any) -> int | None:
    """A count from a config, or text from a command line."""
    if isinstance(value, bool):
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        return None

"""Names of a later attempt's checkpoints, for frameworks that count from zero at each launch.

After a resume, kohya sd-scripts writes ``luca-000001.safetensors`` again, over the file of the first attempt and in the
end over the file that it resumed from. A restart must not overwrite what an attempt saved, so the next attempt has a
name of its own, ``luca-try2``.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ...model.launch.change import Change
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...model.shipped.profile import Profile
from .flags import is_shell_line
from .trainer_settings import effective

_COUNT = r"(?:-\d{6}|-step\d{8})?(?:-state)?(?:\.\w+)?"
"""What kohya sd-scripts appends to the name: an epoch, a step or nothing; ``-state`` for a directory."""


def own_name(
    spec: RunSpec, preset: Preset, profile: Profile | None, resume_from: Path | None, attempt: int
) -> tuple[Change, ...]:
    """The change of the setting that names checkpoints; empty if no file could be overwritten.

    A first launch from the beginning keeps the user's name. In a shell line nothing can be set. Raises DeriveError as
    ``effective``.
    """
    key = preset.name_key
    if key is None or (attempt < 2 and resume_from is None) or is_shell_line(spec.command):
        return ()
    before = effective(spec, preset, profile, key)
    if not before and not any(re.search(known, " ".join(spec.command)) for known in preset.detect_command):
        return ()  # a user's own script may not know the setting, and fail
    name = str(before) if before else preset.name_default
    there = tuple(_entries(spec, resume_from))
    if not any(re.fullmatch(re.escape(name) + _COUNT, entry) for entry in there):
        return ()
    number = max(attempt, 2)
    while any(re.match(re.escape(f"{name}-try{number}") + r"(?!\d)", entry) for entry in there):
        number += 1
    why = (
        f"if the trainer uses this name, it does not overwrite what was saved as {name}: "
        f"{preset.name} counts from zero again"
    )
    return (Change(where="config", key=key, before=before, after=f"{name}-try{number}", why=why),)


def saved_under(spec: RunSpec, preset: Preset, profile: Profile | None) -> re.Pattern[str] | None:
    """Matches the names under which a launch saves checkpoints, those of earlier attempts included.

    None: they are not known. Raises DeriveError as ``effective``.
    """
    key = preset.name_key
    if key is None:
        return None
    name = effective(spec, preset, profile, key)
    if not name and not any(re.search(known, " ".join(spec.command)) for known in preset.detect_command):
        return None  # a user's own script may have another default
    return re.compile(rf"{re.escape(str(name or preset.name_default))}(?:-try\d+)?{_COUNT}$")


def _entries(spec: RunSpec, resume_from: Path | None) -> Iterator[str]:
    """Names in the output folder and beside the checkpoint to resume from. A folder that cannot be listed is empty."""
    folders = [] if spec.output_dir is None else [Path(spec.cwd) / spec.output_dir]
    if resume_from is not None:
        folders.append((Path(spec.cwd) / resume_from).parent)
    for folder in dict.fromkeys(folders):
        try:
            yield from [entry.name for entry in folder.iterdir()]
        except OSError:
            continue

"""Check: how long the run will be, by its settings, the samples in its folder and the pace of earlier runs."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...model.launch.expected_length import ExpectedLength, LengthKeys, expected_length
from ...model.run import RunSpec
from ...store.habits_file import HabitsFile
from ...views import quantity
from ..plan.launch_plan import LaunchPlan
from .check import Check, Machine, passed
from .launch_checks import dataset_of

SAMPLE_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".avif", ".jxl", ".tif", ".tiff", ".mp4", ".webm", ".mov"}
)
MOST_ENTRIES = 50_000
"""A folder with more is not counted: on a network drive that would delay the launch."""
_REPEATS = re.compile(r"(\d+)_")


def expected_of(
    spec: RunSpec, keys: LengthKeys | None, settings: Mapping[str, Any], dataset: Mapping[str, Any], home: Path
) -> ExpectedLength | None:
    """The estimate; None if it does not follow from settings and data. ``dataset``: kohya's dataset config."""
    if keys is None:
        return None
    config = None if spec.config is None else Path(spec.cwd, spec.config)
    habits = HabitsFile(home, spec.command, spec.cwd, config).read()
    pace_s = habits.step_s if habits is not None and habits.step_s else _tried(spec)
    batch = next((s["batch_size"] for s in _tables(dataset, "datasets") if "batch_size" in s), None)
    settings = settings if batch is None or keys.batch in settings else {**settings, keys.batch: batch}
    return expected_length(keys, settings, samples=_samples(spec, keys, settings, dataset), pace_s=pace_s)


def _tried(spec: RunSpec) -> float | None:
    """The pace that a trial of the profile measured here."""
    from ..runs.measured_trials import measured_here

    result = measured_here(spec.id).get(spec.settings.profiles.use or "")
    return None if result is None else result.s_per_step


def _samples(spec: RunSpec, keys: LengthKeys, settings: Mapping[str, Any], dataset: Mapping[str, Any]) -> int | None:
    """Samples of one epoch, repeats counted; None if no folder is named, or it has no samples or too many entries."""
    left = [MOST_ENTRIES]
    total = 0
    try:
        for general in _tables(dataset, "datasets"):
            for subset in _tables(general, "subsets"):
                repeats = subset.get("num_repeats", general.get("num_repeats", 1))
                total += int(repeats) * _count(Path(spec.cwd, str(subset.get("image_dir"))), left)
        for name in keys.data if not total else ():
            folder = settings.get(name)
            if isinstance(folder, str) and folder:
                total += _in_folder(Path(spec.cwd, folder), left, repeats=keys.repeats_in_names)
    except (OSError, ValueError, TypeError):
        return None
    return total if total and left[0] > 0 else None


def _in_folder(folder: Path, left: list[int], *, repeats: bool) -> int:
    if not repeats:
        return _count(folder, left, deep=True)
    named = [(found, sub) for sub in folder.iterdir() if sub.is_dir() and (found := _REPEATS.match(sub.name))]
    return sum(int(found[1]) * _count(sub, left) for found, sub in named) or _count(folder, left)


def _count(folder: Path, left: list[int], *, deep: bool = False) -> int:
    """Samples by suffix. ``left``: entries that may still be looked at."""
    number = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            left[0] -= 1
            if left[0] <= 0:
                return number
            if deep and entry.is_dir(follow_symlinks=False):
                number += _count(Path(entry.path), left, deep=True)
            elif os.path.splitext(entry.name)[1].lower() in SAMPLE_SUFFIXES:  # noqa: PTH122  a path object each is slow
                number += 1
    return number


def _tables(config: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    found = config.get(name)
    yield from (table for table in found if isinstance(table, dict)) if isinstance(found, list) else ()


def check_length(plan: LaunchPlan, machine: Machine) -> Check | None:
    """Steps by settings and data, time by the pace of earlier runs; None if nothing is known."""
    expected = _expected(plan, machine.home)
    if expected is None:
        return None
    found = f"about {quantity.count(expected.steps)} steps: {expected.by}"
    if expected.seconds is None:
        return passed("length", f"{found}; the time per step is known after a first run or a trial")
    pace = quantity.pace(expected.pace_s)
    return passed("length", f"about {quantity.duration(expected.seconds)} at {pace} as earlier; {found}")


def expected_of_run(plan: LaunchPlan, home: Path) -> ExpectedLength | None:
    """The same estimate for a run that is being created; None on any fault: a launch does not fail for an estimate."""
    try:
        return _expected(plan, home)
    except Exception:
        return None


def _expected(plan: LaunchPlan, home: Path) -> ExpectedLength | None:
    return expected_of(plan.spec, plan.preset.length, plan.settings, dataset_of(plan), home)

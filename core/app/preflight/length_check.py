"""Check: how long the run will be, by its settings, the samples in its folder and the pace of earlier runs."""

import itertools
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...act.config.trainer_settings import TrainerSettings
from ...model.launch.expected_length import EpochSteps, ExpectedLength, LengthKeys, Pace, expected_length, guide_pace
from ...model.launch.told_length import BATCH_NAMES, EPOCH_NAMES, STEP_NAMES, ToldLength
from ...model.progress import Progress
from ...model.run import RunSpec
from ...source.trainer_source import read_source
from ...store.learned.habits_file import HabitsFile
from ...store.metrics.history_reader import HistoryReader
from ...store.run_lookup import list_runs
from ...views.length_words import length_words
from ..plan.definitions import definitions_of
from ..plan.launch_plan import LaunchPlan
from ..plan.told_length import told_lengths
from .check import Check, Machine, passed
from .launch_checks import DATA_KEYS, dataset_of, is_sdxl

SAMPLE_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".avif", ".jxl", ".tif", ".tiff", ".mp4", ".webm", ".mov"}
)
MOST_ENTRIES = 50_000
"""A folder with more is not counted: on a network drive that would delay the launch."""
ALIKE = 5
"""Earlier runs of the same kind that are asked for their pace: the newest may have ended before its first step."""
_REPEATS = re.compile(r"(\d+)_")


def expected_of(
    spec: RunSpec,
    keys: LengthKeys | None,
    settings: Mapping[str, Any],
    dataset: Mapping[str, Any],
    home: Path,
    *,
    models: frozenset[str] = frozenset(),
    speed: str = "",
) -> ExpectedLength | None:
    """The estimate; None if it does not follow from settings and data. ``dataset``: kohya's dataset config.

    ``models``, ``speed``: as for ``guide_pace``, which is asked if no earlier run is known.
    """
    if keys is None:
        return None
    config = None if spec.config is None else Path(spec.cwd, spec.config)
    habits = HabitsFile(home, spec.command, spec.cwd, config).read()
    pace_s = habits.step_s if habits is not None and habits.step_s else _tried(spec)
    batch = next((s["batch_size"] for s in _tables(dataset, "datasets") if "batch_size" in s), None)
    settings = settings if batch is None or keys.batch in settings else {**settings, keys.batch: batch}
    samples = _samples(spec, keys, settings, dataset)
    earlier = _alike(spec, home) if pace_s is None or samples is None else Earlier()
    pace = Pace(s=pace_s) if pace_s is not None else earlier.pace
    if pace is None:
        pace = guide_pace(keys, settings, models=models, speed=speed)
    return expected_length(keys, settings, samples=samples, pace=pace, known=earlier.epoch)


class Earlier(NamedTuple):
    """What an earlier run of the same kind shows of this one."""

    pace: Pace | None = None
    epoch: EpochSteps | None = None


def _alike(spec: RunSpec, home: Path) -> Earlier:
    """Pace and epoch of the newest earlier run of this kind: the same framework, script and profile on this machine."""
    kind = _kind(spec)
    if kind is None:
        return Earlier()
    alike = ((run, run.load_spec()) for run in list_runs(home) if run.id != spec.id)
    same = ((run, other) for run, other in alike if _kind(other) == kind and _runs_same_script(spec, other))
    for run, other in itertools.islice(same, ALIKE):
        with HistoryReader(run.history) as history:
            newest = history.latest().progress
        if newest is not None and newest.progress.sec_per_step:
            by = f"run {run.id}, which has the same script and profile"
            return Earlier(Pace(s=newest.progress.sec_per_step, guess=by), _epoch_of(newest.progress, other, run.id))
    return Earlier()


def _epoch_of(progress: Progress, spec: RunSpec, run: str) -> EpochSteps | None:
    """Steps of one epoch of a run: of its total, or of all that it made if it is over."""
    epochs = progress.total_epochs
    if epochs is None:
        epochs = told_lengths(spec, definitions_of(spec).preset_of(spec), {}, None)[""].epochs
    total = progress.run_total_steps
    if total is None and progress.phase == "finish":
        total = progress.run_step
    return EpochSteps(steps=math.ceil(total / epochs), by=f"run {run}") if total and epochs else None


def _kind(spec: RunSpec) -> tuple[str, str, str | None] | None:
    """What runs of one kind have in common beside the script itself; None if the command names no script."""
    script = _script(spec)
    return None if script is None else (spec.preset, script.name, spec.settings.profiles.use)


def _script(spec: RunSpec) -> Path | None:
    return next((Path(spec.cwd, word) for word in spec.command if word.endswith(".py")), None)


def _runs_same_script(spec: RunSpec, other: RunSpec) -> bool:
    """Whether both run one file, or files of the same content: a name such as train.py alone says nothing."""
    one, another = _script(spec), _script(other)
    if one is None or another is None:
        return False
    try:
        if one.resolve() == another.resolve():
            return True
        return one.stat().st_size == another.stat().st_size and one.read_bytes() == another.read_bytes()
    except (OSError, RuntimeError):
        return False


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
    """Steps by settings and data, time by the pace of earlier runs, else of a guide; None if nothing is known."""
    said = length_said(plan, _expected(plan, machine.home))
    return passed("length", said) if said else None


def length_said(plan: LaunchPlan, expected: ExpectedLength | None) -> str:
    """The estimate in words; without one the number of epochs, as far as it is set."""
    if expected is not None:
        return length_words(expected)
    told = told_lengths(plan.spec, plan.preset, plan.profiles, None)
    epochs = told.get(plan.spec.settings.profiles.use or "", ToldLength()).epochs_by
    return f"{epochs}: the time of an epoch is known after a first run or a trial" if epochs else ""


def expected_of_run(plan: LaunchPlan, home: Path) -> ExpectedLength | None:
    """The same estimate for a run that is being created; None on any fault: a launch does not fail for an estimate."""
    try:
        return _expected(plan, home)
    except Exception:
        return None


def _expected(plan: LaunchPlan, home: Path) -> ExpectedLength | None:
    settings = {**_own_values(plan), **plan.settings}
    return expected_of(
        plan.spec,
        plan.preset.length or _usual_keys(plan.spec, settings),
        settings,
        dataset_of(plan),
        home,
        models=frozenset({"sdxl"}) if is_sdxl(plan) else frozenset(),
        speed=plan.expect.get("speed", ""),
    )


def _own_values(plan: LaunchPlan) -> dict[str, Any]:
    """The script's own length and batch, for a trainer whose settings nobody knows but the script."""
    source = read_source(plan.spec.command, plan.spec.cwd, plan.spec.env)
    if plan.preset.length is not None or isinstance(source, str) or TrainerSettings(plan.spec, plan.preset).hidden:
        return {}
    wanted = frozenset((*EPOCH_NAMES, *STEP_NAMES, *BATCH_NAMES))
    named = ((number.name.lower().replace("-", "_"), number.value) for number in reversed(source.numbers))
    return {name: value for name, value in named if name in wanted}


def _usual_keys(spec: RunSpec, settings: Mapping[str, Any]) -> LengthKeys:
    """The keys of a trainer without a preset: usual names, as far as they are set."""

    def first(names: tuple[str, ...]) -> str:
        return next((name for name in names if name in settings), "")

    folders = (name for name in sorted(DATA_KEYS & settings.keys()) if Path(spec.cwd, str(settings[name])).is_dir())
    return LengthKeys(
        epochs=first(EPOCH_NAMES),
        steps=first(STEP_NAMES),
        steps_over_epochs=True,
        batch=first(BATCH_NAMES),
        data=tuple(folders),
    )

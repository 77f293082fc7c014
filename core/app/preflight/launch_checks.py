"""Checks of the planned launch: command, config, profile, paths that the config names."""

import importlib.util
import itertools
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...act.config.derive import DeriveError, read_config
from ...act.config.trainer_config import TrainerSettings, config_in_command
from ...act.launch.spawn import why_not
from ...model import progress
from ...model.checkpoint_suffixes import TENSOR_SUFFIXES
from ...model.run import RunSpec, with_place
from ...source.shell_text import without_wrappers
from ...source.trainer_source import source_of
from ...store.learned import HabitsFile, newest_trials
from ...views.length_words import length_words
from ..plan.launch_plan import LaunchPlan
from ..plan.trainer_settings import plan_length
from .check import Check, Machine, failed, passed, warned

DATA_KEYS = frozenset({
    "train_data_dir", "reg_data_dir", "data_dir", "data_path", "data_root", "dataset_path", "dataset_dir", "image_dir",
    "images_dir", "conditioning_data_dir", "val_data_dir", "validation_data_dir", "train_file", "validation_file",
    "in_json", "metadata_file", "cache_dir_images",
})  # fmt: skip
"""Settings that name files or folders of data. They must exist."""
MODEL_KEYS = frozenset({
    "pretrained_model_name_or_path", "vae", "network_weights", "clip_l", "clip_g", "t5xxl", "ae", "dataset_config",
})  # fmt: skip
"""Settings that name a file, or a model on a hub: must exist if they look like a path."""
MAYBE_WRITTEN = frozenset({"checkpoint", "model_path"})
"""The same, but some trainers save under that name."""
FILE_SUFFIXES = frozenset({*TENSOR_SUFFIXES, ".toml", ".yaml", ".yml", ".json"})
RUNS_FILES = frozenset({"sh", "bash", "zsh", "dash", "accelerate", "torchrun", "deepspeed", "uv"})
"""Programs that run the script that follows them."""
SHIPPED_STABLE = frozenset({"stable", "conservative"})
SDXL_WORDS = ("sdxl", "sd_xl", "stable-diffusion-xl", "xl-base", "xl_base")


def check_launch(plan: LaunchPlan, _machine: Machine) -> Check:
    if plan.derived is None:
        return failed(plan.problem or "not derived", "correct the trainer's config or the profile")
    count = len(plan.derived.changes)
    differs = "1 setting differs" if count == 1 else f"{count} settings differ"
    return passed(f"profile {plan.spec.settings.profiles.use or 'none'}, {differs} from your config")


def check_command(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The command can be started: its program and its working folder exist."""
    spec, derived = plan.spec, plan.derived
    argv, env = (spec.command, {**os.environ, **spec.env}) if derived is None else (derived.argv, derived.env)
    if (reason := why_not(list(argv), dict(env), spec.cwd)) is not None:
        found, _, remedy = reason.partition("; ")
        return failed(found, with_place(remedy or "correct the command", spec, "command", "cwd"))
    named = str(Path(spec.cwd, argv[0])) if "/" in argv[0] else argv[0]
    return passed(shutil.which(named, path=env.get("PATH")) or argv[0])


def check_script(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The script that the command names exists. What runs in a container or on another host is not seen here."""
    spec = plan.spec
    words = [word for word in spec.command[1:] if not word.startswith("-") and not set(word) & set(" ;|&\n")]
    script = next((word for word in words if word.endswith((".py", ".sh"))), None)
    if script is None or Path(spec.cwd, script).is_file():
        return None if script is None else passed(script)
    remedy = "check its name and the folder that you start it in"
    if spec.project is not None and "command" not in spec.typed:
        remedy = with_place("check its name and the folder", spec, "command", "cwd")
    words = list(without_wrappers(spec.command))
    before = words[: words.index(script)] if script in words else []
    modules = [module for option, module in itertools.pairwise(before) if option in {"-m", "--module"}]
    first = Path(before[0]).name if before else ""
    runs_here = (first in RUNS_FILES or re.search("python|pypy", first) is not None) and all(
        module.startswith(("torch.distributed", "accelerate", "deepspeed")) for module in modules
    )
    return (failed if runs_here else warned)(f"{script} is not in {spec.cwd}", remedy)


def check_profile(plan: LaunchPlan, machine: Machine) -> Check | None:
    """On WSL2, gradient checkpointing of kohya often ends in a CUDA unknown error; the profile "stable" avoids it."""
    if plan.spec.preset != "kohya":
        return None
    profile, checkpointing = plan.spec.settings.profiles.use, plan.truth("gradient_checkpointing")
    shown = "not set" if checkpointing is None else str(checkpointing).lower()
    found = f"profile {profile or 'none'}, gradient_checkpointing {shown}"
    if machine.wsl and checkpointing:
        found += ": on WSL2 it often ends in a CUDA unknown error after hours"
        return warned(found, "use the stable one: trainwatch --headless --profile stable")
    if machine.wsl and profile not in SHIPPED_STABLE:
        return warned(found, "for a first run on WSL2: --profile stable (about 15 % slower)")
    return passed(found)


def check_ladder(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The profile in use is a rung of the ladder. Remedies and the ramp move along the ladder only."""
    ladder, use = plan.spec.settings.profiles.ladder, plan.spec.settings.profiles.use
    if not ladder or use is None or use in ladder:
        return None
    found = f"profile {use} is not in profiles.ladder ({', '.join(ladder)})"
    return warned(found, "add it to profiles.ladder, or use one of its profiles")


def check_paths(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """Data and models that config or command name exist."""
    absent: dict[bool, list[str]] = {False: [], True: []}  # by whether the script may make it
    empty: list[str] = []
    source, named = source_of(plan.spec), list(_paths(plan))
    for key, value in named:
        path = place_of(plan, value)
        if path is None:
            made = key in MAYBE_WRITTEN or (key in DATA_KEYS and source.is_own and source.fetches_data)
            absent[made].append(f"{key} = {value}")
        elif path.is_dir() and not any(path.iterdir()):
            empty.append(f"{key} = {value}")
    where = f"correct the paths (they start at {plan.spec.cwd}) or fetch it"
    if absent[False]:
        return failed(f"not there: {'; '.join(absent[False])}", where)
    if absent[True]:
        return warned(f"not there: {'; '.join(absent[True])}", f"{where}, unless the script makes it by itself")
    if empty:
        return warned(f"empty: {'; '.join(empty)}", "is it the right folder, and is its disk mounted?")
    return passed("1 path exists" if len(named) == 1 else f"{len(named)} paths exist") if named else None


def place_of(plan: LaunchPlan, value: str) -> Path | None:
    """Where a path of command or config is: from the working folder, else from the config's folder or the script's."""
    given = os.path.expanduser(value)  # noqa: PTH111  Path's raises for an unknown ~name
    config = config_in_command(plan.spec).config
    folders = [Path(plan.spec.cwd)]
    folders += [Path(plan.spec.cwd, config).parent] if config is not None else []
    folders += [root for root in source_of(plan.spec).target.roots if root.is_absolute()]
    return next((place for folder in folders if (place := folder / given).exists()), None)


def check_scheduler(plan: LaunchPlan, _machine: Machine) -> Check | None:
    commands = plan.spec.capabilities.commands
    if missing := [name for name in commands if shutil.which(name) is None]:
        found = f'engine = "{plan.spec.engine}" needs {", ".join(missing)}, not found on PATH'
        return failed(found, "start it on a machine of the cluster, or load Slurm's module first")
    return passed("each attempt is a job of Slurm; --dry-run shows its script") if commands else None


def check_notify(plan: LaunchPlan, _machine: Machine) -> Check | None:
    notify = plan.spec.settings.notify
    if notify.urls and importlib.util.find_spec("apprise") is None:
        return warned("notify.urls need apprise, which is not installed", "pip install 'trainwatch-tui[notify]'")
    if not notify.command:
        return None
    program = notify.command[0]
    here = Path(plan.spec.cwd, program)
    if shutil.which(program) is None and not ("/" in program and os.access(here, os.X_OK)):
        return failed(f"notify.command is not executable: {program}", "give the full path, or chmod +x it")
    return passed(program)


def is_sdxl(plan: LaunchPlan) -> bool:
    """Whether an SDXL model is trained: by script, model or config name."""
    model = str(plan.settings.get("pretrained_model_name_or_path", ""))
    words = " ".join((*plan.spec.command, plan.spec.config or "", model)).lower()
    return any(word in words for word in SDXL_WORDS)


def _paths(plan: LaunchPlan) -> Iterator[tuple[str, str]]:
    for key, value in (*_texts(plan.settings), *_texts(dataset_of(plan))):
        if "://" in value or any(sign in value for sign in "{}$"):
            continue
        if key in DATA_KEYS or (key in MODEL_KEYS | MAYBE_WRITTEN and looks_like_a_path(value)):
            yield key, value


def dataset_of(plan: LaunchPlan) -> dict[str, Any]:
    given = plan.settings.get("dataset_config")
    if not isinstance(given, str) or not Path(plan.spec.cwd, given).is_file():
        return {}
    try:
        return read_config(Path(plan.spec.cwd, given))
    except DeriveError:
        return {}


def _texts(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, text) of all, lists of tables included (kohya's dataset config)."""
    for key, value in settings.items():
        if isinstance(value, str) and value:
            yield key, value
        elif isinstance(value, list | tuple):
            for item in value:
                if isinstance(item, Mapping):
                    yield from _texts(item)


def looks_like_a_path(value: str) -> bool:
    """``org/model`` is a name on a hub; ``./x``, ``/x``, ``a/b/c`` and ``x.safetensors`` are paths."""
    starts = value.startswith(("/", "./", "../", "~"))
    return starts or value.count("/") > 1 or Path(value).suffix.lower() in FILE_SUFFIXES


# Check: how long the run will be, by its settings, the samples in its folder and the pace of earlier runs.

SAMPLE_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".avif", ".jxl", ".tif", ".tiff", ".mp4", ".webm", ".mov"}
)
MOST_ENTRIES = 50_000
"""A folder with more is not counted: on a network drive that would delay the launch."""
_REPEATS = re.compile(r"(\d+)_")


def _samples(
    spec: RunSpec, keys: progress.LengthKeys, settings: Mapping[str, Any], dataset: Mapping[str, Any]
) -> int | None:
    """Samples of one epoch, repeats counted; None if no folder is named, or it has no samples or too many entries."""
    left = [MOST_ENTRIES]
    total = 0
    try:
        for general in _tables(dataset, "datasets"):
            for subset in _tables(general, "subsets"):
                repeats = subset.get("num_repeats", general.get("num_repeats", 1))
                total += int(repeats) * _count(Path(spec.cwd, str(subset.get("image_dir"))), left, deep=False)
        for name in keys.data if not total else ():
            folder = settings.get(name)
            if not (isinstance(folder, str) and folder):
                continue
            place, named = Path(spec.cwd, folder), 0
            for sub in place.iterdir() if keys.repeats_in_names else ():
                if sub.is_dir() and (found := _REPEATS.match(sub.name)):  # ``10_luca``: each sample is taken 10 times
                    named += int(found[1]) * _count(sub, left, deep=False)
            total += named or _count(place, left, deep=not keys.repeats_in_names)
    except (OSError, ValueError, TypeError):
        return None
    return total if total and left[0] > 0 else None


def _count(folder: Path, left: list[int], *, deep: bool) -> int:
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
    expected = expected_of_run(plan, machine.home)
    if expected is not None:
        return passed(length_words(expected))
    epochs = plan_length(plan).epochs_by
    return passed(f"{epochs}: the time of an epoch is known after a first run or a trial") if epochs else None


def expected_of_run(plan: LaunchPlan, home: Path) -> progress.ExpectedLength | None:
    """The estimate; None if it does not follow from settings and data. A guide's pace counts if no other is known."""
    spec, settings, keys, dataset = plan.spec, plan.settings, plan.preset.length, dataset_of(plan)
    if keys is None:  # usual names, as far as they are set, else the script's own values
        usual = (progress.EPOCH_NAMES, progress.STEP_NAMES, progress.BATCH_NAMES)
        if not TrainerSettings(spec, plan.preset).hidden:
            own = source_of(spec).number_of
            settings = {key: own[key].value for names in usual for key in names if key in own} | dict(settings)
        epochs, steps, batch = (next((name for name in names if name in settings), "") for names in usual)
        data = (n for n in sorted(DATA_KEYS & settings.keys()) if Path(spec.cwd, str(settings[n])).is_dir())
        keys = progress.LengthKeys(
            epochs=epochs, steps=steps, steps_over_epochs=True, batch=batch, accumulation="", data=tuple(data)
        )
    config = None if spec.config is None else Path(spec.cwd, spec.config)
    habits = HabitsFile(home, spec.command, spec.cwd, config).read()
    trial = newest_trials(home, spec.id).get(spec.settings.profiles.use or "")
    pace_s = (habits and habits.step_s) or (trial and trial.s_per_step)
    of_dataset = next((s["batch_size"] for s in _tables(dataset, "datasets") if "batch_size" in s), None)
    if of_dataset is not None and keys.batch not in settings:
        settings = {**settings, keys.batch: of_dataset}
    models, speed = frozenset({"sdxl"}) if is_sdxl(plan) else frozenset[str](), plan.expect.get("speed", "")
    pace = progress.Pace(s=pace_s) if pace_s else progress.guide_pace(keys, settings, models=models, speed=speed)
    return progress.expected_length(keys, settings, samples=_samples(spec, keys, settings, dataset), pace=pace)

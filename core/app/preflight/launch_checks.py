"""Checks of the planned launch: command, config, profile, paths that the config names."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...act.config.derive import DeriveError, read_config
from ...act.config.trainer_config import config_in_command
from ...act.launch.spawn import why_not
from ...model.checkpoints.checkpoint_suffixes import TENSOR_SUFFIXES
from ...model.run import RunSpec
from ...model.text.setting_place import with_place
from ...source.trainer_source import read_source
from ..plan.launch_plan import LaunchPlan
from .check import Check, Machine, failed, passed, warned
from .exit_status_check import without_wrappers

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
    """The trainer's config can be read, and the launch can be derived from it."""
    if plan.derived is None:
        return failed("launch", plan.problem or "not derived", "correct the trainer's config or the profile")
    profile = plan.spec.settings.profiles.use or "none"
    count = len(plan.derived.changes)
    differs = "1 setting differs" if count == 1 else f"{count} settings differ"
    return passed("launch", f"profile {profile}, {differs} from your config")


def check_command(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The command can be started: its program and its working folder exist."""
    spec = plan.spec
    argv, env = (
        (spec.command, {**os.environ, **spec.env}) if plan.derived is None else (plan.derived.argv, plan.derived.env)
    )
    reason = why_not(list(argv), dict(env), spec.cwd)
    if reason is not None:
        found, _, remedy = reason.partition("; ")
        return failed("command", found, with_place(remedy or "correct the command", spec, "command", "cwd"))
    program = argv[0]
    named = str(Path(spec.cwd, program)) if "/" in program else program
    return passed("command", shutil.which(named, path=env.get("PATH")) or program)


def check_script(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The script that the command names exists. What runs in a container or on another host is not seen here."""
    words = [word for word in plan.spec.command[1:] if not word.startswith("-") and not set(word) & set(" ;|&\n")]
    scripts = [word for word in words if word.endswith((".py", ".sh"))]
    if not scripts:
        return None
    if not Path(plan.spec.cwd, scripts[0]).is_file():
        make = failed if _runs_here(plan.spec.command, scripts[0]) else warned
        return make("script", f"{scripts[0]} is not in {plan.spec.cwd}", _where_to_mend(plan.spec))
    return passed("script", scripts[0])


def _where_to_mend(spec: RunSpec) -> str:
    """Where a command without its script is written: in the project's file, or on the command line."""
    if spec.project is not None and "command" not in spec.typed:
        return with_place("check its name and the folder", spec, "command", "cwd")
    return "check its name and the folder that you start it in"


def _runs_here(command: Sequence[str], script: str) -> bool:
    """Whether the words before the script are known to run a file of this machine."""
    words = without_wrappers(tuple(command))
    before = words[: words.index(script)] if script in words else ()
    modules = [before[at + 1] for at, word in enumerate(before[:-1]) if word in {"-m", "--module"}]
    first = Path(before[0]).name if before else ""
    return (first in RUNS_FILES or re.search("python|pypy", first) is not None) and all(
        module.startswith(("torch.distributed", "accelerate", "deepspeed")) for module in modules
    )


def check_profile(plan: LaunchPlan, machine: Machine) -> Check | None:
    """On WSL2, gradient checkpointing of kohya often ends in a CUDA unknown error; the profile "stable" avoids it."""
    if plan.spec.preset != "kohya":
        return None
    profile = plan.spec.settings.profiles.use
    checkpointing = plan.truth("gradient_checkpointing")
    found = f"profile {profile or 'none'}, gradient_checkpointing {_word(checkpointing)}"
    if machine.wsl and checkpointing:
        return warned(
            "stable profile",
            f"{found}: on WSL2 it often ends in a CUDA unknown error after hours",
            "use the stable one: trainwatch --headless --profile stable",
        )
    if machine.wsl and profile not in SHIPPED_STABLE:
        return warned("stable profile", found, "for a first run on WSL2: --profile stable (about 15 % slower)")
    return passed("stable profile", found)


def check_ladder(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The profile in use is a rung of the ladder. Remedies and the ramp move along the ladder only."""
    profiles = plan.spec.settings.profiles
    if not profiles.ladder or profiles.use is None or profiles.use in profiles.ladder:
        return None
    return warned(
        "ladder",
        f"profile {profiles.use} is not in profiles.ladder ({', '.join(profiles.ladder)})",
        "add it to profiles.ladder, or use one of its profiles",
    )


def check_paths(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """Data and models that config or command name exist."""
    missing: list[str] = []
    unsure: list[str] = []
    empty: list[str] = []
    seen = 0
    for key, value in _paths(plan):
        path = place_of(plan, value)
        seen += 1
        if path is None:
            made = key in MAYBE_WRITTEN or (key in DATA_KEYS and fetches_data(plan))
            (unsure if made else missing).append(f"{key} = {value}")
        elif path.is_dir() and not any(path.iterdir()):
            empty.append(f"{key} = {value}")
    where = f"correct the paths (they start at {plan.spec.cwd}) or fetch it"
    if missing:
        return failed("data", f"not there: {'; '.join(missing)}", where)
    if unsure:
        return warned("data", f"not there: {'; '.join(unsure)}", f"{where}, unless the script makes it by itself")
    if empty:
        return warned("data", f"empty: {'; '.join(empty)}", "is it the right folder, and is its disk mounted?")
    return passed("data", "1 path exists" if seen == 1 else f"{seen} paths exist") if seen else None


def place_of(plan: LaunchPlan, value: str) -> Path | None:
    """Where a path of command or config is: from the working folder, else from the config's folder or the script's."""
    given = os.path.expanduser(value)  # noqa: PTH111  Path's raises for an unknown ~name
    config = config_in_command(plan.spec).config
    source = read_source(plan.spec.command, plan.spec.cwd, plan.spec.env)
    folders = [Path(plan.spec.cwd)]
    folders += [Path(plan.spec.cwd, config).parent] if config is not None else []
    folders += [] if isinstance(source, str) else [root for root in source.target.roots if root.is_absolute()]
    return next((place for folder in folders if (place := folder / given).exists()), None)


def fetches_data(plan: LaunchPlan) -> bool:
    """Whether the trainer's own source speaks of a download."""
    source = read_source(plan.spec.command, plan.spec.cwd, plan.spec.env)
    return not isinstance(source, str) and not source.target.package and source.fetches_data


def check_scheduler(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The commands of the scheduler that the attempts are given to."""
    commands = plan.spec.capabilities.commands
    if not commands:
        return None
    missing = [name for name in commands if shutil.which(name) is None]
    if missing:
        return failed(
            "scheduler",
            f'engine = "{plan.spec.engine}" needs {", ".join(missing)}, not found on PATH',
            "start it on a machine of the cluster, or load Slurm's module first",
        )
    return passed("scheduler", "each attempt is a job of Slurm; --dry-run shows its script")


def check_notify(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The notification command can be run."""
    from importlib.util import find_spec

    notify = plan.spec.settings.notify
    if notify.urls and find_spec("apprise") is None:
        return warned(
            "notify", "notify.urls need apprise, which is not installed", "pip install 'trainwatch-tui[notify]'"
        )
    if not notify.command:
        return None
    program = notify.command[0]
    here = Path(plan.spec.cwd, program)
    if shutil.which(program) is None and not ("/" in program and os.access(here, os.X_OK)):
        return failed("notify", f"notify.command is not executable: {program}", "give the full path, or chmod +x it")
    return passed("notify", program)


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
    """The config of the data set, which kohya keeps in a file of its own."""
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


def _word(value: bool | None) -> str:
    return "not set" if value is None else str(value).lower()

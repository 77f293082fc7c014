"""Checks of the planned launch: command, config, profile, paths that the config names."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...act.config.derive import Derived, DeriveError, read_config
from ...act.config.nested_keys import leaves
from ...act.config.toml_edit import read_toml
from ...act.config.yaml_edit import read_yaml
from ...model.run import RunSpec
from .check import Check, Machine, Plan, failed, passed, warned

DATA_KEYS = frozenset({
    "train_data_dir", "reg_data_dir", "data_dir", "data_path", "data_root", "dataset_path", "dataset_dir", "image_dir",
    "images_dir", "conditioning_data_dir", "val_data_dir", "validation_data_dir", "train_file", "validation_file",
    "in_json", "metadata_file", "cache_dir_images",
})  # fmt: skip
"""Settings that name files or folders of data. They must exist."""
MODEL_KEYS = frozenset({
    "pretrained_model_name_or_path", "vae", "network_weights", "resume", "resume_from_checkpoint", "checkpoint",
    "model_path", "clip_l", "clip_g", "t5xxl", "ae", "dataset_config",
})  # fmt: skip
"""Settings that name a file, or a model on a hub: must exist where they look like a path."""
FILE_SUFFIXES = frozenset({".safetensors", ".ckpt", ".pt", ".pth", ".bin", ".toml", ".yaml", ".yml", ".json"})
SHIPPED_STABLE = frozenset({"stable", "conservative"})
SDXL_WORDS = ("sdxl", "sd_xl", "stable-diffusion-xl", "xl-base", "xl_base")


def settings_of(argv: Sequence[str], config_text: str | None, config: str | None) -> dict[str, Any]:
    """All settings of a launch by bare name: the config's, with the command line's on top."""
    found: dict[str, Any] = {}
    if config_text is not None and config is not None:
        read = read_toml if config.lower().endswith(".toml") else read_yaml
        found.update((key.rpartition(".")[2], value) for key, value in leaves(read(config_text, config)))
    for number, word in enumerate(argv):
        if not word.startswith("--") or len(word) == 2:
            continue
        name, equals, value = word[2:].partition("=")
        following = argv[number + 1] if number + 1 < len(argv) else "--"
        given = value if equals else "" if following.startswith("--") else following
        found[name.rpartition(".")[2].replace("-", "_")] = given
    return found


def plan_of(spec: RunSpec) -> tuple[Plan, Check]:
    """The plan, and whether a launch can be derived at all."""
    from ..start.framework import plan_first_launch

    try:
        derived: Derived = plan_first_launch(spec)
        settings = settings_of(derived.argv, derived.config_text or _own_text(spec), spec.config)
    except DeriveError as error:
        return Plan(spec=spec), failed("launch", str(error), "mend the trainer's config or the profile")
    profile = spec.settings.profiles.use or "none"
    count = len(derived.changes)
    differs = "1 setting differs" if count == 1 else f"{count} settings differ"
    plan = Plan(spec=spec, settings=settings, expect=_expected(spec))
    return plan, passed("launch", f"profile {profile}, {differs} from your config")


def _expected(spec: RunSpec) -> dict[str, str]:
    """What people measured with the profile of the launch."""
    from ..start.framework import profiles_of

    used = profiles_of(spec).get(spec.settings.profiles.use or "")
    return {} if used is None else used.expect


def check_command(plan: Plan, _machine: Machine) -> Check:
    """The program exists."""
    spec = plan.spec
    program = spec.command[0]
    path = spec.env.get("PATH", os.environ.get("PATH"))
    here = Path(spec.cwd, program)
    found = str(here) if "/" in program and os.access(here, os.X_OK) else shutil.which(program, path=path)
    if found is None:
        return failed("command", f"command not found: {program}", "check run.command, or give the full path")
    return passed("command", found)


def check_script(plan: Plan, _machine: Machine) -> Check | None:
    """The script that the command names exists."""
    scripts = [word for word in plan.spec.command[1:] if word.endswith((".py", ".sh")) and not word.startswith("-")]
    if not scripts:
        return None
    if not Path(plan.spec.cwd, scripts[0]).is_file():
        return failed("script", f"{scripts[0]} is not in {plan.spec.cwd}", "check run.command and run.cwd")
    return passed("script", scripts[0])


def check_profile(plan: Plan, machine: Machine) -> Check | None:
    """On WSL2 a kohya run is safest with the stable settings (requirements A1, A2, A8)."""
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
        return warned("stable profile", found, "for a first night on WSL2: --profile stable (about 15 % slower)")
    return passed("stable profile", found)


def check_ladder(plan: Plan, _machine: Machine) -> Check | None:
    """The profile in use is a rung of the ladder: off it, neither remedies nor the ramp know where to go."""
    profiles = plan.spec.settings.profiles
    if not profiles.ladder or profiles.use is None or profiles.use in profiles.ladder:
        return None
    return warned(
        "ladder",
        f"profile {profiles.use} is no rung of profiles.ladder ({', '.join(profiles.ladder)})",
        "add it to profiles.ladder, or use one of its rungs",
    )


def check_paths(plan: Plan, _machine: Machine) -> Check | None:
    """Data and models that config or command name exist."""
    missing: list[str] = []
    empty: list[str] = []
    seen = 0
    for key, value in _paths(plan):
        path = Path(plan.spec.cwd, os.path.expanduser(value))  # noqa: PTH111  Path's raises for an unknown ~name
        seen += 1
        if not path.exists():
            missing.append(f"{key} = {value}")
        elif path.is_dir() and not any(path.iterdir()):
            empty.append(f"{key} = {value}")
    if missing:
        return failed(
            "data", f"not there: {'; '.join(missing)}", f"correct the paths (they start at {plan.spec.cwd}) or fetch it"
        )
    if empty:
        return warned("data", f"empty: {'; '.join(empty)}", "is it the right folder, and is its disk mounted?")
    return passed("data", f"{seen} {'path' if seen == 1 else 'paths'} exist") if seen else None


def check_notify(plan: Plan, _machine: Machine) -> Check | None:
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


def is_sdxl(plan: Plan) -> bool:
    """Whether an SDXL model is trained: by script, model or config name."""
    model = str(plan.settings.get("pretrained_model_name_or_path", ""))
    words = " ".join((*plan.spec.command, plan.spec.config or "", model)).lower()
    return any(word in words for word in SDXL_WORDS)


def _own_text(spec: RunSpec) -> str | None:
    """The config as it stands, where the command does not name it (so that no copy is made)."""
    if spec.config is None:
        return None
    try:
        return Path(spec.cwd, spec.config).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None


def _paths(plan: Plan) -> Iterator[tuple[str, str]]:
    for key, value in (*_texts(plan.settings), *_texts(dataset_of(plan))):
        if "://" in value or any(sign in value for sign in "{}$"):
            continue
        if key in DATA_KEYS or (key in MODEL_KEYS and _looks_like_a_path(value)):
            yield key, value


def dataset_of(plan: Plan) -> dict[str, Any]:
    """Kohya keeps the folders of its data in a config of their own."""
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


def _looks_like_a_path(value: str) -> bool:
    """``org/model`` is a name on a hub; ``./x``, ``/x``, ``a/b/c`` and ``x.safetensors`` are paths."""
    starts = value.startswith(("/", "./", "../", "~"))
    return starts or value.count("/") > 1 or Path(value).suffix.lower() in FILE_SUFFIXES


def _word(value: bool | None) -> str:
    return "not set" if value is None else str(value).lower()

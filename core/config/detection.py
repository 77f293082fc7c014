"""Which preset a command belongs to, and the commented trainwatch.toml that ``trainwatch init`` writes."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..model.preset import Preset, Recognition, SourceFacts
from ..model.settings import Settings
from .document import paths_in
from .project import AUTO, FILE_NAME

GENERIC = "generic"
_KEYS_NEEDED = 2
"""One common key is not enough (``output_dir`` is in most configs); two keys of a framework are."""
_CONFIG_BYTES = 4 * 1024 * 1024
"""A larger file is not a config but data."""


NOTHING = SourceFacts()


class _Match(NamedTuple):
    """``strength``: how much it says: by the command, the script, the config, files; then how long or how many."""

    preset: Preset
    strength: tuple[int, int]
    why: str
    by_import: bool = False


def recognise(
    command: Sequence[str], config: Path | None, presets: Mapping[str, Preset], source: SourceFacts = NOTHING
) -> Recognition:
    """Return the preset of a command and why: by its words, its script, the config's keys or files; else ``generic``.

    One that is more specific than another one that matches as well (``over``) goes before it. If several are left, the
    one with the longest match in the command wins, or with the most keys in the config.
    """
    matches = [m for preset in presets.values() for m in _matches(preset, command, config, source)]
    general = {name for m in matches for name in m.preset.over}
    matches = [m for m in matches if m.preset.name not in general] or matches
    if not matches:
        return Recognition(preset=GENERIC, why="nothing in the command, its script or its config is of a known one")
    best = max(matches, key=lambda m: (m.strength, m.preset.name))
    told = any(m.preset.name == best.preset.name and not m.by_import for m in matches)
    styles = (best.preset.resume_file, best.preset.resume_directory)
    needs = tuple(name for style in styles if style is not None for name in style.when_imports)
    resumes = told or not needs or source.use_of(needs) is not None
    return Recognition(preset=best.preset.name, why=best.why, resumes=resumes)


def _matches(preset: Preset, command: Sequence[str], config: Path | None, source: SourceFacts) -> Iterator[_Match]:
    line = " ".join(command)
    said = max((found[0] for each in preset.detect_command if (found := re.search(each, line))), key=len, default="")
    if said:
        yield _Match(preset, (3, len(said)), f'the command has "{said.strip()}"')
    used = source.use_of(preset.detect_imports)
    if used is not None:
        yield _Match(preset, (2, 0), f"{used.place} imports {used.name}", by_import=True)
    files = preset.detect_files
    for folder in [f for f in map(Path, source.folders) if files and all((f / name).is_file() for name in files)][:1]:
        yield _Match(preset, (2, 1), f"{' and '.join(files)} in {folder}")
    keys = [] if config is None else [key for key in preset.detect_config_keys if key in config_keys(config)]
    if config is not None and keys and len(keys) >= min(_KEYS_NEEDED, len(preset.detect_config_keys)):
        yield _Match(preset, (1, len(keys)), f"{config.name} has {', '.join(keys[:3])}")


def config_keys(config: Path) -> frozenset[str]:
    """Return the keys of a TOML, YAML or JSON file, each bare and with the tables around it (``training.use_ema``).

    Empty if the file is missing or broken; the trainer reports that.
    """
    try:
        status = config.stat()
    except OSError:
        return frozenset()
    return _keys_in(config, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=32)
def _keys_in(config: Path, _modified: int, size_bytes: int) -> frozenset[str]:
    try:
        if size_bytes > _CONFIG_BYTES:
            return frozenset()
        text = config.read_text(encoding="utf-8-sig")
        if config.suffix == ".toml":
            data = tomllib.loads(text)
        else:
            from ruamel.yaml import YAML  # slow to import, and most configs are TOML

            data = YAML(typ="safe", pure=True).load(text)
        paths = [path for path in paths_in(data) if all(isinstance(key, str) for key in path)]  # none inside lists
    except Exception:  # a parser may raise anything on a broken file
        return frozenset()
    return frozenset(key for path in paths for key in (str(path[-1]), ".".join(map(str, path))))


_SCRIPTS = (
    "train.py", "train_network.py", "sdxl_train_network.py", "sdxl_train.py", "flux_train_network.py",
    "src/scripts/train.py", "scripts/train.py", "src/train.py", "main.py",
)  # fmt: skip
"""Patterns of trainer scripts, best first."""
_CONFIG_FOLDERS = (".", "configs", "config", "configs/training")


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a folder. ``command`` may hold placeholders; ``config`` is relative to the folder.

    ``guessed``: no command was given and none was found, so the user must fill it in.
    """

    command: tuple[str, ...]
    config: str | None
    preset: str
    guessed: bool


def survey_folder(
    folder: Path, presets: Mapping[str, Preset], command: Sequence[str] = (), config: Path | None = None
) -> Survey:
    """Find the command and config of a folder: from the given command, else from the scripts and configs there."""
    script = next((name for name in _SCRIPTS if (folder / name).is_file()), None)
    words = tuple(command) or ("python", script or "train.py")
    config = config or next((c for c in _configs(folder) if recognise((), c, presets).preset != GENERIC), None)
    preset = presets.get(recognise(words, config, presets).preset) or Preset(name=GENERIC)
    if not command and config is not None and preset.config_option is not None:
        words = (*words, preset.config_option, "{config}")
    if not command and preset.launcher:
        words = (*preset.launcher, *words[1:])
    relative = None if config is None else os.path.relpath(config, folder)
    return Survey(command=words, config=relative, preset=preset.name, guessed=not command and script is None)


def config_text(survey: Survey, *, name: str, output_dir: str | None = None, logging_dir: str | None = None) -> str:
    """Return a trainwatch.toml with the most common keys; unknown values are comments to be filled in."""
    return _TEMPLATE.format(
        name=_text(name),
        command=f"[{', '.join(map(_text, survey.command))}]",
        command_note="   # ← put your own command here" if survey.guessed else "",
        preset=_text(survey.preset if survey.preset != GENERIC else AUTO),
        config=f"config = {_text(survey.config)}" if survey.config else '# config = "configs/train.toml"',
        output_dir=f"output_dir = {_text(output_dir)}" if output_dir else f"# output_dir = {_text(f'outputs/{name}')}",
        logs_note=f" (its logging_dir is {_text(logging_dir)}; name text logs only)" if logging_dir else "",
        backoff_s=", ".join(f"{s:g}" for s in Settings().restart.backoff_s),
        d=Settings(),
    )


def write_config(folder: Path, text: str) -> Path:
    """Write trainwatch.toml into a folder and return its path. Never overwrites: raises FileExistsError, OSError."""
    path = folder / FILE_NAME
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise FileExistsError(
            f"{path} already exists; edit it, or move it away and run `trainwatch init` again"
        ) from error
    return path


def _configs(folder: Path) -> Iterator[Path]:
    for name in _CONFIG_FOLDERS:
        if (folder / name).is_dir():
            for path in sorted((folder / name).iterdir()):
                if path.suffix in {".toml", ".yaml", ".yml"} and path.name != FILE_NAME and path.is_file():
                    yield path


def _text(value: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, but for DEL."""
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


_TEMPLATE = """\
# The most common settings of trainwatch with their defaults; delete those that you do not change. All others
# (thresholds, grace periods, log lines of your own, the screen): docs/settings.md of trainwatch.

[run]                                   # or [runs.NAME], several
name = {name}
# Filled in at each launch: {{config}} {{output_dir}} {{resume}} {{profile}}
command = {command}{command_note}
cwd = "."                               # relative paths in this file start at its folder
env = {{}}                                # for example {{ TOKENIZERS_PARALLELISM = "false" }}
preset = {preset}                       # what is known about the framework; "auto" detects it (`trainwatch presets`)
# The trainer's own TOML or YAML. Each attempt gets a derived copy; this file is never written.
{config}
# Where the trainer writes its checkpoints. Without it nothing can be resumed.
{output_dir}
logs = []                               # log files besides the trainer's own stdout and stderr{logs_note}
gpus = "auto"                           # or [0, 1]
terminal = "file"                       # "pty" for trainers that want a terminal
# How your trainer is asked for a checkpoint before a stop, and at danger signs (RAM, temperature): a signal (USR1 or
# USR2; sent only to processes that catch it), or a file that is touched
# save_signal = "USR1"
# save_file = "{{output_dir}}/save_now"

[profiles]                              # named bundles of training settings (`trainwatch profiles`)
# use = "balanced"
ladder = []                             # safest first, for example ["conservative", "balanced", "aggressive"]
# Up one rung at a checkpoint after this long without trouble (one entry per rung, the last for all above), down one
# rung for good after a failure: "3 checkpoints", "10 epochs", "6 hours", or several with "or". Empty = never
ramp = []

[watch]
interval_s = {d.watch.interval_s}                        # seconds between two samples of GPU, memory and processes

[hang]
deadline_factor = {d.hang.deadline_factor}                   # x the slowest recent step or learned pause
min_s = {d.hang.min_s:g}                              # seconds without a step before a run can count as hung
# Longest deadline while signs of life are weak or unknown; live evidence (usual GPU power, growing files) has none
max_s = {d.hang.max_s:g}

[restart]
max_restarts = {d.restart.max_restarts}                        # without new verified progress in between
# What is done without you: "all" (end a hung trainer, restart a failed one), "ask" (nothing before you answer) or
# "notify" (nothing: the journal and the report have what would have been done)
act = "{d.restart.act}"
backoff_s = [{backoff_s}]            # seconds before the n-th restart without progress in between; the last repeats
ended_early = "{d.restart.ended_early}"                    # or "restart": after exit 0 before the end, once
if_not_understood = "{d.restart.if_not_understood}"              # or "copy_and_restart": saved state of unknown make

[nan]
action = "{d.nan.action}"                     # or "stop", "warn"

[loss]
diverged = "{d.loss.diverged}"                       # or "rollback", "stop"

[remedies]
# Which changes are made automatically after a failure: "guide", "equivalent" (what keeps the result), "all", "none"
apply = "{d.remedies.apply}"

[checkpoints]
keep_last = {d.checkpoints.keep_last}                           # 0 = nothing is ever deleted

[notify]
command = []                            # gets each event as JSON on stdin
urls = []                               # apprise URLs: Telegram, Discord ... (pip install 'trainwatch-tui[notify]')

[backup]
command = []                            # for each new verified checkpoint, with {{checkpoint}}: rclone, rsync ...
to = ""                                 # or a folder on another disk

[end]
at_finish = []                          # a command, run once when the training is done: stop the rented machine ...
at_give_up = []                         # likewise when it is given up
end_by = ""                             # "08:00": saved and stopped by this local time

[metrics]
prometheus = ""                         # "127.0.0.1:9877": values of all runs for Prometheus at this address

[evaluate]
command = []                            # a score for each checkpoint: ["python", "evaluate.py", "{{checkpoint}}"]

[supervisor]
keep_alive = false                      # true: the trainer's runner replaces a supervisor that died or froze
"""

"""Redirects a trainer's output into another folder, so that a trial changes none of the user's files."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ...model.change import Change
from ...model.preset import Preset, Profile
from ...model.run import RunSpec, place_of
from .derive import preview
from .nested_keys import DeriveError, leaves
from .trainer_config import load_config, names_config

OUTPUT_KEYS = frozenset(
    {"output_dir", "out_dir", "outdir", "output_path", "output_folder", "save_dir", "save_path", "checkpoint_dir",
     "ckpt_dir", "logging_dir", "log_dir", "logdir", "tensorboard_dir", "sample_dir", "results_dir", "default_root_dir",
     "work_dir", "run_dir", "exp_dir"}
)  # fmt: skip
"""Settings that name a folder into which the trainer writes."""
SAVES_TO = OUTPUT_KEYS - {"logging_dir", "log_dir", "logdir", "tensorboard_dir", "sample_dir"}
"""Those of them that name the folder of checkpoints."""
WHY = "a trial writes into its own folder"


def redirected(spec: RunSpec, preset: Preset, profile: Profile | None, folder: Path) -> RunSpec:
    """The run with every output folder in its command and config replaced by ``folder`` (absolute).

    Raises DeriveError with a sentence if nothing names the output folder, or if a launch would still name the user's
    own folder.
    """
    command, by_command = _command(spec, folder)
    changes, by_config = _config_changes(spec, preset, folder)
    if not (by_command or by_config or any("{output_dir}" in word for word in spec.command)):
        raise DeriveError(
            "the trainer's output folder cannot be redirected: neither the command nor its config names it; "
            f"write {{output_dir}} into {place_of(spec, 'command')} where the folder belongs"
        )
    new = msgspec.structs.replace(spec, command=command, changes=(*spec.changes, *changes), output_dir=str(folder))
    _refuse_leftovers(spec, new, preset, profile, folder)
    return new


def _command(spec: RunSpec, folder: Path) -> tuple[tuple[str, ...], bool]:
    """The command with its output folders replaced, and whether one of them is for checkpoints."""
    words = list(spec.command)
    found = False
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        bare = name.lstrip("-+~").replace("-", "_").rpartition(".")[2]
        previous = words[at - 1].lstrip("-").replace("-", "_").rpartition(".")[2] if at else ""
        option_before = at > 0 and words[at - 1].startswith("-") and "=" not in words[at - 1]
        if equals and (bare in OUTPUT_KEYS or _is_users(spec, value)) and "{" not in value:
            words[at] = f"{name}={_inside(spec, bare, value, folder)}"
            found = found or bare in SAVES_TO or _is_users(spec, value)
        elif (
            option_before
            and not word.startswith("-")
            and "{" not in word
            and (previous in OUTPUT_KEYS or _is_users(spec, word))
        ):
            words[at] = _inside(spec, previous, word, folder)
            found = found or previous in SAVES_TO or _is_users(spec, word)
    return tuple(words), found


def _config_changes(spec: RunSpec, preset: Preset, folder: Path) -> tuple[tuple[Change, ...], bool]:
    """Changes of the config that the command names, and whether one of them is for checkpoints."""
    if spec.config is None:
        return (), False
    config = load_config(spec, preset)
    if not names_config(spec, config.path):
        return (), False
    changes, found = [], False
    for key, value in leaves(config.tree):
        bare = key.rpartition(".")[2]
        if not isinstance(value, str) or not value or not (bare in OUTPUT_KEYS or _is_users(spec, value)):
            continue
        after = _inside(spec, bare, value, folder)
        changes.append(Change(where="config", key=key, before=value, after=after, why=WHY))
        found = found or bare in SAVES_TO or _is_users(spec, value)
    return tuple(changes), found


def _inside(spec: RunSpec, key: str, value: str, folder: Path) -> str:
    """The redirected path: a path inside the user's folder keeps its relative place, another one keeps its name."""
    place = _absolute(spec, value)
    own = _own(spec)
    if own is not None and (place == own or own in place.parents):
        return str(folder / place.relative_to(own))
    return str(folder) if key in SAVES_TO else str(folder / key)


def _is_users(spec: RunSpec, value: str) -> bool:
    """Whether a value is the user's output folder or a path in it that is not an existing file."""
    own = _own(spec)
    if own is None or not value or "\n" in value or "{" in value:
        return False
    place = _absolute(spec, value)
    return place == own or (own in place.parents and not place.is_file())


def _own(spec: RunSpec) -> Path | None:
    return None if spec.output_dir is None else _absolute(spec, spec.output_dir)


def _absolute(spec: RunSpec, value: str) -> Path:
    return Path(os.path.realpath(Path(spec.cwd) / os.path.expanduser(value)))  # noqa: PTH111  Path's raises


def _refuse_leftovers(old: RunSpec, new: RunSpec, preset: Preset, profile: Profile | None, folder: Path) -> None:
    derived = preview(new, preset, profile, None, (), folder, base_env={})
    named: list[tuple[str, str]] = [*_values(derived.argv), *((f"${k}", v) for k, v in derived.env.items())]
    if old.config is not None:
        config = load_config(old, preset)
        changed = {c.key: c.after for c in derived.changes if c.where == "config"}
        named += [(key, str(changed.get(key, value))) for key, value in leaves(config.tree) if isinstance(value, str)]
    for where, value in named:
        if _is_users(old, value):
            raise DeriveError(
                f"the trainer's output folder cannot be redirected: {where} still names {value}; "
                f"write {{output_dir}} into {place_of(old, 'command')} where the folder belongs"
            )


def _values(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, word in enumerate(argv):
        yield "the command", word
        if "=" in word:
            yield "the command", word.partition("=")[2]
        if at and " " in word:
            for part in word.split():  # a shell line
                yield "the command", part.strip("'\";").partition("=")[2] or part.strip("'\";")

"""What a run was started with, as names and values: to compare it with another run."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...model.run import RunSpec
from ...model.run_card import RunPlan, RunSettings
from ...model.text.edge import EDGE
from ...store.run_directory import RunDirectory

ON = "on"
"""The value of an option without a value."""
CONFIGS = frozenset({".toml", ".yaml", ".yml", ".json"})


def plan_of(spec: RunSpec) -> RunPlan:
    """Return what a first start of the run does, as the screen shows it before that start."""
    return RunPlan(
        name=spec.name,
        command=spec.command,
        cwd=spec.cwd,
        preset=spec.preset,
        profile=spec.settings.profiles.use,
        output_dir=spec.output_dir,
    )


def settings_of(run: RunDirectory, spec: RunSpec) -> RunSettings:
    """Of the newest launch; of the run's definition, if it was never launched. Unreadable files are left out."""
    from ...act.launch.attempt_records import read_order

    folder = next(iter(run.attempt_folders()), None)
    order = None if folder is None else read_order(folder)
    words = spec.command if order is None else order.argv
    found = {"preset": spec.preset, "working folder": spec.cwd}
    named = dict(options(words))
    config = _config(words, spec, folder)
    inside = {} if config is None else dict(_config_values(config))
    found |= named | inside
    found |= {f"${name}": value for name, value in spec.env.items()}
    return RunSettings(
        run_id=run.id,
        name=spec.name,
        values=EDGE.value(found),
        config_paths=frozenset(name for name, value in named.items() if inside and _is_path_of(config, value, spec)),
    )


def _is_path_of(config: Path | None, value: str, spec: RunSpec) -> bool:
    """The value names the config; the word is ``{config}`` before the first launch."""
    return config is not None and (value == "{config}" or Path(spec.cwd, value) == Path(spec.cwd, config))


def options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """``--lr 1e-4``, ``--lr=1e-4`` and ``lr=1e-4`` as (lr, 1e-4); words without a name as (word 1, …)."""
    waiting, plain = "", 0
    for word in words:
        name, equals, value = word.partition("=")
        if word.startswith("-") and not _is_number(word):
            if waiting:
                yield waiting, ON
            waiting = "" if equals else name.lstrip("-")
            if equals:
                yield name.lstrip("-"), value
        elif waiting:
            yield waiting, word
            waiting = ""
        elif equals and name.replace(".", "").replace("_", "").replace("+", "").isalnum():
            yield name.lstrip("+"), value
        else:
            plain += 1
            yield f"word {plain}", word
    if waiting:
        yield waiting, ON


def _is_number(word: str) -> bool:
    with contextlib.suppress(ValueError):
        float(word)
        return True
    return False


def _config(words: Sequence[str], spec: RunSpec, folder: Path | None) -> Path | None:
    """The config of that launch: its derived copy, else the user's own file."""
    named = [Path(word) for word in words if Path(word).suffix.lower() in CONFIGS]
    derived = [path for path in named if folder is not None and path.parent == folder]
    own = [] if spec.config is None else [Path(spec.config)]
    return next(iter((*derived, *own)), None)


def _config_values(path: Path) -> Iterator[tuple[str, str]]:
    """Its values as they are now; none if it cannot be read."""
    from ...act.config.nested_keys import DeriveError, leaves
    from ...act.config.trainer_config import read_config

    with contextlib.suppress(DeriveError, OSError, ValueError):
        yield from ((f"{key} (config)", str(value)) for key, value in leaves(read_config(path)))

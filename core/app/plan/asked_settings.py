"""Settings of the trainer that a person changes for a run: ``--set KEY=VALUE`` and ``--lr X`` of run and resume.

They are stored in the run, so that each later launch has them, over profile, command and config. The user's own files
stay as they are.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from ...act.config.derive import DeriveError
from ...act.config.trainer_config import TrainerSettings
from ...act.local_engine import engine_of
from ...config.document import nearest
from ...judge.recovery.remedies import number
from ...model.change import Change
from ...model.shipped import UNKNOWN
from ...source.trainer_source import source_of
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode
from ..runs.known_runs import home
from .launch_plan import LaunchPlan
from .told_length import save_request

RATE = re.compile(r"(base_|max_|peak_|init_)?(learning_rate|lr)")
"""Bare names of the learning rate."""
PARTS = ("unet_lr", "text_encoder_lr", "prior_learning_rate")
"""Learning rates of parts of the network, which override it: they are changed by the same factor."""
USUAL = "learning_rate"
_SETTING = re.compile(r"[$\w][\w.-]*")


def asked_changes(plan: LaunchPlan, given: Sequence[str], rate: float | None) -> tuple[Change, ...]:
    """The changes that a person asks for. ``rate``: the learning rate. Raises CliError (exit code 2)."""
    pairs = [_pair(text) for text in given]
    for key, _ in pairs:
        _require_place(plan, key)
    found = [_change(plan, key, value) for key, value in pairs]
    if rate is not None:
        if not (rate > 0 and math.isfinite(rate)):
            raise CliError(ExitCode.USAGE, f"--lr: must be more than 0, got {rate:g}")
        found += _rates(plan, rate)
    return tuple(found)


def without_a_place(plan: LaunchPlan, changes: Sequence[Change]) -> list[str]:
    """A sentence for each changed setting of which nobody can tell whether the trainer has it."""
    return [
        f"{c.key}: neither the command nor the config has it, and nobody can tell whether the trainer knows it"
        f"{_near(plan, c.key)}; it is passed on as it stands"
        for c in changes
        if c.where == "config" and c.before is None and not _is_known(plan, c.key)
    ]


def _require_place(plan: LaunchPlan, key: str) -> None:
    if key.startswith("$") or _before(plan, key) is not None or _is_known(plan, key):
        return
    source = source_of(plan.spec)
    if not source.declares_all or plan.spec.config is not None:
        return
    raise CliError(
        ExitCode.USAGE,
        f"--set {key}: {source.target.file.name} has no such option{_near(plan, key)}; keys are those of the command, "
        "of the config and of the script's options (--help of the script lists them)",
    )


def _is_known(plan: LaunchPlan, key: str) -> bool:
    bare = key.rpartition(".")[2].replace("-", "_")
    return bare in {name.rpartition(".")[2].replace("-", "_") for name in _names(plan)}


def _names(plan: LaunchPlan) -> set[str]:
    preset = plan.preset
    lengths = (preset.epochs_key, preset.steps_key)
    return {
        *plan.settings,
        *(option.name.lstrip("-") for option in source_of(plan.spec).options),
        *(word.partition("=")[0].lstrip("-") for word in plan.spec.command if word.startswith("-")),
        *preset.dotted,
        *(name for name in lengths if name),
    }


def _near(plan: LaunchPlan, key: str) -> str:
    guess = nearest(key, [name for name in _names(plan) if name])
    return "" if guess is None else f'; did you mean "{guess}"?'


def with_asked(changes: Sequence[Change], before: Sequence[Change]) -> tuple[Change, ...]:
    """The changes of a run after these: a setting that was changed before gets the new value."""
    new = {(change.where, change.key) for change in changes}
    return (*(change for change in before if (change.where, change.key) not in new), *changes)


def words_of(changes: Sequence[Change]) -> str:
    """``learning_rate 0.0001 -> 5e-05``."""
    return ", ".join(f"{c.key} {'(not set)' if c.before is None else c.before} -> {c.after}" for c in changes)


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not _SETTING.fullmatch(key.lstrip("-")):
        raise CliError(ExitCode.USAGE, f"--set {text}: must be KEY=VALUE, as in --set learning_rate=5e-5")
    try:
        return key.lstrip("-"), json.loads(value)
    except ValueError:
        return key.lstrip("-"), value


def _change(plan: LaunchPlan, key: str, value: Any, option: str = "--set") -> Change:
    where: Literal["config", "env"] = "env" if key.startswith("$") else "config"
    why = f"asked for by {option}"
    return Change(where=where, key=key.lstrip("$"), before=_before(plan, key), after=value, why=why)


def _before(plan: LaunchPlan, key: str) -> Any:
    if key.startswith("$"):
        return plan.spec.env.get(key[1:])
    try:
        found = TrainerSettings(plan.spec, plan.preset).value(plan.profile, key)
    except DeriveError:  # the launch says what is wrong with the config
        return None
    return None if found == UNKNOWN else number(found)


def _rates(plan: LaunchPlan, rate: float) -> Iterator[Change]:
    key = _rate_key(plan)
    main = _change(plan, key, rate, "--lr")
    yield main
    for part in PARTS:
        before = _before(plan, part)
        if isinstance(before, int | float) and not isinstance(before, bool):
            same = isinstance(main.before, int | float) and main.before > 0
            yield _change(plan, part, before * rate / main.before if same else rate, "--lr")


def _rate_key(plan: LaunchPlan) -> str:
    """The setting that is the learning rate: what is set, else what the script declares, else the usual name."""
    named = [key for key in plan.settings if RATE.fullmatch(key)]
    if named:
        return min(named, key=lambda key: (key != USUAL, key != "lr", key))
    options = source_of(plan.spec).options
    declared = [name for o in options if RATE.fullmatch(name := o.name.lstrip("-").replace("-", "_"))]
    if declared:
        return min(declared, key=lambda key: (key != USUAL, key != "lr", key))
    if plan.preset.name == "generic":
        raise CliError(
            ExitCode.USAGE,
            "--lr: which setting is the learning rate cannot be told: command and config have none, and the script "
            "declares none; name it: --set KEY=VALUE",
        )
    return USUAL


# What a run's first attempt would hand to a scheduler.


def job_script(plan: LaunchPlan) -> str | None:
    """The batch script; None if the attempts are not jobs, or the launch cannot be derived."""
    if plan.derived is None:
        return None
    folder = RunDirectory(home() / "runs" / plan.spec.id).attempt(1)
    engine = engine_of(plan.spec, base_env=os.environ, save=save_request(plan.spec, plan.preset))
    return engine.shown(plan.derived.argv, folder, 1)

"""The first record of a run's journal, and the first line of its trace."""

from pathlib import Path

import msgspec

from trainwatch import __version__

from ...model.fact import RunCreated
from ...model.observation import Meta
from ...model.run import RunSpec
from ...model.settings import Settings
from ..plan.launch_plan import LaunchPlan
from ..preflight.length_check import expected_of_run

UNJUDGED = frozenset({"notify", "tmux", "screen"})
"""Sections of the settings that the judge does not use; the first holds secrets."""


def run_created(plan: LaunchPlan, home: Path) -> RunCreated:
    """The journal's first record."""
    spec = plan.spec
    return RunCreated(
        run=spec.id,
        name=spec.name,
        command=spec.command,
        cwd=spec.cwd,
        preset=spec.preset,
        preset_why=plan.preset.told(spec.preset_why),
        output_dir=spec.output_dir,
        output_why=spec.output_why,
        profile=spec.settings.profiles.use,
        max_restarts=spec.settings.restart.max_restarts,
        act=spec.settings.restart.act,
        trainwatch_version=__version__,
        expected=expected_of_run(plan, home),
        resume=spec.resume_way,
    )


def trace_head(spec: RunSpec) -> Meta:
    """The trace's first line. It holds the settings that differ from the defaults, so that a replay decides alike."""
    settings = msgspec.to_builtins(spec.settings)
    defaults = msgspec.to_builtins(Settings())
    changed = {
        section: {key: value for key, value in values.items() if value != defaults[section][key]}
        for section, values in settings.items()
        if section not in UNJUDGED
    }
    return Meta(
        t=0.0,
        command=spec.command,
        preset=spec.preset,
        output_dir=spec.output_dir,
        settings={section: values for section, values in changed.items() if values},
    )

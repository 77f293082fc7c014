"""What the judge of a run knows."""

import os
from collections.abc import Mapping

from ...config.end_times import end_after
from ...config.learned_patterns import with_learned
from ...config.shipped import load_failures, load_log_shapes, load_remedies
from ...judge.failure.catalogue import CompiledCatalogue
from ...judge.knowledge import Knowledge
from ...judge.step import Judge
from ...judge.text.shapes.shape_table import ShapeTable
from ...model.launch.expected_length import ExpectedLength
from ...model.launch.resume_support import resume_support
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...model.shipped.profile import Profile, usual_ladders
from ...replay import Replay
from ...store.learned.unknown_ends import UnknownEnds
from ..plan.declared_options import declared_options
from ..plan.definitions import Definitions
from ..plan.save_request import save_request
from ..plan.told_length import told_lengths
from ..plan.trainer_values import trainer_values, traits
from ..preflight.exit_status_check import what_hides_status
from ..preflight.handover_check import handed_over
from ..runs.ended_attempt import project_of
from ..runs.known_runs import home


def compiled_catalogue(spec: RunSpec) -> CompiledCatalogue:
    """The failure catalogue and the line shapes, with the run's own patterns."""
    shapes = ShapeTable(load_log_shapes(), spec.settings.progress.shapes)
    own = with_learned(spec.settings.diagnose.patterns, project_of(spec))
    return CompiledCatalogue(load_failures(), shapes, own)


def knowledge(
    spec: RunSpec, preset: Preset, profiles: Mapping[str, Profile], expected: ExpectedLength | None = None
) -> Knowledge:
    """``expected``: the estimated length of the run."""
    catalogue = compiled_catalogue(spec)
    return Knowledge(
        catalogue=catalogue,
        shapes=catalogue.shapes,
        settings=spec.settings,
        preset=preset,
        profiles=tuple(profiles),
        run=spec.name,
        run_id=spec.id,
        created_wall=spec.created_wall,
        output_dir=spec.without_outputs().output_dir,
        cwd=spec.cwd,
        remedies=load_remedies(),
        values=trainer_values(spec, preset, profiles, load_remedies(), os.environ),
        families={name: profile.family for name, profile in profiles.items()},
        usual_ladders=usual_ladders(profiles.values()),
        traits=traits(),
        options=declared_options(spec, load_remedies()),
        resume_support=resume_support(preset, spec.command, spec.second_start),
        begin_from=spec.begin_from,
        handed_over=handed_over(spec),
        end_after=end_after(spec.settings.end.end_by),
        own_ends=spec.own_ends,
        status_hidden=what_hides_status(spec),
        unknown_ends=UnknownEnds(home()).read(),
        told=told_lengths(spec, preset, profiles, expected),
        can_ask_to_save=any(save_request(spec, preset)),
    )


def replay_of(spec: RunSpec, definitions: Definitions) -> Replay:
    """A judge of this run, with its settings, for observations that are fed to it."""
    return Replay(Judge(knowledge(spec, definitions.preset_of(spec), definitions.profiles)))

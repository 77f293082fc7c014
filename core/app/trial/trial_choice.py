"""Which run and which profiles a trial is for."""

from collections.abc import Sequence

from ...model.run import RunSpec
from ...model.shipped.profile import NO_PROFILE
from ..errors import CliError, ExitCode
from ..plan.project_plan import plan_command, project_spec
from ..runs.known_runs import find_run
from .trial_run import rivals


def run_to_try(
    name: str | None, profiles: Sequence[str] | None, *, beside_others: bool, command: Sequence[str] = ()
) -> tuple[RunSpec, Sequence[str]]:
    """The run whose command is used, and the profiles to measure (None: each of its ladder). Raises CliError.

    ``name``: None = this project's run, else one started in this folder. ``command``: of no run, tried as it is typed.
    ``profiles`` empty: the run's own. ``beside_others``: also while a run trains on the same GPU.
    """
    if command:
        spec: RunSpec | None = plan_command(command).spec
    else:
        spec = project_spec(None) if name is None else None
    if spec is None:
        spec = find_run(name).load_spec()
    own = (spec.settings.profiles.use or NO_PROFILE,)
    names = _ladder(spec) if profiles is None else tuple(dict.fromkeys(profiles)) or own
    others = rivals(spec)
    if others and not beside_others:
        raise CliError(
            ExitCode.FAILED,
            f"{'; '.join(others)}: a trial would slow it or take its memory; --yes runs it nevertheless",
        )
    return spec, names


def _ladder(spec: RunSpec) -> tuple[str, ...]:
    ladder = spec.settings.profiles.ladder
    if not ladder:
        raise CliError(
            ExitCode.USAGE,
            "--all measures the profiles of the ladder, and none is set; set [profiles] ladder, or name --profile",
        )
    return ladder

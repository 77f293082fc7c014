"""Which run and which profiles a trial is for."""

from collections.abc import Sequence

from ...model.run import RunSpec
from ..errors import CliError, ExitCode
from ..plan.project_plan import project_spec
from ..runs.known_runs import find_run
from .trial_run import rivals


def run_to_try(
    name: str | None, profiles: Sequence[str] | None, *, beside_others: bool
) -> tuple[RunSpec, Sequence[str]]:
    """The run whose command is used, and the profiles to measure (None: each of its ladder). Raises CliError.

    ``name``: None = this project's run, else one started in this folder. ``beside_others``: also while a run trains on
    the same GPU.
    """
    spec = project_spec(None) if name is None else None
    if spec is None:
        spec = find_run(name).load_spec()
    names = _ladder(spec) if profiles is None else tuple(dict.fromkeys(profiles))
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

"""One trial on this machine: its output redirected, or behind overlays; its result is kept.

Overlays are for a trainer whose output folder nobody can name: they take what it writes (``app/apart.py``).
"""

import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from ...act.config.derive import DeriveError
from ...act.config.redirect import redirected
from ...act.overlay import NoOverlayError
from ...model.run import RunSpec
from ...model.trial import TrialResult
from ...store.home import make_private, runs_folder
from ...store.run_directory import RunDirectory
from ...store.trials import keep_trial, trials_folder
from ..apart import behind_overlays, obey
from ..errors import CliError, ExitCode
from ..plan.launch_plan import plan_launch
from ..plan.specs import definitions_of
from ..runs.known_runs import home
from .trial_run import Trial, measured, plan_trial


class TrialOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is tried behind overlays."""

    spec: RunSpec
    trial: Trial


def try_here(spec: RunSpec, trial: Trial, scratch: Path | None, *, keep: bool) -> TrialResult:
    """Run one trial to its end, in the main thread, and keep its result. An interrupt ends its trainer, too.

    Its output goes into a folder of its own; if nothing names the output folder, the trainer runs behind overlays.
    ``scratch``: parent of the trial's own folder (default: below TRAINWATCH_HOME, or where an overlay can be); removed
    afterwards unless ``keep``. A result with extra words, or of no run, is not kept. Raises CliError,
    KeyboardInterrupt.
    """
    definitions = definitions_of(spec)
    parent = make_private(trials_folder(home()) / "scratch") if scratch is None else scratch.absolute()
    planned = plan_trial(spec, trial, trials_folder(home()), definitions)
    folder = Path(tempfile.mkdtemp(prefix=f"trial-{trial.profile}-", dir=parent))
    try:
        preset = definitions.preset_of(spec)
        try:
            own = redirected(planned, preset, definitions.profiles.get(trial.profile), folder / "out")
        except DeriveError as error:
            result = _behind_overlays(spec, trial, scratch, keep=keep, why=str(error))
        else:
            (folder / "out").mkdir()
            result = measured(own, trial, definitions, trials_folder(home()), spec.gpus)
        if not trial.extra and (spec.project is not None or RunDirectory(runs_folder(home()) / spec.id).path.exists()):
            keep_trial(home(), spec.id, result)
        return result
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)  # it was made above


def _behind_overlays(spec: RunSpec, trial: Trial, scratch: Path | None, *, keep: bool, why: str) -> TrialResult:
    """``why`` the output cannot be redirected."""
    try:
        return behind_overlays(
            "trainwatch.core.app.trial.trial_here", plan_launch(spec), lambda _: TrialOrder(spec=spec, trial=trial),
            TrialResult, scratch=scratch, keep=keep, say=lambda _: None, take=_with_log,
        )  # fmt: skip
    except NoOverlayError as error:
        raise CliError(
            ExitCode.FAILED,
            f"no trial of {trial.profile}: {why}. Overlays over your folders, which need no such option, are not "
            f"possible here: {error}",
        ) from None


def _with_log(result: TrialResult) -> TrialResult:
    """The result with its log copied to where it stays."""
    kept = make_private(trials_folder(home()) / "logs") / f"{result.profile}-{int(result.wall)}.log"
    try:
        shutil.copyfile(result.log or "", kept)
    except OSError:
        return msgspec.structs.replace(result, log=None)
    return msgspec.structs.replace(result, log=str(kept))


def _try(order: TrialOrder, _folder: Path) -> TrialResult:
    definitions, state = definitions_of(order.spec), make_private(trials_folder(home()))
    planned = plan_trial(order.spec, order.trial, state, definitions)
    return measured(planned, order.trial, definitions, state, order.spec.gpus)


if __name__ == "__main__":
    sys.exit(obey(Path(sys.argv[1]), TrialOrder, _try))

"""One trial on this machine: its output redirected, or behind overlays; its result is kept."""

import shutil
import tempfile
from pathlib import Path

from ...act.config.derive import DeriveError
from ...act.config.redirect import redirected
from ...model.run import RunSpec
from ...model.trial import TrialResult
from ...store.home import make_private, runs_folder
from ...store.run_directory import RunDirectory
from ...store.trials import keep_trial, trials_folder
from ..plan.specs import definitions_of
from ..runs.known_runs import home
from .apart_trial import try_apart
from .trial_run import Trial, measured, plan_trial


def try_here(spec: RunSpec, trial: Trial, scratch: Path | None, *, keep: bool) -> TrialResult:
    """Run one trial to its end, in the main thread, and keep its result. An interrupt ends its trainer, too.

    Its output goes into a folder of its own; if nothing names the output folder, the trainer runs behind overlays
    (apart_trial.py). ``scratch``: parent of the trial's own folder (default: below TRAINWATCH_HOME, or where an overlay
    can be); removed afterwards unless ``keep``. A result with extra words, or of no run, is not kept.
    Raises CliError, KeyboardInterrupt.
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
            result = try_apart(spec, trial, scratch, keep=keep, why=str(error))
        else:
            (folder / "out").mkdir()
            result = measured(own, trial, definitions, trials_folder(home()), spec.gpus)
        if not trial.extra and (spec.project is not None or RunDirectory(runs_folder(home()) / spec.id).path.exists()):
            keep_trial(home(), spec.id, result)
        return result
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)  # it was made above

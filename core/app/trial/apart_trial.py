"""A trial of a trainer whose output folder nobody can name: overlays over the user's folders take what it writes.

The process that enters the overlays is one of its own, because they hold for a process and its children
(overlay.py). Its state folder is in the scratch folder.
"""

import os
import shutil
import sys
from pathlib import Path

import msgspec

from ...act.overlay import NoOverlayError, enter
from ...model.run import RunSpec
from ...model.trial import TrialResult
from ...store.home import make_private
from ...store.trials import trials_folder
from ..apart import caches, ends_with, hidden_folders, places, run_apart, scratch_folder, written_folders
from ..errors import CliError, ExitCode
from ..plan.launch_plan import plan_launch
from ..plan.specs import definitions_of
from ..runs.known_runs import home
from .trial_run import Trial, measured, plan_trial

ORDER, SEEN = "trial-order.json", "trial-seen.json"
NAME_IT = "Overlays over your folders, which need no such option, are not possible here"


class TrialOrder(msgspec.Struct, frozen=True, kw_only=True):
    """``wanted``, ``kept``, ``hidden``: folders for the overlays (mount_view.enter)."""

    spec: RunSpec
    trial: Trial
    parent: int
    wanted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


class TrialSeen(msgspec.Struct, frozen=True, kw_only=True):
    """``result``, or ``problem`` with the exit ``code`` of the verb, or ``no_overlay``: why there can be none."""

    result: TrialResult | None = None
    problem: str = ""
    code: int = 1
    no_overlay: str = ""


def try_apart(spec: RunSpec, trial: Trial, scratch: Path | None, *, keep: bool, why: str) -> TrialResult:
    """Run the trial behind overlays. ``why`` the output cannot be redirected. Raises CliError, KeyboardInterrupt."""
    wanted = written_folders(spec)
    seen = TrialSeen(no_overlay="no place for a scratch folder")
    for parent in places(scratch, wanted):
        with scratch_folder(parent, keep=keep) as folder:
            order = TrialOrder(
                spec=spec,
                trial=trial,
                parent=os.getpid(),
                wanted=tuple(map(str, wanted)),
                kept=tuple(map(str, caches(os.environ))),
                hidden=tuple(map(str, hidden_folders(plan_launch(spec)))),
            )
            seen = _run(order, folder)
        if not seen.no_overlay:
            break
    if seen.no_overlay:
        raise CliError(ExitCode.FAILED, f"no trial of {trial.profile}: {why}. {NAME_IT}: {seen.no_overlay}")
    if seen.result is None:
        raise CliError(ExitCode(seen.code), seen.problem)
    return seen.result


def _run(order: TrialOrder, folder: Path) -> TrialSeen:
    (folder / ORDER).write_bytes(msgspec.json.encode(order))
    end = run_apart("trainwatch.core.app.trial.apart_trial", folder, lambda _line: None)
    if end.interrupted:
        raise KeyboardInterrupt
    try:
        seen = msgspec.json.decode((folder / SEEN).read_bytes(), type=TrialSeen)
    except (OSError, msgspec.MsgspecError):
        raise CliError(ExitCode.FAILED, f"the trial's own process failed: {end.said}") from None
    if seen.result is None or seen.result.log is None:
        return seen
    return msgspec.structs.replace(seen, result=_with_log(seen.result))


def _with_log(result: TrialResult) -> TrialResult:
    logs = make_private(trials_folder(home()) / "logs")
    kept = logs / f"{result.profile}-{int(result.wall)}.log"
    try:
        shutil.copyfile(result.log or "", kept)
    except OSError:
        return msgspec.structs.replace(result, log=None)
    return msgspec.structs.replace(result, log=str(kept))


def main(folder: Path) -> int:
    """Run the order in ``folder``, and write what was seen there."""
    order = msgspec.json.decode((folder / ORDER).read_bytes(), type=TrialOrder)
    if not ends_with(order.parent):  # it died before the kernel was asked
        shutil.rmtree(folder, ignore_errors=True)
        return ExitCode.INTERRUPTED
    try:
        wanted, kept, hidden = ([Path(name) for name in names] for names in (order.wanted, order.kept, order.hidden))
        enter(folder, wanted=wanted, kept=kept, hidden=hidden)
        os.chdir(order.spec.cwd)
        definitions, state = definitions_of(order.spec), make_private(trials_folder(home()))
        planned = plan_trial(order.spec, order.trial, state, definitions)
        seen = TrialSeen(result=measured(planned, order.trial, definitions, state, order.spec.gpus))
    except NoOverlayError as error:
        seen = TrialSeen(no_overlay=str(error))
    except CliError as error:
        seen = TrialSeen(problem=str(error), code=error.code)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    (folder / SEEN).write_bytes(msgspec.json.encode(seen))
    return ExitCode.DONE


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

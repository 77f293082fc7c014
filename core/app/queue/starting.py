"""Starts the run of one entry, in a process of its own with the folder and the environment of the entry."""

from typing import Literal

import msgspec

from ...config.spec import Overrides
from ...model.launch.queue import LABEL, QueueEntry
from ...model.run import RunSpec
from ...store.home import runs_folder
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ...store.run_lookup import list_runs
from ..errors import CliError, ExitCode
from ..plan.definitions import definitions_of
from ..plan.launch_plan import LaunchPlan, plan_launch
from ..plan.project_plan import plan_command, plan_project
from ..preflight.other_trainer import other_trainers, what_it_is
from ..runs.known_runs import home
from ..runs.output_claim import lock_rival
from ..runs.output_owner import rival_of
from ..start.detached import start_detached
from ..start.earlier_run import EarlierRun, earlier_run
from ..start.project_run import create_run
from ..start.standing_state import standing
from ..start.start_choice import StartChoice, Wish, choose_start


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a start. ``run``: the run's id. ``later``: it has to wait for another run; ``why``: for which."""

    how: Literal["started", "later", "failed"]
    run: str | None = None
    why: str = ""


def run_of_entry(entry: QueueEntry) -> RunDirectory | None:
    """The run that was made for an entry, also if nobody wrote down that it was."""
    for run in list_runs(home()):
        if run.load_spec().labels.get(LABEL) == entry.key:
            return run
    return None


def plan_of_entry(entry: QueueEntry) -> LaunchPlan:
    """The plan of its launch, without GPUs of its own. Raises CliError."""
    overrides = msgspec.convert(entry.options, Overrides)
    plan = plan_command(entry.command, overrides) if entry.command else plan_project(overrides.name, overrides)
    if plan is None:
        raise CliError(ExitCode.NOT_FOUND, f"{entry.cwd}: there is no trainwatch.toml any more")
    return plan


def start_entry(entry: QueueEntry) -> Started:
    """Start it on its GPUs, or go on with its run if that was made already. Raises nothing but bugs."""
    try:
        known = run_of_entry(entry)
        if known is not None:
            return _go_on(known, entry)
        return _begin(entry)
    except CliError as error:
        return Started(how="failed", why=str(error))


def _go_on(run: RunDirectory, entry: QueueEntry) -> Started:
    """Supervise the run again: it was interrupted, or its start was."""
    if not is_held(run.lock):
        spec = run.load_spec()
        if spec.gpus != entry.on:
            run.save_spec(msgspec.structs.replace(spec.without_outputs(), gpus=entry.on))
        start_detached(run)
    return Started(how="started", run=run.id)


def _begin(entry: QueueEntry) -> Started:
    plan = plan_of_entry(entry)
    spec = _with_gpus(plan.spec, entry)
    plan = plan_launch(spec, definitions_of(spec))
    rival = rival_of(spec) or lock_rival(spec, home(), unclear=True)
    if rival is not None:
        return Started(how="later", why=rival)
    if trains := other_trainers(plan, RunDirectory(runs_folder(home()) / spec.id)):
        return Started(how="later", why=what_it_is(plan, trains[0]))
    earlier = earlier_run(spec)
    if entry.command and earlier is not None and earlier.spec.labels.get(LABEL) not in {None, entry.key}:
        choice = _beside(plan, entry, earlier)
        if choice is None:
            return Started(how="later", why=f"run {earlier.run.id} of the same command is live")
    else:
        choice = _choice(plan, entry)
    ready = create_run(plan, choice)
    if choice.known is not None and not is_held(ready.run.lock):
        ready.run.save_spec(_with_gpus(ready.run.load_spec().without_outputs(), entry))
    start_detached(ready.run, ready.first, ready.claim)
    return Started(how="started", run=ready.run.id)


def _with_gpus(spec: RunSpec, entry: QueueEntry) -> RunSpec:
    return msgspec.structs.replace(spec, gpus=entry.on, labels={**spec.labels, LABEL: entry.key})


def _choice(plan: LaunchPlan, entry: QueueEntry) -> StartChoice:
    """As ``trainwatch run`` chooses."""
    choice = choose_start(plan, Wish(checkpoint=entry.checkpoint, fresh=entry.fresh))
    return msgspec.structs.replace(choice, said="") if entry.fresh else choice


def _beside(plan: LaunchPlan, entry: QueueEntry, earlier: EarlierRun) -> StartChoice | None:
    """The same command that another entry had is another run if that saved nothing; None: it has to wait."""
    asked = entry.fresh or entry.checkpoint is not None
    if not asked and not earlier.story.checkpoints and not standing(plan.spec, plan.preset, plan.profile, None):
        return StartChoice()
    return None if earlier.condition in {"supervised", "trains"} else _choice(plan, entry)

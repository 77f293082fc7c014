"""The run to start: of a command, or of trainwatch.toml (made at its first start, updated at each later one)."""

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...checkpoints.manage.copies import copy_aside, folder_for_copies
from ...config.document import ConfigError
from ...config.location import find_project
from ...config.project import Overrides, load_project, settings_with
from ...model.launch import LABEL
from ...model.observation import Command
from ...model.run import RunSpec
from ...model.text import typed
from ...store.home import runs_folder
from ...store.journal import load_story
from ...store.lock import is_held
from ...store.run_directory import RunDirectory, run_id_for
from ..errors import CliError, ExitCode, config_errors
from ..plan.launch_plan import NO_OPTIONS, LaunchPlan, plan_launch, spec_and_definitions
from ..plan.specs import bare_spec, definitions_of
from ..plan.trainer_folders import output_folder
from ..plan.trainer_settings import asked_changes, with_asked, without_a_place, words_of
from ..preflight.checklist import require_startable
from ..preflight.other_trainer import accept
from ..runs.known_runs import find_run, here, home
from ..runs.output_claim import OutputClaim, take_over, trainer_pid
from ..runs.output_folder import list_run_checkpoints
from .detached import end_is_ordered, end_supervisor, wait_for_end
from .start_choice import StartChoice, Wish, choose_start


class RunToStart(NamedTuple):
    """A run with its folder. ``plan``: of its first launch, if it was made to be started now.

    ``first``: the command for its supervisor to begin with. ``claim``: the locks of its output folder, to be released
    once a supervisor holds them. ``said``: a sentence for the person who starts it.
    """

    run: RunDirectory
    plan: LaunchPlan | None = None
    first: Command | None = None
    claim: OutputClaim | None = None
    said: str = ""


def create_run(plan: LaunchPlan, choice: StartChoice | None = None, *, forced: bool = False) -> RunToStart:
    """The run to start, as ``choose_start`` chose: a new one with its folder, or a known one to go on with.

    ``forced``: also if ``check`` fails on something. Raises CliError if it could not be started: then nothing is made.
    """
    choice = choose_start(plan, Wish()) if choice is None else choice
    chosen = plan_of_choice(plan, choice)
    if choice.known is not None:
        if not choice.watches:
            require_startable(chosen, choice.known, known=True, forced=forced, waits_for_room=choice.waits_for_room)
            if choice.supervised:
                end_supervisor(choice.known, "a new start")
        known = choice.known.load_spec().without_outputs()
        _save_if_free(choice.known, known, _going_on(plan.spec, known))
        return RunToStart(choice.known, first=choice.first, said=choice.said)
    require_startable(chosen, forced=forced, waits_for_room=LABEL in chosen.spec.labels)  # a queued run waits itself
    if forced:
        take_over(chosen.spec, home())
    claim = OutputClaim(chosen.spec, home())
    claim.take()
    run = RunDirectory(runs_folder(home()) / chosen.spec.id)
    try:
        if run.path.exists():  # of a trainwatch.toml, made to be looked at and never launched
            run.save_spec(chosen.spec)
        else:
            run = RunDirectory.create(home(), chosen.spec)
        if forced:
            accept(chosen, run)
        said = choice.said
        if choice.keep and chosen.spec.output_dir is not None:
            said = f"{said}; {keep_before(choice.keep, chosen.spec, run)}"
        claim.tell_later(said)
        return RunToStart(run, chosen, claim=claim, said=said)
    except BaseException:
        claim.release()
        raise


def plan_of_choice(plan: LaunchPlan, choice: StartChoice) -> LaunchPlan:
    """The plan of what was chosen: of the known run, or of a new one with its checkpoint."""
    spec = plan.spec
    if choice.known is not None:
        spec = _going_on(spec, choice.known.load_spec())
    elif choice.checkpoint is not None:
        spec = msgspec.structs.replace(spec, begin_from=choice.checkpoint)
    return msgspec.structs.replace(plan, spec=spec, begins=choice.begins)


def _going_on(spec: RunSpec, known: RunSpec) -> RunSpec:
    """The known run with what is given now: it began when and from what it did, and keeps its changes."""
    return msgspec.structs.replace(
        _of_file_now(spec, known),
        id=known.id,
        name=known.name,
        output_dir=spec.output_dir or known.output_dir,
        project=known.project,
    )


def _of_file_now(spec: RunSpec, known: RunSpec) -> RunSpec:
    """The same of a run of a trainwatch.toml, which says its name and its output folder."""
    changes, labels = with_asked(spec.changes, known.changes), {**known.labels, **spec.labels}
    return msgspec.structs.replace(
        spec, created_wall=known.created_wall, begin_from=known.begin_from, labels=labels, changes=changes
    )


def _save_if_free(run: RunDirectory, known: RunSpec, spec: RunSpec) -> None:
    """Store the spec, unless it says the same, or a supervisor has the other one."""
    if spec != known and not is_held(run.lock):
        run.save_spec(spec)


def project_run(
    name: str | None, overrides: Overrides = NO_OPTIONS, *, to_start: bool = False, forced: bool = False
) -> RunToStart:
    """The run to supervise. Makes its folder at the first call; stores changed settings if no supervisor holds the run.

    ``to_start``: it will be started at once, so a new one that cannot be started is refused, also because checkpoints
    stand where it would write. ``forced``: what ``check`` fails on refuses nothing.
    Ends with exit code 3 if there is neither a trainwatch.toml nor a run that was started in this folder.
    """
    try:
        found = spec_and_definitions(name, overrides)
    except CliError as error:  # not a run of the file; it may be a known run's id
        if error.code is not ExitCode.NOT_FOUND:
            raise
        try:
            return RunToStart(_with_overrides(find_run(name), overrides))
        except CliError as unknown:
            raise (error if unknown.code is ExitCode.NOT_FOUND else unknown) from None
    if found is None:
        return RunToStart(_with_overrides(_run_of_this_folder(name), overrides))
    spec, definitions = found
    run = RunDirectory(runs_folder(home()) / spec.id)
    if not run.path.exists():
        if not to_start:
            return RunToStart(RunDirectory.create(home(), spec))
        return create_run(plan_launch(spec, definitions), forced=forced)
    known = run.load_spec()
    current = _of_file_now(spec, known)
    if to_start and not run.attempt_folders() and not is_held(run.lock) and current.begin_from is None:
        return create_run(plan_launch(current, definitions), forced=forced)
    _save_if_free(run, known, current)
    if to_start and forced:
        accept(plan_launch(current, definitions), run)
        take_over(current, home())
    return RunToStart(run)


def nothing_started_here() -> bool:
    """Whether no run of this folder's trainwatch.toml was started yet, it names several, or it has problems."""
    path = find_project(here())
    if path is None:
        return False
    try:
        names = list(load_project(path).runs)
    except ConfigError:
        return True
    return len(names) > 1 or not (runs_folder(home()) / run_id_for(names[0], path)).exists()


def run_to_show(name: str | None, overrides: Overrides = NO_OPTIONS) -> RunDirectory | None:
    """The run of this project, or the one started in this folder; None if there is none."""
    try:
        return project_run(name, overrides).run
    except CliError as error:
        if error.code is ExitCode.NOT_FOUND:
            return None
        raise


def _run_of_this_folder(name: str | None) -> RunDirectory:
    """Without a trainwatch.toml."""
    try:
        return find_run(name, anywhere=name is not None)
    except CliError as error:
        if name is not None:
            raise
        raise CliError(
            ExitCode.NOT_FOUND,
            "no trainwatch.toml here or above, and no run was started in this folder; write one with "
            "`trainwatch init -- COMMAND`, or start a command with `trainwatch run -- COMMAND`",
        ) from error


def _with_overrides(run: RunDirectory, overrides: Overrides) -> RunDirectory:
    """Store the options in a run that no trainwatch.toml describes."""
    known = run.load_spec()
    with config_errors():
        settings = settings_with(known.settings, overrides)
    _save_if_free(run, known, msgspec.structs.replace(known, settings=settings))
    return run


# ``trainwatch resume [RUN] -- NEW COMMAND``: the run goes on with another command line.

Tell = Callable[[str], None]


def give_command(
    run: RunDirectory, words: Sequence[str], *, forced: bool = False, tell: Tell = lambda _text: None
) -> str:
    """Store the command in the run. Returns a sentence about it. Raises CliError; then nothing was changed.

    ``forced``: also if ``check`` fails on something. ``tell``: told once if an end that was ordered is waited for.

    A supervisor that waits beside a run without a trainer is ended: it has the former command.
    """
    known = run.load_spec()
    _require_end(run, "command", tell)
    plan = plan_launch(_with_command(known, tuple(words)), definitions_of(known), run.path.parents[1])
    require_startable(plan, forced=forced)
    end_supervisor(run, "a resume with a new command")
    run.save_spec(plan.spec)  # with the way to resume of the new command
    said = f"run {run.id} has a new command: {shlex.join(plan.spec.command)}"
    if known.project is not None:
        again = typed("--headless", "--run", known.name)
        said += f"; {known.project} has the former one, which the next `{again}` takes again: change it"
    return said


def give_settings(
    run: RunDirectory, given: Sequence[str], rate: float | None, *, tell: Tell = lambda _text: None
) -> str:
    """Store changed settings of the trainer in the run. Returns them in words.

    Raises CliError; then nothing was changed. A supervisor that waits beside a run without a trainer is ended: it has
    the former ones. ``tell``: told once if an end that was ordered is waited for.
    """
    known = run.load_spec()
    plan = plan_launch(known, state=run.path.parents[1])
    changes = asked_changes(plan, given, rate)
    spec = msgspec.structs.replace(known, changes=with_asked(changes, known.changes))
    again = plan_launch(spec, state=run.path.parents[1])
    if again.derived is None:
        raise CliError(ExitCode.USAGE, f"{again.problem}; nothing was changed")
    _require_end(run, "settings", tell)
    end_supervisor(run, "a resume with new settings")
    run.save_spec(spec)
    return "; ".join((words_of(changes), *without_a_place(plan, changes)))


def _require_end(run: RunDirectory, former: str, tell: Tell) -> None:
    """Raise CliError (exit code 4) if the run trains. An end that a person has ordered already is waited for."""
    if end_is_ordered(run):
        tell(f"run {run.id} is being ended: waits for the end of its training")
        wait_for_end(run)
    if (pid := trainer_pid(run)) is not None:
        end = f"`{typed('stop', run.id)}`, then give this command again: it waits for that end"
        raise CliError(
            ExitCode.OWNED, f"run {run.id} is training (pid {pid}) with its former {former}; end it first: {end}"
        )


def checkpoint_after(run: RunDirectory) -> str | None:
    """The checkpoint from which a finished run goes on with its new command; None: as a resume chooses it."""
    spec = run.load_spec()
    if load_story(run.journal).state != "finished":
        return None
    return list_run_checkpoints(spec, definitions_of(spec).preset_of(spec)).resume_point


def _with_command(known: RunSpec, words: tuple[str, ...]) -> RunSpec:
    definitions, known = definitions_of(known), known.without_outputs()
    cwd = Path(known.cwd)
    named = known.config is not None and any("{config}" in w or Path(w).name == Path(known.config).name for w in words)
    given = Overrides(name=known.name, output_dir=known.output_dir, config=known.config if named else None)
    spec = bare_spec(words, given, definitions, cwd)
    detected = msgspec.structs.replace(
        known, command=spec.command, config=spec.config, preset_resumes=spec.preset_resumes, resume_way=None,
        typed=tuple(dict.fromkeys((*known.typed, "command"))),
    )  # fmt: skip
    if spec.preset != "generic":
        detected = msgspec.structs.replace(detected, preset=spec.preset, preset_why=spec.preset_why)
    folder = output_folder(msgspec.structs.replace(detected, output_dir=None), definitions.preset_of(detected))
    if folder is None:
        return detected
    folder = os.path.normpath(cwd / Path(folder).expanduser())
    if known.output_dir is None:
        return msgspec.structs.replace(detected, output_dir=folder)
    if os.path.realpath(folder) == os.path.realpath(known.output_dir):
        return detected
    begin = typed("run", "--from", known.output_dir + "/CHECKPOINT", "--", *words)
    saves = f"the new command saves into {folder}, run {known.id} into {known.output_dir}"
    raise CliError(ExitCode.USAGE, f"{saves}: that is another run; begin it with `{begin}`")


# Copies of damaged checkpoints that stand where a new run begins: its trainer may write over them.


def keep_before(paths: Sequence[str], spec: RunSpec, run: RunDirectory) -> str:
    """Copy them beside the output folder, or into the run's own folder. Returns a clause that says where.

    Raises CliError (exit code 4) if it cannot be done: nothing may be written over then.
    """
    names, output_dir = ", ".join(Path(path).name for path in paths), Path(spec.cwd, spec.output_dir or "")
    place = folder_for_copies(output_dir, run.path / "kept", spec.second_start.empties)
    try:
        made = copy_aside([Path(path) for path in paths], place)
    except OSError as error:
        why = f"{error.filename or output_dir}: {error.strerror or error}"
    else:
        if not made.refused:
            return f"kept a copy of {names} in {made.folder}"
        why = made.refused
    raise CliError(
        ExitCode.OWNED,
        f"{names} cannot be copied aside, and a start from the beginning may write over it: {why}; nothing was "
        "started: move it away, or begin with --fresh",
    )

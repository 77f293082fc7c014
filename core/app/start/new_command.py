"""``trainwatch resume [RUN] -- NEW COMMAND``: the run goes on with another command line."""

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...config.spec import Overrides, spec_for_command
from ...model.run import RunSpec
from ...model.text.suggestion import typed
from ...source.trainer_source import source_facts
from ...store.journal import load_story
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode, config_errors
from ..plan.asked_settings import asked_changes, with_asked, without_a_place, words_of
from ..plan.definitions import definitions_of
from ..plan.launch_plan import plan_launch
from ..plan.rehearsed import with_rehearsed
from ..plan.trainer_folders import output_folder
from ..preflight.checklist import require_startable
from ..runs.output_folder import list_run_checkpoints
from ..runs.output_owner import trainer_pid
from .hand_over import end_is_ordered, end_supervisor, wait_for_end

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
    spec = plan.spec  # with the way to resume of the new command
    if is_held(run.lock):
        end_supervisor(run, "a resume with a new command")
    run.save_spec(spec)
    said = f"run {run.id} has a new command: {shlex.join(spec.command)}"
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
    plan = plan_launch(known, definitions_of(known), run.path.parents[1])
    changes = asked_changes(plan, given, rate)
    spec = msgspec.structs.replace(known, changes=with_asked(changes, known.changes))
    again = plan_launch(spec, definitions_of(spec), run.path.parents[1])
    if again.derived is None:
        raise CliError(ExitCode.USAGE, f"{again.problem}; nothing was changed")
    _require_end(run, "settings", tell)
    if is_held(run.lock):
        end_supervisor(run, "a resume with new settings")
    run.save_spec(spec)
    return "; ".join((words_of(changes), *without_a_place(plan, changes)))


def _require_end(run: RunDirectory, former: str, tell: Tell) -> None:
    """Raise CliError (exit code 4) if the run trains. An end that a person has ordered already is waited for."""
    if end_is_ordered(run):
        tell(f"run {run.id} is being ended: waits for the end of its training")
        wait_for_end(run)
    if (pid := trainer_pid(run)) is not None:
        raise CliError(
            ExitCode.OWNED,
            f"run {run.id} is training (pid {pid}) with its former {former}; end it first: "
            f"`{typed('stop', run.id)}`, then give this command again: it waits for that end",
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
    with config_errors():
        spec = spec_for_command(
            words,
            identify=lambda _name: known.id,
            created_wall=known.created_wall,
            cwd=cwd,
            presets=definitions.presets,
            look=source_facts,
            overrides=Overrides(name=known.name, output_dir=known.output_dir, config=known.config if named else None),
        )
    detected = msgspec.structs.replace(
        known,
        command=spec.command,
        config=spec.config,
        preset=known.preset if spec.preset == "generic" else spec.preset,
        preset_why=known.preset_why if spec.preset == "generic" else spec.preset_why,
        preset_resumes=spec.preset_resumes,
        resume_way=None,
        typed=tuple(dict.fromkeys((*known.typed, "command"))),
    )
    detected = with_rehearsed(detected)
    folder = output_folder(msgspec.structs.replace(detected, output_dir=None), definitions.preset_of(detected))
    if folder is not None:
        folder = os.path.normpath(cwd / Path(folder).expanduser())
        if known.output_dir is None:
            return msgspec.structs.replace(detected, output_dir=folder)
        if os.path.realpath(folder) != os.path.realpath(known.output_dir):
            raise CliError(
                ExitCode.USAGE,
                f"the new command saves into {folder}, run {known.id} into {known.output_dir}: that is another run; "
                f"begin it with `{typed('run', '--from', known.output_dir + '/CHECKPOINT', '--', *words)}`",
            )
    return detected

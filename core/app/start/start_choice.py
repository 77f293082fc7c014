"""What a start does in a place where something stands already: begin, go on with a known run, or refuse (exit code 4).

Nothing is written over that a person did not name: a start from the beginning needs a folder without checkpoints that
the trainer may write over, or ``--fresh``.
"""

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from ...act.config.derive import DeriveError
from ...act.config.trainer_config import saved_under
from ...checkpoints.inspection import verify
from ...checkpoints.unknown_state import has_state_files
from ...model.checkpoint import Checkpoint, Origin
from ...model.checkpoint_files import says_state
from ...model.observation import Command
from ...model.preset import PLACEHOLDER, Preset, Profile, resume_support
from ...model.run import TERMINAL_STATES, RunSpec, place_of
from ...model.story import RunStory
from ...model.text import printable, typed
from ...source.launch_target import is_same, may_save_alike
from ...source.shell_text import shell_program, without_wrappers
from ...source.trainer_source import source_of
from ...source.words import CHECKPOINT, RESUME, SAVING
from ...store.home import runs_folder
from ...store.journal import JournalTooNew, load_story
from ...store.lock import holder_pid, is_held
from ...store.run_directory import RunDirectory
from ...views.length_words import resume_line
from ...views.state.concerns import reason_of
from ..errors import CliError, ExitCode, file_errors
from ..plan.launch_plan import LaunchPlan
from ..plan.resume_plan import with_way_now, word_by_itself
from ..plan.specs import definitions_of
from ..preflight.other_trainer import other_trainers, sentence
from ..preflight.resume_checks import named_checkpoints
from ..runs.known_runs import all_runs, home, runs_saving_to
from ..runs.output_claim import is_at_rest, rival_of, trainer_pid
from ..runs.output_folder import list_run_checkpoints, list_run_state, newest_to_name, origins
from ..runs.supervisor_life import as_found
from ..supervise.machine_end import others_end_with
from .detached import end_supervisor

# How the trainer resumes, read again at each start of a run of which no way was known: its script may have one now.


def read_way_again(run: RunDirectory, command: Command | None = None) -> str | None:
    """Store the way to resume if none was known, and there is one now.

    Returns a sentence about it; None if nothing has changed. A supervisor that waits beside a run that is over is
    ended: it has the former answer. While the trainer runs, this is done for a restart that may resume only: the
    trainer goes on meanwhile, and the next supervisor ends it as ordered. ``command``: what is ordered; an answer to a
    question is for the supervisor that asked. Raises CliError.
    """
    known = run.load_spec()
    if known.resumes:
        return None
    trains, waits = trainer_pid(run) is not None, is_held(run.lock)
    resumes = command is not None and command.verb == "restart" and not command.fresh and command.incident is None
    if trains and not resumes:
        return None
    if waits:
        created, pid = load_story(run.journal).run, holder_pid(run.lock)
        if created is None or created.resume is None or created.resume.is_usable:
            return None
        goes_on = pid is not None and not others_end_with(pid)  # the trainer, without its supervisor
        if not (goes_on if trains else is_at_rest(run)):
            return None
    spec = with_way_now(known, definitions_of(known).preset_of(known))
    if not spec.resumes:
        return None
    if waits:
        end_supervisor(run, "a resume by a way that was found now")
    run.save_spec(spec)
    if known.resume_way is None and not waits:  # it was not asked yet
        return None
    return f"run {run.id} can be resumed now: {resume_line(spec.resume_way)}"


# What stands in an output folder that a start from the beginning may write over.

SHOWN = 4
"""Most checkpoints that a sentence names."""


def standing(
    spec: RunSpec, preset: Preset, profile: Profile | None, origin: Callable[[Checkpoint], Origin] | None = None
) -> tuple[Checkpoint, ...]:
    """The checkpoints in the output folder that the trainer may write over, newest first; none if none is known.

    Of a framework whose saves have the run's name, only those of that name. Of what is not understood, what its name
    calls the state of a training. ``origin``: tells what the earlier run of the command wrote: whatever may be its
    state counts as well. Raises CliError (exit code 1) if the folder
    cannot be read: then nobody can tell.
    """
    with file_errors(f"{spec.output_dir}: cannot see what a start would write over"):
        found = list_run_checkpoints(spec, preset).checkpoints
        own = list_run_state(spec, preset, origin or (lambda _: "unknown"))
    listed = {known.path for known in found}
    found = (*found, *(c for c in own if c.path not in listed and (origin is not None or says_state(c.name))))
    try:
        name = saved_under(spec, preset, profile)
    except DeriveError:  # the launch reports what is wrong with the config
        name = None
    return found if name is None else tuple(c for c in found if name.match(c.name))


def resumes_by_itself(command: Sequence[str], there: Sequence[Checkpoint]) -> bool:
    """Whether the command, as it was written, goes on from what is there: it names a checkpoint, or says "latest"."""
    places = {Path(c.path).resolve() for c in there}
    if word_by_itself(command) is not None:
        return True
    given = (value if equals else word for word in command for _, equals, value in [word.partition("=")])
    return any(each and not {"{", "\0"} & set(each) and Path(each).resolve() in places for each in given)


def names_of(found: Sequence[Checkpoint]) -> str:
    """``checkpoint-500, checkpoint-400 and 3 more``."""
    names = [c.name for c in found[:SHOWN]]
    more = len(found) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


# What to add to a command that has no place for the path of a checkpoint.

USUAL = "--resume"


def what_to_add(spec: RunSpec, start: str) -> str:
    """How the command gets a place, as a clause. ``start``: the command line that begins then, up to ``--``.

    A run of a trainwatch.toml is started without a command, unless ``start`` is a resume: that has the stored one.
    """
    option = option_of(spec)
    named = "" if option else f" (once the script has an option for it, in place of {USUAL})"
    option = option or USUAL
    program = shell_program(without_wrappers(spec.command), Path(spec.cwd))
    whole = spec.project is None or start.startswith("trainwatch resume")
    if program is not None and not program.file:
        again = f"{start} -- NEW COMMAND" if whole else start
        return f"write `{option} {PLACEHOLDER}` into the shell line, behind the trainer{named}, then `{again}`"
    in_script = ""
    words: tuple[str, ...] = (option,)
    if program is not None:
        in_script, words = f'let {program.file} pass it on, as `${{1:+{option} "$1"}}`{named}; ', ()
        named = ""
    added = ", ".join(f'"{word}"' for word in (*words, PLACEHOLDER))
    in_file = "" if spec.project is None else f"add {added} to {place_of(spec, 'command')}{named}, then "
    line = f"{start} -- {shlex.join((*spec.command, *words))} '{PLACEHOLDER}'" if whole else start
    return f"{in_script}{in_file}`{line}`{'' if in_file else named}"


def option_of(spec: RunSpec) -> str | None:
    """The option of the script in the command that names a checkpoint to begin from; None if none is seen."""
    found = [(option, name) for option in source_of(spec).options if option.kind == "option" for name in option.aliases]
    found = [each for each in found if CHECKPOINT.search(each[1]) or RESUME.search(each[1])]
    found = [(option, name) for option, name in found if not SAVING.search(name) and not name.endswith("dir")]
    return min(found, key=lambda each: not RESUME.search(each[1]), default=(None, None))[1]


# A checkpoint that a person names is verified before the resume command is sent to a supervisor, or one is started.
#
# If it is damaged, the run stays as it is, and the answer contains the reason. What is not understood is for the
# trainer to read: a person who names it decides.


def unfit(run: RunDirectory, command: Command) -> str | None:
    """Why this command's checkpoint cannot be resumed from, as a sentence; None if it can, or none is named."""
    return None if command.checkpoint is None else why_unfit(run.load_spec(), Path(command.checkpoint))


def why_unfit(spec: RunSpec, path: Path) -> str | None:
    try:
        found = verify(path, deep=spec.settings.checkpoints.verify == "deep")
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    if found.verdict == "complete" or not found.understood:
        return None
    others = f"others: `{typed('checkpoints list', str(path.parent))}`"
    return f"{found.name} cannot be resumed from: {found.reason or found.verdict}; nothing was changed ({others})"


# The newest known run of the same command in the same place, and what became of it.

Condition = Literal["supervised", "trains", "interrupted", "ended"]
"""A supervisor has it; its trainer lives without one; nobody ended it; it is finished, given up or stopped.

A supervisor that waits beside a run that is over, with no question, does not matter.
"""


class EarlierRun(NamedTuple):
    """``held_for_room``: the reason, if its restart is held until there is room on a disk."""

    run: RunDirectory
    spec: RunSpec
    story: RunStory
    condition: Condition
    held_for_room: str = ""

    @property
    def trained(self) -> bool:
        story = self.story
        steps = story.progress.step or any(a.last_step for a in story.attempts)
        return story.run is None or bool(story.checkpoints) or bool(steps)

    @property
    def how(self) -> str:
        reason = f" ({self.story.state_reason})" if self.story.state_reason else ""
        return f"{self.story.state.replace('_', ' ')}{reason}"


def earlier_run(spec: RunSpec) -> EarlierRun | None:
    """The newest run that was launched with this command, in this working folder and for this output folder.

    A command in another spelling (``--a=b``, another order, ``python -u``) is the same one. An output folder that one
    of them does not know may be the same. A run of a trainwatch.toml is the same run whatever its command says now.
    """
    for run in all_runs():
        known = run.load_spec()
        itself = known.id == spec.id and spec.project is not None
        folders = {os.path.realpath(folder) for folder in (known.output_dir, spec.output_dir) if folder}
        if itself or (len(folders) < 2 and _same_cwd(known, spec) and is_same(known, spec)):
            found = described(run)
            if found is not None and found.story.attempts:
                return found
            if itself:
                return None
    return None


def _same_cwd(known: RunSpec, spec: RunSpec) -> bool:
    return os.path.realpath(known.cwd) == os.path.realpath(spec.cwd)


def described(run: RunDirectory) -> EarlierRun | None:
    """A run with its condition; None if its journal is of a newer version."""
    try:
        told = load_story(run.journal)
        story = as_found(run, told)
    except JournalTooNew:
        return None
    condition: Condition = "ended" if story.state in TERMINAL_STATES else "interrupted"
    if is_held(run.lock) and not is_at_rest(run, story):
        condition = "supervised"
    elif trainer_pid(run) is not None:
        condition = "trains"
    held = reason_of(told) if condition == "interrupted" and told.state_why.waits_for_room else ""
    return EarlierRun(run, run.load_spec(), story, condition, held)


def saved_alike(spec: RunSpec) -> RunSpec | None:
    """The newest run of the same script with other options, if this one may save into its folder; else None.

    Only for a run whose output folder is not known. A script that saved into two folders makes one for each launch.
    """
    others = [run for run in all_runs() if run.id != spec.id] if spec.output_dir is None else []
    known = [each for run in others if _same_cwd(each := run.load_spec(), spec) and run.attempt_folders()]
    alike = [each for each in known if may_save_alike(each, spec)]
    return alike[0] if len({os.path.realpath(each.output_dir or "") for each in alike}) == 1 else None


NEWEST = "newest"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the person who starts asks for. ``checkpoint``: ``newest`` or a path; ``fresh``: from the beginning.

    ``given``: the options and the command as they were typed, for suggestions.
    """

    checkpoint: str | None = None
    fresh: bool = False
    given: tuple[str, ...] = ()


class StartChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What follows. ``known``: the run to go on with, None: a new one; ``first``: the command for its supervisor.

    ``checkpoint``: what a new run begins from. ``said``: a sentence about it; "" for a plain start. ``keep``: paths of
    checkpoints that the trainer may write over and that are copied aside first, because no person said that it may.
    ``by_itself``: the trainer goes on from what is there.
    ``watches``: the trainer of ``known`` runs, so that nothing is launched. ``supervised``: ``known`` is over, and its
    supervisor is still there. ``waits_for_room``: ``known`` is held for a full disk, and a new supervisor waits on.
    """

    known: RunDirectory | None = None
    first: Command | None = None
    checkpoint: str | None = None
    said: str = ""
    keep: tuple[str, ...] = ()
    by_itself: bool = False
    watches: bool = False
    supervised: bool = False
    waits_for_room: bool = False

    @property
    def begins(self) -> str | None:
        """The checkpoint that the launch begins from; "": from the beginning; None: the newest one."""
        if self.first is not None and (self.first.fresh or self.first.checkpoint):
            return self.first.checkpoint or ""
        return None if self.checkpoint is None and (self.known is not None or self.by_itself) else self.checkpoint or ""


def choose_start(plan: LaunchPlan, wish: Wish) -> StartChoice:
    """Choose. Changes nothing. Raises CliError: 4 if something stands in the way, 3 if there is no such checkpoint."""
    plan = _where_it_deletes(plan)
    spec = plan.spec
    earlier = earlier_run(spec)
    if earlier is not None and spec.output_dir is None:  # where it was seen to save
        spec = msgspec.structs.replace(spec, output_dir=earlier.spec.output_dir)
        plan = msgspec.structs.replace(plan, spec=spec)
    of_earlier = None if earlier is None else origins(earlier.spec.created_wall, earlier.run)
    there = standing(spec, plan.preset, plan.profile, of_earlier)
    trains = earlier is not None and earlier.condition == "trains"
    other = wish.fresh or wish.checkpoint is not None
    if earlier is not None and (earlier.condition == "supervised" or (trains and other)):
        raise _refused(_running(earlier))
    if not trains and (rival := rival_of(spec)) is not None:
        raise _refused(f"{rival}; nothing was started")
    if wish.fresh:
        said = f"the trainer may write over {names_of(there)} in {spec.output_dir}" if there else ""
        if not there and not spec.output_dir:
            said = "the output folder is not known: the trainer may write over what it holds"
        if earlier is None or earlier.run.id != spec.id:
            return StartChoice(said=said)
        return _ordered(earlier, said, fresh=True)  # of a trainwatch.toml
    if wish.checkpoint is not None:
        return _from_checkpoint(plan, wish.checkpoint, wish, earlier)
    if earlier is None or not (earlier.trained or there):
        return _begin(plan, there, wish)
    run = earlier.run.id
    if trains:
        return StartChoice(known=earlier.run, said=f"run {run} trains without a supervisor: watching it", watches=True)
    if resumes_by_itself(spec.command, there):
        return StartChoice(said=_by_itself(there), by_itself=True)
    if earlier.condition == "ended":
        raise _refused(_ended(earlier, there, wish))
    why, told = "", not has_no_place(plan.preset, earlier.spec.command)
    if earlier.spec.output_dir is None and earlier.trained:
        unknown = "its output folder is not known, so that nobody can tell what a start would write over"
        why = f"{unknown}: give --output-dir D"
    elif there and not told and earlier.spec.settings.restart.if_not_told == "wait":
        has_none = f"its command has no place for the checkpoint {there[0].name}"
        over = f"a start would begin anew and write over {names_of(there)}"
        why = f"{has_none} (write {{resume}} where its path belongs): {over}; {_with_another(run)} goes on with a "
        why += "command that has one"
    if why:
        raise _refused(f"run {run} of this command was interrupted, and {why}; {_ways(earlier.spec, wish)}")
    if earlier.held_for_room:
        said = f"run {run} of this command is {earlier.held_for_room}: a supervisor waits for that"
        return StartChoice(known=earlier.run, said=said, waits_for_room=True)
    anew = f"`{_run(spec, wish, '--fresh')}` begins anew"
    said = f"run {run} of this command was interrupted: going on with it ({anew})"
    # By itself such a run goes on only if act = "all"; here a person orders it.
    if spec.settings.restart.act == "all":
        return StartChoice(known=earlier.run, said=said)
    return _ordered(earlier, said)


def _ordered(earlier: EarlierRun, said: str, *, fresh: bool = False, checkpoint: str | None = None) -> StartChoice:
    """The known run goes on by the order of the person who starts."""
    first = Command(t=0.0, verb="resume", by="command line", fresh=fresh, checkpoint=checkpoint)
    return StartChoice(known=earlier.run, first=first, said=said, supervised=is_held(earlier.run.lock))


def checkpoint_named(spec: RunSpec, given: str) -> str:
    """The absolute path of the checkpoint that a person named: ``newest``, a path, or a name in the output folder.

    Raises CliError (exit code 3).
    """
    if given == NEWEST:
        if (newest := newest_to_name(spec, definitions_of(spec).preset_of(spec))) is not None:
            return str(Path(newest).absolute())
        where = spec.output_dir or "the output folder (--output-dir D), which is not known"
        raise CliError(ExitCode.NOT_FOUND, f"there is no checkpoint to go on from in {where}; nothing was started")
    places = [Path(given).expanduser().absolute()]
    places += [] if spec.output_dir is None else [Path(spec.cwd, spec.output_dir, given)]
    if (found := next((place for place in places if place.exists()), None)) is not None:
        return str(found)
    shows = _command("checkpoints list", spec.output_dir or "DIR")
    raise CliError(ExitCode.NOT_FOUND, f"{given}: no such checkpoint; {shows} shows them")


def _command(*words: str) -> str:
    return f"`{typed(*words)}`"


def _with_another(run: str) -> str:
    return _command("resume", run, "--", "NEW", "COMMAND")


def _refused(sentence: str) -> CliError:
    return CliError(ExitCode.OWNED, sentence)


def _begin(plan: LaunchPlan, there: tuple[Checkpoint, ...], wish: Wish) -> StartChoice:
    """No run of this command is known, or it made nothing: begin, unless somebody's checkpoints stand there.

    A run of a trainwatch.toml, whose state was deleted, or into whose folder others saved, goes on from the newest of
    them if the trainer can be given that one; a trainer that goes on by itself likewise.
    """
    spec, preset = plan.spec, plan.preset
    if not there and (alike := saved_alike(spec)) is not None:
        _require_other_folder(plan, alike, wish)
    if not there or resumes_by_itself(spec.command, there):
        return StartChoice(said=_by_itself(there) if there else "", by_itself=bool(there))
    if trains := other_trainers(plan, RunDirectory(runs_folder(home()) / spec.id)):
        beside = f"{spec.output_dir} holds checkpoints ({names_of(there)}), and {sentence(plan, trains[0])}"
        raise _refused(f"{beside}; once it is over: {_ways(spec, wish)}")
    other = next((run for run, _ in runs_saving_to(spec)), None)
    whose = "of no run that is known here" if other is None else f"of run {other.id}"
    holds = f"{spec.output_dir} holds checkpoints {whose} ({names_of(there)})"
    anew = f"`{_run(spec, wish, '--fresh')}` begins anew, over them"
    if spec.project is None:
        way = spec.resume_way
        keeps = not (spec.second_start.left or spec.second_start.may)  # else it deletes what it would go on from
        newest = newest_to_name(spec, preset) if keeps and way is not None and way.will == "self" else None
        if newest is not None and way is not None and _why_not_from(plan, newest) is None:
            goes_on = f"the trainer goes on from {Path(newest).name} by itself ({way.place}; {anew})"
            return StartChoice(checkpoint=str(Path(newest).absolute()), said=f"{holds}: {goes_on}")
        go_on = ""
        if other is not None:
            go_on = f"go on with that run: {_command('resume', other.id)}, with another command: "
            go_on += f"{_with_another(other.id)}; "
        over = spec.second_start.left or "a start from the beginning may write over them"
        raise _refused(f"{holds}, and {over}; {go_on}{_ways(spec, wish)}")
    no_place = has_no_place(preset, spec.command)
    if no_place and spec.settings.restart.if_not_told == "go_on":
        return StartChoice(said=f"{holds}: the trainer finds the newest one by itself", by_itself=True)
    resume_point = list_run_checkpoints(spec, preset).resume_point
    point = next((c for c in there if c.path == resume_point), None)
    if point is not None:
        unfit_why = _why_not_from(plan, point.path)
        if unfit_why is None:
            goes_on = f"going on from {point.name} ({anew})"
            return StartChoice(checkpoint=str(Path(point.path).absolute()), said=f"{holds}: {goes_on}")
        how = f" ({what_to_add(spec, typed('--headless', '--run', spec.name))})" if no_place else ""
        why = f"{point.name}: {unfit_why}{how}"
    else:
        damaged = {c.path for c in there if c.verdict in {"torn", "corrupt"} and c.understood}
        keep = tuple(c.path for c in there if has_state_files(Path(c.path)))
        if damaged.issuperset(keep):  # nobody can go on from one
            return StartChoice(keep=keep, said=f"{holds}, and none of them is whole: beginning anew")
        why = "none of them can be resumed from"
    raise _refused(f"{holds}, and a start would begin anew over them: {why}; {_ways(spec, wish)}")


def _require_other_folder(plan: LaunchPlan, other: RunSpec, wish: Wish) -> None:
    """Raise CliError if the folder of another run of the script holds checkpoints that this start may write over."""
    there = standing(other, plan.preset, plan.profile)
    if there and not (resumes_by_itself(plan.spec.command, there) or named_checkpoints(plan)):
        raise _refused(
            f"run {other.id} of the same script saved into {other.output_dir}, which holds {names_of(there)}, and "
            "nobody can tell whether this command saves there, over them: name its folder (--output-dir D); go on with "
            f"that run: {_with_another(other.id)}; or begin all the same: `{_run(plan.spec, wish, '--fresh')}`"
        )


def _takes_a_path(spec: RunSpec) -> bool:
    preset = definitions_of(spec).preset_of(spec)
    return preset.resume != "none" and not has_no_place(preset, spec.command)


def _where_it_deletes(plan: LaunchPlan) -> LaunchPlan:
    """With the folder that its start deletes as the output folder, if that is not known and holds something."""
    empties = plan.spec.second_start.empties if plan.spec.output_dir is None else ()
    for folder in (each for each in empties if each and Path(each).is_dir()):
        spec = msgspec.structs.replace(plan.spec, output_dir=folder)
        if standing(spec, plan.preset, plan.profile):
            return msgspec.structs.replace(plan, spec=spec)
    return plan


def has_no_place(preset: Preset, command: Sequence[str]) -> bool:
    """Whether the command line has no place for a checkpoint that a person names."""
    return preset.resume != "none" and not resume_support(preset, command).forms


def _why_not_from(plan: LaunchPlan, checkpoint: str) -> str | None:
    """Why a start cannot begin from this checkpoint; None if it can."""
    if plan.preset.resume == "none":
        return f'the preset {plan.preset.name} never resumes (resume = "none")'
    path = Path(checkpoint)
    support = resume_support(plan.preset, plan.spec.command)
    return support.objection("directory" if path.is_dir() else "file", None) or why_unfit(plan.spec, path)


def _from_checkpoint(plan: LaunchPlan, given: str, wish: Wish, earlier: EarlierRun | None) -> StartChoice:
    path = checkpoint_named(plan.spec, given)
    if (why := _why_not_from(plan, path)) is not None:
        options = wish.given[: wish.given.index("--")] if "--" in wish.given else wish.given
        no_place = has_no_place(plan.preset, plan.spec.command)
        how = f"; {what_to_add(plan.spec, typed('run', '--from', given, *options))}" if no_place else ""
        raise CliError(ExitCode.FAILED, f"{Path(path).name}: {why}; nothing was started{how}")
    if earlier is None:
        return StartChoice(checkpoint=path, said=f"a new run from {path}")
    return _ordered(earlier, f"going on with run {earlier.run.id} from {path}", checkpoint=path)


def _running(earlier: EarlierRun) -> str:
    run = earlier.run.id
    said = f"run {run} of this command is {printable(earlier.how)}"
    end = f"end it with {_command('stop', run)}"
    if earlier.condition != "supervised" or earlier.story.state not in TERMINAL_STATES:
        return f"{said}; nothing was started: look at it with {_command('status', run)}, {end}"
    return (
        f"{said}, and its supervisor waits; nothing was started: go on with {_command('resume', run)}, from a "
        f"checkpoint with {_command('resume', run, '--from', 'CHECKPOINT')}, from the beginning, over what is there, "
        f"with {_command('resume', run, '--fresh')}; or {end}"
    )


def _ended(earlier: EarlierRun, there: tuple[Checkpoint, ...], wish: Wish) -> str:
    run, spec = earlier.run.id, with_way_now(earlier.spec, definitions_of(earlier.spec).preset_of(earlier.spec))
    finished = earlier.story.state == "finished"
    newest = ("--from", NEWEST) if finished else ()
    works = _takes_a_path(spec) if there else not finished
    go_on = f"go on with it: {_command('resume', run, *newest)}, with" if works else "go on with it with"
    holds = f"it trained into {spec.output_dir}"
    if there:
        holds = f"{spec.output_dir} holds its checkpoints ({names_of(there)})"
    elif spec.output_dir is None:
        holds = "its output folder is not known (--output-dir D)"
    return (
        f"run {run} of this command is {printable(earlier.how)}, and {holds}; nothing was started: {go_on} "
        f"another command: {_with_another(run)}; {_ways(spec, wish)}"
    )


def _ways(spec: RunSpec, wish: Wish) -> str:
    """The starts that are not refused: from a checkpoint only if the command has a place for it."""
    named = f"from a checkpoint: `{_run(spec, wish, '--from', NEWEST)}` or `--from PATH`; "
    anew = f"from the beginning, over what is there: `{_run(spec, wish, '--fresh')}`; or choose another output folder"
    return f"{named if _takes_a_path(spec) else ''}{anew}"


def _run(spec: RunSpec, wish: Wish, *words: str) -> str:
    """The start as it was typed, with these words; as it would be typed, if a screen asked for it."""
    given = wish.given or (() if spec.project else ("--", *spec.command))
    return typed("run", *words, *given)


def _by_itself(there: tuple[Checkpoint, ...]) -> str:
    what = "the command says that the trainer goes on by itself from what is there"
    return f"{what} ({names_of(there)})" if there else ""

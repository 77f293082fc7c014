"""What a start does in a place where something stands already: begin, go on with a known run, or refuse (exit code 4).

Nothing is written over that a person did not name: a start from the beginning needs a folder without checkpoints that
the trainer may write over, or ``--fresh``.
"""

from pathlib import Path

import msgspec

from ...checkpoints import has_state_files
from ...model.checkpoints.checkpoint import Checkpoint
from ...model.launch.resume_support import resume_support
from ...model.observation import Command
from ...model.run import TERMINAL_STATES, RunSpec
from ...model.text.printable import printable
from ...model.text.suggestion import typed
from ...store.home import runs_folder
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode
from ..plan.definitions import definitions_of
from ..plan.launch_plan import LaunchPlan
from ..preflight.other_trainer import other_trainers, what_it_is, what_to_do
from ..preflight.resumed.checkpoint_checks import named_checkpoints
from ..runs.checkpoint_origin import origins
from ..runs.known_runs import home
from ..runs.output_folder import list_run_checkpoints, newest_to_name
from ..runs.output_owner import rival_of
from .earlier_run import EarlierRun, earlier_run, runs_into, saved_alike
from .named_checkpoint import why_unfit
from .resume_place import what_to_add
from .standing_state import names_of, resumes_by_itself, standing

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

    ``checkpoint``: what a new run begins from. ``said``: a sentence about it; "" for a plain start. ``endangered``:
    names of the checkpoints that the trainer may write over. ``keep``: paths of those that are copied aside first,
    because no person said that it may. ``by_itself``: the trainer goes on from what is there.
    ``watches``: the trainer of ``known`` runs, so that nothing is launched. ``supervised``: ``known`` is over, and its
    supervisor is still there. ``waits_for_room``: ``known`` is held for a full disk, and a new supervisor waits on.
    """

    known: RunDirectory | None = None
    first: Command | None = None
    checkpoint: str | None = None
    said: str = ""
    endangered: str = ""
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
    spec = plan.spec
    earlier = earlier_run(spec)
    of_earlier = None if earlier is None else origins(earlier.spec.created_wall, earlier.run)
    there = standing(spec, plan.preset, plan.profile, of_earlier)
    if earlier is not None and earlier.condition == "supervised":
        _refuse_running(earlier)
    if (earlier is None or earlier.condition != "trains") and (rival := rival_of(spec)) is not None:
        raise CliError(ExitCode.OWNED, f"{rival}; nothing was started")
    if wish.fresh:
        if earlier is not None and earlier.condition == "trains":
            _refuse_running(earlier)
        if earlier is not None and earlier.run.id == spec.id:  # of a trainwatch.toml
            first = Command(t=0.0, verb="resume", by="command line", fresh=True)
            return StartChoice(
                known=earlier.run,
                first=first,
                endangered=names_of(there),
                said=_over(spec, there),
                supervised=is_held(earlier.run.lock),
            )
        return StartChoice(endangered=names_of(there), said=_over(spec, there))
    if wish.checkpoint is not None:
        return _from_checkpoint(plan, wish.checkpoint, wish, earlier)
    if earlier is None or not (earlier.trained or there):
        return _begin(plan, there, wish)
    if earlier.condition == "trains":
        said = f"run {earlier.run.id} trains without a supervisor: watching it"
        return StartChoice(known=earlier.run, said=said, watches=True)
    if resumes_by_itself(spec.command, there):
        return StartChoice(said=_by_itself(there), by_itself=True)
    if earlier.condition == "ended":
        _refuse_ended(earlier, there, wish)
    if (why := _cannot_go_on(plan, earlier, there, wish)) is not None:
        raise CliError(ExitCode.OWNED, f"run {earlier.run.id} of this command was interrupted, and {why}")
    if earlier.held_for_room:
        said = f"run {earlier.run.id} of this command is {earlier.held_for_room}: a supervisor waits for that"
        return StartChoice(known=earlier.run, said=said, waits_for_room=True)
    # By itself such a run goes on only if act = "all"; here a person orders it.
    ordered = None if spec.settings.restart.act == "all" else Command(t=0.0, verb="resume", by="command line")
    return StartChoice(
        known=earlier.run,
        first=ordered,
        said=f"run {earlier.run.id} of this command was interrupted: going on with it "
        f"(`{_run(spec, wish, '--fresh')}` begins anew)",
    )


def checkpoint_named(spec: RunSpec, given: str) -> str:
    """The absolute path of the checkpoint that a person named: ``newest``, a path, or a name in the output folder.

    Raises CliError (exit code 3).
    """
    if given == NEWEST:
        newest = newest_to_name(spec, definitions_of(spec).preset_of(spec))
        if newest is None:
            where = spec.output_dir or "the output folder (--output-dir D), which is not known"
            raise CliError(ExitCode.NOT_FOUND, f"there is no checkpoint to go on from in {where}; nothing was started")
        return str(Path(newest).absolute())
    places = [Path(given).expanduser().absolute()]
    if spec.output_dir is not None:
        places.append(Path(spec.cwd, spec.output_dir, given))
    found = next((place for place in places if place.exists()), None)
    if found is None:
        where = spec.output_dir or "DIR"
        raise CliError(
            ExitCode.NOT_FOUND, f"{given}: no such checkpoint; `{typed('checkpoints list', where)}` shows them"
        )
    return str(found)


def _begin(plan: LaunchPlan, there: tuple[Checkpoint, ...], wish: Wish) -> StartChoice:
    """No run of this command is known, or it made nothing: begin, unless somebody's checkpoints stand there."""
    if not there and (alike := saved_alike(plan.spec)) is not None:
        _refuse_alike(plan, alike, wish)
    if not there or resumes_by_itself(plan.spec.command, there):
        return StartChoice(said=_by_itself(there) if there else "", by_itself=bool(there))
    if trains := other_trainers(plan, RunDirectory(runs_folder(home()) / plan.spec.id)):
        raise CliError(
            ExitCode.OWNED,
            f"{plan.spec.output_dir} holds checkpoints ({names_of(there)}), and {what_it_is(plan, trains[0])}; "
            f"{what_to_do(trains[0])}; once it is over: {_ways(plan.spec, wish)}",
        )
    other = runs_into(plan.spec)
    whose = "of no run that is known here" if other is None else f"of run {other.id}"
    holds = f"{plan.spec.output_dir} holds checkpoints {whose} ({names_of(there)})"
    if plan.spec.project is not None:
        return _begin_project(plan, there, holds, wish)
    way = plan.spec.resume_way
    if way is not None and way.will == "self":
        newest = newest_to_name(plan.spec, plan.preset)
        if newest is not None and _objection(plan, Path(newest)) is None and why_unfit(plan.spec, Path(newest)) is None:
            return StartChoice(
                checkpoint=str(Path(newest).absolute()),
                said=f"{holds}: the trainer goes on from {Path(newest).name} by itself ({way.place}; "
                f"`{_run(plan.spec, wish, '--fresh')}` begins anew, over them)",
            )
    go_on = (
        ""
        if other is None
        else f"go on with that run: `{typed('resume', other.id)}`, with another command: "
        f"`{typed('resume', other.id, '--', 'NEW', 'COMMAND')}`; "
    )
    raise CliError(
        ExitCode.OWNED,
        f"{holds}, and a start from the beginning may write over them; {go_on}{_ways(plan.spec, wish)}",
    )


def _refuse_alike(plan: LaunchPlan, other: RunSpec, wish: Wish) -> None:
    """Raise CliError if the folder of another run of the script holds checkpoints that this start may write over."""
    there = standing(other, plan.preset, plan.profile)
    goes_on = resumes_by_itself(plan.spec.command, there) or named_checkpoints(plan)
    if there and not goes_on:
        raise CliError(
            ExitCode.OWNED,
            f"run {other.id} of the same script saved into {other.output_dir}, which holds {names_of(there)}, and "
            "nobody can tell whether this command saves there, over them: name its folder (--output-dir D); go on with "
            f"that run: `{typed('resume', other.id, '--', 'NEW', 'COMMAND')}`; or begin all the same: "
            f"`{_run(plan.spec, wish, '--fresh')}`",
        )


def _begin_project(plan: LaunchPlan, there: tuple[Checkpoint, ...], holds: str, wish: Wish) -> StartChoice:
    """A run of a trainwatch.toml that is not known here: its state was deleted, or others saved into its folder.

    It goes on from the newest of them if the trainer can be given that one, and never begins over them by itself.
    """
    spec = plan.spec
    support = resume_support(plan.preset, spec.command)
    if not support.forms and plan.preset.resume != "none" and spec.settings.restart.if_not_told == "go_on":
        found = f"{holds}: the trainer finds the newest one by itself"
        return StartChoice(endangered=names_of(there), said=found, by_itself=True)
    newest = list_run_checkpoints(spec, plan.preset).resume_point
    point = next((c for c in there if c.path == newest), None)
    if point is None:
        if all(_is_useless(c) for c in there):
            return StartChoice(
                endangered=names_of(there),
                keep=tuple(c.path for c in there if has_state_files(Path(c.path))),
                said=f"{holds}, and none of them is whole: beginning anew",
            )
        why = "none of them can be resumed from"
    else:
        why = _objection(plan, Path(point.path)) or why_unfit(spec, Path(point.path)) or ""
        if not why:
            return StartChoice(
                checkpoint=str(Path(point.path).absolute()),
                said=f"{holds}: going on from {point.name} (`{_run(spec, wish, '--fresh')}` begins anew, over them)",
            )
        how = f" ({what_to_add(spec, typed('--headless', '--run', spec.name))})" if _has_no_place(plan) else ""
        why = f"{point.name}: {why}{how}"
    raise CliError(ExitCode.OWNED, f"{holds}, and a start would begin anew over them: {why}; {_ways(spec, wish)}")


def _is_useless(found: Checkpoint) -> bool:
    """Whether nobody can go on from it: known to be damaged, or without any file that may be state."""
    return (found.verdict in {"torn", "corrupt"} and found.understood) or not has_state_files(Path(found.path))


def _has_no_place(plan: LaunchPlan) -> bool:
    return plan.preset.resume != "none" and not resume_support(plan.preset, plan.spec.command).forms


def _objection(plan: LaunchPlan, path: Path) -> str | None:
    """Why the trainer cannot be given this checkpoint, whatever it is worth."""
    if plan.preset.resume == "none":
        return f'the preset {plan.preset.name} never resumes (resume = "none")'
    support = resume_support(plan.preset, plan.spec.command)
    return support.objection("directory" if path.is_dir() else "file", None)


def _from_checkpoint(plan: LaunchPlan, given: str, wish: Wish, earlier: EarlierRun | None) -> StartChoice:
    spec = plan.spec
    if earlier is not None and earlier.condition == "trains":
        _refuse_running(earlier)
    path = checkpoint_named(spec, given)
    why = _objection(plan, Path(path)) or why_unfit(spec, Path(path))
    if why is not None:
        begin = typed("run", "--from", given, *_options(wish))
        how = f"; {what_to_add(spec, begin)}" if _has_no_place(plan) else ""
        raise CliError(ExitCode.FAILED, f"{Path(path).name}: {why}; nothing was started{how}")
    if earlier is not None:
        first = Command(t=0.0, verb="resume", by="command line", checkpoint=path)
        said = f"going on with run {earlier.run.id} from {path}"
        return StartChoice(known=earlier.run, first=first, said=said, supervised=is_held(earlier.run.lock))
    return StartChoice(checkpoint=path, said=f"a new run from {path}")


def _cannot_go_on(plan: LaunchPlan, earlier: EarlierRun, there: tuple[Checkpoint, ...], wish: Wish) -> str | None:
    """Why a run that was interrupted cannot go on without writing over something, as a clause; None if it can."""
    spec = earlier.spec
    if spec.output_dir is None and earlier.trained:
        return (
            "its output folder is not known, so that nobody can tell what a start would write over: give "
            f"--output-dir D; {_ways(spec, wish)}"
        )
    told = resume_support(plan.preset, spec.command).forms or plan.preset.resume == "none"
    if there and not told and spec.settings.restart.if_not_told == "wait":
        return (
            f"its command has no place for the checkpoint {there[0].name} (write {{resume}} where its path belongs): a "
            f"start would begin anew and write over {names_of(there)}; "
            f"`{typed('resume', earlier.run.id, '--', 'NEW', 'COMMAND')}` goes on with a command that has one; "
            f"{_ways(spec, wish)}"
        )
    return None


def _refuse_running(earlier: EarlierRun) -> None:
    run = earlier.run.id
    if earlier.condition == "supervised" and earlier.story.state in TERMINAL_STATES:
        named = typed("resume", run, "--from", "CHECKPOINT")
        raise CliError(
            ExitCode.OWNED,
            f"run {run} of this command is {printable(earlier.how)}, and its supervisor waits; nothing was started: go "
            f"on with `{typed('resume', run)}`, from a checkpoint with `{named}`, "
            f"from the beginning, over what is there, with `{typed('resume', run, '--fresh')}`; or end it with "
            f"`{typed('stop', run)}`",
        )
    raise CliError(
        ExitCode.OWNED,
        f"run {run} of this command is running ({earlier.how}); nothing was started: look at it with "
        f"`{typed('status', run)}`, end it with `{typed('stop', run)}`",
    )


def _refuse_ended(earlier: EarlierRun, there: tuple[Checkpoint, ...], wish: Wish) -> None:
    run, spec = earlier.run.id, earlier.spec
    newest = ("--from", NEWEST) if earlier.story.state == "finished" else ()
    holds = (
        f"{spec.output_dir} holds its checkpoints ({names_of(there)})"
        if there
        else "its output folder is not known (--output-dir D)"
        if spec.output_dir is None
        else f"it trained into {spec.output_dir}"
    )
    raise CliError(
        ExitCode.OWNED,
        f"run {run} of this command is {printable(earlier.how)}, and {holds}; nothing was started: go on with it: "
        f"`{typed('resume', run, *newest)}`, with another command: `{typed('resume', run, '--', 'NEW', 'COMMAND')}`; "
        f"{_ways(spec, wish)}",
    )


def _ways(spec: RunSpec, wish: Wish) -> str:
    return (
        f"from a checkpoint: `{_run(spec, wish, '--from', NEWEST)}` or `--from PATH`; from the beginning, over what "
        f"is there: `{_run(spec, wish, '--fresh')}`; or choose another output folder"
    )


def _run(spec: RunSpec, wish: Wish, *words: str) -> str:
    """The start as it was typed, with these words; as it would be typed, if a screen asked for it."""
    given = wish.given or (() if spec.project else ("--", *spec.command))
    return typed("run", *words, *given)


def _options(wish: Wish) -> tuple[str, ...]:
    """What was typed before the command."""
    return wish.given[: wish.given.index("--")] if "--" in wish.given else wish.given


def _over(spec: RunSpec, there: tuple[Checkpoint, ...]) -> str:
    if there:
        return f"the trainer may write over {names_of(there)} in {spec.output_dir}"
    return "" if spec.output_dir else "the output folder is not known: the trainer may write over what it holds"


def _by_itself(there: tuple[Checkpoint, ...]) -> str:
    return (
        f"the command says that the trainer goes on by itself from what is there ({names_of(there)})" if there else ""
    )

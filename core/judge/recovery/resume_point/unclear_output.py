"""A checkpoint that may be of this run, which cannot be told: nothing begins anew over it.

It lies in a folder that is not known as the run's own, or in one that is, with times that do not tell whether it stood
there before. Sources: a script saved to a folder that nothing names and was killed at once; a checkpoint that was
copied in with the modification time of its original.
"""

from ....model.why import Why
from ...resume import output_folders, resume_point
from ...resume.known_checkpoint import KnownCheckpoint, base_name
from ...resume.output_folders import Sighting
from ...run_states import RestartPlan, Stopped
from ...step_builder import StepBuilder
from . import kept_copies
from .training_times import training_of

CLASS = "not_understood"
UNSURE = "unsure_output"
"""Class of the incident (kind ``checkpoint``) of a checkpoint that may be the run's, while it trains."""
SHOWN = 3
UNKNOWN_ORIGIN = "its modification time is older than the run, but it was changed or copied there since"


def found(builder: StepBuilder) -> tuple[Sighting, ...]:
    """Such checkpoints, oldest first. None for a trainer that finds its own."""
    if _finds_its_own(builder):
        return ()
    return (*_unsure(builder), *map(_sighting, resume_point.of_unknown_origin(builder.state.checkpoints)))


def _finds_its_own(builder: StepBuilder) -> bool:
    support, settings = builder.knowledge.resume_support, builder.knowledge.settings.restart
    return support.by_itself or (not support.forms and settings.if_not_told == "go_on")


def _unsure(builder: StepBuilder) -> tuple[Sighting, ...]:
    return output_folders.unclear(builder.state.outputs, training_of(builder.state), builder.knowledge.output_dir)


def tell(builder: StepBuilder) -> None:
    """Notify people once of what may be the run's."""
    seen = _unsure(builder)
    if not seen:
        close(builder, "another process saves there")
    if not seen or any(i.class_ == UNSURE for i in builder.state.incidents):
        return
    follows = (
        "a crash starts it again, and it resumes by itself"
        if _finds_its_own(builder)
        else "it is never resumed from, and a crash holds the run"
    )
    reason = f"{_names(seen)} in {seen[-1].folder} may be of this run, which is not known ({seen[-1].evidence})"
    builder.warn(
        "checkpoint",
        UNSURE,
        reason,
        title="it is not known where the run saves",
        explanation=f"{follows}; --output-dir names the folder that the trainer saves to",
    )


def close(builder: StepBuilder, why: str = "it is known where the run saves") -> None:
    """Nothing unsure is left."""
    for incident in [i for i in builder.state.incidents if i.class_ == UNSURE]:
        builder.close_incident(incident.id, why)


def _sighting(known: KnownCheckpoint) -> Sighting:
    folder = known.path.rstrip("/").rpartition("/")[0]
    return Sighting(folder=folder, path=known.path, t=known.t, evidence=UNKNOWN_ORIGIN)


def hold_or_copy(builder: StepBuilder, plan: RestartPlan, seen: tuple[Sighting, ...]) -> None:
    """Ask people, or copy it aside and begin anew, as the settings say. What may be of another run is not copied."""
    known = {k.path for k in builder.state.checkpoints.known}
    if (
        all(s.path in known for s in seen)
        and builder.knowledge.settings.restart.if_not_understood == "copy_and_restart"
    ):
        what = f"{_names(seen)} aside before the run begins anew"
        kept_copies.order_copies(builder, plan, what, (s.path for s in seen))
        return
    hold(builder, plan, seen)


def hold(builder: StepBuilder, plan: RestartPlan, seen: tuple[Sighting, ...], but: str = "") -> None:
    """Hold the run. ``but``: what was attempted first."""
    folders = " and ".join(dict.fromkeys(s.folder for s in seen))
    where = f"{_names(seen)} in {folders} may be of this run"
    reason = f"{where}: {seen[-1].evidence}; a start would begin anew and may write over it{but}"
    lines = (
        reason,
        f"`{builder.knowledge.typed('resume', '--from', 'CHECKPOINT')}` goes on from one that is of this run",
        f"`{builder.knowledge.typed('resume', '--fresh')}` begins anew, if none is",
        "--output-dir names the folder that the trainer saves to, so that no search is needed",
        '[restart] if_not_understood = "copy_and_restart" copies such files aside and begins anew by itself',
    )
    close(builder)
    builder.close_incident(plan.incident, "held: it is not known whether the run saved a checkpoint")
    number = builder.open_incident("checkpoint", CLASS, reason, severity="danger")
    builder.move("hold", Stopped(), reason, Why("unclear_output", number))
    builder.notify("warning", "held: it is not known who saved a checkpoint", "\n".join(lines), incident=number)
    for line in lines[1:]:
        builder.note(line)


def _names(seen: tuple[Sighting, ...]) -> str:
    names = list(dict.fromkeys(base_name(s.path) for s in seen))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[-SHOWN:])}{more}"

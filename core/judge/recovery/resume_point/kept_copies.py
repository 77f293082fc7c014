"""Copies of what no attempt resumes from, made before a start from the beginning that may write over it.

Source: a script that always saves to ``last.pt``, in place, and is killed in a save. Its only checkpoint is torn, the
next attempt begins anew, and its first save truncates the file, although a part of it could have been recovered, or the
verdict could have been wrong. The run is not held for it, because nobody can resume from it without repairing it first.
Without room for the copy, or if it fails, the run waits or is held.
"""

from collections.abc import Iterable

import msgspec

from ....model.decision import CopyAside
from ....model.observation import Outcome
from ....model.why import Why
from ...resume import checkpoint_index
from ...resume.known_checkpoint import KnownCheckpoint, age_of, base_name
from ...run_states import Copying, RestartPlan, Stopped
from ...step_builder import StepBuilder
from ..attempts import launch_after_delay, wait_for_room_somewhere

replace = msgspec.structs.replace

CLASS = "kept"
"""Class of the incident (kind ``checkpoint``) that tells where the copy is."""
SHOWN = 3


def at_risk(builder: StepBuilder, before_t: float | None) -> tuple[KnownCheckpoint, ...]:
    """What a start from the beginning may write over and has no copy yet, oldest first.

    What this run wrote, or may have written, and is damaged, not finished or not understood; since a NaN
    (``before_t``) everything that was saved. Not what the run left behind when a person began anew. If the settings
    leave the choice to a trainer that finds its checkpoints by itself, only what is damaged.
    """
    knowledge = builder.knowledge
    finds_its_own = not knowledge.resume_support.forms and knowledge.settings.restart.if_not_told == "go_on"
    known = [k for k in builder.state.checkpoints.known if (k.own or k.unsure) and k.left is None and k.kept is None]
    found = [k for k in known if _is_damaged(k) or (not finds_its_own and _is_unused(k, before_t))]
    return tuple(sorted(found, key=age_of))


def _is_damaged(known: KnownCheckpoint) -> bool:
    return not known.unknown_make and (known.bad is not None or known.damage is not None)


def _is_unused(known: KnownCheckpoint, before_t: float | None) -> bool:
    if known.unknown_make:
        return known.is_state  # else it is data, or a file of results
    return known.unclear is not None or not known.complete or (before_t is not None and known.t >= before_t)


def keep_then_begin(builder: StepBuilder, plan: RestartPlan) -> None:
    """Begin anew; what the start may write over is copied aside first, right before the launch."""
    plan = replace(plan, path=None, step=None)
    found = at_risk(builder, plan.before_t) if plan.delay_s <= 0.0 else ()
    if not found:
        launch_after_delay(builder, plan)
        return
    what = f"{names(found)} aside before the run begins anew and may write over {_them(found)}"
    order_copies(builder, plan, what, (), damaged=True)


def order_copies(
    builder: StepBuilder, plan: RestartPlan, what: str, paths: Iterable[str], *, damaged: bool = False
) -> None:
    """Have these, and what a start from the beginning may write over, copied aside. ``what``: a clause about them."""
    at_stake = (*paths, *(k.path for k in at_risk(builder, plan.before_t)))
    order = builder.decide(CopyAside, f"copy {what}", incident=plan.incident, paths=tuple(dict.fromkeys(at_stake)))
    builder.move("copy_aside", Copying(order=order, plan=plan, damaged=damaged), f"copying {what}")


def on_kept(builder: StepBuilder, machine: Copying, outcome: Outcome) -> None:
    """The copies are made: begin anew. Or they cannot be made: wait for room, or hold and ask people."""
    plan, found = machine.plan, at_risk(builder, machine.plan.before_t)
    if outcome.ok:
        note_kept(builder, found, str(outcome.data.get("folder") or ""), plan.incident)
        launch_after_delay(builder, plan)
        return
    gone = {k.path for k in found if k.path == outcome.data.get("gone")}
    for path in gone:
        builder.set(checkpoints=checkpoint_index.without(builder.state.checkpoints, path))
    if gone or not found:
        keep_then_begin(builder, plan)
        return
    why = f"{names(found)} cannot be copied aside: {outcome.detail or 'no reason given'}"
    if outcome.data.get("no_room") is True:
        wait_for_room_somewhere(builder, plan, f"{why}; a start would begin anew and may write over it")
        return
    _hold(builder, plan, why, found)


def note_kept(builder: StepBuilder, found: tuple[KnownCheckpoint, ...], folder: str, incident: int | None) -> None:
    """Remember that these were copied to ``folder``, and tell people where the copies are."""
    if not found:  # removed meanwhile
        return
    mark(builder, found, folder)
    where = folder or "a folder of its own"
    said = f"kept copies of {names(found)} in {where}"
    if len(found) == 1:
        name = base_name(found[0].path)
        said = f"kept a copy of {name} as {folder}/{name}" if folder else f"kept a copy of {name} in {where}"
    told = f"{said} before the run began anew; delete {_them(found)} if not needed"
    builder.open_incident("checkpoint", CLASS, told, severity="info", ending="noted")
    builder.notify("warning", f"kept: {names(found)}", told, incident=incident)


def mark(builder: StepBuilder, found: tuple[KnownCheckpoint, ...], folder: str) -> None:
    """Remember that these, as they are now, were copied to ``folder``."""
    paths = {k.path for k in found}
    builder.set(checkpoints=checkpoint_index.changed(builder.state.checkpoints, paths, kept=folder))


def names(found: tuple[KnownCheckpoint, ...]) -> str:
    """The newest names in a sentence."""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{', '.join(base_name(k.path) for k in found[-SHOWN:])}{more}"


def _them(found: tuple[KnownCheckpoint, ...]) -> str:
    return "it" if len(found) == 1 else "them"


def _hold(builder: StepBuilder, plan: RestartPlan, why: str, found: tuple[KnownCheckpoint, ...]) -> None:
    reason = f"{why}; a start would begin anew and may write over it"
    typed = builder.knowledge.typed
    ways = (
        f"mend what the reason says, or move it away, then `{typed('resume')}`",
        f"`{typed('resume', '--fresh')}` begins anew without a copy",
        f"`{typed('resume', '--from', found[-1].path)}` gives it to the trainer, if it is whole after all",
    )
    builder.close_incident(plan.incident, "held: what a new start may write over cannot be copied aside")
    builder.move("hold", Stopped(), reason, Why("not_copied"))
    lines = "\n".join((reason, *ways))
    builder.notify("warning", "held: a checkpoint cannot be copied aside", lines, incident=plan.incident)
    for way in ways:
        builder.note(way)

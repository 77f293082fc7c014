"""When a checkpoint is copied off the machine: the newest verified one, the best, or both; one at a time, never twice.

If several wait, only the newest is copied: a copy that is slower than the saves must not fall behind for ever. Nothing
is ever deleted, here or there.
"""

import msgspec

from ...model.decision import BackUpCheckpoint
from ...model.observation import Outcome
from ..evaluation.evaluations import is_best
from ..resume.known_checkpoint import KnownCheckpoint, base_name
from ..state import JudgeState
from ..step_builder import StepBuilder
from .backups import AGAIN_S, KEPT, MOST, Backups

replace = msgspec.structs.replace


def follow(builder: StepBuilder) -> None:
    """Begin the next copy, if one is due."""
    if builder.state.backups.running is None:
        for chosen in _due(builder, builder.t)[:1]:
            _begin(builder, chosen)


def last(builder: StepBuilder) -> None:
    """The run ends: copy what is not copied yet; the supervisor waits for what is being copied."""
    if not builder.knowledge.settings.backup.wanted:
        return
    for chosen in _due(builder, float("inf")):
        _begin(builder, chosen)


def is_awaited(state: JudgeState, outcome: Outcome) -> bool:
    """Whether it is the outcome of the copy that is being made."""
    return state.backups.running is not None and state.backups.running == outcome.decision


def on_outcome(builder: StepBuilder, outcome: Outcome) -> None:
    """Note that it is copied, or that it failed: people are told of the first failure in a row."""
    known = builder.state.backups
    if outcome.ok:
        done = {**known.done, known.path: known.mtime}
        kept = dict(list(done.items())[-KEPT:])
        builder.set(backups=replace(known, running=None, done=kept, told=False))
        return
    times = _times(known, known.path, known.mtime) + 1
    failed = {**known.failed, known.path: (known.mtime, times, builder.t + AGAIN_S)}
    builder.set(backups=replace(known, running=None, failed=dict(list(failed.items())[-KEPT:]), told=True))
    builder.note(f"{base_name(known.path)} was not copied: {outcome.detail or 'no detail'}")
    if not known.told:
        body = f"{outcome.detail or 'no detail'}\nit is copied again in {AGAIN_S / 60:.0f} min; the training goes on"
        builder.notify("warning", f"{base_name(known.path)} was not copied", body)


def _due(builder: StepBuilder, t: float) -> list[KnownCheckpoint]:
    """What is to be copied at ``t``: of the verified checkpoints of this run the best and the newest, as it is set.

    The best comes first: it changes less often than the newest one, which would always be copied before it.
    """
    state, which = builder.state, builder.knowledge.settings.backup.which
    good = [k for k in state.checkpoints.known if k.own and k.complete and k.bad is None and k.mtime is not None]
    found = []
    if which != "newest":
        found += [k for k in good if is_best(state.evaluations, good, k.path)]
    if which != "best" and good:
        newest = max(good, key=lambda k: (k.mtime or 0.0, k.t))
        found += [] if newest in found else [newest]
    return [k for k in found if _is_due(state.backups, k, t)]


def _is_due(known: Backups, chosen: KnownCheckpoint, t: float) -> bool:
    """Whether it is not copied, not being copied, and did not fail too often or too shortly before ``t``."""
    is_running = known.running is not None and (known.path, known.mtime) == (chosen.path, chosen.mtime)
    if is_running or known.done.get(chosen.path) == chosen.mtime:
        return False
    failed = known.failed.get(chosen.path)
    return failed is None or failed[0] != chosen.mtime or (failed[1] < MOST and t >= failed[2])


def _times(known: Backups, path: str, mtime: float) -> int:
    before = known.failed.get(path)
    return before[1] if before is not None and before[0] == mtime else 0


def _begin(builder: StepBuilder, chosen: KnownCheckpoint) -> None:
    assert chosen.mtime is not None
    name = base_name(chosen.path)
    order = builder.decide(BackUpCheckpoint, f"copy {name} off this machine", path=chosen.path, mtime=chosen.mtime)
    known = builder.state.backups
    builder.set(backups=replace(known, running=order, path=chosen.path, mtime=chosen.mtime))

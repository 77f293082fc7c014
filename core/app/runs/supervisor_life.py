"""Whether a run's supervisor lives and turns: its lock, its last sign of life, the state of its process, its answer."""

from pathlib import Path
from typing import Any

import msgspec

from ...model.supervisor_life import RESPONSIVE_S, SupervisorLife, Trouble
from ...sense.process.proc_stat import read_stat
from ...store.life_sign import read_life_sign
from ...store.lock import holder_pid, is_held
from ...store.metrics.latest import ProgressPoint
from ...store.run_directory import RunDirectory

FRESH_S = 3.0
"""A sign of life of at most this age needs no question."""
ANSWER_S = 1.0
"""Longest wait for the answer to a question. A supervisor that turns answers within milliseconds."""
STOPPED_STATES = frozenset("Tt")


def supervisor_life(run: RunDirectory, *, ask: bool = False) -> SupervisorLife:
    """Look at the supervisor of a run. Blocks for at most about ANSWER_S, if it does not answer.

    ``ask``: ask it for its own troubles even if its sign of life is fresh.
    """
    if not is_held(run.lock):
        return SupervisorLife()
    pid = holder_pid(run.lock)
    stat = read_stat(pid) if pid is not None else None
    stopped = stat is not None and stat.state in STOPPED_STATES
    sign = read_life_sign(run.life_sign)
    age_s = sign.age_s if sign is not None and pid in {None, sign.pid} else None
    troubles: tuple[Trouble, ...] = ()
    newest: ProgressPoint | None = None
    if not stopped and (ask or age_s is None or age_s > FRESH_S):
        said = _asked(run)
        if said is not None:
            age_s = min(float(said.get("age_s", 0.0)), age_s if age_s is not None else float("inf"))
            troubles = _troubles(said)
            newest = _newest(said)
    return SupervisorLife(
        pid=pid,
        alive=True,
        responsive=not stopped and age_s is not None and age_s <= RESPONSIVE_S,
        age_s=age_s,
        stopped=stopped,
        troubles=troubles,
        progress=newest.progress if newest is not None else None,
        step_t=newest.step_t if newest is not None else None,
    )


def _asked(run: RunDirectory) -> dict[str, Any] | None:
    """The data of its answer; None: no answer in time."""
    if not Path(run.control).exists():
        return None
    from ...model.control_messages import Request
    from ...store.control.control_client import ControlError, send

    try:
        reply = send(run, Request(), ANSWER_S)
    except (ControlError, OSError):
        return None
    return reply.data if reply.ok else None


def _troubles(said: dict[str, Any]) -> tuple[Trouble, ...]:
    try:
        return msgspec.convert(said.get("troubles", ()), tuple[Trouble, ...])
    except msgspec.ValidationError:
        return ()


def _newest(said: dict[str, Any]) -> ProgressPoint | None:
    try:
        return msgspec.convert(said.get("progress"), ProgressPoint | None)
    except msgspec.ValidationError:
        return None

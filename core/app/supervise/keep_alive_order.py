"""How the runner of an attempt replaces this run's supervisor."""

import sys

from ...model.attempt import KeepAliveOrder
from ...model.run import RunSpec
from ...store.run_directory import RunDirectory

REPLACES = "TRAINWATCH_REPLACES"
"""Variable of a supervisor that the runner started in the place of another."""


def keep_alive_order(run: RunDirectory, spec: RunSpec) -> KeepAliveOrder | None:
    """None if the run does not want it (``[supervisor] keep_alive``)."""
    if not spec.settings.supervisor.keep_alive:
        return None
    return KeepAliveOrder(
        argv=(sys.executable, "-P", "-m", "trainwatch", "supervise", run.id),
        env={"TRAINWATCH_HOME": str(run.path.parents[1]), REPLACES: "1"},
        lock=str(run.lock),
        life_sign=str(run.life_sign),
        log=str(run.supervisor_log),
        frozen_s=spec.settings.supervisor.frozen_s,
    )

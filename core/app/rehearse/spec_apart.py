"""The run of a rehearsal: that of the user, with a state folder of its own and the settings of a rehearsal."""

import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ...model.run import RunSpec
from ...model.settings import Notify, Remedies, Settings, Tmux
from ...store.run_directory import new_run_id

PERIOD_S = 0.25
"""Sampling period of a rehearsal, at most."""
SETTLE_S = 1.0
"""Settling time of a rehearsal, at most. Not below ``unclear_state.STILL_S``: a file of an unknown format that changed
more recently when it was inspected is given to no attempt, and the rehearsal would begin anew over it."""


def spec_apart(spec: RunSpec, scratch: Path, env: Mapping[str, str]) -> RunSpec:
    """The run with a state folder of its own, without notices, remedies and windows, and restarted at once."""
    settings = spec.settings
    return msgspec.structs.replace(
        spec,
        id=new_run_id(scratch / "home", spec.name, Path(spec.project or spec.cwd)),
        created_wall=time.time(),
        env={**spec.env, **env},
        begin_from=None,
        settings=_settings(settings),
        labels={**spec.labels, "rehearsal_of": spec.id},
    )


def _settings(settings: Settings) -> Settings:
    replace = msgspec.structs.replace
    watch = settings.watch
    return replace(
        settings,
        watch=replace(
            watch, interval_s=min(watch.interval_s, PERIOD_S), settle_s=min(watch.settle_s, SETTLE_S), rescan_s=2.0
        ),
        profiles=replace(settings.profiles, ramp=()),
        restart=replace(
            settings.restart,
            act="all",
            max_restarts=max(1, settings.restart.max_restarts),
            backoff_s=(0.0,),
            if_not_told="go_on",
            if_not_understood="copy_and_restart",
        ),
        remedies=Remedies(apply="none"),
        notify=Notify(),
        tmux=Tmux(enabled=False),
    )

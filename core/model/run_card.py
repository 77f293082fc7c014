"""A run in the list of runs, and a run that was never started."""

from collections.abc import Mapping

import msgspec

from .health import Level
from .run import RunState

HOST_ROW = "host="
"""Begins the id of a row that stands for a machine of which no run is known."""


class RunCard(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is known but not open. None = unknown; ``_wall`` epoch seconds.

    ``level`` and ``trouble``: the worst that is wrong with it now (an empty ``trouble``: nothing). ``gpu_pct``: mean
    utilisation of the GPUs that it uses, ``gpus`` their indices. ``ram_pct``: of its host. ``changed_wall``: when its
    state began. ``hidden``: a person left it out of the list.
    """

    id: str
    name: str
    state: RunState
    watched: bool
    created_wall: float
    step: int | None = None
    total_steps: int | None = None
    last_incident: str | None = None
    level: Level | None = None
    trouble: str = ""
    sec_per_step: float | None = None
    eta_s: float | None = None
    loss: float | None = None
    loss_is_nan: bool = False
    gpus: tuple[int, ...] = ()
    gpu_pct: float | None = None
    ram_pct: float | None = None
    changed_wall: float | None = None
    attempts: int = 0
    cwd: str = ""
    command: tuple[str, ...] = ()
    hidden: bool = False
    host: str = ""
    """The machine that it runs on, if it is another one; its id begins with that name."""
    no_answer: str = ""
    """Why that machine does not answer now: the card is as it was when it last did. Else empty."""
    queued: int | None = None
    """It is no run yet: its place among those that wait in the queue, from 1; its id is ``queue:NUMBER``."""


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a run was started with: the options of its newest launch, its config, its environment. Values as text.

    ``config_paths``: names of options whose value is the path of the config; its settings are among the values.
    """

    run_id: str
    name: str
    values: Mapping[str, str]
    config_paths: frozenset[str] = frozenset()


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A run of this project that was never started; Enter starts it."""

    name: str
    command: tuple[str, ...]
    cwd: str
    preset: str = "generic"
    profile: str | None = None
    output_dir: str | None = None

"""A run in the list of runs, and a run that was never started."""

import msgspec

from .run import RunState


class RunCard(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is known but not open. ``step``/``total_steps`` None = unknown; ``created_wall`` epoch seconds."""

    id: str
    name: str
    state: RunState
    watched: bool
    created_wall: float
    step: int | None = None
    total_steps: int | None = None
    last_incident: str | None = None


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A run of this project that was never started; Enter starts it."""

    name: str
    command: tuple[str, ...]
    cwd: str
    preset: str = "generic"
    profile: str | None = None
    output_dir: str | None = None

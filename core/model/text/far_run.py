"""How a run of another machine is named: ``box1:job-1a2b3c4d``."""

from .patterns import LazyPattern

_FAR = LazyPattern(r"([A-Za-z0-9][A-Za-z0-9._-]*):([a-z0-9][a-z0-9-]*)")


def far_id(host: str, run_id: str) -> str:
    return f"{host}:{run_id}"


def parted(run_id: str) -> tuple[str, str] | None:
    """The host and the run's id there; None for a run of this machine."""
    found = _FAR.fullmatch(run_id)
    return None if found is None else (found[1], found[2])

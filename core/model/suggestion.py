"""A command of trainwatch that a message suggests: as it stands, it can be pasted into a shell."""

import shlex

from .patterns import LazyPattern

_called = ["trainwatch"]
_FAR = LazyPattern(r"([A-Za-z0-9][A-Za-z0-9._-]*):([a-z0-9][a-z0-9-]*)")


def far_id(host: str, run_id: str) -> str:
    """How a run of another machine is named: ``box1:job-1a2b3c4d``."""
    return f"{host}:{run_id}"


def parted(run_id: str) -> tuple[str, str] | None:
    found = _FAR.fullmatch(run_id)
    return None if found is None else (found[1], found[2])


def called_from(host: str) -> None:
    """From now on the suggested commands are for a person on another machine who calls this one ``host``."""
    _called[0] = f"trainwatch --on {shlex.quote(host)}"


def typed(verb: str, *words: str) -> str:
    """``trainwatch VERB WORDS``, each word quoted for a shell if it has to be. Capitals are for a person to replace.

    A command about one run names it by its id (``box1:job-1a2b3c4d`` is one of another machine): a name may be that of
    several runs, and without one the working folder decides.
    """
    if words and (far := parted(words[0])) is not None:
        return f"trainwatch --on {far[0]} {verb} {shlex.join((far[1], *words[1:]))}".rstrip()
    return f"{_called[0]} {verb} {shlex.join(words)}".rstrip()

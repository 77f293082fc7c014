"""Where the attempts of a run are started, and what that place can do."""

from typing import Literal

import msgspec

from .elsewhere.job import JobCause, JobPhase

EngineName = Literal["local", "slurm"]
"""On this machine, or as jobs of Slurm."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between engines. Whoever needs to know asks one of these, never for the engine's name.

    ``here``: processes, GPUs, memory and kernel log of the training are those of this machine. ``queues``: an attempt
    may wait for nodes, and has a state, a reason and a time limit that the engine tells. ``runs_again``: an attempt
    with the same settings may go on in the place of the one before, without waiting for another one. ``pauses``: its
    processes can be stopped and continued. ``commands``: programs that it calls.
    """

    here: bool
    queues: bool
    runs_again: bool
    pauses: bool
    commands: tuple[str, ...] = ()


CAPABILITIES: dict[EngineName, Capabilities] = {
    "local": Capabilities(here=True, queues=False, runs_again=False, pauses=True),
    "slurm": Capabilities(
        here=False,
        queues=True,
        runs_again=True,
        pauses=False,
        commands=("sbatch", "squeue", "scontrol", "scancel", "srun"),
    ),
}


class AttemptSeen(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt as its engine knows it. ``unknown`` is a phase of its own: nothing follows from it.

    ``code``: exit status of the training, None = not known. ``state``, ``reason``, ``nodes``: the engine's own words.
    ``left_s``: seconds until its time limit, None = none or not known.
    """

    phase: JobPhase
    cause: JobCause | None = None
    code: int | None = None
    state: str = ""
    reason: str = ""
    nodes: str = ""
    left_s: float | None = None

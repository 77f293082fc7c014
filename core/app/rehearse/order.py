"""What the two processes of a rehearsal tell each other: the order, and what was seen (files in the scratch folder)."""

from pathlib import Path
from typing import Literal

import msgspec

from ...model.launch.rehearsal import Apart, FaultOutlook, LossProof, StepProof
from ...model.run import RunSpec

ORDER, SEEN = "order.json", "seen.json"
Stage = Literal["start", "checkpoint", "kill", "restart", "proof", "done"]


class RehearsalOrder(msgspec.Struct, frozen=True, kw_only=True):
    """``spec``: the run with the settings of a rehearsal; ``tonight``: with those of the user.

    ``limit_s``: longest time. ``hasty``: kill at the first sight of a checkpoint, for a training that takes seconds.
    ``wanted``, ``kept``, ``hidden``: folders for the overlays (mount_view.enter).
    """

    spec: RunSpec
    tonight: RunSpec
    limit_s: float
    apart: Apart
    parent: int
    hasty: bool = False
    wanted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What happened. ``stage``: how far it came; ``over``: "" or why it ended there.

    ``problem``, ``code``: it could not be started (sentence, exit code). ``no_overlay``: why none can be made.
    ``told``: the launch named the checkpoint; ``resumed_from``: the checkpoint of the second attempt. ``ignored``: the
    judge saw that the resume did not take. ``finished``: the first attempt was done before it could be killed.
    ``withheld``: the checkpoint that the
    second attempt was begun without, although the command takes one ("" = none).
    ``written``: what was written and is no checkpoint that is understood.
    """

    stage: Stage = "start"
    over: str = ""
    timed_out: bool = False
    interrupted: bool = False
    problem: str | None = None
    code: int = 1
    no_overlay: str | None = None
    saved_in: str | None = None
    checkpoint: str | None = None
    checkpoint_after_s: float | None = None
    resumed_from: str | None = None
    told: bool = False
    ignored: str = ""
    withheld: str = ""
    finished: bool = False
    failure: str = ""
    last_step: int | None = None
    total_steps: int | None = None
    steps: StepProof = StepProof()
    loss: LossProof = LossProof()
    faults: tuple[FaultOutlook, ...] = ()
    written: tuple[str, ...] = ()
    log_tail: tuple[str, ...] = ()


def write(path: Path, value: RehearsalOrder | Seen) -> None:
    """Write an order or a result as JSON. Raises OSError."""
    path.write_bytes(msgspec.json.encode(value))


def read_order(scratch: Path) -> RehearsalOrder:
    """The order in a scratch folder."""
    return msgspec.json.decode((scratch / ORDER).read_bytes(), type=RehearsalOrder)


def read_seen(scratch: Path) -> Seen | None:
    """What was seen; None if the other process wrote nothing."""
    try:
        return msgspec.json.decode((scratch / SEEN).read_bytes(), type=Seen)
    except (OSError, msgspec.MsgspecError):
        return None

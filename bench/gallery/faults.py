"""What is done to a training, by the code in ``injected/`` and always once."""

import msgspec

from .row import Row


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    kind: str = ""
    """What the injected code does; empty: nothing."""
    rank: int = 0
    hangs: bool = False
    outside: bool = False
    """Only for rows with ``ends``, whose faults all come from outside."""


FAULTS = (
    Fault(name="none", title="no fault"),
    Fault(name="kill", title="kill -9 of the trainer", kind="kill"),
    Fault(name="launcher", title="kill -9 of the launcher", kind="kill_launcher"),
    Fault(name="rank", title="kill -9 of one rank", kind="kill", rank=1),
    Fault(name="exit", title="exit 3 of one rank", kind="exit", rank=1),
    Fault(name="worker", title="kill -9 of a loader worker", kind="kill_worker"),
    Fault(name="deadlock", title="a lock taken twice in a signal handler", kind="deadlock", hangs=True),
    Fault(name="stop", title="SIGSTOP of one rank", kind="stop", rank=1, hangs=True),
    Fault(name="oom", title="out of memory, once", kind="oom"),
    Fault(name="torn", title="newest checkpoint cut in half, then kill -9", kind="torn"),
    Fault(name="neighbour", title="kill -9 beside a copy that was started by hand", outside=True),
    Fault(name="nan", title="NaN in the data", outside=True),
)
BY_NAME = {fault.name: fault for fault in FAULTS}
QUICK = ("none", "kill")


def missing(fault: Fault, row: Row) -> str:
    """What the fault needs and the row does not have, for the table; "" if nothing."""
    if row.ends or fault.outside:
        return "" if fault.name in row.ends else "not foreseen"
    if fault.rank:
        return "" if row.ranks > 1 else "one rank"
    if fault.name == "launcher":
        return "" if row.launcher else "no launcher"
    return "no loader processes" if fault.name == "worker" and not row.workers else ""


def applies(fault: Fault, row: Row) -> bool:
    """Whether the row has what the fault needs."""
    return not missing(fault, row)

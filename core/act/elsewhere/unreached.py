"""Trainers that cannot be reached at all: on another host, in a container that is not ours, in a pod.

A client that was killed, or that lost its connection, leaves them behind: whether they run on is unknown then, and
nothing is started beside them. A status that is the trainer's own proves that it ended (ssh(1): 255 is ssh's own;
``docker exec``: 125 is docker's own).
"""

from pathlib import Path

from ...model.launch.elsewhere.wrappers import Layer, layers
from ..launch.attempt_records import read_exit, read_order

OWN_STATUS = {"host": {255}, "in_container": {125}, "services": {125}, "pod": {1, 255}}
"""Exit statuses of the client itself. Slurm ends a step whose ``srun`` is gone, so that it is not among them."""
WHERE = {
    "host": "on {name}: look there (`ssh {name} pgrep -af {word}`)",
    "in_container": "in the container {name}: look there (`{tool} top {name}`)",
    "services": "in the containers of the project: look there (`{tool} ps`)",
    "pod": "in the pod {name}: look there (`{tool} exec {name} -- ps ax`)",
}
"""``tool``: the client without its verb; ``word``: the first word of the trainer's command."""


def may_run_on(directory: str) -> str:
    """What may run on where the attempt's client cannot reach it any more, as a clause; "" if nothing may."""
    order = read_order(Path(directory))
    layer = None if order is None else next((each for each in layers(order.argv) if each.kind in OWN_STATUS), None)
    if layer is None:
        return ""
    ended = read_exit(Path(directory))
    if ended is not None and ended.code is not None and ended.code not in OWN_STATUS[layer.kind]:
        return ""
    return "the training may run on " + place_of(layer)


def place_of(layer: Layer) -> str:
    """Where to look for it."""
    word = next((word for word in layer.inner if word.endswith(".py")), "python")
    name = layer.names[0] if layer.names else "it"
    return WHERE[layer.kind].format(name=name, word=word, tool=" ".join(layer.tool))

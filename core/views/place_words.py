"""Where the command lets the training run, if not as any process of this user: in a container, on another host."""

from collections.abc import Sequence

from ..model.wrappers import Layer, layers


def deciding_layer(command: Sequence[str]) -> Layer | None:
    """The wrapper that decides where it runs: a container, even if sudo starts it. None: it is a process like any."""
    away = [layer for layer in layers(command) if layer.kind != "plain"]
    return next((layer for layer in away if layer.kind != "user"), away[0] if away else None)


def place_words(command: Sequence[str]) -> str:
    """Where it runs, and what that means for a stop, as a clause; "" if it runs as any process of this user."""
    layer = deciding_layer(command)
    return "" if layer is None else words_of(layer)


def words_of(layer: Layer) -> str:
    """The same of a wrapper."""
    name, tool = layer.names[0] if layer.names else "it", layer.program
    match layer.kind:
        case "container" | "service":
            return f"runs in a container of {tool}: stopped, paused and measured through {tool}"
        case "in_container":
            return f"runs in the container {name}: {tool} exec passes no signal on, so a stop leaves it running"
        case "services":
            return f"runs in the containers of `{tool} {layer.verb}`: a stop may leave them running"
        case "host":
            return f"runs on {name}: nothing of it is measured, and a stop or a lost connection leaves it running"
        case "pod":
            return f"runs in the pod {name}: nothing of it is measured, and a stop leaves it running"
        case "step":
            return "runs as a step of Slurm: its CPU and GPU are not known"
        case "environment":
            return f"runs in an environment of {tool}: as any process of yours"
        case "user" | "plain":
            user = next(iter(layer.values("-u", "--user")), "root")
            return f"runs as {user}: only {tool} may signal it"

"""A directory that holds weights and no state of a training: the final model, or one saved for use."""

import re

from .damage import Torn
from .layout import Findings, LayoutReading, weights_in
from .members import Members
from .names import is_checkpoint_directory_name

KNOWN_WEIGHTS = re.compile(
    r"^(model|pytorch_model|diffusion_pytorch_model|adapter_model|pytorch_lora_weights|consolidated)"
    r"(-\d{5}-of-\d{5}|\.\d+)?(\.fp16)?\.(safetensors|bin|pt|pth)(\.index\.json)?$"
)
"""Names of weights that a directory is known by; any other ``.safetensors`` in a folder may be a collection."""


def read_weights(members: Members, _: Findings) -> LayoutReading | None:
    """Everything that no other layout claims, if it is a checkpoint by its name or by known weights."""
    if any(weights_in(members)):
        return LayoutReading(layout="weights", notes=("weights only, no optimizer state",))
    if is_checkpoint_directory_name(members.root.name) or any(KNOWN_WEIGHTS.match(name) for name in members.top()):
        return LayoutReading(layout="weights", damages=(Torn("no file with weights is in it"),))
    return None

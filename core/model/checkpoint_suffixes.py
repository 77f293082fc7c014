"""The one table of checkpoint suffixes.

Used by the watcher, the judge, the checks before a launch, the runner and the readers of checkpoints. Standard library
only, because the runner imports it.
"""

from typing import Literal

TensorFormat = Literal["safetensors", "torch", "maybe_torch"]
"""``maybe_torch``: other programs use the suffix, too; the rest of the name or the first bytes decide."""

TENSOR_SUFFIXES: dict[str, TensorFormat] = {
    ".safetensors": "safetensors",
    ".sft": "safetensors",
    ".pt": "torch",
    ".pth": "torch",
    ".ckpt": "torch",
    ".bin": "maybe_torch",
    ".pkl": "maybe_torch",
}
INDEX_SUFFIX = ".index.json"
"""The index of a set of shards, which names the whole set."""
DCP_SUFFIX = ".distcp"
"""Files of torch.distributed.checkpoint; the directory they lie in is the checkpoint."""
CHECKPOINT_SUFFIXES = (*TENSOR_SUFFIXES, INDEX_SUFFIX)
"""Ends of the names of checkpoints that are files."""


def has_checkpoint_suffix(name: str) -> bool:
    """Whether a file of that name may be a checkpoint by itself, or the index of one."""
    return name.lower().endswith(CHECKPOINT_SUFFIXES)

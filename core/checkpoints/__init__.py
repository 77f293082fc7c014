"""Checkpoint truth: which saved states are there, what they are worth, and what may be done with them.

Nothing here executes a pickle, imports torch or follows a link out of the directory it was given. numpy is loaded only
by a deep verification and by comparisons. Docs: docs/decisions/0005-checkpoints-package.md.
"""

from .inspection import inspect, verify
from .listing import list_checkpoints

__all__ = ["inspect", "list_checkpoints", "verify"]

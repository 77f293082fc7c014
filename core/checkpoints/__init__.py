"""Checkpoint truth: which saved states are there, what they are worth, and what may be done with them.

Nothing here executes a pickle, imports torch or follows a link out of the directory it was given. numpy is loaded only
by a deep verification and by comparisons. Why a package of its own: docs/decisions/0005-checkpoints-package.md.
"""

from .comparison import Comparison, ComparisonRefusedError, TensorChange, compare
from .copying import Backup, BackupRefusedError, backup
from .inspection import inspect, verify
from .listing import list_checkpoints
from .overview import CheckpointOverview, show
from .pace import ProgressCallback
from .recognition import is_checkpoint_directory
from .retention import PruneOutcome, PrunePlan, apply_prune, plan_prune

__all__ = [
    "Backup",
    "BackupRefusedError",
    "CheckpointOverview",
    "Comparison",
    "ComparisonRefusedError",
    "ProgressCallback",
    "PruneOutcome",
    "PrunePlan",
    "TensorChange",
    "apply_prune",
    "backup",
    "compare",
    "inspect",
    "is_checkpoint_directory",
    "list_checkpoints",
    "plan_prune",
    "show",
    "verify",
]

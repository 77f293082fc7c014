"""Checkpoints: which are there, whether they are complete, and what may be done with them.

Nothing here executes a pickle, imports torch or follows a link out of the directory it was given. numpy is loaded only
by a deep verification and by comparisons. Why a package of its own: docs/decisions/README.md.
"""

from ..model.checkpoint import CheckpointOverview, Comparison, PrunePlan
from .inspection import inspect, inspect_any, verify
from .layouts.directory import is_checkpoint_directory
from .listing import FolderState, folder_state, list_checkpoints, parts_in, show, state_in, state_of
from .manage.comparison import ComparisonRefusedError, compare
from .manage.copies import Backup, BackupRefusedError, backup, copy_aside, folder_for_copies
from .manage.pruning import PruneOutcome, apply_prune, plan_prune
from .unknown_state import has_state_files

__all__ = [
    "Backup",
    "BackupRefusedError",
    "CheckpointOverview",
    "Comparison",
    "ComparisonRefusedError",
    "FolderState",
    "PruneOutcome",
    "PrunePlan",
    "apply_prune",
    "backup",
    "compare",
    "copy_aside",
    "folder_for_copies",
    "folder_state",
    "has_state_files",
    "inspect",
    "inspect_any",
    "is_checkpoint_directory",
    "list_checkpoints",
    "parts_in",
    "plan_prune",
    "show",
    "state_in",
    "state_of",
    "verify",
]

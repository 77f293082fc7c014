"""Data of a launch that is compared with the previous launch and stored for the next one."""

import logging
import os
import threading
from pathlib import Path

from ...act.config.derive import Derived
from ...act.launch.script_record import read_script
from ...model.checkpoints.checkpoint import Checkpoint, LoadRefusal
from ...model.launch.script_state import ScriptState
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...source.launch_target import find_target
from ..preflight.resumed.model_checks import remember_data, resume_misfit
from ..preflight.resumed.torch_load import load_refusal

log = logging.getLogger(__name__)


def misfit_of(spec: RunSpec, resume: Path, derived: Derived) -> str | None:
    """Why this launch cannot load the checkpoint, as a sentence; None if nothing is certain, or on any fault."""
    try:
        return resume_misfit(spec, resume, derived)
    except Exception:  # a comparison that fails must not prevent the launch
        log.exception("comparing the model with %s failed", resume)
        return None


def refusal_of(spec: RunSpec, preset: Preset, checkpoint: Checkpoint) -> LoadRefusal | None:
    """Why the trainer's own load would not take a checkpoint; None if that is not known, or on any fault."""
    try:
        return load_refusal(spec, preset, checkpoint)
    except Exception:  # what is not known is not told
        log.exception("the load of %s could not be foreseen", checkpoint.name)
        return None


def remember_launch(spec: RunSpec, folder: Path, derived: Derived) -> None:
    """Count the data set in a thread of its own: it takes seconds if it is large, and the trainer runs already."""

    def count() -> None:
        try:
            remember_data(spec, folder, derived)
        except Exception:  # the next launch then compares nothing
            log.exception("the data set of %s could not be counted", folder)

    threading.Thread(target=count, name="count-data", daemon=True).start()


def script_now(spec: RunSpec) -> ScriptState | None:
    """The script that a launch of the run would start, as it is at this moment.

    None if the command does not say which script it starts, or if that cannot be read, or on any fault.
    """
    try:
        target = find_target(spec.command, Path(spec.cwd), {**os.environ, **spec.env})
        return None if isinstance(target, str) else read_script(target.file)
    except Exception:  # a comparison that fails must not prevent the launch
        log.exception("the script of the command could not be read")
        return None

"""Data of a launch that is compared with the previous launch and stored for the next one."""

import logging
import threading
from pathlib import Path

from ...act.config.derive import Derived
from ...model.run import RunSpec
from ..preflight.resumed.model_checks import remember_data, resume_misfit

log = logging.getLogger(__name__)


def misfit_of(spec: RunSpec, resume: Path, derived: Derived) -> str | None:
    """Why this launch cannot load the checkpoint, as a sentence; None if nothing is certain, or on any fault."""
    try:
        return resume_misfit(spec, resume, derived)
    except Exception:  # a comparison that fails must not prevent the launch
        log.exception("comparing the model with %s failed", resume)
        return None


def remember_launch(spec: RunSpec, folder: Path, derived: Derived) -> None:
    """Count the data set in a thread of its own: it takes seconds if it is large, and the trainer runs already."""

    def count() -> None:
        try:
            remember_data(spec, folder, derived)
        except Exception:  # the next launch then compares nothing
            log.exception("the data set of %s could not be counted", folder)

    threading.Thread(target=count, name="count-data", daemon=True).start()

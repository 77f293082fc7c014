"""A launch that is derived and whose config copy is written, as before an attempt."""

from typing import Any

from trainwatch.core.act.config.derive import Derived, preview, write_config_copy
from trainwatch.core.model.run import RunSpec


def derive(spec: RunSpec, *of_launch: Any, **more: Any) -> Derived:
    """``of_launch``, ``more``: the other arguments of ``preview``."""
    derived = preview(spec, *of_launch, **more)
    write_config_copy(spec, derived)
    return derived

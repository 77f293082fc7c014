"""A way to resume that was concluded from the trainer's source: what its first resumes have shown.

Until one was taken, the state that it resumes from is copied aside before each launch, so that a wrong conclusion costs
time and no state. Source: trainers have options that look like a resume and load weights only, or nothing at all.
"""

import msgspec

FAILED_STARTS = 2
"""So many attempts may end before their first step after they were given it: one may have ended for another reason."""


class FoundResume(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``proven``: a resume by it was taken. ``kept``: the checkpoint (path, mtime) copied last, to ``folder``.

    ``failed``: attempts in a row that were given it and ended before their first step, ``counted`` the last of them.
    """

    proven: bool = False
    kept: tuple[str, float | None] | None = None
    folder: str = ""
    failed: int = 0
    counted: int = 0


def with_failed_start(found: FoundResume, attempt: int) -> FoundResume:
    """Count an attempt that was given it and ended before its first step."""
    if found.counted == attempt:
        return found
    return msgspec.structs.replace(found, failed=found.failed + 1, counted=attempt)

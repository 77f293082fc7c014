"""The save in progress: a phase in which no step is due, from its first sign to the completed file.

Its signs are a checkpoint that is not complete and younger than the last step, a line that announces a save, and a save
on the stack of a process. A mount uploads at ``close()``, and nothing of that shows in the trainer: silence in a save
counts from the last byte that moved, and has a deadline of its own (``deadlines.for_save``). Sources: uploads of
gcsfuse, rclone and s3fs, which take minutes; trainers that hang after "Saving checkpoint" with the file complete.

A step ends the phase: a trainer that saves in the background goes on. So does the completed file, whatever the last
line says. Known false alarms: a trainer that prepares a further file for minutes after the first one is complete.
"""

import msgspec

LATE_S = 10.0
"""A file this much older than the last step may be younger: lines of the log may be read a little late."""
SLACK_S = 2.0
"""The same of a complete file, which ends the phase: the log is read once a second."""


class SavePhase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was seen of saves since the last step. Active seconds.

    ``begun_at``: when a file was first seen that is not complete; ``took_s``: the longest that became complete.
    ``frame``: of a save, as a stack showed it.
    """

    begun_at: float | None = None
    took_s: float = 0.0
    frame: str = ""


NO_SAVE = SavePhase()

"""The scale of durations and repetitions that the rules of the judge share; at its use a rule says why it is on it."""

LAG_S = 2.0
"""Clocks of file systems (FAT keeps every second second), reading the log and the runner's fsync lag behind so much."""
BUSY_S = 5.0
"""What takes a moment is done by then on a busy machine, too."""
SAVE_GAP_S = 3.0
"""Later than this after a file of a save nothing of that save follows, and the trainer goes on."""
LASTS_S = 10.0
"""What has lasted so long goes on: a level holds, a trainer lives on (values are read in a thread of its own meanwhile,
and an end is seen a little late), a log is read."""
HALF_MINUTE_S = 30.0
"""One save, one look at a process, one start that fails at once is over by then."""
MINUTE_S = 60.0
"""What belongs together comes within a minute; a state that lasts for one is no moment of another."""
WHILE_S = 600.0
"""A person, a network or a disk may have changed something; the same twice within it is no accident."""
HOUR_S = 3600.0

TWICE = 2
"""So often, or so much as usual, is no accident: the first time may have another cause, and what is usual scatters."""
HALF_AGAIN = 1.5
"""So much as is usual, or due, is more than its scatter."""
TRIES = 3
"""So often without success, and it is given up."""
SURE_TIMES = 3
"""Fewer prove nothing: some bars show something else first, a first save writes files that are written only once, and
the first steps compile, allocate and autotune."""
KNOWN_STEPS = 50
"""Steps after which pace, loss and memory are known: the first ones compile and fill caches."""
LATE_LINES = 3
"""Printed lines, or strides, within which two places are the same: saves are noticed a little late."""
TOLERANCE = 0.1
"""How near two counts of one thing must be: they are noticed a little late, and a pace is a mean."""
SMALL_SHARE = 0.05
"""So small a share of the whole makes no difference: saves are noticed a little late."""
NEARLY = 0.98
"""Share of a total that is all of it: the last redraws of a bar may be missing."""
TINY_SHARE = 0.02
"""A smaller difference is not told from rounding."""
AGAIN_SHARE = 0.5
"""A counter that falls below this share of its last or highest count began again."""

SHOWN = 3
"""Names, lines or options that a sentence shows."""
LAST_LINES = 8
"""Lines from the end in which a program says why it ends: the box of tyro has five."""
KEPT = 64
"""Values of one kind that are remembered."""

LIKELY = 0.6
"""A weight or confidence from which on a cause counts, though others are open."""
SURE = 0.8
"""A weight or confidence from which on nothing else is looked for."""
SECOND_HAND = 0.85
"""x the weight of an error that a logger prints, or a warning tells: the program may have gone on."""

LINE_CHARS = 400
"""Characters of a line that are read, or kept as evidence."""
SHORT_CHARS = 120
"""Characters of a line that are shown, or tell it from others."""
HEADED_LINES = 4
"""Lines below a heading that belong to it; lines in which a program says goodbye."""
BLOCK_LINES = 60
"""Lines of one table, block or quotation at most: the longest table of a library has about forty."""
AT_MOST = 4096
"""Things of one kind that a run may have: checkpoints, ranks. A broken trainer writes more."""
LISTED = 12
"""Earlier failures, or lines beside a cause, that are kept; lines below what was raised that belong to its message."""

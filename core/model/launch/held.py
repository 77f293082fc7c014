"""How the reason of a state begins in which a restart waits for something that it cannot do by itself."""

from ..story import RunStory

HELD = "held:"
DISK_IS_FULL = f"{HELD} the disk is full"
NO_INODES = f"{HELD} no more files can be created on the disk"


def waits_for_room(story: RunStory) -> bool:
    """Whether the newest state in the journal is a hold for a full disk.

    It ends by itself when there is room, also under a supervisor that takes the run over.
    """
    return story.state == "backing_off" and story.state_reason.startswith((DISK_IS_FULL, NO_INODES))

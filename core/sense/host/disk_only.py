"""For attempts that run on other machines: of this one only the disk says something about them."""

from ...model.observation import HostSample, Observation
from ...model.ports.supervision import Inbox


class DiskOnly:
    """An inbox that leaves memory and processor out of host samples."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def put(self, observation: Observation) -> None:
        """Add what concerns the run."""
        if isinstance(observation, HostSample):
            observation = HostSample(
                t=observation.t,
                disk_free_bytes=observation.disk_free_bytes,
                disk_total_bytes=observation.disk_total_bytes,
                disk_free_inodes=observation.disk_free_inodes,
            )
        self._inbox.put(observation)

    def unread(self) -> int:
        return self._inbox.unread()

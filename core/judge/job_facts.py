"""What is known of the job that the attempt runs as."""

import msgspec


class JobFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``nodes``: as Slurm lists them. ``limit_t``: run time of its time limit, None = none or not known.

    ``asked_t``: run time at which the training was asked for a checkpoint because the limit is near. ``failed_node``:
    where a task failed first.
    """

    id: str = ""
    nodes: str = ""
    limit_t: float | None = None
    asked_t: float | None = None
    failed_node: str = ""

    @property
    def culprit(self) -> str:
        """The node on which the failure was; "" if that cannot be told."""
        alone = self.nodes if self.nodes and not set(self.nodes) & set("[,") else ""
        return self.failed_node or alone

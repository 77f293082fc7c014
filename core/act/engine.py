"""What starts, watches and ends attempts: one Protocol for this machine and for a scheduler.

``RunActor`` and ``AttemptLauncher`` know attempts only through it. ``local_engine.py`` and ``slurm/slurm_engine.py``
implement it, ``local_engine.py`` chooses, and ``tests/contract/test_engine.py`` holds for both.
"""

from pathlib import Path
from typing import Any, Protocol

from ..model.attempt import LaunchOrder
from ..model.decision import EndLeftovers, StartAttempt, StopAttempt
from ..model.job import Capabilities
from ..model.supervision_ports import AttemptTarget
from .evidence.stack_capture import StackReport
from .save_request import SaveReport

Performed = tuple[bool, str, dict[str, Any]]
"""Result of an action: whether it succeeded, a sentence, data for the journal."""


class Engine(Protocol):
    """The attempts of one run. Every method may block; none but ``submit`` and ``probe`` raises."""

    @property
    def capabilities(self) -> Capabilities:
        """What the attempts of this engine can do. It never changes."""
        ...

    def submit(self, order: LaunchOrder, folder: Path, asked: StartAttempt) -> AttemptTarget:
        """Start an attempt in a folder of its own. ``order``: the training's own command and environment.

        Raises LaunchError; then nothing was started, and nothing will be.
        """
        ...

    def stop(self, target: AttemptTarget, decision: StopAttempt | EndLeftovers) -> Performed:
        """End the training wherever it runs, and wait for that. False as long as it may run on."""
        ...

    def ask_to_save(self, target: AttemptTarget, *, stop: bool) -> SaveReport:
        """Ask the training for a checkpoint wherever it runs. ``stop``: it is to end after that, if it can be told."""
        ...

    def pause(self, target: AttemptTarget) -> Performed:
        """Stop its processes, to be continued."""
        ...

    def unpause(self, target: AttemptTarget) -> Performed:
        """Let the processes of a paused attempt continue."""
        ...

    def probe(self, target: AttemptTarget, folder: Path) -> StackReport:
        """Take stacks and other evidence into ``folder``; ends nothing. What is missing is a note. Raises OSError."""
        ...

    def adopt(self, folder: Path) -> AttemptTarget | None:
        """The attempt that was started in a folder, dead or alive; None if none was, and none will be."""
        ...

    def shown(self, argv: tuple[str, ...], folder: Path, attempt: int) -> str | None:
        """What would be handed to a scheduler, for people; None if there is none."""
        ...

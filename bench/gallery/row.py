"""What a row of the gallery is: one way to train with one framework, and what the framework itself knows about it."""

from collections.abc import Callable
from pathlib import Path

import msgspec


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """What the framework's own files say after an undisturbed run. None: they do not say it.

    ``step``, ``total_steps``: as the log prints them (in the epoch for bars of one epoch); ``run_step`` and
    ``run_total_steps`` count the whole run.
    """

    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    total_epochs: int | None = None
    loss: float | None = None
    run_step: int | None = None
    run_total_steps: int | None = None
    unsaid: tuple[str, ...] = ()
    """Fields that the log never says: they have to be shown as unknown."""


def no_truth(_folder: Path) -> Truth:
    return Truth()


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row.

    ``command`` and ``prepare`` are words in which ``{checkout}`` is replaced; ``python`` and the tools of the row's
    environment are found by PATH, as in an activated one. The working folder is the row's own; all paths are relative
    to it. A fault comes in the first life, after ``at`` steps of the optimizer.
    """

    name: str
    title: str
    environment: str
    """Rows with the same name share one virtual environment; it has the packages of all of them."""
    packages: tuple[str, ...]
    version_of: str = ""
    """Distribution whose version the table shows; a checkout shows its commit. Default: the first of ``packages``."""
    checkout: str = ""
    """Name of the ``--checkout NAME=DIR`` that the row needs."""
    files: dict[str, str] = {}
    """Path in the working folder → text. A text that begins with ``@`` names a file of ``scripts/`` to copy."""
    prepare: tuple[str, ...] = ()
    """A command that makes data and tiny models in the working folder, before the run and without supervision."""
    command: tuple[str, ...]
    env: dict[str, str] = {}
    toml: str = ""
    """A ``trainwatch.toml`` without ``command``, if zero configuration is not enough: what docs/frameworks.md gives."""
    preset: str = "generic"
    """The preset that should be found."""
    output_dir: str
    """The folder whose entries are the checkpoints."""
    checkpoints: str
    """Pattern, in the working folder, for the checkpoints (files or folders)."""
    torn: str = ""
    """Pattern for the files of which the newest is cut in half by the fault ``torn``."""
    final: str = ""
    """Pattern for the weights at the end; the newest match is compared with that of an undisturbed run."""
    steps: int = 0
    """Optimizer steps of an undisturbed run."""
    save_every: int = 1
    """Optimizer steps between two checkpoints; rows with ``ends``: what one save adds to the number of ``goes_on``."""
    fault_step: int = 0
    """0: half way between the second and the third checkpoint."""
    log_every: int = 1
    """Optimizer steps between two lines or bar states that show a step; 0: the log never shows one."""
    total_unsaid: bool = False
    """The log does not say while it trains how many steps there are: only settings can tell a time left."""
    step_s: float = 0.25
    """Seconds added to each step, so that a tiny model trains long enough to be watched."""
    hook: str = "torch.optim"
    """What counts as a step: any optimizer of torch, or ``module:Class.method``, each call of which is one step."""
    calls_per_step: int = 1
    """Calls of the hook for one step (two optimizers: 2)."""
    ranks: int = 1
    launcher: bool = False
    """A process that does not train itself (torchrun, accelerate launch, bash) is what was started."""
    workers: bool = False
    """Loader processes that live through an epoch exist."""
    truth: Callable[[Path], Truth] = no_truth
    """Working folder after an undisturbed run → the framework's own numbers."""
    cannot: dict[str, str] = {}
    """Fault → why the framework cannot survive it, or why it does not exist here: the written reason of the table."""
    held: dict[str, str] = {}
    """Fault → why nothing is left to go on from. It is run: nothing may be started anew, and all files stay."""
    resumes: bool = True
    """Whether the trainer can go on at all (with what its own documentation offers)."""
    steps_in_files: bool = True
    """Whether a checkpoint names its step (by content or name); others name an epoch, or nothing."""
    ends: dict[str, str] = {}
    """Fault → what a person would expect, written before the first run (``outside.ENDS``). Such a row has its faults
    from outside; ``{name}`` in its words and patterns is the name of this copy's output folder."""
    resume: str = ""
    """Whether the trainer of a row with ``ends`` goes on: ``yes`` (by an option), ``self``, ``no``."""
    goes_on: str = ""
    """What the log of its second life says: a pattern whose group is the number (step, epoch) at which it goes on."""
    exact: bool = True
    """Whether a resumed run ends with the weights of an undisturbed one (order of the data and RNG are restored)."""

    @property
    def at(self) -> int:
        """After how many optimizer steps a fault comes."""
        return self.fault_step or 2 * self.save_every + self.save_every // 2

    def resume_step(self, fault: str) -> int:
        """The step of the newest usable checkpoint when the fault comes."""
        saved = self.at // self.save_every * self.save_every
        return saved - self.save_every if fault == "torn" else saved

    @property
    def distribution(self) -> str:
        return self.version_of or next(iter(self.packages), self.checkout or "torch")

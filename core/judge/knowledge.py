"""What the judge knows from the start: settings, preset, tables and facts of the run."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..model.preset import OwnEnd, Preset, ResumeSupport
from ..model.progress import ToldLength
from ..model.settings import Settings
from ..model.shipped import Remedy
from ..model.text import typed
from .failure.catalogue import CompiledCatalogue
from .progress import LogLineRead
from .resume import resume_point

Values = Mapping[str, Mapping[str, Any]]
"""Profile ("" = none) → key → the value that a launch would have, absent if not set. ``$NAME``: environment."""


class Knowledge(msgspec.Struct, frozen=True, kw_only=True):
    """Constant for one judge.

    ``catalogue``: failures.toml and log_shapes.toml, compiled.
    ``created_wall``: zero of run time, in seconds since the epoch. ``profiles``: names that may be asked for; empty =
    any name is accepted. ``remedies``: what may be changed, in order; ``values``: the trainer's settings that they
    need, by profile; ``families``: of the profiles; ``usual_ladders``: by family, for a run that has no ladder;
    ``traits``: of this machine ("wsl2"); ``options``: those that the trainer's source declares ("--safe_mode").
    ``resume_support``: what a launch can be given to resume from. ``begin_from``: the checkpoint that a person named
    for the first attempt. ``run``: its name, for people; ``run_id``: for commands.
    """

    catalogue: CompiledCatalogue
    settings: Settings = Settings()
    preset: Preset = Preset(name="generic")
    profiles: tuple[str, ...] = ()
    run: str = "run"
    run_id: str = ""
    created_wall: float = 0.0
    output_dir: str | None = None
    cwd: str = ""
    """The working folder, to which paths in the log are relative."""
    remedies: tuple[Remedy, ...] = ()
    values: Values = {}
    families: Mapping[str, str] = {}
    usual_ladders: Mapping[str, tuple[str, ...]] = {}
    traits: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()
    resume_support: ResumeSupport = resume_point.ANYTHING
    begin_from: str | None = None
    handed_over: str = ""
    """Why the exit of the command is not the end of the training, as a clause; "" if it may be."""
    end_after: Callable[[float], float | None] = lambda _wall: None
    """Seconds since the epoch → the first time after it that ``[end] end_by`` names; None if there is none."""
    own_ends: tuple[OwnEnd, ...] = ()
    """The texts with which the trainer's own source ends it."""
    status_hidden: str = ""
    """What hides the trainer's exit status, as a clause (a pipe without pipefail); "" if nothing is seen that does."""
    stages: bool = False
    """Its script starts several trainings one after the other: the end of one is not that of the run."""
    timed: bool = True
    """A ``timeout`` stands before the training, as far as is known: its exit status is that of the command."""
    told: Mapping[str, ToldLength] = {}
    """The length of the training by its settings, by profile ("" = none)."""
    line_read: LogLineRead | None = None
    """Told of each line of a log, for its named numbers: they decide nothing."""
    can_ask_to_save: bool = False
    """The trainer can be asked for a checkpoint (``run.save_signal``, ``run.save_file``)."""

    def trainer_chooses(self, path: str | None) -> bool:
        """Return whether a trainer that is to resume from this path (None: from nothing) takes what it finds."""
        support = self.resume_support
        alone = support.by_itself or (not support.forms and self.settings.restart.if_not_told == "go_on")
        return alone if path is None else support.unnamed

    def typed(self, verb: str, *words: str) -> str:
        """Return the command that a person may paste: ``trainwatch VERB RUN WORDS``; ``profile NAME RUN``."""
        run = (self.run_id,) if self.run_id else ()
        return typed(verb, *words, *run) if verb == "profile" else typed(verb, *run, *words)

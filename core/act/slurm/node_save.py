"""Asks the training of a running job for a checkpoint: on its nodes, in a step of its own beside it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...model.launch.elsewhere.job import JobRecord
from ..stop.save_request import SaveReport
from .batch_script import AGENT_FILE, AGENT_VARIABLE
from .commands import Slurm, SlurmError

PYTHON = 'exec "$(command -v "$0" || command -v python3)" "$@"'
"""The interpreter that runs here, if the node has it at the same path: the agent needs any from 3.8 on."""


class NodeAnswer(msgspec.Struct, frozen=True):
    """What the agent on one node did."""

    node: str
    asked: bool
    said: str


def ask_nodes(record: JobRecord, slurm: Slurm, *, name: str | None, stop: bool) -> SaveReport:
    """Ask on all nodes of a job. ``name``: the signal for those that tell no steps. Raises nothing."""
    folder = Path(record.attempt_directory)
    words = ("--save", str(folder), *filter(None, (name,)), *(("--stop",) if stop else ()), "--json")
    argv = ("env", f"{AGENT_VARIABLE}=1", "sh", "-c", PYTHON, sys.executable, "-I", str(folder / AGENT_FILE), *words)
    try:
        answers = list(_answers(slurm.step(record.handle, record.nodes, argv)))
    except SlurmError as error:
        return SaveReport(asked=False, sentence=f"the nodes could not be asked for a checkpoint: {error}")
    said = [f"node {each.node}: {each.said}" for each in answers]
    return SaveReport(asked=any(each.asked for each in answers), sentence="; ".join(said) or "no node answered")


def _answers(printed: str) -> Iterator[NodeAnswer]:
    for line in sorted(printed.splitlines()):
        try:
            yield msgspec.convert(json.loads(line), NodeAnswer)
        except (ValueError, msgspec.MsgspecError):  # what a site's prologue prints
            continue

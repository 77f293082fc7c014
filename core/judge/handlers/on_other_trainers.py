"""A trainer that began beside a live attempt and writes where it writes: people are told, and nothing is ended for it.

Source: a training that was started by hand a second time in its folder, while the first one ran: checkpoints of both
lay there under the same names. Known false alarms: a command that takes its output folder from the environment, so that
two of the same command write to two folders.
"""

from collections.abc import Iterator, Sequence

from ...model.beside.other_trainer import OtherTrainer, OtherTrainersSeen
from ...model.incident import OTHER_TRAINER, Evidence
from ...model.text.plural import plural
from ..knowledge import Knowledge
from ..run_machine import is_live
from ..state import NOTHING, JudgeState, Result
from ..step_builder import StepBuilder

SHOWN = 3
"""Most trainers, and most files of one, that are told of."""
TITLE = "another trainer writes there"


def on_other_trainers(knowledge: Knowledge, state: JudgeState, seen: OtherTrainersSeen) -> Result:
    """Open the incident, keep its evidence up to date, or close it."""
    known = next((each for each in state.incidents if each.class_ == OTHER_TRAINER), None)
    builder = StepBuilder(knowledge, state)
    if not seen.trainers:
        if known is not None:
            builder.close_incident(known.id, "the other trainer is over: what it wrote is still there")
    elif not is_live(state.machine):
        return state, NOTHING
    else:
        reason, evidence = _reason(seen.trainers), tuple(_evidence(seen.trainers))
        advice = _advice(knowledge, seen.trainers)
        if known is None:
            number = builder.open_incident(
                "checkpoint", OTHER_TRAINER, reason, evidence=evidence, explanation=advice, title=TITLE
            )
            builder.notify("warning", TITLE, f"{reason}; {advice}", incident=number)
        elif (known.reason, known.evidence) != (reason, evidence):
            builder.update_incident(known.id, reason=reason, evidence=evidence, explanation=advice)
            if known.reason != reason:
                builder.note(reason)
    return builder.state, tuple(builder.entries)


def _reason(trainers: Sequence[OtherTrainer]) -> str:
    first, more = trainers[0], len(trainers) - 1
    since = f", since {first.began}" if first.began else ""
    who = f"another trainer (pid {first.pid}{since})" + (f" and {plural(more, 'other')}" if more else "")
    return f"{who} writes to {first.folder or 'the same output folder'}, too"


def _advice(knowledge: Knowledge, trainers: Sequence[OtherTrainer]) -> str:
    pids = " ".join(str(each.pid) for each in trainers)
    return (
        f"`{trainers[0].command}` was started without trainwatch beside this attempt; each may overwrite what the "
        f"other saves: end one (`kill {pids}` or `{knowledge.typed('stop')}`)"
    )


def _evidence(trainers: Sequence[OtherTrainer]) -> Iterator[Evidence]:
    for each in trainers[:SHOWN]:
        who = f"pid {each.pid}"
        since = f", since {each.began}" if each.began else ""
        yield Evidence(what=f"{who}{since}, in {each.cwd}: {each.command}")
        what = "the command of this run" if each.same == "training" else "the script of this run with other options"
        yield Evidence(what=f"{who} runs {what}")
        alone = tuple(file for file in each.files if file not in each.shared)
        if each.shared:
            yield Evidence(what=f"both have open for writing: {_files(each.shared)}")
        if alone:
            yield Evidence(what=f"{who} has open for writing: {_files(alone)}")
        if not each.files:
            yield Evidence(what=f"{who} has no file there open for writing at this moment")


def _files(files: Sequence[str]) -> str:
    more = len(files) - SHOWN
    return ", ".join(files[:SHOWN]) + (f" and {more} more" if more > 0 else "")

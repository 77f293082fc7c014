"""What an exit or a failed launch means: the training is done, a person ended it, or it is a failure."""

import itertools
from typing import assert_never

import msgspec

from ...model.decision import CaptureStacks
from ...model.observation import Exit, JobSeen, Outcome
from ...model.preset import OwnEnd
from ...model.progress import PLAIN, Why
from ...model.run import Evidence
from ...model.shipped import Diagnosis, EvidenceLine
from ...model.text import LazyPattern, beginning
from .. import findings, run_states
from ..failure import catalogue as exit_status
from ..failure.catalogue import SIGNALS, Circumstances, last_line, signal_of, words_of
from ..failure.diagnosis import at_end, diagnosis_as
from ..failure.evidence_state import is_of_the_system, placed
from ..handlers import checkpoint_jobs
from ..hang import pauses
from ..knowledge import Knowledge
from ..memory import Cause, Failed, failed_starts
from ..progress import JobFacts
from ..scales import HOUR_S, LAST_LINES, LIKELY, MINUTE_S, TWICE
from ..state import WARN_AGAIN_S, JudgeState, StepBuilder
from . import attempts, gate, policy, restarts, takeover
from .apply import answer_failure
from .attempts import PASSING, TERMINATION, conclude, end_facts, ended, launch_again_later, over, starts_again
from .ending import KILLED, Ending, judge_end, main_reading, ordered_by


def on_exit(builder: StepBuilder, observation: Exit) -> None:
    """The main process of the trainer exited."""
    machine = builder.machine
    if isinstance(machine, run_states.Stopping):
        restarts.on_exit_while_stopping(builder, machine, observation)
    elif run_states.is_live(machine):
        log = builder.state.log
        builder.change("log", diagnosis=at_end(log.diagnosis, log.reading, builder.catalogue))
        _on_end(builder, observation)


def _on_end(builder: StepBuilder, observation: Exit) -> None:
    """It ended by itself. An exit status that the preset calls success proves nothing: see ending.py."""
    state, knowledge = builder.state, builder.knowledge
    earlier = tuple(cause.class_ for cause in state.policy.history if cause.kind == "crash")
    # what was so beside the log
    about = Circumstances(**msgspec.structs.asdict(end_facts(builder)), earlier=earlier, job=observation.job)
    end, found = judge_end(state, knowledge, code=observation.code, signal=observation.signal, about=about)
    if observation.rebooted and observation.job is None and _ended_by_shutdown(state, observation, end, found):
        takeover.go_on(builder)
        return
    match end.kind:
        case "finished" | "unproven":
            said = f"the training is done: {end.why}" if end.why else "the training is done"
            if end.by == "line" or end.kind == "unproven":
                said = f"exit {observation.code}; {end.why}"
            elif end.after is not None or observation.code not in knowledge.preset.success_exit_codes:
                what = "" if end.after is None else f"{beginning(end.after.text.strip(), 200)}, "
                said = f"{said}; after that: {what}{_exit_in_words(observation)}"
            ended(builder, "finished", observation)
            conclude(builder, said, Why("unproven") if end.kind == "unproven" else PLAIN)
        case "ended_early":
            _end_early(builder, observation, found, end.why)
        case "failed":
            who = pauses.stopped(state.watch.ranks)
            if who and builder.catalogue.class_of(found.failure).of_other_ranks:  # they lost contact with it
                said = f"{who[0].upper()}{who[1:]}. {found.explanation}"
                found = msgspec.structs.replace(found, explanation=said)
            _crashed(builder, observation, found, end.why, title=end.why if end.by == "job" else "")
        case _:
            assert_never(end.kind)


def _ended_by_shutdown(state: JudgeState, observation: Exit, end: Ending, found: Diagnosis) -> bool:
    """Whether a shutdown ended it with its supervisor: by a signal, or it exited with success when it received one.

    Or the power was cut, and nobody wrote down how it ended. One that saved nothing may itself bring it down, unless it
    trained for an hour.
    Source: a trainer that saves at SIGTERM and ends with 0, a reboot at night, and a run that was held as ended early.
    """
    gap, died_t, start_t = state.time.unseen, observation.died_t, state.attempt.start_t
    if observation.code is None and observation.signal is None:
        mine = (k for k in state.saved.checkpoints.known if k.own and k.t >= start_t)
        stood = any(k.complete and k.bad is None for k in mine) or (state.attempt.beat_t or 0.0) - start_t >= HOUR_S
        return end.kind == "failed" and found.cause is None and stood
    told = end.kind in {"unproven", "ended_early"} or (found.failure == KILLED and _is_bare_signal(found, observation))
    return told and gap is not None and died_t is not None and died_t <= gap.since_t + TWICE * MINUTE_S


def _end_early(builder: StepBuilder, observation: Exit, found: Diagnosis, why: str) -> None:
    """It exited with success before the end of the training, and no failure shows: a person has to look.

    ``[restart] ended_early = "restart"`` takes it for a crash, once, unless the trainer says that it ended on purpose.
    """
    state = builder.state
    again = builder.settings.restart.ended_early == "restart" and policy.has_trained(state)
    before = any(cause.ended_early for cause in state.policy.history) or main_reading(state).now.end_words is not None
    last = itertools.islice(state.log.diagnosis.last_lines(), LAST_LINES)
    if again and not before and not any(ON_PURPOSE.search(line) for _, line in last):
        unknown = diagnosis_as(builder.state.log.diagnosis, builder.catalogue, "unknown")
        _crashed(builder, observation, unknown, why, ended_early=True)
        return
    exited = _exit_in_words(observation)
    reason = f"{exited}, but {why}"
    incident = builder.open_incident(
        "crash",
        "unknown",
        reason,
        evidence=(Evidence(what=exited), Evidence(what=why)),
        explanation=found.explanation,
        ending="no restart: nothing shows why it ended",
    )
    builder.decide(CaptureStacks, CAPTURE, incident=incident)
    ended(builder, "ended_early", observation)
    builder.close_where("the trainer exited", lambda _: True)
    builder.move("end_early", run_states.EndedEarly(), reason, Why(incident=incident))
    how = starts_again(builder.state, builder.knowledge)
    by_itself = '[restart] ended_early = "restart" would do it once by itself'
    hint = f"read the end of its log (`{builder.typed('report')}`); {how}; {by_itself}"
    over(builder, "ended early", f"{reason}\n{hint}", incident)


CAPTURE = "capture evidence: end of the log, kernel log, GPUs, launch"


ON_PURPOSE = LazyPattern(
    r"(?i)\bearly.?stop|\bpatience\b|\bconverged\b|\b(?:time|step|steps|epochs?|duration|budget|deadline)\b.{0,40}"
    r"\b(?:limit|reached|exceeded|over|up|expired)\b|\bmax(?:imum)?[ _-](?:steps?|time|epochs?|duration|iter\w*)\b"
    r"|\bstopping\b|\bstopped\b"
)
"""What a trainer says in its last lines if it ended before its total on purpose. Taking too much for it only holds."""


def _crashed(
    builder: StepBuilder,
    observation: Exit,
    diagnosis: Diagnosis,
    where: str = "",
    *,
    title: str = "",
    ended_early: bool = False,
) -> None:
    """It failed. ``where``: what shows that, if its exit status says success. ``title``: else that of the class."""
    attempt, class_ = builder.attempt, diagnosis.failure
    ordered = _ordered_by(builder, diagnosis, observation) if class_ == KILLED else ""
    ending = f"the trainer ended by itself: {_exit_in_words(observation)}"
    builder.close_where(ending, lambda i: i.kind == "hang" and i.attempt == attempt.number)
    number, text = next(builder.state.log.diagnosis.last_lines(), (builder.state.log.diagnosis.fold.lines + 1, ""))
    last, end = EvidenceLine(number, text.strip()), None  # what in the trainer's own source ended it with this text
    if observation.code == 1 and (diagnosis.cause is None or diagnosis.cause.text.strip() in last.text):
        end = next((end for end in builder.knowledge.own_ends if end.says(last.text)), None)
    if end is not None and diagnosis.cause is None:
        said = "The trainer's own source ends it with this text."
        diagnosis = msgspec.structs.replace(diagnosis, cause=last, place=end.place, explanation=said)
    died_t, said = observation.died_t, _line(diagnosis)
    unknown = "; the log does not say why" if class_ == "unknown" else ""
    reason = f"{_exit_in_words(observation)}{f': {said}' if said else unknown}{f' ({where})' if where else ''}"
    evidence, cause = [Evidence(what=_exit_in_words(observation))], diagnosis.cause
    if cause is not None:
        at = [Evidence(what=f"raised at {diagnosis.place}")] if diagnosis.place else []
        evidence = [Evidence(what=beginning(cause.text.strip(), 400), line=cause.line), *at, *evidence]
    then = msgspec.UNSET if cause is None else True
    evidence += [Evidence(what=beginning(c.text.strip(), 200), line=c.line, then=then) for c in diagnosis.cascade[:3]]
    incident = builder.open_incident(
        "crash",
        class_,
        reason,
        evidence=tuple(evidence),
        explanation=diagnosis.explanation,
        confidence=None if class_ == "unknown" else diagnosis.confidence,
        detect_s=None if died_t is None else max(0.0, builder.t - died_t),
        title=title or diagnosis.title,
    )
    lost = observation.code is None and observation.signal is None
    ended(builder, "killed" if class_ == KILLED else "lost" if lost else "crashed", observation)
    signalled = class_ == KILLED and observation.job is None and _is_bare_signal(diagnosis, observation)
    ended_of = _cause(builder, observation, diagnosis, end, signalled=signalled)
    again = 0 if ended_of.stepped else failed_starts(builder.state.policy.history)
    if again < TWICE or not builder.warned_lately("crash", class_):
        told = f"\nfurther failed starts are reported every {WARN_AGAIN_S / 60:.0f} min at most" if again else ""
        builder.notify_of("crash", class_, title or f"crash ({class_})", reason + told, incident, event="incident")
    builder.decide(CaptureStacks, CAPTURE, incident=incident)
    what = f": {title}" if title else f" after crash ({class_})"
    node, known = builder.state.job.culprit, builder.state.policy.bad_nodes
    if observation.job is not None and builder.catalogue.class_of(class_).waits_for == "gpu" and node not in known:
        # Later jobs do not use its node, if it can be told which one that was.
        if node:
            builder.change("policy", bad_nodes=(*known, node)[-BAD_NODES_KEPT:])
            builder.note(f"node {node} is left out of the next jobs: a GPU failed there ({class_})")
        else:
            nodes = builder.state.job.nodes
            builder.note(f"a GPU of the job failed ({class_}), and it cannot be told on which of {nodes}")
    failed = Failed(
        cause=msgspec.structs.replace(ended_of, ended_early=ended_early),
        incident=incident,
        reason=reason,
        retryable=diagnosis.retryable,
        advice=diagnosis.remedies,
        confidence=diagnosis.confidence,
        job=observation.job,
    )
    plan = run_states.RestartPlan(reason=f"restart{what}", incident=incident)
    answer_failure(builder, failed, plan, ordered=ordered)


OUTSIDE = LazyPattern(
    r"(?i)exists|is_?(?:file|dir|mount)|mount|cuda|gpu|device|driver|nvidia|connect|socket|network|\bport\b|lock|busy|space"
    r"|server|\breach|https?:|download|timed? ?out|\b(?:nfs|share)\b"
)
"""Words of what may be there again later: ``assert os.path.ismount(DATA)`` in the own code is no mistake in it."""


def _cause(
    builder: StepBuilder, observation: Exit, diagnosis: Diagnosis, end: OwnEnd | None, *, signalled: bool
) -> Cause:
    """What ended the attempt, as the history keeps it."""
    attempt, seen = builder.attempt, builder.state.log.diagnosis
    line = last_line(seen.last_lines()) if diagnosis.cause is None else diagnosis.cause.text
    at = 0 if diagnosis.cause is None else diagnosis.cause.line
    block = next((b for b in reversed(seen.blocks) if b.raised is not None and at in {0, b.raised.line}), None)
    own = block is not None and bool(block.own) and block.last.startswith(f"{block.own.rpartition(':')[0]}:")
    code = block.code if own and block is not None else None if end is None else end.code
    asks_outside = code is None or OUTSIDE.search(f"{code} {line}") is not None or is_of_the_system(line)
    parser = diagnosis.failure == "config_error" and observation.code == exit_status.USAGE
    return Cause(
        kind="crash",
        class_=diagnosis.failure,
        attempt=attempt.number,
        position=attempt.position,
        stepped=attempt.beat_t is not None or attempt.saved,
        given=attempt.resume_from,
        line=_line(diagnosis),
        said=words_of(line.strip()),
        raised="parser" if parser else "" if asks_outside else "own",
        signal_t=builder.t if signalled else None,
        lasted_s=max(0.0, (builder.t if observation.died_t is None else observation.died_t) - attempt.start_t),
    )


OWN_TIMEOUT = 124
"""Exit status of ``timeout COMMAND`` whose time was over."""


def _is_bare_signal(diagnosis: Diagnosis, observation: Exit) -> bool:
    """Whether all that is known is that a SIGTERM or SIGHUP came, or that a `timeout` sent one."""
    by = "" if diagnosis.cause is None else ordered_by(diagnosis.cause.text)
    sent = signal_of(observation.code, observation.signal)
    if sent in {SIGNALS["SIGTERM"], SIGNALS["SIGHUP"]} or observation.code == OWN_TIMEOUT:
        return by not in {"person", "site"}
    return by == "signal" and diagnosis.confidence >= LIKELY


def _ordered_by(builder: StepBuilder, diagnosis: Diagnosis, observation: Exit) -> str:
    """Who or what ordered the end, as a clause; "" if that is not known, or a person did."""
    if observation.code == OWN_TIMEOUT and builder.knowledge.timed:
        return "`timeout` in its command ended it: its time was over"
    if observation.job is None and diagnosis.cause is not None and ordered_by(diagnosis.cause.text) == "site":
        return f"it was ordered to end: {beginning(diagnosis.cause.text.strip(), 200)}"
    notice = builder.open_of(TERMINATION)
    return "" if notice is None else f"the end of this machine was announced: {notice.reason}"


BAD_NODES_KEPT = 8
"""Nodes that are left out at the most: a small partition has to be usable. The oldest is used again."""


def on_launch_failed(builder: StepBuilder, machine: run_states.Starting, outcome: Outcome) -> None:
    """The launch itself failed: no such command, no room on the disk, a config that cannot be derived."""
    if machine.then in {"hold", "end"}:
        restarts.after_end(builder, machine.then, machine.next or restarts.STOP_IN_LAUNCH)
        return
    need = outcome.data.get("need_bytes")
    meant = machine.next or machine.plan or run_states.RestartPlan(reason="")
    again = run_states.RestartPlan(
        reason="the launch failed", wanted=meant.wanted, fresh=meant.fresh, before_t=meant.before_t
    )
    fresh = meant.fresh or outcome.data.get("fresh") is True
    go_on = msgspec.structs.replace(again, fresh=fresh, by=meant.by, waited=meant.waited)
    if isinstance(need, int | float):
        go_on = msgspec.structs.replace(go_on, reason="go on with room on the disk", waited=())
        restarts.wait_for_room(builder, go_on, need)
        return
    passing = next((kind for kind in PASSING if outcome.data.get(kind) is True), None)
    if passing is not None:
        launch_again_later(builder, go_on, passing, outcome.detail or PASSING[passing][0])
        return
    why = outcome.detail or "the trainer could not be started"
    incident = builder.open_incident("crash", "config_error", why, explanation="the command could not be started")
    builder.notify("incident", "cannot start", why, incident=incident)
    failed = Failed(
        cause=Cause(kind="launch", class_="config_error", attempt=builder.state.attempts),
        incident=incident,
        reason=why,
        retryable=bool(outcome.data.get("retryable", True)),
        settings_at_fault=outcome.data.get("settings") is True,
    )
    answer_failure(builder, failed, msgspec.structs.replace(again, incident=incident))


def _exit_in_words(observation: Exit) -> str:
    if observation.signal is not None:
        signal = observation.signal
        return f"signal {exit_status.NAMES.get(signal, signal) if isinstance(signal, int) else signal}"
    if observation.code is not None:
        return f"exit code {observation.code}"
    return "exit status unknown"


def _line(diagnosis: Diagnosis) -> str:
    """The line that shows why, with its place in the source."""
    return "" if diagnosis.cause is None else placed(beginning(diagnosis.cause.text.strip(), 300), diagnosis.place)


# The stop at ``[end] end_by``: saved and ended in time, whatever state the run is in.

BY = "end_by"
"""Who ordered the stop."""


def is_due(state: JudgeState, knowledge: Knowledge) -> bool:
    """Whether the stop must begin now. A launch is not cut: it is stopped as soon as its trainer runs."""
    ends = state.operator.ends
    if ends is None or state.time.t < ends.t - checkpoint_jobs.stop_takes_s(knowledge, state):
        return False
    return not (isinstance(state.machine, run_states.Starting) and not state.machine.launched)


def end(builder: StepBuilder) -> None:
    """Save and stop; a run that is held stays stopped, and one that ends already is not started again."""
    machine, ends = builder.machine, builder.state.operator.ends
    assert ends is not None
    builder.change("operator", ends=None)
    reason = f"it ends by {ends.said}"
    if isinstance(machine, run_states.Over):
        return
    if gate.is_closed(builder):
        builder.note(f"{reason}; nothing is ended: {gate.act_words(builder)}")
        builder.notify("withheld", "would have ended it", f"{reason}: `{builder.typed('stop')}` does")
    elif isinstance(machine, run_states.Stopping):
        if machine.then == "restart":
            builder.move("command", msgspec.structs.replace(machine, then="end_by"))
    elif run_states.is_live(machine):
        restarts.stop(builder, "end_by", run_states.RestartPlan(reason=reason, by=BY))
    else:
        if not isinstance(machine, run_states.Stopped):
            builder.move("hold", run_states.Stopped(), f"{reason}; held until resume or restart", Why("ordered"))
        checkpoint_jobs.over(builder)


# The job of an attempt nears its time limit: its script asked for a checkpoint; when that came, the next job goes on.
#
# What would be trained after that save would be lost with the limit. If no save comes, the job runs to its limit.
# Nothing is ended if the training will be over before the limit.


def note_job(builder: StepBuilder, seen: JobSeen) -> None:
    """Keep what an answer about the job says. One that did not come says nothing."""
    before = builder.state.job
    if before.id != seen.job or seen.phase == "queued":  # another one, or it runs once more
        before = JobFacts(id=seen.job)
    asked_t = None if not seen.asked else builder.t if before.asked_t is None else before.asked_t
    job = JobFacts(
        id=seen.job,
        nodes=seen.nodes or before.nodes,
        limit_t=before.limit_t if seen.left_s is None else builder.t + seen.left_s,
        asked_t=asked_t,
        failed_node=seen.failed_node or before.failed_node,
    )
    builder.set(job=job)


def check(builder: StepBuilder) -> None:
    """End the attempt for the next job, if the checkpoint that was asked for is complete."""
    state = builder.state
    asked_t, limit_t = state.job.asked_t, state.job.limit_t
    if asked_t is None or not isinstance(state.machine, run_states.Running):
        return
    if limit_t is not None and builder.t >= limit_t:
        return  # Slurm ends it now; what it saves at the signal for that was not asked for
    left_s = findings.eta_s(state.course.pace, state.progress)
    if left_s is not None and limit_t is not None and builder.t + left_s < limit_t:
        return
    if attempts.came(state, asked_t):
        builder.change("job", asked_t=None)
        reason = (
            "its job is near the time limit, and the checkpoint that was asked for is complete: the next job goes on"
        )
        restarts.stop(builder, "restart", run_states.RestartPlan(reason=reason))

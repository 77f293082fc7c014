"""What is done without a person: the one gate before all that the judge would end, start or delete by itself.

``[restart] act``: "all" lets everything pass; with "ask" the question is sent, and nothing is done before an answer;
with "notify" nothing is done. What a person orders always passes: its ``RestartPlan.by`` names the person, and the plan
goes through all stages of a restart. What a program asks for (``stop --ask``) never passes, whatever ``act`` says.
Whatever is withheld is a fact in the journal; what can still be done waits in ``JudgeState.withheld``, and commands.py
carries it out.

A hung trainer stays hung, and is running again once a step comes. A trainer that crashed stays ended: the run is held.
"""

import shlex
from typing import Any

import msgspec

from ...model.fact import ActionWithheld, QuestionClosed, Withheld
from ...model.progress import Why
from ...model.settings import Act
from ...model.text import plural
from .. import run_states
from ..knowledge import Knowledge
from ..memory import Failed, Waiting
from ..progress import lost_steps
from ..resume import resume_point
from ..run_states import Hung, RestartPlan, Stopped, Then
from ..scales import HOUR_S, MINUTE_S
from ..state import JudgeState, StepBuilder

replace = msgspec.structs.replace

WOULD: dict[Then, tuple[str, str]] = {
    "restart": ("restart", "restarted"),
    "give_up": ("end it and give the run up", "ended it and given the run up"),
    "finish": ("end its process", "ended its process"),
}
"""What follows a stop → what would be done, as a question and after "would have"; of all else: it is ended."""
ASKED = {
    "stop": ("end the training", "ended the training"),
    "restart": ("restart", "restarted"),
    "resume": ("resume", "resumed"),
    "save": ("save a checkpoint", "saved a checkpoint"),
}
"""What a program can ask for: the same of its command."""


def act_of(state: JudgeState, knowledge: Knowledge) -> Act:
    """What is done without a person: as one chose for this run, else as the settings say."""
    return state.operator.act if state.operator.act is not None else knowledge.settings.restart.act


def is_closed(builder: StepBuilder, plan: RestartPlan | None = None) -> bool:
    """Whether what the judge concluded by itself must not be done. ``plan``: what a person ordered passes."""
    return act_of(builder.state, builder.knowledge) != "all" and (plan is None or not plan.by)


def with_order(builder: StepBuilder, plan: RestartPlan) -> RestartPlan:
    """The plan of a start; ordered if a person asked for a resume just before the trainer was seen to have ended."""
    order = builder.state.operator.resume_ordered
    if order is None or plan.by or builder.t - order[1] > MINUTE_S:
        return plan
    return replace(plan, by=order[0])


def withhold(
    builder: StepBuilder, then: Then, plan: RestartPlan, *, live: bool, failed: Failed | None = None, how: str = ""
) -> None:
    """What would follow is not done: a live trainer goes on as it is, else the run is held.

    ``failed``: the failure that it would answer. ``how``: what it would change, as a clause.
    """
    state, asks = builder.state, act_of(builder.state, builder.knowledge) == "ask"
    action = replace(_action(builder, then, plan, live=live, how=how), asks=asks)
    name = run_states.name_of(state.machine) if live else "stopped"
    waiting = Waiting(action=action, state=name, plan=plan, then=then, failed=failed)
    if not live:
        builder.move("hold", Stopped(), f"{act_words(builder)}; it would have {action.sentence}", Why("act"))
    else:
        told = state.operator.concluded
        if told is not None and (told.state, told.action.would) == (waiting.state, action.would):
            return  # the same is told once
        if isinstance(state.machine, Hung):
            builder.set(machine=replace(state.machine, judged=True), wake_t=None)
    ask(builder, waiting)


def ask_for(builder: StepBuilder, verb: str, by: str, before_t: float | None) -> None:
    """Ask a person for what a program would like. ``before_t``: a checkpoint from then on has the failure in it."""
    plan, live = RestartPlan(reason=f"{verb} asked for by {by}", before_t=before_t), run_states.is_live(builder.machine)
    then: Then = "restart" if verb in {"restart", "resume"} else "hold"
    asked, would = ASKED[verb]
    action = replace(
        _action(builder, then, plan, live=live, how=f"as {by} asks"),
        ask=asked,
        would=would,
        why=f"{by} asks for it",
        verb=verb,
        by=by,
        asks=True,
        action="save" if verb == "save" else "stop" if live else "start",
    )
    ask(builder, Waiting(action=action, state=run_states.name_of(builder.machine), plan=plan, then="hold"))


def _action(builder: StepBuilder, then: Then, plan: RestartPlan, *, live: bool, how: str) -> ActionWithheld:
    """What would follow, with its price."""
    state, starts, path, known, attempt = builder.state, then == "restart", None, None, builder.attempt
    if starts and not plan.fresh and builder.knowledge.preset.resume != "none":
        path, known = builder.resume_point(replace(plan, wanted=plan.wanted or plan.path))
    step, position = None, None if path is not None else 0
    if known is not None:
        at = known.position if known.position is not None else known.step
        step, position = known.step, at if not known.spread else None
    elif path is not None and path == attempt.resume_from:
        step, position = attempt.resume_step, attempt.resumed_at
    front = builder.in_front(path, plan.before_t) if starts else ()
    done = attempt.position if attempt.position is not None else state.policy.failed_position
    lost = lost_steps(done, position, attempt.stride) if starts and not front else None
    incident = builder.find_incident(plan.incident)
    asked, would = WOULD.get(then, ("end it", "ended it"))
    return ActionWithheld(
        action="stop" if live else "start",
        ask=asked,
        would=would,
        where=resume_point.start_in_words(path, step, front) if starts else "",
        how=", ".join(filter(None, ("after ending it" if live and starts else "", how))),
        why=incident.reason if incident is not None else plan.reason,
        price=_price(builder, lost, live=live) if starts else "",
        attempt=attempt.number,
        incident=plan.incident if incident is not None else None,
        checkpoint=path,
        lost_steps=lost,
        waits=True,
        verb="stop" if not starts else "restart" if live else "resume",
    )


def tell(builder: StepBuilder, action: Withheld, ask: str, would: str, why: str, **fields: Any) -> None:
    """Record what would have been done and does not wait: a deletion, a climb of the ramp."""
    number = builder.attempt.number
    builder.fact(ActionWithheld(action=action, ask=ask, would=would, why=why, attempt=number, **fields))


def ask_again(builder: StepBuilder, waiting: Waiting) -> None:
    """Send a question again that nobody answered. It is never answered by itself."""
    again_s = builder.settings.restart.ask_timeout_s
    builder.change("operator.withheld", again_t=builder.t + again_s)
    builder.note(f"no answer for {again_s / 60:.0f} min: nothing is ended or started, and the question is sent again")
    _notify(builder, waiting.action)


def close(builder: StepBuilder, why: str) -> None:
    """What waited is done, refused or over."""
    builder.change("operator", withheld=None)
    builder.fact(QuestionClosed(why=why))


def ask(builder: StepBuilder, waiting: Waiting) -> None:
    """Record it with the commands that answer the question, or do what was withheld, as "yes: command"."""
    action, again_s = waiting.action, builder.settings.restart.ask_timeout_s
    number = "" if action.incident is None else f" --incident {action.incident}"
    done = f"{action.verb} {{run}}{number if action.verb != 'stop' else ''}"
    answers = [f"{'yes' if action.asks else 'to do it'}: trainwatch {done}"]
    answers += [f"no: trainwatch ack {{run}}{number}"] if (number and action.asks) or action.by else []
    answers += ["end it for good: trainwatch stop {run}"] if action.verb == "restart" and not action.by else []
    action = replace(action, answers=tuple(answers))
    again_t = builder.t + again_s if action.asks and not action.by else None
    builder.change("operator", withheld=replace(waiting, action=action, again_t=again_t))
    builder.fact(action)
    _notify(builder, action)


def _notify(builder: StepBuilder, action: ActionWithheld) -> None:
    name = shlex.quote(builder.knowledge.run_id or builder.knowledge.run)
    answers = [answer.partition(": ") for answer in action.answers]
    lines = [action.why, action.price, *(f"{what}: `{does.format(run=name)}`" for what, _, does in answers)]
    minutes = builder.settings.restart.ask_timeout_s / 60
    last = f"without an answer nothing is ended or started, and this is asked again in {minutes:.0f} min"
    last = last if action.asks else f"nothing was done: {act_words(builder)}"
    last = "without an answer it is not done" if action.by else last
    title = action.question if action.asks else f"would have {action.sentence}"
    body = "\n".join(filter(None, [*lines, last]))
    builder.notify("question" if action.asks else "withheld", title, body, incident=action.incident)


def act_words(builder: StepBuilder) -> str:
    """The setting as it stands in a config."""
    return f'[restart] act = "{act_of(builder.state, builder.knowledge)}"'


def _price(builder: StepBuilder, lost: int | None, *, live: bool) -> str:
    """What a restart costs, and what waiting costs; unknown parts are left out."""
    step_s = builder.state.watch.clock.step_s
    step_s = step_s if step_s is not None else builder.state.progress.sec_per_step
    repeats = "how many steps it repeats is unknown" if lost is None else "it repeats no step"
    if lost:
        repeats = f"it repeats {plural(lost, 'step')}"
        if step_s is not None:
            took_s = lost * builder.attempt.stride * step_s
            repeats += f" (about {took_s:.0f} s)" if took_s < 120.0 else f" (about {took_s / 60:.0f} min)"
    if not step_s:
        return f"{repeats}; while it waits, nothing is trained"
    still = "if it hangs, " if live else ""
    return f"{repeats}; {still}each hour of waiting costs {plural(round(HOUR_S / step_s), 'step')}"

"""The output of ``trainwatch status``: the story and the newest samples as one object."""

from typing import Any

import msgspec

from ...model.checkpoint import Evaluation
from ...model.preset import ResumeWay
from ...model.run import LIVE_STATES, OutputPlace
from ...model.story import Situation, SupervisorLife, WithheldAction
from ..checkpoint_list import scores_of
from ..length_words import resume_object
from ..metrics import view_command
from ..run_summary import RunSummary, backup_state, summarise, time_lost
from ..words import commands, title_of
from .concerns import DOUBTS, current_readings, doubts_in, troubles
from .run_progress import bounds_now, live_progress
from .verdict import unconfirmed

NOBODY = SupervisorLife()


def status_object(
    now: Situation,
    *,
    run: str,
    run_id: str = "",
    supervisor: SupervisorLife = NOBODY,
    act: str | None = None,
    resume: ResumeWay | None = None,
    summary: RunSummary | None = None,
) -> dict[str, Any]:
    """The object of ``status --json`` for scripts: a field keeps its name and meaning. ``summary``: of ``now``.

    ``overall``: the step counted over the whole run, if the trainer started its count again after a resume of weights.
    ``act``: ``restart.act`` of the settings; a person may have changed it for the run. ``resume``: how it is resumed.
    A live state whose supervisor is gone is reported as last known; ``supervisor.alive`` says so.
    ``readings_age_s``: of ``gpus`` and ``host``; nobody reads them without a supervisor, and after its end.
    ``still``: what is said while steps are due and none come.
    """
    summary = summarise(now, run) if summary is None else summary
    story, gpu, host, now_t = now.story, now.gpu, now.host, now.now_t
    attempt, seen = story.attempt, live_progress(now)
    lost = time_lost(now)
    read = [sample.t for sample in (gpu, host) if sample is not None]
    created, expected = story.run, None if story.run is None else story.run.expected
    folder = None if created is None else created.output_dir
    told = () if created is None or folder is None else (OutputPlace(folder=folder, why=created.output_why or "told"),)
    asked = None if story.question is None else story.question.fact
    up_s = None  # since the newest attempt began; after its end, its length
    if attempt is not None:
        last_t = now_t if story.state in LIVE_STATES else story.t
        up_s = max(0.0, last_t - attempt.t) if attempt.ended_t is None else attempt.ended_t - attempt.t
    newest = next((each for each in reversed(story.checkpoints) if story.origin(each) != "unknown"), None)
    return {
        "run": run,
        "id": run_id,
        "state": story.state,
        "reason": story.state_reason,
        "hold": msgspec.to_builtins(story.state_why) if story.state_why.holds else None,
        "attempt": attempt.number if attempt else 0,
        "pid": attempt.pid if attempt and attempt.ended_t is None else None,
        "runner_pid": attempt.runner_pid if attempt and attempt.ended_t is None else None,
        "log": attempt.log if attempt else None,
        "uptime_s": up_s,
        "progress": msgspec.to_builtins(seen),
        "overall": {"step": summary.position.step, "total_steps": summary.position.total_steps},
        "last_step_age_s": None if now.step_t is None else max(0.0, now_t - now.step_t),
        "expected": msgspec.to_builtins(expected) if expected is not None and seen.step is None else None,
        "health": [
            {"metric": r.metric, "value": r.value, "unit": r.unit, "level": r.level}
            for r in current_readings(story, gpu, host, bounds_now(now))
        ],
        "gpus": [{k: v for k, v in msgspec.to_builtins(r).items() if v is not None} for r in gpu.gpus] if gpu else [],
        "gpu_trouble": gpu.trouble if gpu else None,
        "host": {k: v for k, v in msgspec.to_builtins(host).items() if k not in {"kind", "t"}} if host else {},
        "readings_age_s": max(0.0, now_t - max(read)) if read else None,
        "preset": None if created is None else {"name": created.preset, "why": created.preset_why},
        "output": [{"folder": place.folder, "why": place.why} for place in (*told, *story.outputs)],
        "metric_files": [
            {"folder": f.folder, "source": f.source, "view": view_command(f.source, f.folder)}
            for f in story.metric_files
        ],
        "checkpoints": {
            "newest": msgspec.to_builtins(newest) if newest else None,
            "age_s": max(0.0, now.now_wall - newest.mtime) if newest else None,
            "doubt": DOUBTS[doubts_in(story)(newest)] if newest else "",
            "count": summary.checkpoints,
            "best": _score(story.best),
            "quality": scores_of(story) or None,
            "scores": [_score(each) for each in story.evaluations.values()],
        },
        "backup": backup_state(story),
        "profile": story.profile,
        "ramp": {
            "moves": [{"t": s.t, **msgspec.to_builtins(s.fact)} for s in story.ramp],
            "dead": [msgspec.to_builtins(rung) for rung in story.failed_rungs],
        },
        "budget": {"used": story.budget_used, "max": story.budget_max, "made": story.restarts_made},
        "unconfirmed": unconfirmed(story),
        "still": summary.still,
        "incidents": [{**msgspec.to_builtins(i), "title": title_of(i)} for i in story.incidents],
        "ettr": None if lost is None else lost.ettr,
        "act": story.act or act,
        "question": None
        if asked is None or story.question is None
        else {
            **_withheld(story.question),
            "text": asked.question,
            "asks": asked.asks,
            "commands": dict(commands(story)),
        },
        "withheld": [_withheld(w) for w in story.withheld],
        "wall0": story.wall0,
        "resume": resume_object(resume),
        "loss": {"state": summary.loss_state, "floor": story.loss_floor},
        "supervisor": supervisor.shown(),
        "troubles": [msgspec.to_builtins(each) for each in troubles(now, supervisor, run_id=run_id)],
        "concerns": [
            {"level": e.level, "text": e.text, "incident": e.incident, "key": e.key or None, "does": e.does or None}
            for e in summary.troubles
        ],
    }


def _withheld(held: WithheldAction) -> dict[str, Any]:
    names = ("action", "why", "price", "lost_steps", "checkpoint", "incident", "attempt")
    return {"t": held.t, "would": held.fact.sentence, **{name: getattr(held.fact, name) for name in names}}


def _score(found: Evaluation | None) -> dict[str, Any] | None:
    if found is None:
        return None
    named = {"metric": found.metric or None, "why": found.why or None}
    return {"path": found.path, "step": found.step, "score": found.score, "values": found.values, **named}


def backup_line(found: dict[str, Any] | None) -> str | None:
    """One line for people; None if there is no copy."""
    if found is None:
        return None
    if found["state"] == "copying":
        return f"backup: {found['what']} …"
    return f"backup {'FAILED' if found['state'] == 'failed' else 'done'}: {found['detail']}"

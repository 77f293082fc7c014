"""All that is not as it should be with a run now, as clauses for people: the worst first.

An acknowledged incident is still one. What was wrong when the last attempt ended is still wrong after it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from ...model.checkpoint import Checkpoint
from ...model.progress import GPU_IS_GONE, SLOWED_BY_FAULT, HealthReading, Level, Metric, health_clause
from ...model.run import DIVERGING, LIVE_STATES, NAN_CLASSES, TERMINAL_STATES, Incident
from ...model.story import RunStory, Situation, SupervisorLife, Trouble, lacks_place
from ...model.text import typed
from ...views import quantity
from ..words import answers, ended_words, question_text, sentence, title_of
from .run_progress import SEVERITY, bounds_now, last_step, level_of, live_progress

if TYPE_CHECKING:
    from ...model.observation import GpuSample, HostSample

NAN = NAN_CLASSES
Doubt = Literal["nan", "diverged"]
"""What speaks against the weights of a checkpoint: the loss was so when it was saved."""
DOUBTS: dict[Doubt | None, str] = {
    None: "",
    "nan": "saved after the loss became NaN",
    "diverged": "saved after the loss diverged",
}
FRESH_S = 30.0
"""A GPU sample that is older says nothing about now."""
SILENT = frozenset({"quiet", "hang"})
IDLE_PCT, BUSY_PCT = 10.0, 70.0
"""Utilisation of a GPU of the run that does nothing, and of those beside which it is told."""
FAR = 3.0
"""x the lowest loss: no run is shown green there. Whether it diverged is judged over many steps."""
CLAUSE = 90
"""Characters of the worst clause in the head; its card tells the rest."""
DOES = {"w": "wait", "z": "take back", "e": "what to do"}
"""By key of the screen."""


class Concern(msgspec.Struct, frozen=True, kw_only=True):
    """``incident``: the number of the incident that it is about. ``rank``: its place; 0 = that of ``level``.

    ``key``: of the screen, which helps; that of an incident opens its card. One that was acknowledged is a warning,
    and keeps its place among the others.
    """

    level: Level
    text: str
    incident: int | None = None
    rank: int = 0
    key: str = ""

    @property
    def does(self) -> str:
        return DOES.get(self.key, "")


def concerns(now: Situation) -> tuple[Concern, ...]:
    """The worst first; of one level trainwatch's own troubles, then the training's, then the machine's."""
    found = [Concern(level=t.level if t.level != "info" else "unknown", text=sentence(t.text)) for t in now.troubles]
    if now.left is not None:
        asked = f"{now.left.verb} asked {quantity.age(now.now_t - now.left.t)}, not answered yet"
        text = f"{sentence(asked)}; it is done as soon as the supervisor runs"
        found.append(Concern(level="warning", text=text, key="z"))
    live = now.story.state in LIVE_STATES
    found += _of_silence(now) if live else ()  # before what an incident says of it: its age is that of now
    found += _of_incidents(now)
    if live:
        found += _of_loss(now)
        found += _of_gpus(now)
    return tuple(sorted(found, key=lambda each: (-(each.rank or SEVERITY[each.level]), each.rank > 0)))


def worst_clause(found: tuple[Concern, ...], *, keys: bool = False) -> str:
    """The worst of them, with the number of the others: ``Loss is NaN since step 100 (+2 more)``. ``keys``: and its.

    What its card tells in full is cut before the key that opens it: state, attempt and resume have room beside it.
    """
    first, more = found[0], len(found) - 1
    key = f" ([{first.key}] {first.does})" if keys and first.key else ""
    text = first.text
    if keys and first.key == "e" and len(text) > CLAUSE:
        text = f"{text[:CLAUSE].rpartition(' ')[0] or text[:CLAUSE]} …"
    return text + key + (f" (+{more} more)" if more else "")


def nan_since(story: RunStory) -> Incident | None:
    """The first incident of a loss that is NaN now, or was when the run ended; None if it is finite.

    An average that is NaN alone may come of one skipped step; once the loss is known to be NaN, it was so from there.
    """
    found = [i for i in story.incidents if i.class_ in NAN and unresolved(i, story)]
    return min(found, key=lambda i: i.t) if any(not i.average for i in found) else None


def diverged_since(story: RunStory) -> Incident | None:
    """The incident of a loss that is diverged now, or was when the run ended; None if it is not."""
    return next((i for i in reversed(story.incidents) if i.class_ == DIVERGING and unresolved(i, story)), None)


def loss_state(story: RunStory) -> str:
    """``falling``, ``flat``, ``diverging``, ``nan`` or ``unknown``."""
    if nan_since(story) is not None:
        return "nan"
    if diverged_since(story) is not None:
        return "diverging"
    return story.loss_state if story.loss_state not in ("nan", "diverging") else "unknown"


def doubts_in(story: RunStory) -> Callable[[Checkpoint], Doubt | None]:
    """Tells of each checkpoint whether it was saved after a NaN or a divergence: by its step, or else by its time."""
    since_when: tuple[tuple[Doubt, Incident | None], ...] = (
        ("nan", nan_since(story)),
        ("diverged", diverged_since(story)),
    )

    def doubt_of(c: Checkpoint) -> Doubt | None:
        for doubt, incident in since_when:
            if incident is not None:
                known = c.step is not None and incident.step is not None
                at, since = (c.step, incident.step) if known else (story.written_t(c), incident.t)
                if at is not None and since is not None and at >= since:
                    return doubt
        return None

    return doubt_of


def barred(story: RunStory) -> frozenset[Doubt]:
    """The doubts for which no restart takes a checkpoint: NaN, and a divergence that an attempt was ended for."""
    since = diverged_since(story)
    ended = since is not None and any(
        i.kind == "crash" and i.class_ in NAN and i.attempt == since.attempt for i in story.incidents
    )
    return frozenset({"nan", "diverged"} if ended else {"nan"})


def unresolved(incident: Incident, story: RunStory) -> bool:
    """Whether it is open, or only the end of the newest attempt closed it."""
    attempt = story.attempt
    if incident.open or attempt is None:
        return incident.open
    return incident.ended_by == "attempt" and incident.attempt == attempt.number and story.state not in LIVE_STATES


def _of_incidents(now: Situation) -> Iterator[Concern]:
    story, nan = now.story, nan_since(now.story)
    standing = [i for i in story.incidents if unresolved(i, story)]
    if nan is not None:
        asked = any(i.acknowledged for i in standing if i.class_ in NAN and not i.average)
        text = f"Loss is NaN{since_step(nan)}{', acknowledged' if asked else ''}"
        yield Concern(level="danger", text=text, incident=nan.id, key="" if asked else "e")
    for incident in sorted(standing, key=lambda i: (i.severity != "danger", -i.t)):
        # An average that was NaN before the loss was known to be is no second trouble.
        told = incident.class_ in NAN and (nan is not None or not incident.average)
        lasting = incident.severity == "danger" or incident.open or incident.class_ == DIVERGING
        # A silence after which steps came is closed once the resume is verified.
        moves = incident.kind in SILENT and now.step_t is not None and now.step_t > incident.t
        if incident.severity == "info" or told or moves or not lasting:
            continue
        text, level = _text(incident, now), level_now(incident, now)
        waits = incident.kind in SILENT and now.outlook.hang_t is not None
        key = "w" if waits else "" if incident.acknowledged else "e"
        if incident.acknowledged:
            said = f"{text}, acknowledged"
            yield Concern(level="warning", text=said, incident=incident.id, rank=SEVERITY[level], key=key)
        else:
            yield Concern(level=level, text=text, incident=incident.id, key=key)


def since_step(incident: Incident) -> str:
    """`` since step 5,880``; empty if its step is not known."""
    return "" if incident.step is None else f" since step {quantity.count(incident.step)}"


def _text(incident: Incident, now: Situation) -> str:
    if incident.kind in SILENT and incident.open and (step := last_step(now)) is not None:
        return sentence(f"{incident.reason.partition(' (')[0]} for {quantity.duration(step.age_s)}{_then(now)}")
    if incident.kind == "crash":
        return sentence(f"{title_of(incident)}: {incident.reason}" if incident.open else title_of(incident))
    return sentence(reason_now(incident, now))


def _then(now: Situation) -> str:
    """What follows if nothing moves, and when at the latest: ``; the trainer will be ended within 0:47``."""
    due_t = now.outlook.hang_t
    if due_t is None:
        return ""
    ended = f"the trainer {ended_words(None if now.story.run is None else now.story.run.resume)}"
    what = {"ask": "you are asked", "notify": "you are told"}.get(now.story.act or "", ended)
    when = f"within {quantity.countdown(due_t - now.now_t)}" if due_t > now.now_t else "now"
    return f"; {what} {when}"


def _of_silence(now: Situation) -> Iterator[Concern]:
    until_t = now.outlook.patient_t
    if until_t is not None and until_t > now.now_t:
        at = quantity.clock(now.now_wall + until_t - now.now_t, now.now_wall)
        yield Concern(level="warning", text=f"Waiting until {at}: hang detection is off until then")
    step = last_step(now)
    said = any(i.open and i.kind in SILENT for i in now.story.incidents)
    if step is not None and not said and step.level != "safe":
        key = "" if now.outlook.hang_t is None else "w"
        yield Concern(level=step.level, text=sentence(f"{step.words}{_then(now)}"), key=key)


def _of_loss(now: Situation) -> Iterator[Concern]:
    """A loss far above its lowest, of the newest step and of that in the journal: one batch is no trend."""
    floor, newest, told = now.story.loss_floor, live_progress(now).loss, now.story.progress.loss
    if floor is None or newest is None or told is None or floor <= 0.0 or min(newest, told) < FAR * floor:
        return
    if not any(i.open and i.kind == "loss" for i in now.story.incidents):
        text = f"Loss {quantity.number(newest)} is {newest / floor:.1f} times its lowest ({quantity.number(floor)})"
        yield Concern(level="warning", text=text)


def _of_gpus(now: Situation) -> Iterator[Concern]:
    sample = now.gpu
    if sample is None or now.now_t - sample.t > FRESH_S:
        return
    told = {incident.class_ for incident in now.story.open_incidents}
    for gpu in sample.gpus:
        if gpu.trouble and gpu.own is not False and f"gpu{gpu.index}.lost" not in told:
            level: Level = "danger" if gpu.own and gpu.trouble.startswith(GPU_IS_GONE) else "warning"
            yield Concern(level=level, text=f"GPU {gpu.index} {gpu.trouble}")
        slowed = [each for each in gpu.throttle or () if each in SLOWED_BY_FAULT]
        if slowed and f"gpu{gpu.index}.slowed" not in told:
            yield Concern(level="warning", text=f"GPU {gpu.index} is slowed down by {' and '.join(slowed)}")
    own = [gpu for gpu in sample.gpus if gpu.own_mem_bytes and gpu.util_pct is not None]  # its processes are there
    busy = [gpu for gpu in own if (gpu.util_pct or 0.0) >= BUSY_PCT]
    watts = min((gpu.power_w or 0.0 for gpu in busy), default=0.0)
    for gpu in own if len(busy) > 1 else ():  # its power is of the last seconds: a moment without work is none
        if (gpu.util_pct or 0.0) <= IDLE_PCT and (gpu.power_w is None or gpu.power_w <= watts / 2):
            beside = f"{quantity.percent(gpu.util_pct)} beside {len(busy)} at {BUSY_PCT:.0f} % or more"
            yield Concern(level="underused", text=f"GPU {gpu.index} does not work: {beside}")


# The readings of now with their levels: the judge's levels are of the moment at which they changed.

READINGS_FRESH_S = 60.0
"""An older sample says nothing about now; machines are sampled every second or two."""


def current_readings(
    story: RunStory, gpu: "GpuSample | None", host: "HostSample | None", bounds: Mapping[str, Metric]
) -> list[HealthReading]:
    """One for each metric that was judged and each utilisation that is read, by metric.

    A metric that the newest samples do not have keeps the value at which its level changed last.
    """
    found = dict(story.health)
    for metric, value, unit in _values(gpu, host):
        row = metric.rpartition(".")[2]
        if value is not None and (metric in found or row == "util"):
            level = level_of(story, (metric,), bounds[row], value)
            found[metric] = HealthReading(metric=metric, value=value, unit=unit, level=level)
    return [found[metric] for metric in sorted(found)]


def _values(gpu: "GpuSample | None", host: "HostSample | None") -> Iterator[tuple[str, float | None, str]]:
    for each in gpu.gpus if gpu is not None else ():
        name = f"gpu{each.index}"
        yield f"{name}.temp", each.temp_c, "°C"
        yield f"{name}.util", each.util_pct if each.own is not False else None, "%"
        yield f"{name}.vram", quantity.share_pct(each.mem_used_bytes, each.mem_total_bytes), "%"
    if host is not None:
        yield "ram_used", quantity.share_pct(host.ram_used_bytes, host.ram_total_bytes), "%"
        yield "ram_available", host.ram_available_bytes, "B"
        yield "swap_used", host.swap_used_bytes, "B"
        yield "disk_free", host.disk_free_bytes, "B"


def reading_of(incident: Incident, now: Situation) -> HealthReading | None:
    """The newest reading that an open incident is about; None if it is about none."""
    if not incident.open or incident.kind not in {"health", "disk"}:
        return None
    readings = current_readings(now.story, now.gpu, now.host, bounds_now(now))
    return next((r for r in readings if r.metric == incident.class_), None)


def level_now(incident: Incident, now: Situation) -> Level:
    """That of its severity, or of its newest reading if that is in danger; an incident of no severity is safe."""
    reading = reading_of(incident, now)
    if reading is not None and reading.level == "danger":
        return "danger"
    return "safe" if incident.severity == "info" else incident.severity


def reason_now(incident: Incident, now: Situation) -> str:
    """The reason of an open incident; of one about a reading, with its newest value, and its time if that is not now.

    For example "GPU 0 too hot: 86 °C (limit 85)".
    """
    found = reading_of(incident, now)
    if found is None or found.value is None:
        return incident.reason
    limit = bounds_now(now)[found.metric.rpartition(".")[2]].limit(found.level)
    sample = now.gpu if found.metric.startswith("gpu") else now.host
    clause = health_clause(found.metric, found.value, found.unit, found.level, limit)
    if sample is None or now.age_s(sample.t) <= READINGS_FRESH_S:
        return clause
    return f"{clause}, read at {quantity.clock(now.story.wall0 + sample.t, now.now_wall)}"


# What is wrong with a run now, the worst first: the supervisor, trainwatch's own files, and the open incidents.


def troubles(now: Situation, life: SupervisorLife, *, run_id: str = "") -> tuple[Trouble, ...]:
    found = _troubles(now, life, run_id)
    return tuple(sorted(found, key=lambda each: ("danger", "warning", "info").index(each.level)))


def frozen_text(life: SupervisorLife) -> str:
    """One sentence about a supervisor that is alive and does not respond."""
    since = "" if life.age_s is None else f" for {quantity.duration(life.age_s)}"
    if life.stopped:
        return f"the supervisor (pid {life.pid}) is stopped by a signal{since}: kill -CONT {life.pid} lets it go on"
    supervisor = f"the supervisor (pid {life.pid or 'unknown'})"
    return f"{supervisor} does not respond{since}: it is stuck, perhaps in a disk access"


def nobody_watches(frozen: str, *run_id: str) -> str:
    """What follows from a supervisor that does not respond, and what helps. ``frozen``: as by ``frozen_text``."""
    anew = f"else kill it with -9 and start a new one: `{typed('resume', *run_id)}`"
    return f"{frozen}; nobody watches the training; {anew}"


def _troubles(now: Situation, life: SupervisorLife, run_id: str) -> Iterator[Trouble]:
    story = now.story
    if life.frozen:
        text = nobody_watches(frozen_text(life), run_id)
        since = None if life.age_s is None else now.now_wall - life.age_s
        yield Trouble(kind="supervisor_frozen", level="danger", text=text, since=since)
    elif not life.alive and story.attempts and story.state not in TERMINAL_STATES:
        text = f"no supervisor is running, nobody watches the training: `{typed('resume', run_id)}` starts one"
        yield Trouble(kind="supervisor_dead", level="danger", text=text, since=story.wall0 + story.t)
    yield from now.troubles
    if (held := story.question) is not None:
        text = f"{question_text(held, story.wall0, now.now_wall)} {answers(story)}"
        kind = "question" if held.fact.asks else "withheld"
        yield Trouble(kind=kind, level="danger", text=text, since=story.wall0 + held.t)
    for i in story.open_incidents:
        text = reason_now(i, now) if i.kind in {"health", "disk"} else f"{title_of(i)}: {i.reason}"
        yield Trouble(kind=i.kind, level=i.severity, text=text, since=i.wall)


# What trainwatch does about an open silence, hang or crash without a person.


def next_by_itself(incident: Incident, now: Situation) -> str:
    """A clause; empty if a person is needed, or what follows is not known.

    Nothing follows by itself without a supervisor that works, if the settings leave the decision to a person, if no
    restart is left, and if the command has no place for what was saved: a restart is held then.
    """
    story = now.story
    if not incident.open or incident.kind not in {*SILENT, "crash"} or not now.watched or story.state_why.holds:
        return ""
    if story.act not in {None, "all"} or (story.question is not None and not story.question.fact.by):
        return ""  # what trainwatch would do by itself waits for a person
    if story.state == "stopping":
        return "the training is being ended"
    if story.state in {"cleaning", "backing_off", "starting", "queued"}:  # it is decided and charged
        return "trainwatch restarts the training"
    if story.budget_used >= story.budget_max or lacks_place(story) or incident.kind not in SILENT:
        return ""
    ends = "if no step comes, trainwatch ends the training, and restarts it or gives up"
    return ends if story.state in {"running", "hung"} else ""


# Why a run is in its state, in words; and the room that a held restart has now.


def reason_of(story: RunStory) -> str:
    """``held: the disk is full``; empty if the journal gives no reason."""
    return f"held: {story.state_reason}" if story.state_why.holds else story.state_reason


def room_now(now: Situation) -> str:
    """``now 414 kB are free``; empty if it does not wait for room, or has as much as when the hold began."""
    why, host = now.story.state_why, now.host
    if why.kind != "disk_full" or host is None or host.disk_free_bytes is None or now.age_s(host.t) > READINGS_FRESH_S:
        return ""
    free = quantity.size(host.disk_free_bytes)
    then = None if why.free_bytes is None else quantity.size(why.free_bytes)
    return "" if free == then else f"now {free} are free"

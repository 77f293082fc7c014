"""The status of a run as text."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from trainwatch.core.model.progress import Progress
from trainwatch.core.model.run import ADVISED, TERMINAL_STATES
from trainwatch.core.model.text import LazyPattern, memory, memory_of, size, typed, verdict_in_words
from trainwatch.core.views import quantity
from trainwatch.core.views.length_words import by_words
from trainwatch.core.views.state.concerns import READINGS_FRESH_S
from trainwatch.core.views.state.run_progress import of_an_epoch
from trainwatch.core.views.state.status import backup_line
from trainwatch.core.views.words import ACT_WORDS, STATE_WORDS, incident_words, restarts_left

from .output import printable

OWN_KINDS = frozenset(
    {"supervisor_frozen", "folder_shared", "state_disk", "journal", "output_disk", "state_folder", "program_gone"}
)
"""Troubles that no incident line shows."""
ABOUT_THEIR_TROUBLE = frozenset({"hung", "starting", "stopping", "cleaning", "backing_off", "given_up"})
"""States whose reason is what is wrong."""


def status_lines(status: dict[str, Any]) -> list[str]:
    """The status as text, the most important line first; unknown values are left out, never shown as 0.

    While no step is seen, that is said in place of the reason, the pace and the time of the end.
    """
    still = status["still"]
    progress = status["progress"]
    alive = status["supervisor"]["alive"]
    said = reason_words(status)
    head = ", ".join(filter(None, (f"{status['run']}: {STATE_WORDS[status['state']]}", status["unconfirmed"])))
    lines = [head + (f" ({said})" if said else "")]
    position = []
    overall = status["overall"]
    if overall["step"] is not None:
        position.append(f"step {quantity.out_of(overall['step'], overall['total_steps'])}")
    if progress["epoch"] is not None:
        of = f" of {progress['total_epochs']}" if progress["total_epochs"] and overall["step"] is None else ""
        position.append(f"epoch {progress['epoch']:g}{of}")
    if part := of_an_epoch(msgspec.convert(progress, Progress)):
        position.append(part)
    if progress["loss"] is not None:
        position.append(f"loss {progress['loss']:.4g}")
    if progress["sec_per_step"] is not None and not still:
        position.append(quantity.pace(progress["sec_per_step"]))
    if progress["eta_s"] is not None and status["state"] == "running" and not still:
        wall = time.time()
        position.append(f"done about {quantity.clock(wall + progress['eta_s'], wall)}{by_words(progress['total_by'])}")
    lines += ["  " + " · ".join(position)] if position else []
    lines.append(f"  {attempt_line(status)}")
    lines.extend(
        f"  the ramp fell from {rung['profile']}: {rung['failure']} after {quantity.duration(rung['ran_s'])} there"
        for rung in status["ramp"]["dead"]
    )
    question = status["question"]
    if question is not None:
        since = quantity.clock(status["wall0"] + question["t"], time.time())
        asked, would = f"asks since {since}: {question['text']}", f"{since}: would have {question['would']}"
        price = f" ({question['price']})" if question["price"] else ""
        lines.append(f"  {asked if question['asks'] else would}{price}")
        lines += [f"    {what}: `{command}`" for what, command in question["commands"].items()]
    if status["act"] not in {None, "all"}:
        lines.append(f"  {ACT_WORDS[status['act']]}; `{typed('act', 'all', status['id'])}` (or ask, notify) changes it")
    lines += _checkpoint_lines(status["checkpoints"])
    lines += [
        *(f"  {printable(line)}" for line in filter(None, [status.get("place"), backup_line(status["backup"])])),
        *(f"  metrics: `{files['view'] or files['folder']}`" for files in status["metric_files"]),
    ]
    for place in status["output"][-1:]:
        lines.append(f"  output {place['folder']} ({place['why']})")
    shown = [i for i in status["incidents"] if i["ended_by"] != "hang"][-5:]
    lines += [f"  {line}" for i in shown for line in _incident(i)]
    lines += [f"  {line}" for line in machine_lines(status)]
    if status["gpu_trouble"]:
        lines.append(f"  GPU: {status['gpu_trouble']}")
    lines.extend(f"  {t['level'].upper()}: {t['text']}" for t in status["troubles"] if t["kind"] in OWN_KINDS)
    if status["log"]:
        lines.append(f"  log {status['log']}")
    if status["state"] == "idle" and not alive:
        lines.append(f"  not started yet: `{typed('--headless', '--run', status['run'])}` starts it, or the screen")
    elif not alive and status["state"] not in TERMINAL_STATES:
        lines.append(f"  no supervisor is watching: `{typed('resume', status['id'])}` starts one (or S on the screen)")
    return [printable(line) for line in lines]


def attempt_line(status: dict[str, Any]) -> str:
    """The attempt and its process, the restarts that are left, the profile."""
    budget, resume = status["budget"], status["resume"]
    left = restarts_left(status["state"], budget["made"], budget["max"], resume and resume["will"])
    process = f"attempt {status['attempt']}", f"pid {status['pid'] or '–'}"
    return " · ".join((*process, *left, f"profile {status['profile'] or '–'}"))


def _incident(i: dict[str, Any]) -> list[str]:
    """The value of an open one about a reading stands with the newest readings.

    What follows and what to do is told of incidents that only a person can end; of others the report tells it.
    """
    reason = i["reason"]
    if i["open"] and i["kind"] in {"disk", "health"}:
        reason = _VALUE.sub("", reason)
    advice = i["explanation"].split("; ", 1) if i["open"] and i["class"] in ADVISED else []
    words = incident_words(i["kind"], i["title"], reason)
    return [f"{'open' if i['open'] else 'closed'} incident {i['id']}: {words}", *(f"  {text}" for text in advice)]


_VALUE = LazyPattern(r": [^(]*(?= \(limit)")


def _checkpoint_lines(known: dict[str, Any]) -> list[str]:
    if (newest := known["newest"]) is None:
        return ["  no checkpoint yet"]
    facts = (newest["name"], verdict_in_words(newest["verdict"]), known["doubt"], quantity.age(known["age_s"]))
    scores = [f"  scores: {printable(known['quality'])}"] if known["quality"] else []
    return [f"  newest checkpoint {' · '.join(filter(None, facts))}", *scores]


def reason_words(status: dict[str, Any]) -> str:
    """Why it is in its state, with the worst that is wrong; of a run that trains that alone."""
    still = status["still"]
    wrong = [each for each in status.get("concerns", ()) if each["level"] == "danger"]
    if status["state"] in ABOUT_THEIR_TROUBLE or not wrong:
        return still or status["reason"] or ""
    more = f" (+{len(wrong) - 1})" if len(wrong) > 1 else ""
    reason = still or ("" if status["state"] == "running" else status["reason"] or "")
    if status["hold"] and status["hold"].get("incident", "") == wrong[0]["incident"]:  # its reason is what is wrong
        return reason + more
    return " · ".join(filter(None, [reason, wrong[0]["text"] + more]))


def machine_lines(status: dict[str, Any]) -> list[str]:
    """The newest readings: a line for each GPU, one for the memory; what is unknown is left out."""
    lines = []
    for gpu in status["gpus"]:
        parts = [
            _part(gpu, "util", "{:.0f} %".format),
            _part(gpu, "mem_used", partial(_of, gpu.get("mem_total"))),
            _part(gpu, "temp", "{:.0f} °C".format),
            _part(gpu, "power", "{:.0f} W".format),
            gpu.get("trouble"),
        ]
        if any(parts):
            lines.append(f"GPU {gpu['index']}  " + " · ".join(filter(None, parts)))
    host = status["host"]
    parts = [
        _part(host, "ram_used", partial(_of, host.get("ram_total"))),
        _part(host, "ram_available", lambda free: f"{memory(free)} available"),
        _part(host, "swap_used", lambda used: f"swap {memory(used)}"),
        _part(host, "disk_free", lambda free: f"disk {size(free)} free"),
    ]
    if any(parts):
        lines.append(("RAM  " if any(parts[:2]) else "") + " · ".join(filter(None, parts)))
    age_s = status.get("readings_age_s")
    if lines and age_s is not None and age_s > READINGS_FRESH_S:
        lines.insert(0, f"readings of {quantity.duration(age_s)} ago:")
    return lines


def _of(total: float | None, used: float) -> str:
    return memory_of(used, total)


def _part(values: dict[str, Any], key: str, said: Callable[[Any], str]) -> str | None:
    value = values.get(key)
    return None if value is None else said(value)

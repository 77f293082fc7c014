"""The hang benchmark: ``python bench/hangs/run.py [--adapter FILE] [--only NAME …] [--seeds 2] [--nights 2]``.

Traces: every family of tests/scenarios, healthy and sick. A supervisor reads one and says when it would end the
training: a *false kill* if nothing hangs then, *missed* if a hang was not ended within three hours; else the latency.
Nights: real processes with hangs, slow saves and a crash, under each supervisor (bench/night_supervisors.py); won is a
night that ends with the weights of an undisturbed run. See README.md beside this file.
"""

import argparse
import math
import os
import re
import runpy
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

import msgspec  # noqa: E402
import night_supervisors as nights  # noqa: E402
from nights import available, undisturbed  # noqa: E402
from supervisors import WATCHES, Row, Watch  # noqa: E402

from tests.scenarios.cases import Case  # noqa: E402
from tests.scenarios.decisions import drawn  # noqa: E402
from tests.shipped import read_progress  # noqa: E402
from trainwatch.core.judge.progress import ProgressState  # noqa: E402
from trainwatch.core.model.observation import LogChunk, Meta  # noqa: E402
from trainwatch.core.model.settings import Settings  # noqa: E402

HOLD_S = 3 * 3600.0
"""A hang that was not ended within so long is missed."""
TAIL_S = 60.0
"""The end of a sick trace that is repeated until then."""
KINDS = (
    "deadlock", "deadlock_without_signals", "spin", "hung_loader", "child_deadlock", "slow_save", "stalled_save",
    "killed",
)  # fmt: skip
STEPS, STEP_S, SAVE_EVERY, SCALE, FAULTS = 1500, 0.04, 100, 45.0, 3
OWN = {"trainwatch": "trainwatch", "until loop": "until loop", "torchrun": "torchrun"}
"""Supervisors that are really run at night, by their name in night_supervisors.py; the others are driven from here."""


class Score(NamedTuple):
    """Of one trace. ``latency_s``: from the beginning of the hang to the end of the training; None = not ended."""

    family: str
    false_kill: bool
    hangs: bool
    latency_s: float | None


def rows_of(case: Case) -> Iterator[Row]:
    """The trace as an adapter reads it: observations as in a trace file, a ``step`` for each step that was made."""
    state, step = ProgressState(), None
    settings = case.story.settings
    told: list[Row] = []
    yield {"t": 0.0, "kind": "meta", "settings": msgspec.to_builtins(Settings() if settings is None else settings)}
    for each in case.story.observations:
        if isinstance(each, Meta):
            continue
        row: Row = {"kind": str(each.__struct_config__.tag), **msgspec.to_builtins(each)}
        told.append(row)
        yield row
        if isinstance(each, LogChunk):
            state = read_progress(state, each.text)
            now = state.progress.run_step if state.progress.run_step is not None else state.progress.step
            if now is not None and now != step:
                step = now
                yield {"t": each.t, "kind": "step", "step": now}
    if case.sick is None or case.sick.incident != "hang" or told[-1]["kind"] == "exit":
        return  # a run that is only slow makes steps
    end = told[-1]["t"]
    tail = [row for row in told if row["t"] > end - TAIL_S and row["kind"] not in {"start", "kernel", "command"}]
    seen = [row for row in tail if row["kind"] == "process"]
    grown = {key: seen[-1][key] - seen[0][key] for key in ("read_bytes", "write_bytes") if seen and seen[-1].get(key)}
    for turn in range(1, math.ceil((case.sick.at + HOLD_S - end) / TAIL_S) + 1):
        for row in tail:
            more = {key: row[key] + turn * by for key, by in grown.items() if row["kind"] == "process"}
            yield {**row, **more, "t": row["t"] + turn * TAIL_S}


def scored(watch: Watch, rows: Sequence[Row], case: Case, name: str = "") -> Score:
    hangs = case.sick is not None and case.sick.incident == "hang"
    at, live = (case.sick.at if hangs and case.sick is not None else math.inf), True

    def seen() -> Iterator[Row]:
        nonlocal live
        for row in rows:
            live = row["kind"] == "start" or (live and row["kind"] != "exit")
            yield row

    for t in watch(seen()):
        if live:
            return Score(name, t < at, hangs, None if t < at else t - at)
    return Score(name, False, hangs, None)


def family(job: tuple[int, int, tuple[str, ...], str]) -> dict[str, list[Score]]:
    """One share of the traces, in a process of its own: scores by supervisor."""
    seeds, share, names, adapter = job
    watches = loaded(adapter)
    found: dict[str, list[Score]] = {name: [] for name in names}
    for number, (_, title, build, size) in enumerate(drawn(seeds)):
        if number % CORES != share:
            continue
        case = build(*size)
        if case.sick is not None and case.sick.held:
            continue  # no signal ends it: nobody can be right
        rows = list(rows_of(case))
        for name in names:
            found[name].append(scored(watches[name], rows, case, title))
    return found


CORES = min(8, os.cpu_count() or 1)


def loaded(adapter: str) -> dict[str, Watch]:
    """All adapters. ``adapter``: a file with NAME and watch(rows); "" = none."""
    if not adapter:
        return WATCHES
    found = runpy.run_path(adapter)
    return {**WATCHES, found["NAME"]: found["watch"]}


def live(place: nights.Place, trainer: "subprocess.Popen[bytes]", patience: nights.Patience) -> Iterator[Row]:
    """What a supervisor sees of a process at night, until it ends; times are those of the long night."""
    begun, read, step, stepped, sampled = time.monotonic(), place.log.stat().st_size, 0, False, 0.0
    yield {"t": 0.0, "kind": "start", "attempt": 1, "pid": trainer.pid}
    while trainer.poll() is None and not patience.is_over():
        time.sleep(0.02)
        t = (time.monotonic() - begun) * place.night.scale
        yield {"t": t, "kind": "tick"}
        with place.log.open("rb") as log:
            log.seek(read)
            text = log.read()
        read += len(text)
        if text:
            yield {"t": t, "kind": "log", "text": text.decode(errors="replace")}
        for number in re.findall(rb"step (\d+)/", text):
            step, stepped = int(number), True
            yield {"t": t, "kind": "step", "step": step}
        if t - sampled >= 5.0:  # the GPU of the stand-in is busy while it makes steps
            yield {"t": t, "kind": "gpu", "gpus": [{"index": 0, "util": 95 if stepped else 0, "own": True}]}
            sampled, stepped = t, False


def under(watch: Watch) -> Any:
    """A night under an adapter: what it ends, and what ends by itself, is started again from the newest file."""

    def supervise(place: nights.Place, limit_s: float) -> bool:
        patience = nights.Patience(place, limit_s)
        place.log.touch()
        while not patience.is_over():
            trainer = place.spawn(place.command("--resume", "newest"))
            next(iter(watch(live(place, trainer, patience))), None)
            code = trainer.poll()
            nights.end(trainer)
            if code == 0:
                return True
            time.sleep(1 / place.night.scale)
        return False

    return supervise


def night(seed: int) -> nights.Night:
    """Three of the kinds, at random steps, each between two checkpoints of its own."""
    dice = Random(f"hangs {seed}")
    places = sorted(dice.sample(range(2, STEPS // SAVE_EVERY - 1), FAULTS))
    faults = [(place * SAVE_EVERY + dice.randrange(5, SAVE_EVERY - 5)) for place in places]
    return nights.Night(
        name=f"night {seed}", faults=tuple(zip(faults, dice.sample(KINDS, FAULTS), strict=True)), steps=STEPS,
        step_s=STEP_S, save_every=SAVE_EVERY, scale=SCALE,
    )  # fmt: skip


def won(names: Sequence[str], count: int, adapter: str, jobs: int) -> dict[str, int]:
    """Nights that ended with the right weights, by supervisor."""
    watches, expected = loaded(adapter), undisturbed(STEPS)
    for name in names:
        nights.SUPERVISORS[name] = nights.SUPERVISORS[OWN[name]] if name in OWN else under(watches[name])
    limit_s = STEPS * STEP_S + (FAULTS + 1) * 3600 / SCALE
    found = dict.fromkeys(names, 0)
    chosen = [night(seed) for seed in range(1, count + 1)]
    for each in chosen:
        print(f"{each.name}: {', '.join(f'{step} {kind}' for step, kind in each.faults)}", file=sys.stderr)
    with ThreadPoolExecutor(jobs) as pool:
        futures = [
            (name, pool.submit(nights.run, name, each, expected, limit_s, keep=False))
            for each in chosen
            for name in names
        ]
        for name, future in futures:
            result = future.result()
            right = result.wall_s is not None and result.right and not result.twice
            found[name] += right
            took = "did not end" if result.wall_s is None else f"{result.wall_s:.0f} s"
            print(f"  {result.night} {name}: {'won' if right else 'lost'}, {took}", file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adapter", default="", help="a file with NAME and watch(rows): one more row")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these supervisors")
    parser.add_argument("--seeds", type=int, default=2, help="traces of each family (default 2)")
    parser.add_argument("--nights", type=int, default=2, help="nights of each supervisor (default 2; 0: none)")
    parser.add_argument("--wrong", action="store_true", help="name the families with a false kill or a missed hang")
    parser.add_argument("--jobs", type=int, default=8, help="nights at once (default 8)")
    args = parser.parse_args()
    try:
        known = loaded(args.adapter)
    except (OSError, KeyError, SyntaxError) as fault:
        parser.error(f"{args.adapter}: not an adapter, which is a file with NAME and watch(rows): {fault!r}")
    names = tuple(args.only or known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"--only {', '.join(unknown)}: the names are {'; '.join(known)}")
    began = time.monotonic()
    with ProcessPoolExecutor(CORES) as pool:
        shares = list(pool.map(family, [(args.seeds, share, names, args.adapter) for share in range(CORES)]))
    scores = {name: [score for share in shares for score in share[name]] for name in names}
    print(f"traces: {time.monotonic() - began:.0f} s", file=sys.stderr)
    at_night = available(names) if args.nights else []
    nights_won = won(at_night, args.nights, args.adapter, args.jobs) if args.nights else {}
    total, sick = len(scores[names[0]]), sum(score.hangs for score in scores[names[0]])
    heads = ("supervisor", f"false kills ({total} traces)", f"missed ({sick} hangs)", "p50", "p95")
    print(f"| {' | '.join(heads)} | nights won ({args.nights}) |")
    print("|---|---|---|---|---|---|")
    for name, found in scores.items():
        late = sorted(score.latency_s for score in found if score.latency_s is not None)
        p50, p95 = (f"{late[int(share * (len(late) - 1))]:.0f} s" if late else "–" for share in (0.5, 0.95))
        false, missed = sum(s.false_kill for s in found), sum(s.hangs and s.latency_s is None for s in found)
        missed -= sum(s.hangs and s.false_kill for s in found)
        print(f"| {name} | {false} | {missed} | {p50} | {p95} | {nights_won.get(name, '–')} |")
    for name in names if args.wrong else ():
        killed = sorted({score.family for score in scores[name] if score.false_kill})
        late = sorted({score.family for score in scores[name] if score.hangs and score.latency_s is None} - {*killed})
        print(f"\n{name}: false kills in {', '.join(killed) or 'none'}; missed {', '.join(late) or 'none'}")
    print(f"{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

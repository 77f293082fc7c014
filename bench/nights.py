"""Nights with faults, under trainwatch and beside it: ``python bench/nights.py [--seeds 3] [--faults 1 4 12]``.

A stand-in trainer with deterministic weights (night_trainer.py) has 1, 4 or 12 faults of 14 kinds at random steps
(``--kinds mixed``: of 29, and read-only folders need root).
Each night is run under a perfect supervisor (it is told of each fault), trainwatch with its default policy, an
``until`` loop, a watchdog of 30 minutes and torchrun, several at once. Times are scaled: one second of a night stands
for ``--scale`` seconds, in the trainer and in the settings. A night is right if the last weights are those of an
undisturbed run. If trainwatch leaves it to a person, the bench resumes it, and says whether the reason was the true
one; what was not as a person would expect of a fault (``LATEST``) stands below the night.

Prints a table, the ratio of the perfect supervisor's wall time to each other's, and for trainwatch the same ratio for a
night of 12 hours: what depends on the scale (detection, waits) is multiplied by it, starts of processes (the trainer,
py-spy) are not. Exit code 1 if trainwatch loses a night or stays below the bounds.
"""

import argparse
import random
import re
import statistics
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import NamedTuple

import night_supervisors as supervisors
import night_trainer
from night_supervisors import HANGS, Night, Result

KINDS = (
    "exception", "out_of_memory", "killed", "illegal_access", "segfault", "deadlock", "deadlock_without_signals",
    "spin", "hung_loader", "torn_newest", "disk_full", "nan", "network_at_start", "slow_save",
)  # fmt: skip
OTHER_KINDS = (
    "exits_with_zero", "aborted", "broken_data", "child_deadlock", "locked_database", "nonfinite_later",
)  # fmt: skip
"""Kinds that were written later, to see whether what holds for the first set is general (``--kinds other``)."""


class Expected(NamedTuple):
    """What a person would expect of trainwatch after a fault, written before the first run of the kind."""

    lives_on: bool = False
    """The process trains on by itself: nothing may end it."""
    told: str = ""
    """Pattern of what has to be told: ``KIND CLASS REASON`` of an incident, a note, or the reason of a state."""
    held: str = ""
    """Pattern of the true reason with which the run may be left to a person."""


LATEST = {
    "unloadable": Expected(),  # goes on from the checkpoint before it
    "stalled_save": Expected(lives_on=True),
    "terminated": Expected(told=r"SIGTERM"),
    "silent_zero": Expected(told=r"exit code 0", held=r"ended_early exit code 0"),
    "closed_output": Expected(lives_on=True, told=r"quiet|output"),
    "readonly_folder": Expected(told=r"(?i)read-only"),
    "orphaned": Expected(),  # adopted, or ended before the next start: never two trainers
    "slowed": Expected(lives_on=True, told=r"stall|slow"),
    "diverged": Expected(lives_on=True, told=r"(^|\| )loss (?!spike)"),  # a lasting trouble
}
"""Kinds of the third set (``--kinds mixed``: every second fault is of it)."""
SCALED_BOUND, LONG_BOUND = 0.85, 0.97
LONG_S = 12 * 3600.0


def schedule(faults: int, seed: int, args: argparse.Namespace) -> Night:
    """A night with this number of faults."""
    chosen = random.Random(f"{faults} {seed} {args.kinds}")
    kinds = {
        "all": (*KINDS, *OTHER_KINDS), "other": OTHER_KINDS, "default": KINDS, "latest": tuple(LATEST),
        "mixed": (*KINDS, *OTHER_KINDS),
    }[args.kinds]  # fmt: skip
    drawn: list[str] = []
    while len(drawn) < faults:
        drawn += chosen.sample(kinds, len(kinds))
    if args.kinds == "mixed":
        latest = [*LATEST, *LATEST][2 * seed % len(LATEST) :]  # in turn: a few nights meet all of them
        drawn = [latest[n // 2 % len(LATEST)] if n % 2 else kind for n, kind in enumerate(drawn)]
    # Not before the first checkpoint, and not twice between two checkpoints: the budget of a loop is not the subject.
    places = range(1, args.steps // args.save_every - 1)
    steps = sorted(
        place * args.save_every + chosen.randrange(5, args.save_every - 5) for place in chosen.sample(places, faults)
    )
    return Night(
        name=f"{faults:2d} faults, seed {seed}",
        faults=tuple(zip(steps, drawn, strict=False)),
        steps=args.steps,
        step_s=args.step_s,
        save_every=args.save_every,
        scale=args.scale,
    )


def undisturbed(steps: int) -> bytes:
    """The last checkpoint of a run without faults."""
    weights = night_trainer.fresh()
    for step in range(1, steps + 1):
        weights = night_trainer.after_step(weights, step)
    return night_trainer.to_bytes(weights, steps)


def long_ratio(night: Night, ours: Result, best: Result) -> float | None:
    """The ratio for a night of 12 hours with the same faults; None if ours did not end."""
    if ours.wall_s is None or best.wall_s is None:
        return None
    costs_s = [extra_s for _, extra_s in costs(night, ours, best)]
    seen = sum(gap.repeated for gap in ours.gaps.values()) - sum(gap.repeated for gap in best.gaps.values())
    elsewhere_s = (ours.repeated - best.repeated - seen) * LONG_S / night.steps
    return LONG_S / (LONG_S + max(0.0, sum(costs_s) + elsewhere_s))


def costs(night: Night, ours: Result, best: Result) -> list[tuple[int, float]]:
    """(number, seconds) of each fault: what it costs more than under the perfect supervisor, in a night of 12 hours."""
    found = []
    for number, gap in ours.gaps.items():
        hangs = night.faults[number][1] in HANGS
        scaled_s = gap.planned_s + (gap.dead_s - gap.seen_s if hangs else 0.0)
        fixed_s = gap.start_s - gap.planned_s + (gap.seen_s if hangs else gap.dead_s)
        perfect = best.gaps.get(number)
        if perfect is not None:
            fixed_s -= perfect.dead_s + perfect.start_s
        repeated = gap.repeated - (0 if perfect is None else perfect.repeated)
        found.append((number, scaled_s * night.scale + fixed_s + repeated * LONG_S / night.steps))
    return found


def table(night: Night, ours: Result, best: Result) -> str:
    """One line for each fault, the most expensive one first."""
    lines = []
    for number, extra_s in sorted(costs(night, ours, best), key=lambda cost: -cost[1]):
        step, kind = night.faults[number]
        gap, perfect = ours.gaps[number], best.gaps.get(number)
        again = f", {perfect.repeated} under the perfect one" if perfect is not None else ""
        lines.append(
            f"    {kind:24} at step {step:5}: {extra_s:7.1f} s of 12 hours; ended after {gap.dead_s:5.2f} s (stacks "
            f"{gap.seen_s:4.2f} s), started {gap.start_s:5.2f} s later (waited {gap.planned_s:4.2f} s); "
            f"{gap.repeated} steps repeated{again}"
        )
    return "\n".join(lines)


def row(night: Night, result: Result, best: Result | None) -> tuple[str, bool]:
    """One line of the table, and whether the bounds hold in it."""
    ended = result.wall_s is not None and result.right and not result.twice
    wrong = unexpected(night, result) if result.supervisor == "trainwatch" else []
    ratio = best.wall_s / result.wall_s if best and best.wall_s and result.wall_s and ended else None
    far = long_ratio(night, result, best) if result.supervisor == "trainwatch" and best and ended else None
    words = (
        "right weights"
        if ended
        else "LOST: "
        + ("two trainers at once" if result.twice else "did not end" if result.wall_s is None else "wrong weights")
    )
    line = (
        f"{night.name:20} {result.supervisor:16} {words:22} "
        f"{'–' if result.wall_s is None else f'{result.wall_s:7.1f} s':>10} "
        f"{'–' if ratio is None else f'{ratio:.3f}':>6} {'' if far is None else f'{far:.4f}':>8} "
        f"{result.repeated if ended else '–':>6} steps repeated {result.lives - 1:3d} restarts"
    )
    if result.held:
        line += f", held {len(result.held)} times"
    line += "".join(f"\n    {words}" for words in wrong)
    good = ended and not wrong and ratio is not None and ratio >= SCALED_BOUND and far is not None and far >= LONG_BOUND
    return line, good or result.supervisor != "trainwatch"


def unexpected(night: Night, result: Result) -> list[str]:
    """What was not as a person would expect, one sentence for each."""
    found = []
    for number, (step, kind) in enumerate(night.faults):
        expected, reasons = LATEST.get(kind, Expected()), [reason for at, reason in result.held if at == number]
        if number not in result.told:
            continue
        if expected.lives_on and number not in result.lived_on:
            found.append(f"{kind} at step {step}: the process was ended although it went on")
        if expected.told and not re.search(expected.told, result.told[number]):
            found.append(f"{kind} at step {step}: not told: {result.told[number][:200] or 'nothing'}")
        untrue = [reason for reason in reasons if not (expected.held and re.search(expected.held, reason))]
        found += [f"{kind} at step {step}: held: {reason}" for reason in untrue]
    return found


def available(names: Iterable[str]) -> list[str]:
    """The supervisors that can run here."""
    chosen = list(names)
    if "torchrun" in chosen and find_spec("torch") is None:
        print("torchrun is left out: PyTorch is not installed")
        chosen.remove("torchrun")
    return chosen


def main() -> int:
    """Run the nights and print the table; 1 if trainwatch lost one or missed a bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="nights of each number of faults (default 3)")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--faults", type=int, nargs="+", default=[1, 4, 12])
    parser.add_argument("--nights", nargs="+", metavar="FAULTS:SEED", help="these nights alone (4:11 4:12 8:13)")
    parser.add_argument("--kinds", choices=("default", "other", "all", "latest", "mixed"), default="default")
    parser.add_argument(
        "--only", nargs="+", choices=list(supervisors.SUPERVISORS), default=list(supervisors.SUPERVISORS)
    )
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--step-s", type=float, default=0.04)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--scale", type=float, default=45.0)
    parser.add_argument("--jobs", type=int, default=6, help="nights at once (default 6)")
    parser.add_argument("--each", action="store_true", help="print what each fault cost trainwatch")
    parser.add_argument("--keep", action="store_true", help="keep the folders, and print where they are")
    args = parser.parse_args()
    drawn = [(n, seed) for n in args.faults for seed in range(args.first_seed, args.first_seed + args.seeds)]
    if args.nights:
        drawn = [(int(n), int(seed)) for n, _, seed in (night.partition(":") for night in args.nights)]
    nights = [schedule(faults, seed, args) for faults, seed in drawn]
    expected, limit_s = undisturbed(args.steps), 4.0 * args.steps * args.step_s
    names = available(args.only)
    fine, ratios, far = True, list[float](), list[float]()
    with ThreadPoolExecutor(args.jobs) as pool:
        jobs = {
            (night.name, name): pool.submit(supervisors.run, name, night, expected, limit_s, keep=args.keep)
            for night in nights
            for name in names
        }
        for night in nights:
            print(f"{night.name}: {', '.join(f'{step} {kind}' for step, kind in night.faults)}", flush=True)
            results = {name: jobs[night.name, name].result() for name in names}
            best = results.get("perfect")
            for name, result in results.items():
                line, good = row(night, result, best)
                print(f"{line} {result.folder if args.keep else ''}", flush=True)
                if args.each and name == "trainwatch" and best is not None:
                    print(table(night, result, best), flush=True)
                fine &= good or best is None
                if name == "trainwatch" and best and best.wall_s and result.wall_s and result.right:
                    ratios.append(best.wall_s / result.wall_s)
                    far.append(long_ratio(night, result, best) or 0.0)
    ours = len(nights) if "trainwatch" in names else 0
    if ours:
        print(f"trainwatch: {len(ratios)} of {ours} nights ended with the right weights", end="")
        if ratios:
            print(f"; ratio {min(ratios):.3f} at worst, {statistics.median(ratios):.3f} median", end="")
        print(f"; 12 hours {min(far):.4f} at worst" if far else "")
    return 0 if fine and len(ratios) == ours else 1


if __name__ == "__main__":
    sys.exit(main())

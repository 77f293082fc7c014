"""Measures the time from a crash to the next trainer process: ``python bench/recovery.py [--runs N] [--save-every K]``.

The demo trainer crashes in the middle of its run, under trainwatch with its default settings (detection, diagnosis,
evidence, end of leftovers, GPU memory gate, deep verification of the resume point), and under a bash loop that restarts
it from the newest file without any check, alternately on the same machine. A shell script around the trainer writes
the times of death and start. Prints ratios and the bound of 2 s; exit code 1 if the bound is exceeded.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trainwatch.configs import examples
from trainwatch.core.model.decision import StartAttempt
from trainwatch.core.store.journal import load_story, read_journal

TRAINER = Path(examples.__file__).with_name("char_trainer.py")
BOUND_S = 2.0
STEPS, CRASH_AT = 120, 70
TIMED = """#!/bin/bash
# Notes when the trainer begins and when it is dead.
date +%s.%N >> "$NOTES/began"
"$PYTHON" "$TRAINER" --output-dir "$OUT" --steps {steps} --step-time 0.02 --save-every {every} --crash-at {crash} "$@"
code=$?
date +%s.%N >> "$NOTES/died"
exit $code
"""
LOOP = """
resume=()
until "$NOTES/timed.sh" "${resume[@]}"; do
  resume=(--resume "$(ls -t "$OUT"/*.safetensors | head -n 1)")
done
"""


class Place:
    """A folder for one recovery."""

    def __init__(self, every: int) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="tw-bench-"))
        self.out = self.root / "out"
        self.home = self.root / "home"
        script = self.root / "timed.sh"
        script.write_text(TIMED.format(steps=STEPS, every=every, crash=CRASH_AT))
        script.chmod(0o755)
        self.script = str(script)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("TMUX", "TRAINWATCH"))} | {
            "NOTES": str(self.root),
            "PYTHON": sys.executable,
            "TRAINER": str(TRAINER),
            "OUT": str(self.out),
            "TRAINWATCH_HOME": str(self.home),
            "TMUX_TMPDIR": str(self.root),
        }

    def gap_s(self) -> float:
        """Seconds from the first death to the second start."""
        died, began = ((self.root / name).read_text().split() for name in ("died", "began"))
        return float(began[1]) - float(died[0])

    def clear(self) -> None:
        subprocess.run(["tmux", "kill-server"], env=self.env, capture_output=True, check=False)
        shutil.rmtree(self.root, ignore_errors=True)


def watched(every: int) -> tuple[float, float, int, int]:
    """(gap, detection time in it, repeated steps, steps since the newest checkpoint) under trainwatch."""
    place = Place(every)
    try:
        command = [sys.executable, "-m", "trainwatch", "run", "--headless", "--output-dir", str(place.out), "--"]
        words = [*command, place.script, "--resume", "{resume}"]
        done = subprocess.run(words, env=place.env, cwd=place.root, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"the watched run failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        (run,) = [path for path in (place.home / "runs").iterdir() if not path.name.startswith(".")]
        journal = run / "journal.jsonl"
        (incident,) = [i for i in load_story(journal).incidents if i.kind == "crash"]
        starts = [r.decision for r in read_journal(journal) if isinstance(r.decision, StartAttempt)]
        again = CRASH_AT - (starts[1].resume_step or 0)
        return place.gap_s(), incident.detect_s or 0.0, again, CRASH_AT % every
    finally:
        place.clear()


def looped(every: int) -> tuple[float, int]:
    """(gap, repeated steps) of the bash loop."""
    place = Place(every)
    try:
        begun = time.monotonic()
        done = subprocess.run(["bash", "-c", LOOP], env=place.env, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"the loop failed after {time.monotonic() - begun:.0f} s:\n{done.stderr[-2000:]}")
        resumed = re.search(r"esum\w* .*?step\D*(\d+)", done.stdout + done.stderr)
        return place.gap_s(), CRASH_AT - (int(resumed[1]) if resumed else 0)
    finally:
        place.clear()


def main() -> int:
    """Measure and print; 1 if the bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="recoveries each (default 5)")
    parser.add_argument("--save-every", type=int, default=20, help="steps between checkpoints (default 20)")
    args = parser.parse_args()
    gaps, detections, loops, extra = [], [], [], []
    for number in range(1, args.runs + 1):
        gap, detection, again, since = watched(args.save_every)
        loop, loop_again = looped(args.save_every)
        gaps.append(gap)
        detections.append(detection)
        loops.append(loop)
        extra.append(again - since)
        print(
            f"{number}: trainwatch {gap:.3f} s (detected after {detection:.3f} s), {again} steps repeated, {since} "
            f"since the newest checkpoint; bash loop {loop:.3f} s, {loop_again} steps",
            flush=True,
        )
    median, worst, base = statistics.median(gaps), max(gaps), statistics.median(loops)
    print(f"crash to new process: median {median:.3f} s, worst {worst:.3f} s (bound {BOUND_S:g} s)")
    print(f"of which detection: median {statistics.median(detections):.3f} s")
    print(f"ratio to the bash loop: {median / base:.1f} ({base:.3f} s, without any check)")
    print(f"steps lost beyond the newest complete checkpoint: at most {max(extra)}")
    return int(worst > BOUND_S or max(extra) > 0)


if __name__ == "__main__":
    sys.exit(main())

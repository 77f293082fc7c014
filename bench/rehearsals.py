"""``trainwatch rehearse`` on real frameworks: ``python bench/rehearsals.py [ROW…] [--cache DIR]``.

Uses the rows, environments and tiny trainings of ``bench/frameworks.py`` (install them with it first). Prints a row for
each: the verdict, the resume, step, loss, when a hang is seen, how long it took, and whether a file of the working
folder was touched. Exit code 1 if one was touched or left a process.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from gallery.environments import cache_folder, environment
from gallery.faults import BY_NAME
from gallery.place import NotPrepared, Place
from gallery.row import Row
from gallery.rows import all_rows

LIMIT_S = 540.0
MARKS = {True: "yes", False: "NO", None: "?"}


def fingerprint(folder: Path) -> dict[str, str]:
    """The files below a folder and their contents."""
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()}


def rehearse(row: Row, rows: dict[str, Row], cache: Path, limit_s: float) -> tuple[dict[str, Any], list[str]]:
    """The object of ``--json`` and the files that were touched. Raises NotPrepared, OSError, CalledProcessError."""
    shared = {p for other in rows.values() if other.environment == row.environment for p in other.packages}
    folder = environment(cache, row.environment, tuple(sorted(shared)))
    checkout = cache / "checkouts" / row.checkout if row.checkout else None
    if checkout is not None and not checkout.is_dir():
        raise NotPrepared(f"no checkout {checkout}")
    place = Place(row, BY_NAME["none"], cache / "rehearsals" / row.name, folder, checkout)
    place.prepare()
    before = fingerprint(place.work)
    words = [sys.executable, "-m", "trainwatch", "rehearse", "--json", "--timeout", f"{limit_s:g}", "--"]
    done = subprocess.run(
        [*words, *place.words(row.command)], cwd=place.work, env=place.env(), capture_output=True, text=True,
        timeout=limit_s + 120.0, check=False,
    )  # fmt: skip
    after = fingerprint(place.work)
    touched = sorted(path for path in {**before, **after} if before.get(path) != after.get(path))
    if not done.stdout.strip():
        return {"verdict": f"exit code {done.returncode}", "reason": done.stderr.strip()[-400:]}, touched
    return json.loads(done.stdout), touched


def line(name: str, found: dict[str, Any], touched: list[str]) -> str:
    """One row of the table."""
    steps, loss, resume = found.get("steps", {}), found.get("loss", {}), found.get("resume", {})
    cells = [
        f"{name:16}", f"{found['verdict']:8}", f"{resume.get('will', '–'):8}", f"{MARKS[steps.get('holds')]:4}",
        f"{MARKS[loss.get('holds')]:4}", f"{found.get('hang_after_s') or 0:5.0f} s", f"{found.get('took_s', 0):5.0f} s",
        f"touched {len(touched)}", found["reason"].replace("\n", " | ")[:300],
    ]  # fmt: skip
    return "  ".join(cells)


def main() -> int:
    """Rehearse the rows that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--cache")
    parser.add_argument("--limit", type=float, default=LIMIT_S)
    args = parser.parse_args()
    rows = all_rows()
    cache, bad = cache_folder(args.cache), 0
    print("row               verdict   resume    step  loss   hang      took", flush=True)
    for name in args.rows or rows:
        try:
            found, touched = rehearse(rows[name], rows, cache, args.limit)
        except (NotPrepared, OSError, subprocess.SubprocessError) as failed:
            print(f"{name:16}  skipped: {failed}", flush=True)
            continue
        bad += bool(touched)
        print(line(name, found, touched), flush=True)
        for advice in found.get("advice", ()):
            print(f"{'':16}  {advice}", flush=True)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())

"""Real frameworks under trainwatch, with faults: ``python bench/frameworks.py [ROW…] [--faults kill deadlock …]``.

Installs each framework from the package index into an environment of its own (``--cache DIR``), trains it tiny on the
CPU with ``trainwatch run -- COMMAND`` and no configuration, makes the faults inside the trainer, and compares what
trainwatch showed and did with the framework's own numbers and with a count of the optimizer's steps. What comes from no
package is given as ``--checkout NAME=DIR``. ``--list`` shows the rows.

Results are kept in the cache, so that several calls fill one table; ``--write-docs`` writes it into docs/frameworks.md,
``--record DIR`` keeps the logs of the undisturbed runs, and of the resumes after kill -9, as fixtures. Exit code 1 if a
row that was run has a fault.
"""

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from gallery.environments import NotInstalled, cache_folder, environment, version
from gallery.faults import BY_NAME, FAULTS, QUICK, Fault, applies
from gallery.fixtures import record, record_resume
from gallery.loops import until_loop
from gallery.outside import run_outside
from gallery.place import NotPrepared, Place
from gallery.row import Row
from gallery.rows import all_rows
from gallery.supervised import supervise
from gallery.table import Results, tables, write_docs
from gallery.verdicts import Result, judge, proof_of

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "frameworks.md"
LIMIT_S = 600.0


class Gallery:
    """Runs rows with faults and keeps the results in the cache."""

    def __init__(self, args: argparse.Namespace, rows: dict[str, Row]) -> None:
        self.args, self.rows = args, rows
        self.cache = cache_folder(args.cache)
        self.checkouts = {p.name: p for p in (self.cache / "checkouts").glob("*")}
        self.checkouts |= {name: Path(folder) for name, _, folder in (c.partition("=") for c in args.checkout)}
        self.results_folder = self.cache / "results"
        self.results_folder.mkdir(parents=True, exist_ok=True)
        self.skipped: dict[str, str] = {}
        self.pool = ThreadPoolExecutor(args.jobs)

    def results(self) -> Results:
        """All results that are kept, of this call and of earlier ones."""
        found = [msgspec.json.decode(p.read_bytes(), type=Result) for p in self.results_folder.glob("*.json")]
        return {(result.row, result.fault): result for result in found}

    def ready(self, row: Row) -> Path | None:
        """The row's environment, or None: ``skipped`` says why."""
        if row.checkout and row.checkout not in self.checkouts:
            self.skipped[row.name] = f"it is no package: give --checkout {row.checkout}=DIR"
            return None
        if self.args.here:
            return Path(sys.prefix)
        shared = {p for other in self.rows.values() if other.environment == row.environment for p in other.packages}
        try:
            return environment(self.cache, row.environment, tuple(sorted(shared)))
        except (NotInstalled, subprocess.CalledProcessError, OSError) as failed:
            self.skipped[row.name] = f"not installed: {failed}"
            return None

    def run_row(self, row: Row, faults: list[Fault]) -> list[Result]:
        """The undisturbed run first: the others are compared with its weights."""
        folder = self.ready(row)
        if folder is None:
            print(f"{row.name:16} skipped: {self.skipped[row.name]}", flush=True)
            return [failed(row, BY_NAME["none"], self.skipped[row.name])]
        kept = self.cache / "runs" / row.name
        wanted = [fault for fault in faults if applies(fault, row) and fault.name not in row.cannot]
        first = not row.ends and not any(fault.name == "none" for fault in wanted)
        if first and not (kept / "none" / "work").exists():
            wanted.insert(0, BY_NAME["none"])
        if self.args.loops:
            for fault in wanted:
                if fault.name != "none":
                    self.run_loop(row, fault, folder)
            return []
        if row.ends:
            return list(self.pool.map(lambda fault: self.run(row, fault, folder), wanted))
        done = [self.run(row, fault, folder) for fault in wanted if fault.name == "none"]
        done += self.pool.map(lambda fault: self.run(row, fault, folder), [f for f in wanted if f.name != "none"])
        return done

    def run(self, row: Row, fault: Fault, folder: Path) -> Result:
        kept, found = self.cache / "runs" / row.name, self.version(row, folder)
        config = bool(row.toml) and not self.args.zero
        place = Place(row, fault, kept / fault.name, folder, self.checkouts.get(row.checkout))
        try:
            place.prepare()
        except NotPrepared as reason:
            return self.keep(failed(row, fault, f"its data could not be made: {reason}", found))
        begun = time.monotonic()
        if row.ends:
            return self.keep(self.tell(run_outside(place, LIMIT_S, found), time.monotonic() - begun))
        done = supervise(place, LIMIT_S, config=config)
        clean = place if fault.name == "none" else None
        weights = None if clean else _newest(kept / "none" / "work", row.final)
        result = judge(place, done, weights, found, zero_config=not config)
        places = {str(place.work): "/home/user/run", str(self.cache): "/home/user/env"}
        traces, proof = sorted(place.root.glob("home/runs/*/trace.jsonl*")), proof_of(done.records)
        if fault.name == "kill" and self.args.record and result.passed and proof and traces:
            record_resume(Path(self.args.record), row, traces[0], proof, places=places)
        if clean and self.args.record and done.log:
            record(Path(self.args.record), row, found, Path(done.log), row.truth(place.work), places=places)
        before = self.results().get((row.name, fault.name))
        result = msgspec.structs.replace(result, loop=before.loop if before else "")
        return self.keep(self.tell(result, time.monotonic() - begun))

    def run_loop(self, row: Row, fault: Fault, folder: Path) -> None:
        """The same under an until loop; its outcome is added to the result that is kept."""
        kept = self.cache / "runs" / row.name
        place = Place(row, fault, kept / f"{fault.name}.until", folder, self.checkouts.get(row.checkout))
        place.prepare()
        outcome = until_loop(place, LIMIT_S)
        print(f"{row.name:16} {fault.name:10} until loop: {outcome}", flush=True)
        before = self.results().get((row.name, fault.name))
        if before is not None:
            self.keep(msgspec.structs.replace(before, loop=outcome))

    def tell(self, result: Result, took_s: float) -> Result:
        said = "right" if result.passed else "; ".join(result.why)
        print(f"{result.row:16} {result.fault:10} {took_s:5.0f} s  {said}", flush=True)
        return result

    def keep(self, result: Result) -> Result:
        path = self.results_folder / f"{result.row}.{result.fault}.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(result)))
        return result

    def version(self, row: Row, folder: Path) -> str:
        if row.checkout:
            command = ["git", "-C", str(self.checkouts[row.checkout]), "rev-parse", "--short", "HEAD"]
            return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "checkout"
        return version(folder, row.distribution)


def failed(row: Row, fault: Fault, why: str, found: str = "") -> Result:
    return Result(row=row.name, fault=fault.name, version=found, zero_config=True, passed=False, why=[why])


def _newest(work: Path, pattern: str) -> Path | None:
    return max(work.glob(pattern), key=lambda path: path.stat().st_mtime, default=None)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="frameworks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help="rows to run (default: all)")
    parser.add_argument("--rows", dest="more", nargs="+", default=[], metavar="ROW", help="the same as ROW …")
    parser.add_argument("--list", action="store_true", help="show the rows and what they need, and run nothing")
    parser.add_argument("--faults", nargs="+", choices=sorted(BY_NAME), help="faults to make (default: all)")
    parser.add_argument("--quick", action="store_true", help=f"only {' and '.join(QUICK)}")
    parser.add_argument("--cache", help="folder of environments, runs and results")
    parser.add_argument("--checkout", action="append", default=[], metavar="NAME=DIR", help="source that is no package")
    parser.add_argument("--here", action="store_true", help="use the packages of this Python, and install nothing")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="runs at once")
    parser.add_argument("--zero", action="store_true", help="zero configuration also for rows that need one")
    parser.add_argument("--loops", action="store_true", help="run each fault under an `until` loop instead")
    parser.add_argument("--record", metavar="DIR", help="keep the logs of undisturbed runs as fixtures")
    parser.add_argument("--write-docs", action="store_true", help="write the table of all results into the docs")
    parser.add_argument(
        "--table", action="store_true", help="print the table of the results that are kept; run nothing"
    )
    args = parser.parse_args()
    args.rows += args.more
    return args


def main() -> int:
    args, rows = arguments(), all_rows()
    unknown = [name for name in args.rows if name not in rows]
    if unknown:
        print(f"no such row: {', '.join(unknown)} (there are {', '.join(rows)})", file=sys.stderr)
        return 2
    if args.list:
        for row in rows.values():
            print(f"{row.name:16} {row.title:30} {row.checkout or ' '.join(row.packages)}")
        return 0
    gallery = Gallery(args, rows)
    names = args.faults or (QUICK if args.quick else [fault.name for fault in FAULTS])
    done = list[Result]()
    if not args.table:
        chosen = [rows[name] for name in args.rows or rows]
        faults = [BY_NAME[fault] for fault in names]
        with ThreadPoolExecutor(len(chosen)) as all_at_once:  # rows with faults from outside: only ``--jobs`` run
            apart = [all_at_once.submit(gallery.run_row, row, faults) for row in chosen if row.ends]
            for row in chosen:
                done += [] if row.ends else gallery.run_row(row, faults)
            done += [result for each in apart for result in each.result()]
    texts = tables(rows, gallery.results(), gallery.skipped)
    if args.write_docs:
        write_docs(DOCS, texts)
    if args.table or not args.rows:
        print("\n\n".join(texts))
    return 1 if any(not result.passed for result in done) else 0


if __name__ == "__main__":
    raise SystemExit(main())

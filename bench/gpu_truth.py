"""What trainwatch makes of a real GPU: ``python bench/gpu_truth.py [--faults oom …] [--write-docs]``.

Compares each figure of its GPU reader with nvidia-smi, at rest and under load. Then real faults in a small PyTorch
training, each under ``trainwatch run``: out of memory, an illegal access, a device assert, a kernel that never ends, a
deadlocked stream, a child that holds memory after its parent died. Prints what was recognised and when, what
the memory gate waited for, the remedy, and how it ended. ``--gallery``: also the quick rows of bench/frameworks.py.

Without a GPU it says so and ends with 0. ``--plumbing`` runs everything that needs none: the same trainings on the CPU
with stand-ins for the faults (``--smi`` names a stand-in of nvidia-smi for a simulated NVML). It proves nothing about
a GPU. Exit code 1 if a figure differs or a fault was not recognised or not survived.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gpu_truth_figures import Compared, ask_smi, compare

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(__file__).with_name("gpu_truth_program.py")
DOCS = ROOT / "docs" / "gpu-truth.md"
LIMIT_S = 1500.0
QUICK = "[watch]\ninterval_s = 0.2\nsettle_s = 0.2\n[hang]\nmin_s = 3\nstartup_s = 60\n"
QUICK += "[restart]\nbackoff_s = [0]\ninterrupt_grace_s = 1\nterminate_grace_s = 1\ngpu_clear_timeout_s = 5\n"


class Expected(NamedTuple):
    """The incident that must be seen: kind, and the classes that are right."""

    kind: str
    classes: tuple[str, ...]


FAULTS = {
    "oom": Expected("crash", ("cuda_oom",)),
    "illegal": Expected("crash", ("cuda_illegal_access",)),
    "assert": Expected("crash", ("cuda_device_assert",)),
    "endless": Expected("hang", ("spin", "idle")),
    "deadlock": Expected("hang", ("idle", "spin")),
    "orphan": Expected("crash", ("unknown", "host_oom")),
}


def main() -> int:
    """Figures, then faults, then the result in a file and, if asked, in the docs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", nargs="*", default=list(FAULTS), choices=list(FAULTS), metavar="FAULT")
    parser.add_argument("--python", default=sys.executable, help="the Python whose PyTorch is used")
    parser.add_argument("--smi", default="nvidia-smi", help="nvidia-smi, or a program that prints like it")
    parser.add_argument("--plumbing", action="store_true", help="without a GPU: stand-ins on the CPU")
    parser.add_argument(
        "--gallery", action="store_true", help="also the quick rows of bench/frameworks.py, on this GPU"
    )
    parser.add_argument("--out", type=Path, default=Path("gpu_truth.json"))
    parser.add_argument("--write-docs", action="store_true", help=f"write {DOCS.relative_to(ROOT)}")
    args = parser.parse_args()
    if not args.plumbing and (why := no_gpu(args.smi, args.python)):
        print(f"skipped: {why}; --plumbing runs what needs no GPU")
        return 0
    found: dict[str, Any] = {"machine": machine(args), "figures": [], "faults": []}
    if not args.plumbing or args.smi != "nvidia-smi":
        found["figures"] = figures(args)
    found["faults"] = [show(run_fault(name, args)) for name in args.faults]
    if args.gallery:
        words = [sys.executable, str(ROOT / "bench" / "frameworks.py"), "--here", "hf", "lightning", "timm", "torchrun"]
        found["gallery"] = subprocess.run(words, check=False).returncode
    args.out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"results: {args.out}")
    if args.write_docs and not args.plumbing:
        DOCS.write_text(page(found))
    bad = [f for f in found["figures"] if f["agrees"] is False] + [f for f in found["faults"] if not f["passed"]]
    return int(bool(bad))


def no_gpu(smi: str, python: str) -> str | None:
    """Why nothing can be measured here; None if there is a GPU that PyTorch can use."""
    if shutil.which(smi) is None:
        return "no nvidia-smi here, so no NVIDIA GPU with its driver"
    try:
        gpus = ask_smi([smi])
    except (OSError, ValueError, subprocess.SubprocessError) as failed:
        return f"nvidia-smi does not answer: {failed}"
    if not gpus:
        return "nvidia-smi lists no GPU"
    asked = subprocess.run(
        [python, "-c", "import torch; raise SystemExit(not torch.cuda.is_available())"],
        capture_output=True,
        check=False,
    )
    return None if asked.returncode == 0 else f"the PyTorch of {python} does not see CUDA (--python names another)"


def machine(args: argparse.Namespace) -> dict[str, Any]:
    """Card, driver, host and date."""
    try:
        cards = [f"{gpu['name']}, driver {gpu['driver_version']}" for gpu in ask_smi([args.smi])]
    except (OSError, ValueError, subprocess.SubprocessError):
        cards = []
    kind = "stand-ins on the CPU: nothing here speaks of a GPU" if args.plumbing else "real"
    return {"cards": cards, "kind": kind, "system": platform.platform(), "date": time.strftime("%Y-%m-%d")}


def figures(args: argparse.Namespace) -> list[dict[str, Any]]:
    """All figures at rest, and under load if there is a GPU."""
    found = [("rest", each) for each in compare([args.smi])[0]]
    if not args.plumbing:
        with tempfile.TemporaryDirectory() as folder:
            words = [args.python, str(PROGRAM), "--fault", "load", "--step-time", "0.01", "--output-dir", folder]
            with subprocess.Popen(words, stdout=subprocess.DEVNULL) as load:
                time.sleep(25)
                found += [("load", each) for each in compare([args.smi])[0]]
                load.kill()
    for when, each in found:
        print(figure_line(when, each), flush=True)
    return [{"when": when, **each._asdict()} for when, each in found]


def figure_line(when: str, each: Compared) -> str:
    """A line of the table: ours beside nvidia-smi's, and whether they agree."""

    mark = {True: "ok  ", False: "DIFF", None: "?   "}[each.agrees]
    seen = f"{rounded(each.ours):>9}  {rounded(each.low)} … {rounded(each.high)}"
    return f"{mark}  gpu {each.gpu}  {when:4}  {each.field:22} {seen}"


def rounded(number: float | None, unit: str = "") -> str:
    """A number with one decimal, or a dash."""
    return "–" if number is None else f"{number:.1f}{unit}"


def run_fault(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """One training with the fault under trainwatch, and what its journal holds."""
    with tempfile.TemporaryDirectory(prefix="gpu-truth-") as folder:
        work, home = Path(folder, "work"), Path(folder, "home")
        work.mkdir()
        command = [args.python, str(PROGRAM), "--fault", name, "--output-dir", "out", "--resume", "{resume}"]
        command += ["--device", "cpu", "--step-time", "0.05"] if args.plumbing else ["--device", "cuda"]
        quick = QUICK if args.plumbing else ""
        (work / "trainwatch.toml").write_text(
            f'[run]\nname = "job"\ncommand = {json.dumps(command)}\noutput_dir = "out"\n{quick}'
            "[tmux]\nenabled = false\n"
        )
        env = {key: value for key, value in os.environ.items() if not key.startswith("TRAINWATCH")}
        env["TRAINWATCH_HOME"] = str(home)
        ours = [sys.executable, "-m", "trainwatch"]
        supervisor = subprocess.Popen(
            [*ours, "--headless"], cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            code: int | None = supervisor.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            code = None
            subprocess.run([*ours, "kill", "--yes"], cwd=work, env=env, capture_output=True, check=False)
            supervisor.kill()
            supervisor.wait()
        asked = subprocess.run(
            [*ours, "events", "--json"], cwd=work, env=env, capture_output=True, text=True, check=False
        )
        return outcome(name, code, [json.loads(line) for line in asked.stdout.splitlines()])


def outcome(name: str, code: int | None, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Cause, latency, gate, remedy and end, from the journal. ``code`` None: it was ended after the limit."""
    facts = [record["fact"] for record in records if "fact" in record]
    expected = FAULTS[name]
    opened = [fact["incident"] for fact in facts if fact["fact"] == "incident_opened"]
    seen = next((i for i in opened if i["kind"] == expected.kind), None)
    ended = [fact["incident"].get("ending") for fact in facts if fact["fact"] == "incident_updated"]
    gates = [record for record in records if record.get("decision", {}).get("decision") == "clear_gpu"]
    waits = []
    for gate in gates:
        done = next((r for r in records if r.get("outcome", {}).get("decision") == gate["decision"]["id"]), None)
        if done is not None:
            waits.append(f"{done['t'] - gate['t']:.1f} s: {done['outcome'].get('detail', '')}")
    remedies = [fact["title"] for fact in facts if fact["fact"] == "remedy_applied"]
    recognised = seen is not None and seen["class"] in expected.classes
    return {
        "fault": name,
        "expected": f"{expected.kind} {'/'.join(expected.classes)}",
        "cause": None if seen is None else f"{seen['kind']} {seen['class']}",
        "reason": None if seen is None else seen["reason"],
        "detect_s": None if seen is None else seen.get("detect_s"),
        "gate": waits,
        "remedies": remedies,
        "ending": next((ending for ending in reversed(ended) if ending), None),
        "exit_code": code,
        "passed": recognised and code == 0,
    }


def show(found: dict[str, Any]) -> dict[str, Any]:
    """Print a fault's row and return it."""
    latency = rounded(found["detect_s"], " s")
    mark = "ok  " if found["passed"] else "FAIL"
    print(f"{mark}  {found['fault']:9} {found['cause'] or 'nothing seen':28} after {latency:9} {found['ending'] or ''}")
    print(
        f"      gate {'; '.join(found['gate']) or '–'}\n      remedy {', '.join(found['remedies']) or '–'}", flush=True
    )
    return found


def page(found: dict[str, Any]) -> str:
    """The results as a page of the docs."""
    of = found["machine"]
    lines = ["# Truth on a real GPU", "", "Written by `bench/gpu_truth.py --write-docs`.", ""]
    lines += [f"{of['date']}, {'; '.join(of['cards'])}, {of['system']}.", "", "## Figures", ""]
    gpus, agree = {f["gpu"] for f in found["figures"]}, [f for f in found["figures"] if f["agrees"]]
    names = ", ".join(dict.fromkeys(f["field"] for f in agree))
    seen = f"{len(found['figures'])} figures of {len(gpus)} GPU, at rest and under load: {len(agree)} agree"
    lines.append(f"{seen} with nvidia-smi ({names}).")
    for f in (f for f in found["figures"] if not f["agrees"]):
        mark = "**differs**" if f["agrees"] is False else "not known to both"
        ours, theirs = rounded(f["ours"]), f"{rounded(f['low'])} … {rounded(f['high'])}"
        lines.append(f"- GPU {f['gpu']}, {f['when']}, {f['field']}: {ours}, nvidia-smi {theirs}: {mark}")
    lines += ["", "## Faults", "", "| fault | cause | after | gate | remedy | end |", "|---|---|---|---|---|---|"]
    for f in found["faults"]:
        after, gate = rounded(f["detect_s"], " s"), "; ".join(f["gate"])
        cells = (f["fault"], f["cause"], after, gate, ", ".join(f["remedies"]), f["ending"])
        lines.append(f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

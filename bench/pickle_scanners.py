"""How our pickle reader compares with picklescan, fickling and modelscan on the same hostile and harmless files.

Run: ``python bench/pickle_scanners.py --scanners /path/to/venv/bin/python``, where that environment has the scanners
(``pip install picklescan fickling typing_extensions modelscan``); a scanner that is missing there is left out.
Each scanner runs in a child process with 4 GB of address space and 60 seconds for one file; times are CPU seconds.

Caught: a hostile file that is not called safe (for us: not ``complete``). False alarm: a harmless checkpoint of which
any file is not called safe.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
SUFFIXES = (".pt", ".pth", ".bin", ".pkl", ".ckpt")


def ours(path: Path) -> bool:
    from trainwatch.core.checkpoints.inspection import verify

    return verify(path, deep=False).verdict == "complete"


def picklescan(path: Path) -> bool:
    from picklescan.scanner import scan_file_path

    found = scan_file_path(str(path))
    return not found.scan_err and not found.issues_count


def picklescan_strict(path: Path) -> bool:
    from picklescan.scanner import scan_file_path

    found = scan_file_path(str(path), strict=True)
    return not found.scan_err and not found.issues_count


def _fickling(path: Path) -> list[Any]:
    from fickling.loader import scan_file, scan_zip_archive

    if path.read_bytes()[:2] == b"PK":
        return list(scan_zip_archive(str(path), graceful=True).values())
    return [scan_file(str(path), graceful=True)]


def fickling(path: Path) -> bool:
    return all(bool(result) for result in _fickling(path))


def fickling_malicious(path: Path) -> bool:
    """Only what it calls (likely) overtly malicious, or cannot read, counts as unsafe."""
    from fickling.analysis import Severity

    return all(found.severity < Severity.LIKELY_OVERTLY_MALICIOUS and not found.errors for found in _fickling(path))


def fickling_allow_list(path: Path) -> bool:
    """Its list of names that machine learning files may import (``fickling.ml``)."""
    import io
    import zipfile

    from fickling.analysis import AnalysisContext, Severity
    from fickling.fickle import StackedPickle
    from fickling.ml import MLAllowlist

    raw = path.read_bytes()
    if raw[:2] == b"PK":
        with zipfile.ZipFile(path) as archive:
            pickles = [archive.read(info) for info in archive.infolist() if info.filename.endswith(".pkl")]
    else:
        pickles = [raw]
    for data in pickles:
        for pickled in StackedPickle.load(io.BytesIO(data)):
            context = AnalysisContext(pickled=pickled)
            if any(result.severity > Severity.LIKELY_SAFE for result in MLAllowlist().analyze(context)):
                return False
    return True


def modelscan(path: Path) -> bool:
    from modelscan.modelscan import ModelScan

    found = ModelScan().scan(path)
    return not found["issues"] and not found["errors"]


TOOLS: dict[str, Callable[[Path], bool]] = {
    "ours": ours,
    "picklescan": picklescan,
    "picklescan --strict": picklescan_strict,
    "fickling": fickling,
    "fickling, overtly malicious": fickling_malicious,
    "fickling allow-list": fickling_allow_list,
    "modelscan": modelscan,
}


def work(tool: str) -> None:
    """Child: one path a line in, one JSON verdict a line out."""
    import logging
    import os

    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        began = time.process_time()
        try:
            safe, error = TOOLS[tool](Path(line.strip())), None
        except ModuleNotFoundError as missing:
            safe, error = None, f"missing: {missing.name}"
        except BaseException as failure:
            safe, error = False, type(failure).__name__
        answers.write(json.dumps({"safe": safe, "error": error, "seconds": time.process_time() - began}) + "\n")


class Scanner:
    """A child process, started again when a file ends it."""

    def __init__(self, python: str, tool: str) -> None:
        self.tool = tool
        self._command = [python, __file__, "--work", tool]
        self._child: subprocess.Popen[str] | None = None

    def scan(self, path: Path) -> dict[str, Any]:
        import select

        if self._child is None:
            self._child = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, bufsize=1
            )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{path}\n")
        ready, _, _ = select.select([self._child.stdout], [], [], 60)
        line = self._child.stdout.readline() if ready else ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self._child.kill()
        code = self._child.wait()
        self._child = None
        return {"safe": False, "error": "timeout" if not ready else f"ended by signal {-code}", "seconds": 60.0}


def hostile(folder: Path) -> dict[str, dict[str, Path]]:
    """Hostile files by group: each pickle in an archive of torch, and tricks as bare pickles, too."""
    from tests.fakes import hostile_pickles as source

    marker = folder / "executed"
    pickles = {
        "ways to call": source.tricks(marker),
        "names in advisories": {name: source.called(*name.rpartition(".")[::2]) for name in source.CALLABLES},
        "names through a harmless module": {f"{m}: {n}": source.called(m, n) for m, n in source.LENT},
        "classes that load a file": {
            f"{m}.{n}": source.called(m, n, argument=argument) for m, n, argument in source.LOADERS
        },
        "calls hidden from lists of names": source.STREAMS,
        "payload, then damage": source.broken_streams(marker),
    }
    groups: dict[str, dict[str, Path]] = {}
    for group, found in pickles.items():
        for name, data in found.items():
            path = folder / f"{len(groups)}-{len(groups.get(group, {}))}-zip.pt"
            source.write_archive(path, data)
            groups.setdefault(group, {})[name] = path
            if group == "ways to call":
                bare = path.with_name(path.name.replace("-zip.pt", "-bare.pkl"))
                bare.write_bytes(data)
                groups.setdefault("the same as bare pickles", {})[name] = bare
    scratch = folder / "scratch"
    scratch.mkdir()
    for number, (name, raw) in enumerate(source.archives(scratch).items()):
        path = folder / f"archive-{number}.pt"
        path.write_bytes(raw)
        groups.setdefault("archives read differently", {})[name] = path
    return groups


def harmless(folder: Path) -> dict[str, Path]:
    """Checkpoints of every layout, and what torch itself writes."""
    from tests.fakes.checkpoint_layouts import LAYOUTS

    found = {name: build(folder / name) for name, build in LAYOUTS.items()}
    try:
        import torch
    except ImportError:
        return found
    import datetime as dt
    import random

    import numpy as np

    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    made: dict[str, Any] = {
        "state of a training": {**state, "global_step": 7},
        "with arguments": {**state, "args": argparse.Namespace(lr=1e-4, out=Path("out")), "step": 7},
        "with RNG states": {
            **state,
            "rng": {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()},  # noqa: NPY002
            "generator": np.random.default_rng(0),
        },
        "with numbers of numpy": {**state, "best": np.float64(0.1), "curve": np.arange(9.0)},
        "with dates and sets": {
            **state,
            "saved": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
            "seen": {1, 2},
            "size": torch.Size([1]),
        },
        "bfloat16 and complex": {"a": torch.ones(3, dtype=torch.bfloat16), "b": torch.ones(3, dtype=torch.complex64)},
        "parameters": {"p": torch.nn.Parameter(torch.ones(3)), "b": torch.nn.Buffer(torch.ones(3))},
        "sparse and quantized": {
            "s": torch.eye(3).to_sparse(),
            "q": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
        },
        "shared and transposed": {"a": (base := torch.ones(4, 4)), "b": base.t(), "c": base[1:3]},
        "whole model": model,
    }
    for name, value in made.items():
        for legacy in (False, True):
            path = folder / f"{name}{' (before torch 1.6)' if legacy else ''}.pt"
            torch.save(value, path, _use_new_zipfile_serialization=not legacy)
            found[path.stem] = path
    return found


def files_of(path: Path) -> Iterator[Path]:
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    yield from (file for file in files if file.suffix in SUFFIXES or file.name == ".metadata")


def large(folder: Path) -> Path:
    """A million opcodes: 20,000 parameters with their optimizer state, and a history of 200,000 numbers."""
    from tests.fakes.hostile_pickles import write_archive
    from tests.fakes.torch_files import pickled

    path = folder / "large.pt"
    state = {index: {"step": index, "name": f"layer.{index}", "betas": (0.9, 0.999)} for index in range(60_000)}
    write_archive(path, pickled({"state": state, "history": list(range(200_000))}, []))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scanners", default=sys.executable, help="python of the environment with the scanners")
    parser.add_argument("--missed", action="store_true", help="list what each scanner missed")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, str(REPOSITORY))
    if options.work is not None:
        work(options.work)
        return
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        (root / "hostile").mkdir()
        (root / "harmless").mkdir()
        groups, healthy, big = hostile(root / "hostile"), harmless(root / "harmless"), large(root)
        for tool in TOOLS:
            scanner = Scanner(sys.executable if tool == "ours" else options.scanners, tool)
            first = scanner.scan(big)
            if first["safe"] is None:
                print(f"{tool}: {first['error']}")
                continue
            print(f"\n{tool}: a million opcodes in {first['seconds']:.2f} CPU-s", first["error"] or "")
            caught = total = 0
            for group, paths in groups.items():
                answers = {name: scanner.scan(path) for name, path in paths.items()}
                missed = [name for name, answer in answers.items() if answer["safe"]]
                ended = [
                    f"{name}: {a['error']}"
                    for name, a in answers.items()
                    if str(a["error"]).startswith(("end", "tim", "Mem"))
                ]
                caught, total = caught + len(paths) - len(missed), total + len(paths)
                print(f"  {group:34} {len(paths) - len(missed):4} of {len(paths)}", *ended)
                if options.missed and missed:
                    print("      missed:", ", ".join(missed))
            print(f"  {'caught in all':34} {caught:4} of {total}")
            alarms = [
                name
                for name, path in healthy.items()
                if not (ours(path) if tool == "ours" else all(scanner.scan(file)["safe"] for file in files_of(path)))
            ]
            print(f"  {'false alarms':34} {len(alarms):4} of {len(healthy)}")
            if options.missed and alarms:
                print("      on:", ", ".join(alarms))
        assert not (root / "hostile" / "executed").exists(), "a payload ran"


if __name__ == "__main__":
    main()

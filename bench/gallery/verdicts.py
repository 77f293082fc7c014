"""What trainwatch showed and did, compared with the framework's own numbers and with the ledger of optimizer steps."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from .place import HERE, Place
from .row import Row, Truth
from .supervised import Sample, Supervised, progress_of

LAG_S = 8.0
"""The newest status may be as old as this, in seconds of training, and still be right."""
ETA_SHARE, ETA_S = 0.4, 5.0
"""A time left is right if it is off by at most this share of the truth, or by this many seconds."""
LOSS_SHARE = 0.001
"""Frameworks print a loss with at least three digits; the mean of a run is further away than this."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One row with one fault. ``right``: column → whether it was right (None: does not apply); ``why``: the reasons."""

    row: str
    fault: str
    version: str
    zero_config: bool
    passed: bool
    right: dict[str, bool | None] = {}
    why: list[str] = []
    state: str = ""
    resumed: int | None = None
    """The step after which the last life went on, by its count of optimizer steps."""
    proof: str = ""
    hang_s: float | None = None
    hang_kind: str = ""
    remedy: str = ""
    final_step: int | None = None
    weights: str = ""
    loop: str = ""


def judge(place: Place, done: Supervised, undisturbed: Path | None, version: str, *, zero_config: bool) -> Result:
    """The result of one run. ``undisturbed``: the final weights of the row's run without a fault."""
    row, fault = place.row, place.fault
    found = Result(row=row.name, fault=fault.name, version=version, zero_config=zero_config, passed=False)
    state, why = str(done.status.get("state", "")), list[str]()
    held = fault.name in row.held or (fault.name != "none" and not row.resumes)
    if state != "finished" and not held:
        why.append(f"ended {state or 'without a run'}: {done.status.get('reason') or done.output.strip()[-300:]}")
    if done.code is None:
        why.append("not at its end after the limit")
    right = _shown(place, done, why) if fault.name == "none" else {}
    lives = place.lives()
    final_step = _truth(row, place.work).run_step
    if fault.name != "none" and place.fault_time() is None:
        why.append(f"the fault never came: {[len(life.times) for life in lives]} steps in the lives")
    resumed, proof = None, ""
    if held:
        right |= _held(place, state, why)
    elif fault.name != "none" and lives:
        resumed = row.steps - len(lives[-1].times) if len(lives) > 1 else None
        said = proof_of(done.records)
        proof = "" if said is None else said[0]
        right |= _went_on(row, fault.name, resumed, proof, why)
    if lives and not held and len(lives[-1].times) + (resumed or 0) != row.steps:
        why.append(f"the steps of the lives were {[len(life.times) for life in lives]}, {row.steps} in all are needed")
    hang = hang_of(place, done.records)
    if fault.hangs:
        right["hang seen"] = hang is not None
        if hang is None:
            why.append("the hang was not seen")
    if fault.rank:
        right["rank named"] = _names_rank(done.records, fault.rank)
        if not right["rank named"]:
            why.append(f"no incident names rank {fault.rank}")
    weights = _weights(place, undisturbed)
    if undisturbed is not None and fault.name != "none" and not held:
        right["final"] = (weights == "equal" or not row.exact) and weights != "missing"
        if not right["final"]:
            why.append(f"final weights: {weights}")
    return msgspec.structs.replace(
        found,
        passed=not why,
        right=right,
        why=why,
        state=state,
        resumed=resumed,
        proof=proof,
        hang_s=hang[0] if hang else None,
        hang_kind=hang[1] if hang else "",
        remedy=_remedy(done.records),
        final_step=final_step,
        weights=weights,
    )


def _truth(row: Row, work: Path) -> Truth:
    try:
        return row.truth(work)
    except (OSError, ValueError, LookupError):
        return Truth()


def _shown(place: Place, done: Supervised, why: list[str]) -> dict[str, bool | None]:
    """Columns of the run without a fault."""
    row, truth = place.row, _truth(place.row, place.work)
    created = next((f for f in facts_named(done.records, "run_created")), {})
    folders = [created.get("output_dir"), *(fact["folder"] for fact in facts_named(done.records, "output_known"))]
    known, wanted_folder = [_resolved(place, folder) for folder in folders if folder], _wanted_folder(place)
    checks: dict[str, tuple[Any, Any]] = {
        "preset": (created.get("preset"), row.preset),
        "output folder": (wanted_folder if wanted_folder in known else ", ".join(known), wanted_folder),
    }
    read = progress_of(place, done.log)
    for key in ("step", "total_steps", "epoch", "total_epochs", "loss", "run_step", "run_total_steps"):
        checks[key] = (read.get(key), getattr(truth, key))
    right: dict[str, bool | None] = {}
    for key, (seen, wanted) in checks.items():
        right[key] = seen is None if key in truth.unsaid else None if wanted is None else _same(key, seen, wanted)
        if right[key] is False:
            why.append(f"{key}: shown {seen}, right {wanted}")
    if row.log_every:
        right["live step"] = _live(place, done.samples, why)
        right["ETA"] = _eta(place, done.samples, why)
    right["checkpoints"] = _checkpoints(place, done.records, why)
    return right


def _resolved(place: Place, folder: str) -> str:
    return str((place.work / folder).resolve())


def _wanted_folder(place: Place) -> str:
    """The row's output folder; some frameworks put the date of the start into its name."""
    folder = place.newest(place.row.output_dir) if "*" in place.row.output_dir else place.work / place.row.output_dir
    return str((folder or place.work).resolve())


def _same(key: str, seen: Any, wanted: Any) -> bool:
    if seen is None:
        return False
    if key == "loss":
        return bool(abs(seen - wanted) <= max(LOSS_SHARE * abs(wanted), 0.0051))
    return bool(abs(seen - wanted) < 0.05) if isinstance(wanted, float) else bool(seen == wanted)


def _live(place: Place, samples: list[Sample], why: list[str]) -> bool | None:
    """Whether the step that was shown during the run was that of the ledger, up to the lag of logs and samples."""
    times = [time for life in place.lives() for time in life.times]
    wrong, seen = [], 0
    for sample in samples:
        step = _run_step(sample.progress)
        if step is None:
            continue
        seen += 1
        least = sum(time < sample.wall - LAG_S for time in times) - place.row.log_every
        most = sum(time < sample.read + 1.0 for time in times) + 1
        if not least <= step <= most:
            wrong.append(f"{step} at {sum(time < sample.wall for time in times)}")
    if wrong or not seen:
        why.append(f"step while it trained: {', '.join(wrong[:3]) or 'never shown'}")
    return not wrong and seen > 0


def _eta(place: Place, samples: list[Sample], why: list[str]) -> bool | None:
    """Whether most of the times left that were shown in the middle of the run were right."""
    times = [time for life in place.lives() for time in life.times]
    if not times:
        return False
    begun, end = times[0], times[-1]
    pairs = [
        (end - sample.wall, sample.progress.get("eta_s")) for sample in samples
        if begun + 0.4 * (end - begun) < sample.wall < begun + 0.9 * (end - begun)
    ]  # fmt: skip
    if place.row.total_unsaid and not any(sample.progress.get("total_by") for sample in samples):
        shown = [eta for _, eta in pairs if eta is not None]
        if shown:
            why.append(f"ETA: {shown[0]} s although neither log nor settings say how many steps there are")
        return False if shown else None
    if not pairs:
        return None
    good = [left for left, eta in pairs if eta is not None and abs(eta - left) <= max(ETA_SHARE * left, ETA_S)]
    if 2 * len(good) <= len(pairs):
        said = ", ".join(f"{eta if eta is None else round(eta)} s when {left:.0f} s were left" for left, eta in pairs)
        why.append(f"ETA: {said}")
    return 2 * len(good) > len(pairs)


def _run_step(progress: dict[str, Any]) -> int | None:
    step = progress.get("run_step")
    return progress.get("step") if step is None else step


def _checkpoints(place: Place, records: list[dict[str, Any]], why: list[str]) -> bool:
    """Whether each checkpoint that exists at the end was seen with its step."""
    row = place.row
    seen = {c["path"]: c.get("step") for f in facts_named(records, "checkpoint") if (c := f["checkpoint"])}
    steps = {*range(row.save_every, row.steps + 1, row.save_every), row.steps} | (
        set() if row.steps_in_files else {None}
    )
    there = sorted(os.path.normpath(path) for path in place.work.glob(row.checkpoints))
    missing = [Path(path).name for path in there if path not in seen]
    wrong = [f"{Path(path).name} with step {seen[path]}" for path in there if path in seen and seen[path] not in steps]
    if missing:
        why.append(f"checkpoints not seen: {', '.join(missing)}")
    if wrong:
        why.append(f"checkpoints seen as {', '.join(wrong)}")
    if not there:
        why.append(f"nothing matches {row.checkpoints}")
    return not missing and not wrong and bool(there)


def _held(place: Place, state: str, why: list[str]) -> dict[str, bool | None]:
    """Whether the run waits for a person, no second attempt trained, and the checkpoints of the first are there."""
    row, lives = place.row, place.lives()
    if state != "given_up":
        why.append(f"not held: the run is {state}")
    if len(lives) != 1:
        why.append(f"not held: {len(lives)} processes trained")
    if place.newest(row.checkpoints) is None:
        why.append(f"no file matches {row.checkpoints} any more")
    return {"held": not why}


def _went_on(row: Row, fault: str, resumed: int | None, proof: str, why: list[str]) -> dict[str, bool | None]:
    """Whether the last life began after the newest usable checkpoint, and whether trainwatch says so with proof."""
    wanted = row.resume_step(fault)
    right = resumed is not None and wanted <= resumed <= row.at
    if not right:
        why.append(f"went on after step {resumed}, step {wanted} was saved")
    proven = resumed is not None and _is_proof(row, proof, resumed)
    if right and not proven:
        why.append(f"proof: {proof or 'none'}")
    return {"resumed": right, "proven": proven}


def _is_proof(row: Row, proof: str, resumed: int) -> bool:
    """Whether the sentence names the checkpoint's step, if it holds one, and the first step after it."""
    if row.total_unsaid and proof.endswith(f" holds step {resumed}"):
        return True  # the bar of the epoch that it goes on in counts its batches only
    numbers = [int(number) for number in re.findall(r"(?<!\.)\d+", proof)]
    if not numbers or not (resumed in numbers or not row.steps_in_files):
        return False
    epoch = re.search(r"(?:epoch after it|goes on in epoch) (\d+)$", proof)
    if epoch is not None:  # the log prints epochs only, from 0 or from 1
        return int(epoch[1]) - resumed // row.save_every in {0, 1}
    first = numbers[-1]
    if "own count continues" in proof:  # weights alone
        return first == resumed
    if "at or before" in proof:  # the log prints some steps only
        return resumed < first <= resumed + (row.log_every or row.save_every) + 1
    counted = "goes on at" in proof or "own count continues from step" in proof  # with the step of the checkpoint
    return resumed <= first <= resumed + 1 if counted else first == resumed + 1


def proof_of(records: list[dict[str, Any]]) -> tuple[str, float] | None:
    """The last sentence with which trainwatch says that a resume took effect, and when, in run seconds."""
    for record in reversed(records):
        fact = record.get("fact", {})
        if fact.get("fact") == "note" and "verified: " in fact["text"]:
            return fact["text"], record["t"]
    return None


def hang_of(place: Place, records: list[dict[str, Any]]) -> tuple[float, str] | None:
    """Seconds from the fault to the verdict, and the kind of the hang."""
    fault = place.fault_time()
    for incident in (f["incident"] for f in facts_named(records, "incident_opened")):
        if incident["kind"] == "hang" and fault is not None:
            return incident["wall"] - fault, incident["class"]
    return None


def _names_rank(records: list[dict[str, Any]], rank: int) -> bool:
    """Whether the hang or the crash is said to come from this rank, in its reason or its explanation."""
    incidents = [fact["incident"] for fact in facts_named(records, "incident_opened")]
    told = [f"{each['reason']} {each['explanation']}" for each in incidents if each["kind"] in {"hang", "crash"}]
    return any(re.search(rf"(?i)\brank {rank}\b", text) for text in told)


def _remedy(records: list[dict[str, Any]]) -> str:
    """The settings that were changed, as the framework was given them."""
    changed = [change for f in facts_named(records, "remedy_applied") for change in f.get("changes", [])]
    return ", ".join(f"{change['key']} {change['before']} → {change['after']}" for change in changed)


def facts_named(records: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [record["fact"] for record in records if record.get("fact", {}).get("fact") == name]


def _weights(place: Place, undisturbed: Path | None) -> str:
    """The final weights against those of the undisturbed run: ``equal``, the largest difference, or ``missing``."""
    final = place.newest(place.row.final)
    if final is None:
        return "missing"
    if undisturbed is None:
        return ""
    done = subprocess.run(
        ["python", str(HERE / "weights.py"), str(undisturbed), str(final)],
        env=place.env(counted=False), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        return f"not comparable: {done.stderr.strip().splitlines()[-1:]}"
    gap = float(done.stdout.split()[-1])
    return "equal" if gap <= 1e-6 else f"off by {gap:.2g}"

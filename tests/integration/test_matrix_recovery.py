"""Every fault in every framework, with real PyTorch and real processes: right cause, remedy, resume point and proof.

By default a few faults whose answer no other test with real processes shows, each once; numpy writes the files of
PyTorch. ``TRAINWATCH_MATRIX=all`` runs every cell, ``TRAINWATCH_MATRIX="crash oom"`` these faults in every framework,
with PyTorch throughout.
"""

import importlib.util
import os
from pathlib import Path

import msgspec
import pytest

from tests.integration.matrix_world import Cell, Seen, run_cells

pytestmark = [
    pytest.mark.torch,
    pytest.mark.timeout(600),
    # Looked for, not imported: that costs more than a cell.
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="could not import 'torch'"),
]

CHOSEN = os.environ.get("TRAINWATCH_MATRIX", "")
UNCHANGED: tuple[str, ...] = ()


class Expected(msgspec.Struct, frozen=True):
    """``at``: position resumed from; None = nothing is started again. ``bad``: verdict of the newest checkpoint.

    ``times``: how often it fails.
    """

    kind: str
    class_: str
    state: str = "finished"
    at: int | None = 20
    remedies: tuple[str, ...] = UNCHANGED
    bad: str | None = None
    times: int = 1


FAULTS = {
    "crash": Expected("crash", "cuda_unknown_error"),
    "oom": Expected("crash", "cuda_oom", remedies=("expandable-segments",)),
    "oom-large": Expected("crash", "cuda_oom", remedies=("expandable-segments", "half-batch"), times=2),
    "hang": Expected("hang", "idle"),
    "hang-loader": Expected("hang", "starved", remedies=("fewer-workers",)),
    "nan": Expected("crash", "nan_loss", remedies=("half-learning-rate",)),
    "torn": Expected("crash", "cuda_unknown_error", at=10, bad="torn"),
    "flipped": Expected("crash", "cuda_unknown_error", at=10, bad="corrupt"),
    "nan-saved": Expected("crash", "cuda_unknown_error", at=10, bad="nonfinite"),
    "nan-optimizer": Expected("crash", "cuda_unknown_error", at=10, bad="nonfinite"),
    "disk-full": Expected("crash", "disk_full", at=10),
    "typo": Expected("crash", "config_error", state="given_up", at=None),
    "import": Expected("crash", "import_error", state="given_up", at=None),
    "killed": Expected("crash", "killed_by_user", state="stopped", at=None),
}
ONCE = {
    "kohya": ("hang-loader", "disk-full"),
    "hf": ("torn", "nan-optimizer"),
}
NAMES = {"kohya": "luca-{epoch:06d}.safetensors", "dit": "checkpoint-{step}", "hf": "checkpoint-{step}"}
RESUME_KEYS = {"kohya": "network_weights", "dit": "resume", "hf": "resume_from_checkpoint"}


@pytest.mark.parametrize("framework", list(NAMES) if CHOSEN else list(ONCE))
def test_every_fault_is_diagnosed_and_recovered_with_its_remedy(framework: str, tmp_path: Path) -> None:
    faults = tuple(FAULTS) if CHOSEN == "all" else tuple(CHOSEN.split()) or ONCE[framework]

    cells = run_cells([Cell(framework, fault, light=not CHOSEN) for fault in faults], tmp_path)

    wrong = [f"{cell.framework} x {cell.fault}: {what}" for cell, seen in cells for what in complaints(cell, seen)]
    assert not wrong, "\n".join(wrong)


def expected_of(cell: Cell, seen: Seen) -> Expected:
    """The row of the table, where a framework does not do better."""
    row = FAULTS[cell.fault]
    match cell.framework, cell.fault:
        case "kohya", "nan-optimizer":  # it saves the weights apart from the state, and those are good
            return msgspec.structs.replace(row, at=20)
        case "kohya", "oom-large":  # its steps begin anew with each attempt: the second one never gets that far
            return FAULTS["oom"]
        case "hf", "nan":  # the scheduler that it restores brings its own rate back, and the remedy is taken back
            return msgspec.structs.replace(row, remedies=())
        case "dit", "hang-loader" if "checkpoint-25" in {c.name for c in seen.story.checkpoints}:
            return msgspec.structs.replace(row, at=25)  # asked to end, it saved once more
        case _:
            return row


def complaints(cell: Cell, seen: Seen) -> list[str]:
    """All that is not as the table has it."""
    row, story = expected_of(cell, seen), seen.story
    wrong: list[str] = []

    def check(what: str, found: object, wanted: object) -> None:
        if found != wanted:
            wrong.append(f"{what} is {found!r}, wanted {wanted!r}")

    troubles = [(i.kind, i.class_) for i in story.incidents if i.kind in {"crash", "hang", "resume"}]
    check("cause", troubles, [(row.kind, row.class_)] * row.times)
    check("state", seen.state, row.state)
    check("remedies", tuple(r.name for r in story.remedies), row.remedies)
    check("the user's files that changed", seen.touched, ())
    launches = row.times if row.at is None else row.times + 1
    check("processes of the trainer", len(seen.read), launches)
    check("launches", len(seen.starts), launches)
    if row.at is None or len(seen.starts) < 2 or len(seen.read) < 2:
        return wrong or ([] if row.at is None else [seen.said[-1500:]])
    name = NAMES[cell.framework].format(step=row.at, epoch=row.at // 10)
    check("resumed from", Path(seen.starts[1].resume_from or "").name, name)
    check("resume step", seen.starts[1].steps_done, row.at)
    check("the trainer read", Path(str(seen.read[1].get(RESUME_KEYS[cell.framework]))).name, name)
    check("proof", [n for n in seen.notes if n.startswith("resume verified")][:1] != [], True)
    ending = next((i.ending or "" for i in story.incidents if i.kind == row.kind), "")
    check("ending", ending.startswith(f"recovered: resumed from {name}"), True)
    if (cell.framework, cell.fault) != ("dit", "oom-large"):  # its bar counts batches, of which there are more then
        check("position at the end", story.overall_step, 40)
    if row.bad is not None:
        skipped = [(i.class_, i.ending) for i in story.incidents if i.kind == "checkpoint"]
        check("the bad checkpoint", skipped, [(row.bad, "skipped")])
    return [*wrong, *(f"notes: {seen.notes}" for _ in wrong[:1])]

"""The table of checkpoint suffixes is the only one: a row that is added there is known everywhere."""

import ast
import subprocess
import sys
from pathlib import Path

from tests.source_trees import OURS, one_of, trees
from trainwatch.core.model import checkpoint_suffixes
from trainwatch.core.model.checkpoint_suffixes import TENSOR_SUFFIXES

TABLE = Path(checkpoint_suffixes.__file__).resolve()

WITH_ONE_ROW_MORE = """
import json, sys, types
from pathlib import Path

source = Path(sys.argv[1]).read_text()
assert source.count('".sft": "safetensors",') == 1
table = types.ModuleType(sys.argv[3])
sys.modules[table.__name__] = table
exec(source.replace('".sft": "safetensors",', '".sft": "safetensors", ".new": "safetensors",'), table.__dict__)

import numpy as np
from safetensors.numpy import save_file
from trainwatch.core.act import stop_sequence as save_in_progress
from trainwatch.core.app.preflight import launch_checks
from trainwatch.core.checkpoints.inspection import verify
from trainwatch.core.checkpoints.listing import list_checkpoints
from trainwatch.core.judge.resume import checkpoint_index as known_checkpoint
from trainwatch.core.sense.files import checkpoint_scan as checkpoint_entries

root = Path(sys.argv[2])
save_file({"w": np.ones(3, dtype=np.float32)}, root / "luca-000004.new")
shards = root / "checkpoint-7"
shards.mkdir()
for number in (1, 2):
    save_file({f"w{number}": np.ones(3, dtype=np.float32)}, shards / f"model-0000{number}-of-00002.new")
weight_map = {f"w{number}": f"model-0000{number}-of-00002.new" for number in (1, 2)}
(shards / "model.new.index.json").write_text(json.dumps({"weight_map": weight_map}))

assert checkpoint_entries.is_candidate("luca.new", is_directory=False)
assert known_checkpoint.KnownCheckpoint(path="/out/luca.new", t=0.0).shape == "file"
assert known_checkpoint.as_fact(known_checkpoint.KnownCheckpoint(path="/o/l.new", t=0.0), 0.0, "complete").checkpoint.kind == "safetensors"
assert ".new" in launch_checks.FILE_SUFFIXES
assert ".new" in save_in_progress.WEIGHT_SUFFIXES
assert {c.name for c in list_checkpoints(root).checkpoints} == {"luca-000004.new", "checkpoint-7"}
for name in ("luca-000004.new", "checkpoint-7"):
    found = verify(root / name, deep=True)
    assert found.verdict == "complete", found
assert verify(root / "luca-000004.new", deep=True).kind == "safetensors"
"""


def test_a_suffix_is_added_in_one_row(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITH_ONE_ROW_MORE, str(TABLE), str(tmp_path), checkpoint_suffixes.__name__],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_no_other_module_lists_checkpoint_suffixes() -> None:
    """A literal with two or more of them is a second table."""
    found = []
    for path, tree in trees(*OURS, having=one_of(set(TENSOR_SUFFIXES))):
        for node in ast.walk(tree):
            values = getattr(node, "elts", None) or getattr(node, "keys", None)
            if isinstance(values, list):
                listed = {v.value for v in values if isinstance(v, ast.Constant) and v.value in TENSOR_SUFFIXES}
                if len(listed) > 1:
                    found.append(path)
    assert set(found) == {TABLE}

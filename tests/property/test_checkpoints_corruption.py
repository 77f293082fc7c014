"""Random damage: nothing crashes, and damage that can be seen is never complete."""

import io
import os
import random
import shutil
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.checkpoint_layouts import LAYOUTS
from tests.fakes.corruption import damage_bytes, is_undamaged
from tests.tiers import examples
from trainwatch.core.checkpoints.inspection import inspect, verify
from trainwatch.core.checkpoints.listing import list_checkpoints

EXAMPLES = int(os.environ.get("TRAINWATCH_CORRUPTIONS", examples(150)))
"""Examples for each layout; the long run takes ``TRAINWATCH_CORRUPTIONS=10000``."""

REQUIRED = {
    "training_state": {"model.pt", "optimizer.pt"},
    "transformers": {"model.safetensors", "optimizer.pt", "scheduler.pt", "trainer_state.json"},
    "sharded": {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"},
    "accelerate": {"model.safetensors", "optimizer.bin", "random_states_0.pkl"},
    "dcp": {".metadata", "__0_0.distcp", "__0_1.distcp"},
    "deepspeed": {
        "mp_rank_00_model_states.pt",
        "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
        "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
    },
}
NOT_READ = {"config.json", "latest"}


@pytest.fixture(scope="module", params=sorted(LAYOUTS))
def layout(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    root = tmp_path_factory.mktemp(request.param)
    return request.param, root, LAYOUTS[request.param](root / "intact")


@settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_a_visibly_damaged_checkpoint_is_never_complete(layout: tuple[str, Path, Path], seed: int) -> None:
    name, root, _ = layout
    chance = random.Random(seed)
    work = root / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(root / "intact", work)
    path = work / layout[2].relative_to(root / "intact")
    files = sorted(file for file in work.rglob("*") if file.is_file() and file.name not in NOT_READ)
    victim = chance.choice(files)
    original = victim.read_bytes()

    if name in REQUIRED and victim.name in REQUIRED[name] and chance.random() < 0.1:
        victim.rename(victim.with_name("renamed.by.accident"))
        intact = False
    else:
        victim.write_bytes(damage_bytes(original, chance))
        intact = victim.read_bytes() == original or (victim.suffix != ".distcp" and is_undamaged(victim, original))
        if victim.suffix == ".distcp" and not intact:
            intact = _same_archives(victim.read_bytes(), original)

    deep = verify(path, deep=True) if path.exists() else None
    quick = inspect(path)
    list_checkpoints(work)
    if not intact:
        assert deep is None or deep.verdict != "complete", (victim.name, deep)
        assert deep is None or deep.reason
    if quick is not None and deep is not None and quick.verdict != "complete":
        assert deep.verdict != "complete"


def _same_archives(raw: bytes, original: bytes) -> bool:
    """DCP items are archives in a row; damage after the last, or between fields that are read, is harmless."""

    def items(data: bytes) -> list[bytes] | None:
        found: list[bytes] = []
        start = 0
        while start < len(data):
            end = data.find(b"PK\x05\x06", start)
            if end < 0:
                return None
            part = data[start : end + 22]
            try:
                with zipfile.ZipFile(io.BytesIO(part)) as archive:
                    found.extend(archive.read(info) for info in archive.infolist())
            except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError, zlib.error):
                return None
            start = end + 22
        return found

    first = items(raw[: len(original)])
    return first is not None and first == items(original)

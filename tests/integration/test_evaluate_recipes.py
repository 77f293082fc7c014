"""The recipes for FID and CLIP score with torchmetrics, on small data with small random feature extractors."""

import importlib.util
import struct
import sys
from pathlib import Path

import pytest

from tests.integration.test_act_evaluate import Place
from tests.tiers import SECOND_TIER

pytestmark = [
    SECOND_TIER,
    pytest.mark.skipif(
        importlib.util.find_spec("torchmetrics") is None or importlib.util.find_spec("torch") is None,
        reason="torchmetrics is not installed: the recipes for FID and CLIP score are not run",
    ),
]

FID = """
import json, sys
import torch
from torch import nn
from torchmetrics.image.fid import FrechetInceptionDistance

torch.manual_seed(0)
features = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 6, bias=False))
fid = FrechetInceptionDistance(feature=features, input_img_size=(3, 8, 8), normalize=True)
real = torch.rand(256, 3, 8, 8)
fid.update(real, real=True)
raw = open(sys.argv[1], "rb").read()
shift = torch.frombuffer(bytearray(raw[-4:]), dtype=torch.float32).item()   # the "weights"
fid.update((torch.rand(256, 3, 8, 8) * (1 - shift) + shift), real=False)
print(json.dumps({"fid": float(fid.compute())}))
"""
CLIP = """
import json, sys
import torch
from torch import nn
from torchmetrics.functional import pairwise_cosine_similarity

torch.manual_seed(0)
image_encoder = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 16, bias=False))
texts = torch.randn(4, 16)                                                   # the prompts, encoded
target = torch.linalg.lstsq(image_encoder[1].weight, texts.T).solution.T     # images that fit them
raw = open(sys.argv[1], "rb").read()
noise = torch.frombuffer(bytearray(raw[-4:]), dtype=torch.float32).item()
images = (target + noise * torch.randn_like(target)).reshape(4, 3, 8, 8)
score = pairwise_cosine_similarity(image_encoder(images), texts).diagonal().mean()
print(json.dumps({"clip_score": 100 * float(score.clamp(min=0))}))
"""


def scores(folder: Path, code: str, *weights: float) -> tuple[str, list[float]]:
    """Name of the metric, and its value for checkpoints that hold one number each."""
    (folder / "evaluate.py").write_text(code)
    found, metric = [], ""
    for number, weight in enumerate(weights):
        place = Place(folder, [sys.executable, str(folder / "evaluate.py"), "{checkpoint}"])
        data = place.checkpoint.read_bytes()
        place.checkpoint.write_bytes(data[:-4] + struct.pack("<f", weight))
        ok, detail, measured = place.evaluator.evaluate(place.order(number))
        assert ok, detail
        found.append(float(measured["score"]))
        metric = str(measured["metric"])
    return metric, found


def test_fid_is_lower_for_the_checkpoint_whose_samples_are_nearer(tmp_path: Path) -> None:
    metric, (near, far) = scores(tmp_path, FID, 0.0, 0.6)
    assert metric == "fid"
    assert 0 <= near < far


def test_clip_score_is_higher_for_the_checkpoint_whose_samples_fit_their_prompts(tmp_path: Path) -> None:
    metric, (fits, wrong) = scores(tmp_path, CLIP, 0.0, 5.0)
    assert metric == "clip_score"
    assert wrong < fits <= 100.1

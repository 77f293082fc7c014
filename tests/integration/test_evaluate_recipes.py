"""The recipes for FID and CLIP score with torchmetrics, on small data with small random feature extractors."""

import struct
from pathlib import Path

import pytest

from tests.fakes.framework_python import python_with
from tests.integration.test_act_evaluate import Place
from tests.tiers import SECOND_TIER

pytestmark = [SECOND_TIER, pytest.mark.timeout(600)]  # each evaluation imports torch and a framework anew

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
from torchmetrics.multimodal import CLIPScore
from transformers import CLIPConfig, CLIPModel

torch.manual_seed(0)
small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}

class Small(CLIPModel):                                   # transformers 5 wraps what torchmetrics 1.9 takes as it is
    def get_text_features(self, *args, **words):
        found = super().get_text_features(*args, **words)
        return getattr(found, "pooler_output", found)
    def get_image_features(self, *args, **words):
        found = super().get_image_features(*args, **words)
        return getattr(found, "pooler_output", found)

model = Small(CLIPConfig(
    text_config=small | {"vocab_size": 64, "max_position_embeddings": 8, "bos_token_id": 0, "eos_token_id": 1},
    vision_config=small | {"image_size": 8, "patch_size": 4}, projection_dim=8)).eval()

class Processor:                                          # one token a letter; images as they are
    def __call__(self, text=None, images=None, **_):
        found = {}
        if text is not None:
            rows = [[0, *(2 + ord(c) % 60 for c in t[:6]), 1] for t in text]
            found |= {"input_ids": torch.tensor(rows), "attention_mask": torch.ones(len(rows), 8, dtype=torch.long)}
        if images is not None:
            found["pixel_values"] = torch.stack([torch.as_tensor(i) for i in images]).float()
        return found

metric = CLIPScore(model_name_or_path=lambda: (model, Processor()))
prompts = ["a cat!", "a dog!", "a tree", "a fish"]
words = model.get_text_features(**Processor()(text=prompts)).detach()
images = torch.randn(4, 3, 8, 8, requires_grad=True)      # images that fit the prompts ...
optimizer = torch.optim.Adam([images], lr=0.05)
for _ in range(150):
    seen = model.get_image_features(pixel_values=images)
    loss = -torch.nn.functional.cosine_similarity(seen, words).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
raw = open(sys.argv[1], "rb").read()
noise = torch.frombuffer(bytearray(raw[-4:]), dtype=torch.float32).item()
samples = images.detach() + noise * torch.randn(4, 3, 8, 8)   # ... less and less with what the checkpoint holds
metric.update(list(samples), prompts)
print(json.dumps({"clip_score": float(metric.compute())}))
"""


def scores(folder: Path, python: str, code: str, *weights: float) -> tuple[str, list[float]]:
    """Name of the metric, and its value for checkpoints that hold one number each."""
    (folder / "evaluate.py").write_text(code)
    found, metric = [], ""
    for number, weight in enumerate(weights):
        place = Place(folder, [python, str(folder / "evaluate.py"), "{checkpoint}"])
        data = place.checkpoint.read_bytes()
        place.checkpoint.write_bytes(data[:-4] + struct.pack("<f", weight))
        ok, detail, measured = place.evaluator.evaluate(place.order(number, timeout_s=300.0))
        assert ok, detail
        found.append(float(measured["score"]))
        metric = str(measured["metric"])
    return metric, found


def test_fid_is_lower_for_the_checkpoint_whose_samples_are_nearer(tmp_path: Path) -> None:
    metric, (near, far) = scores(tmp_path, python_with("torchmetrics", "torch"), FID, 0.0, 0.6)
    assert metric == "fid"
    assert 0 <= near < far


def test_clip_score_is_higher_for_the_checkpoint_whose_samples_fit_their_prompts(tmp_path: Path) -> None:
    metric, (fits, wrong) = scores(tmp_path, python_with("torchmetrics", "transformers", "torch"), CLIP, 0.0, 5.0)
    assert metric == "clip_score"
    assert wrong < fits <= 100.1

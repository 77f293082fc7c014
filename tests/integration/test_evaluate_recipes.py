"""The recipes for FID (torchmetrics) and CLIP score, on small data with small random feature extractors."""

import struct
from pathlib import Path

import pytest

from tests.fakes.framework_python import python_with
from tests.integration.test_act_evaluate import Place
from tests.pages import blocks
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
OWN_PARTS = """
import json, struct, sys
from pathlib import Path
import torch
from PIL import Image
from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor, CLIPTokenizer

torch.manual_seed(0)
small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
words = ["<|startoftext|>", "<|endoftext|>", *letters, *(letter + "</w>" for letter in letters)]
small_clip = CLIPModel(CLIPConfig(
    text_config=small | {"vocab_size": 64, "max_position_embeddings": 16, "bos_token_id": 0, "eos_token_id": 1},
    vision_config=small | {"image_size": 16, "patch_size": 4}, projection_dim=8)).eval()
Path("vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
Path("merges.txt").write_text("#version: 0.2\\n")
tokenizer = CLIPTokenizer("vocab.json", "merges.txt", model_max_length=16)
pictures = CLIPImageProcessor(do_resize=False, do_center_crop=False, do_normalize=False)
small_clip.save_pretrained("clip")
CLIPProcessor(image_processor=pictures, tokenizer=tokenizer).save_pretrained("clip")
prompts = ["a cat", "a dog", "a tree", "a fish"]

def load_model(path):                                     # the "weights" are one number: how much noise
    return struct.unpack("<f", open(path, "rb").read()[-4:])[0]

def sample(noise, prompt, count):                         # images that fit the prompt, but for the noise
    given = tokenizer([prompt], return_tensors="pt")
    pixels = torch.rand(1, 3, 16, 16)
    with torch.no_grad():
        wanted = small_clip(pixel_values=pixels, **given).text_embeds
    images = torch.rand(count, 3, 16, 16, requires_grad=True)
    optimizer = torch.optim.Adam([images], lr=0.05)
    for _ in range(100):
        seen = small_clip(pixel_values=images, **given).image_embeds
        optimizer.zero_grad(); (-(seen @ wanted.T).mean()).backward(); optimizer.step()
        images.data.clamp_(0, 1)
    made = (images.detach() * (1 - noise) + torch.rand(count, 3, 16, 16) * noise) * 255
    return [Image.fromarray(each.permute(1, 2, 0).byte().numpy()) for each in made]
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
    (page,) = (block for block in blocks() if block.language == "python" and "CLIPModel" in str(block.lines))
    code = "\n".join(line.text for line in page.lines)
    name = "openai/clip-vit-base-patch16"
    assert name in code
    recipe = f"{OWN_PARTS}\n{code.replace(name, './clip')}"
    metric, (fits, wrong) = scores(tmp_path, python_with("transformers", "torch", "PIL"), recipe, 0.0, 1.0)
    assert metric == "clip_score"
    assert wrong < fits <= 100.1

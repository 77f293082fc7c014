"""Frameworks in the form of their own documentation, with faults from outside (``outside.py``).

``ends`` was written before the first run: what a person would expect of each cell. Every script takes the name of its
output folder by another option, and nothing tells it to trainwatch.
"""

from typing import Any

from msgspec.structs import replace

from ..place import HERE
from ..row import Row

RESUMED = {"none": "finished", "kill": "resumed", "neighbour": "resumed", "deadlock": "resumed", "nan": "told"}
KEPT = {**RESUMED, "kill": "kept", "neighbour": "kept", "deadlock": "kept"}
"""The trainer has no way to go on: whatever is done, the checkpoints are still there."""
THREE, FIVE = ("none", "kill", "neighbour"), ("none", "kill", "neighbour", "deadlock", "nan")
NO_TORCHAUDIO = """\
from unittest.mock import MagicMock

__version__ = "2.9.0"
__getattr__ = MagicMock()
"""
"""SpeechBrain imports torchaudio, which the index has for CUDA only; no sound is read here."""
SPACY = """\
[nlp]
lang = "en"
pipeline = ["textcat"]

[components]

[components.textcat]
factory = "textcat"

[components.textcat.model]
@architectures = "spacy.TextCatBOW.v2"
exclusive_classes = true
ngram_size = 1
no_output_layer = false

[corpora]

[corpora.train]
@readers = "made_corpus"
size = 200
wait_s = 0.02

[corpora.dev]
@readers = "made_corpus"
size = 20
wait_s = 0.01

[training]
max_epochs = -1
max_steps = 400
eval_frequency = 20
patience = 0

[training.batcher]
@batchers = "spacy.batch_by_sequence.v1"
size = 8
"""


def row(name: str, title: str, script: str, *, command: str, saves: str, goes_on: str = "", **more: Any) -> Row:
    """``saves``: the main file of each save; ``faults``, ``resume`` and ``goes_on`` as in ``Row``."""
    ends = (RESUMED if goes_on else KEPT) | more.pop("instead", {})
    faults, file = more.pop("faults", THREE), more.pop("file", "train.py")
    return Row(
        name=name, title=title, environment=name, files={file: f"@{script}", **more.pop("files", {})},
        command=tuple(command.split()), checkpoints=saves, output_dir=saves.partition("{name}")[0] + "{name}",
        goes_on=goes_on, ends={fault: ends[fault] for fault in faults}, hook="", **more,
    )  # fmt: skip


JAX = row(
    "jax", "JAX, flax, Orbax", "jax_orbax.py", packages=("jax", "flax", "orbax-checkpoint", "optax"),
    version_of="orbax-checkpoint", faults=FIVE, command="python train.py orbax/{name}", saves="orbax/{name}/*0",
    save_every=33, resume="self", goes_on=r"Restored step (\d+)",  # it saves at 0, 50, 100
)  # fmt: skip
OPTION = (HERE / "scripts" / "jax_orbax.py").read_text().replace('"bucket"', '"--bucket"')

ROWS = (
    row(
        "ignite", "pytorch-ignite", "ignite_supervised.py", packages=("pytorch-ignite",), faults=FIVE,
        command="python train.py --place out_{name}", saves="out_{name}/checkpoint_*.pt", resume="yes",
        goes_on=r"Resumed from \S+, epoch (\d+)",
    ),
    row(
        "mmengine", "mmengine", "mmengine_runner.py", packages=("mmengine",),
        command="python train.py --work-dir work/{name}", saves="work/{name}/epoch_*.pth", resume="yes",
        goes_on=r"resumed epoch: (\d+)",
    ),
    row(
        "skorch", "skorch", "skorch_states.py", packages=("skorch",), command="python train.py exp_{name}",
        saves="exp_{name}/params.*", resume="self", goes_on=r"(?m)^ +(\d+) ",
    ),
    row(
        "speechbrain", "SpeechBrain", "speechbrain_brain.py", packages=("speechbrain",),
        files={"torchaudio.py": NO_TORCHAUDIO}, command="python train.py --nest nest/{name}",
        saves="nest/{name}/CKPT*/brain.ckpt", resume="self", goes_on=r"epoch: (\d+) - train",
    ),
    row(
        "catboost", "CatBoost", "catboost_snapshot.py", packages=("catboost",),
        command="python train.py --where cat_{name}", saves="cat_{name}/experiment.cbsnapshot", resume="self",
        goes_on=r"(?m)^(\d+):\s+learn",
    ),
    JAX,
    replace(
        JAX, name="jax-option", title="the same, its folder as an option", files={"train.py": OPTION},
        command=("python", "train.py", "--bucket", "orbax/{name}"), ends={fault: RESUMED[fault] for fault in THREE},
    ),
    row(
        "sb3", "Stable-Baselines3, PPO", "sb3_ppo.py", packages=("stable-baselines3",), faults=FIVE,
        command="python train.py -f logs_{name} --trained-agent {resume}", saves="logs_{name}/rl_model_*.zip",
        save_every=512, resume="yes", goes_on=r"Loaded pretrained agent \S+ at (\d+)",
    ),
    row(
        "xgboost", "XGBoost", "xgboost_rounds.py", packages=("xgboost-cpu", "scikit-learn"), faults=FIVE,
        command="python train.py --stash boost/{name} --xgb-model {resume}", saves="boost/{name}/model_*.ubj",
        save_every=20, resume="yes", goes_on=r"Continuing from \S+, (\d+) rounds",
        instead={"nan": "finished"},  # a tree whose gradients are NaN is left out, and rmse stays a number
    ),
    row(
        "lightgbm", "LightGBM", "lightgbm_rounds.py", packages=("lightgbm", "scikit-learn"),
        command="python train.py --shelf shelf_{name}", saves="shelf_{name}/model_*.txt", resume="no",
    ),
    row(
        "spacy", "spaCy, train command", "spacy_corpus.py", packages=("spacy",), file="corpus.py",
        files={"base.cfg": SPACY},
        prepare=("python", "-m", "spacy", "init", "fill-config", "base.cfg", "config.cfg", "--code", "corpus.py"),
        command="python -m spacy train config.cfg --output pipes/{name} --code corpus.py",
        saves="pipes/{name}/model-last/textcat/model", resume="no",
    ),
    row(
        "fastai", "fastai", "fastai_learner.py", packages=("fastai",), faults=FIVE,
        command="python train.py models_{name}", saves="models_{name}/*.pth", resume="no",
    ),
    row(
        "sentence-transformers", "sentence-transformers", "sentence_pairs.py",
        packages=("sentence-transformers", "datasets", "accelerate"), files={"make.py": "@tiny_sentences.py"},
        prepare=("python", "make.py"), command="python train.py pairs_{name}",
        saves="pairs_{name}/checkpoint-*/model.safetensors", resume="no",
    ),
)  # fmt: skip

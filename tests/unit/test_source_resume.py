"""How a trainer is resumed, as its own source shows it. Each text is a script as a user writes it; none is run."""

from pathlib import Path

import pytest

from trainwatch.core.app.plan.resume_plan import way_of
from trainwatch.core.model.preset import Preset, ResumeWay
from trainwatch.core.model.run import RunSpec

GENERIC = Preset(name="generic")
RESTORE = """
    state = torch.load({0}, map_location="cpu")
    net.load_state_dict(state["net"]); opt.load_state_dict(state["opt"]); first = state["n"]
"""
LOOP = """
for n in range(first, 100):
    torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "n": n}, f"{args.out}/step_{n}.pt")
"""
PARSER = """
import argparse, glob, os, torch
parser = argparse.ArgumentParser()
parser.add_argument("--out", default="out")
parser.add_argument("--save-every", type=int, default=10)
"""
READY = """
args = parser.parse_args()
net = Net(); opt = torch.optim.Adam(net.parameters()); first = 0
"""


def way(folder: Path, text: str, *words: str, script: str = "train.py") -> ResumeWay:
    (folder / script).write_text(text)
    return of(folder, "python", script, *words)


def of(folder: Path, *command: str, env: dict[str, str] | None = None) -> ResumeWay:
    spec = RunSpec(id="a", name="a", command=command, cwd=str(folder), created_wall=0.0, env=env or {})
    return way_of(spec, GENERIC)


def argparse_script(options: str, use: str) -> str:
    return PARSER + options + READY + use + LOOP


SCRIPTS = {
    "a path": (
        argparse_script('parser.add_argument("--resume")', "if args.resume:" + RESTORE.format("args.resume")),
        ("--resume", "{path}"),
    ),
    "a step": (
        argparse_script(
            'parser.add_argument("--load-iter", type=int)',
            "if args.load_iter:" + RESTORE.format('os.path.join(args.out, f"net_{args.load_iter:06d}.pt")'),
        ),
        ("--load-iter", "{step}"),
    ),
    "a path without its ending": (
        argparse_script(
            'parser.add_argument("--load")', "if args.load:" + RESTORE.format('Path(args.out) / "models" / f"{args.load}.pth"')
        ),
        ("--load", "{path-.pth}"),
    ),
    "a name in a folder that the script knows": (
        argparse_script('parser.add_argument("--load-name")', "if args.load_name:" + RESTORE.format('f"{args.out}/{args.load_name}"')),
        ("--load-name", "{name}"),
    ),
    "a name without its ending": (
        argparse_script(
            'parser.add_argument("--which")', "if args.which:" + RESTORE.format('args.out + "/" + args.which + ".pt"')
        ),
        ("--which", "{name-.pt}"),
    ),
    "a folder in a text": (
        argparse_script('parser.add_argument("--load-dir")', "if args.load_dir:" + RESTORE.format('f"{args.load_dir}/state.pt"')),
        ("--load-dir", "{folder}"),
    ),
    "a path with or without its ending": (
        argparse_script(
            'parser.add_argument("--load")',
            'if args.load:\n    path = args.load if args.load.endswith(".pt") else args.load + ".pt"' + RESTORE.format("path"),
        ),
        ("--load", "{path}"),
    ),
    "a name in another language": (
        argparse_script('parser.add_argument("--stand", help="letzter Stand")', "if args.stand:" + RESTORE.format("args.stand")),
        ("--stand", "{path}"),
    ),
    "pretrained weights beside it": (
        argparse_script(
            'parser.add_argument("--pretrained"); parser.add_argument("--von", default=None)',
            "if args.pretrained: net.load_state_dict(torch.load(args.pretrained))\nif args.von:" + RESTORE.format("args.von"),
        ),
        ("--von", "{path}"),
    ),
    "a flag": (
        argparse_script(
            'parser.add_argument("--resume", action="store_true")',
            'files = sorted(glob.glob(args.out + "/*.pt"))\nif args.resume and files:' + RESTORE.format("files[-1]"),
        ),
        ("--resume",),
    ),
    "a word": (
        argparse_script(
            'parser.add_argument("--start", choices=["scratch", "resume"], default="scratch")',
            'if args.start == "resume":' + RESTORE.format('os.path.join(args.out, "last.pt")'),
        ),
        ("--start", "resume"),
    ),
    "click": (
        ("import click, torch\n@click.command()\n@click.option('--ckpt', default=None)\ndef main(ckpt):\n"
        "    trainer = Trainer()\n    if ckpt:\n        trainer.restore_all(ckpt)\n"
        "class Trainer:\n    def restore_all(self, path):\n        blob = torch.load(path)\n"
        "        self.net.load_state_dict(blob['net']); self.opt.load_state_dict(blob['opt']); self.step = blob['step']\n"
        "main()\n"),
        ("--ckpt", "{path}"),
    ),
    "tyro with a nested dataclass": (
        ("from dataclasses import dataclass, field\nimport torch, tyro\n@dataclass\nclass Train:\n    resume_path: str = ''\n"
        "@dataclass\nclass Config:\n    train: Train = field(default_factory=Train)\ndef main(config: Config):\n"
        "    if config.train.resume_path:\n        s = torch.load(config.train.resume_path)\n        net.load_state_dict(s['n'])\n"
        "        opt.load_state_dict(s['o'])\nmain(tyro.cli(Config))\n"),
        ("--train.resume-path", "{path}"),
    ),
    "HfArgumentParser": (
        ("from transformers import HfArgumentParser, Trainer, TrainingArguments\n"
        "(args,) = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()\n"
        "Trainer(model=m, args=args).train(resume_from_checkpoint=args.resume_from_checkpoint)\n"),
        ("--resume_from_checkpoint", "{path}"),
    ),
    "fit of Lightning": (
        ("import argparse, lightning as L\np = argparse.ArgumentParser()\np.add_argument('--weiter')\nargs = p.parse_args()\n"
        "L.Trainer().fit(Model(), ckpt_path=args.weiter)\n"),
        ("--weiter", "{path}"),
    ),
    "absl": (
        ("from absl import app, flags\nFLAGS = flags.FLAGS\nflags.DEFINE_string('restore_path', None, 'checkpoint')\n"
        "def main(_):\n    if FLAGS.restore_path:\n        state = checkpointer.restore(FLAGS.restore_path)\napp.run(main)\n"),
        ("--restore_path", "{path}"),
    ),
    "OmegaConf's words": (
        ("import torch\nfrom omegaconf import OmegaConf\ncfg = OmegaConf.merge({'resume_ckpt': None}, OmegaConf.from_cli())\n"
        "if cfg.resume_ckpt:\n    d = torch.load(cfg.resume_ckpt)\n    m.load_state_dict(d['m'])\n    o.load_state_dict(d['o'])\n"),
        ("resume_ckpt='{path}'",),
    ),
    "a path behind its option in sys.argv": (
        "import sys, torch\nckpt = sys.argv[sys.argv.index('--resume') + 1] if '--resume' in sys.argv else ''\nif ckpt:"
        + RESTORE.format("ckpt"),
        ("--resume", "{path}"),
    ),
    "a path at a place that was searched before": (
        "import sys, torch\nat = sys.argv.index('--ckpt') if '--ckpt' in sys.argv else 0\nckpt = at and sys.argv[at + 1]\n"
        "if ckpt:" + RESTORE.format("ckpt"),
        ("--ckpt", "{path}"),
    ),
    "a path in sys.argv": (
        "import sys, torch\nckpt = sys.argv[1] if len(sys.argv) > 1 else None\nif ckpt:" + RESTORE.format("ckpt"),
        ("{path}",),
    ),
    "a folder with files in it": (
        argparse_script(
            'parser.add_argument("--load-dir")',
            "if args.load_dir:" + RESTORE.format('os.path.join(args.load_dir, "state.pt")'),
        ),
        ("--load-dir", "{folder}"),
    ),
    "variables that a configurator replaces": (
        ("import os, torch\nout_dir = 'out'\ninit_from = 'scratch'  # 'scratch' or 'resume'\nexec(open('configurator.py').read())\n"
        "if init_from == 'scratch':\n    net = Net()\nelif init_from == 'resume':\n"
        "    c = torch.load(os.path.join(out_dir, 'ckpt.pt'))\n    net.load_state_dict(c['model'])\n"
        "    opt.load_state_dict(c['optimizer']); it = c['iter_num']\n"),
        ("--init_from=resume",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", SCRIPTS)
def test_the_option_that_resumes_is_found_in_the_source(tmp_path: Path, kind: str) -> None:
    text, words = SCRIPTS[kind]

    found = way(tmp_path, text)

    assert (found.will, found.source) == ("yes", "script")
    assert found.file is not None
    assert found.file.args == words
    assert found.place.startswith("train.py:")


AVERAGED = """
import torch
for step in range(100):
    ema.store(net.parameters())
    ema.restore(net.parameters())
    torch.save(net.state_dict(), f"out/m-{step}.pt")
"""
DATA = """
import glob, torch
parts = sorted(glob.glob("data/*.pt"))
for part in range(len(parts)):
    rows = torch.load(parts[part])
    torch.save(net.state_dict(), f"out/m-{part}.pt")
"""


@pytest.mark.parametrize(
    "text",
    [
        argparse_script('parser.add_argument("--pretrained")', "if args.pretrained: net.load_state_dict(torch.load(args.pretrained))"),
        ("from transformers import HfArgumentParser, Trainer, TrainingArguments\n"
        "(args,) = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()\nTrainer(args=args).train()\n"),
        argparse_script('parser.add_argument("--wandb-resume", default="allow")', "wandb.init(resume=args.wandb_resume)"),
        argparse_script("", 'net.load_state_dict(torch.load("vgg.pth"))'),
        argparse_script('parser.add_argument("--reload-data", action="store_true")', "if args.reload_data: load_data()"),
        argparse_script("", 'best = os.path.join(args.out, "best.pt")\ntorch.save(net.state_dict(), best)') + "\nnet.load_state_dict(torch.load(best))\n",
        AVERAGED,
        DATA,
    ],
    ids=["pretrained weights", "an option of the library that is not passed on", "a tracker's", "loss weights", "data",
         "the best weights, loaded at the end", "averaged weights", "parts of the data"],
)  # fmt: skip
def test_what_only_looks_like_it_is_none(tmp_path: Path, text: str) -> None:
    found = way(tmp_path, text)

    assert (found.will, found.source) == ("no", "none")
    assert "a crash before the first save begins it anew" in found.how


def test_an_installed_command_is_named_by_its_word_not_by_a_file_of_its_library(tmp_path: Path) -> None:
    library = tmp_path / "lib" / "site-packages" / "notebooks"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("")
    (library / "command.py").write_text("def main(): pass\nmain()\n")
    tool = tmp_path / "notebooks"
    tool.write_text("#!/usr/bin/env python3\nfrom notebooks.command import main\nmain()\n")
    tool.chmod(0o755)
    found = of(tmp_path, "./notebooks", "--execute", env={"PYTHONPATH": str(library.parent)})
    assert found.will == "no"
    assert "`./notebooks`, an installed command, has no option for it" in found.how
    assert "site-packages" not in found.how


OWN_STATE = """
import json, os
STATE = os.path.join("out", "stand.json")
n = 0
if os.path.exists(STATE):
    with open(STATE) as file:
        n = json.load(file)["n"]
for n in range(n, 100):
    with open(STATE + ".neu", "w") as file:
        json.dump({"n": n}, file)
    os.replace(STATE + ".neu", STATE)
"""
SNAPSHOT = """
import os, torch
class Runner:
    def __init__(self, net, opt, snapshot_path):
        self.net, self.opt, self.snapshot_path, self.epochs_run = net, opt, snapshot_path, 0
        if os.path.exists(snapshot_path):
            self._load()
    def _load(self):
        snapshot = torch.load(self.snapshot_path)
        self.net.load_state_dict(snapshot["NET"]); self.opt.load_state_dict(snapshot["OPT"])
        self.epochs_run = snapshot["EPOCHS_RUN"]
    def train(self, most):
        for epoch in range(self.epochs_run, most):
            torch.save({"NET": self.net.state_dict(), "EPOCHS_RUN": epoch}, self.snapshot_path)
Runner(net, opt, "snapshot.pt").train(9)
"""
FRESH = argparse_script(
    'parser.add_argument("--fresh", action="store_true")',
    'path = os.path.join(args.out, "state.pth")\nif os.path.isfile(path) and not args.fresh:'
    + RESTORE.format("path")
    + "\ntorch.save({}, path)",
)
NEWEST_BY_NAME = """
import glob, re, torch
from safetensors.torch import load_file, save_file
start, found = 0, sorted(glob.glob("out/*.safetensors"))
if found:
    net.load_state_dict(load_file(found[-1]))
    start = int(re.search(r"(\\d+)", found[-1])[1])
for step in range(start, 100):
    save_file(net.state_dict(), f"out/m-{step}.safetensors")
"""
SAME_OBJECT = """
import os
from accelerate import Accelerator
accelerator = Accelerator(project_dir="out")
if os.path.isdir("out/checkpoints") and os.listdir("out/checkpoints"):
    accelerator.load_state()
for step in range(100):
    accelerator.save_state()
"""
MANAGER = """
import tensorflow as tf
checkpoint = tf.train.Checkpoint()
manager = tf.train.CheckpointManager(checkpoint, "out", max_to_keep=3)
checkpoint.restore(manager.latest_checkpoint)
for step in range(100):
    manager.save()
"""


BY_ITSELF = {
    "what a manager found": MANAGER,
    "a step in a name": NEWEST_BY_NAME,
    "an object that saves and loads": SAME_OBJECT,
    "a file of its own": OWN_STATE,
    "a snapshot": SNAPSHOT,
    "a flag against it": FRESH,
    "a callback": "import keras\nmodel.fit(x, callbacks=[keras.callbacks.BackupAndRestore('backup')])\n",
    "a word for it": "import lightning as L\nL.Trainer().fit(Model(), ckpt_path='last')\n",
}


@pytest.mark.parametrize("text", BY_ITSELF.values(), ids=BY_ITSELF)
def test_a_trainer_that_goes_on_by_itself_is_recognised(tmp_path: Path, text: str) -> None:
    found = way(tmp_path, text)

    assert (found.will, found.source) == ("self", "self")
    assert found.file is not None
    assert found.file.by_itself


def test_an_environment_variable_is_given_as_one(tmp_path: Path) -> None:
    text = 'import os, torch\nckpt = os.environ.get("WEITER_VON")\nif ckpt:' + RESTORE.format("ckpt")

    found = way(tmp_path, text)

    assert found.file is not None
    assert found.file.env == {"WEITER_VON": "{path}"}


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (("python", "-m", "pkg.train"), {"pkg/__init__.py": "", "pkg/train.py": SCRIPTS["a path"][0]}),
        (("torchrun", "--nproc_per_node", "2", "train.py", "--out", "o"), {"train.py": SCRIPTS["a path"][0]}),
        (("accelerate", "launch", "--config_file", "a.yaml", "train.py"), {"train.py": SCRIPTS["a path"][0], "a.yaml": ""}),
        (("bash", "run.sh"), {"train.py": SCRIPTS["a path"][0], "run.sh": 'cd "$(dirname "$0")"\npython train.py "$@" | tee log\n'}),
        (("bash", "-eo", "pipefail", "run.sh"), {"train.py": SCRIPTS["a path"][0], "run.sh": 'cd "$(dirname "$0")"\npython train.py "$@" | tee log\n'}),
        (
            ("python", "main.py"),
            {"main.py": "from lib.cli import main\nmain()\n", "lib/cli.py": "def main():\n    from .train import run\n", "lib/train.py": SCRIPTS["a path"][0]},
        ),
    ],
    ids=["module", "torchrun", "accelerate", "shell script", "shell script with options", "imports"],
)  # fmt: skip
def test_the_command_is_followed_to_the_file_that_trains(
    tmp_path: Path, command: tuple[str, ...], files: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    found = of(tmp_path, *command)

    assert found.file is not None
    assert found.file.args == ("--resume", "{path}")


def test_a_source_that_cannot_be_read_is_unknown_and_not_none(tmp_path: Path) -> None:
    assert way(tmp_path, "print 'python 2'\n").will == "unknown"
    assert of(tmp_path, "./trainer.bin", "--steps", "3").will == "unknown"


def test_a_command_says_how_itself(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPTS["a path"][0])

    told = of(tmp_path, "python", "train.py", "--resume", "{resume}")
    left = of(tmp_path, "python", "train.py", "--resume", "auto")

    assert (told.will, told.source, told.how) == ("yes", "command", "--resume {resume}")
    assert (left.will, left.source) == ("self", "command")

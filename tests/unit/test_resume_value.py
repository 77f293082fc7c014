"""The one value that says how a run is resumed, as ``run --dry-run --json`` prints it. No script here is run."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.e2e_world import stand_in_python
from trainwatch.cli import main

KEYS = {
    "run", "preset", "preset_why", "output_dir", "output_why", "argv", "problem", "warnings", "checks", "start",
    "goes_on_with", "checkpoint", "changes", "rehearsed", "resume", "engine", "job_script",
}  # fmt: skip
PARSER = "import argparse, glob, torch\np = argparse.ArgumentParser()\np.add_argument('--out')\n"
PARSED = "args = p.parse_args()\n"
NET = "import glob, torch\nnet = Net(); opt = torch.optim.Adam(net.parameters()); first = 0\n"
NEWEST = """
    newest = max(glob.glob('out/*.pt'))
    state = torch.load(newest)
    net.load_state_dict(state['net']); opt.load_state_dict(state['opt']); first = state['step']
"""
LOOP = """
for step in range(first, 100):
    torch.save({'net': net.state_dict(), 'opt': opt.state_dict(), 'step': step}, f'out/step_{step}.pt')
"""
THERE = "glob.glob('out/*.pt')"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{Path(stand_in_python(tmp_path)).parent}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def dry(project: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def dry(text: str | dict[str, str], *words: str, command: tuple[str, ...] = ("python", "t.py")) -> Any:
        for name, each in ({"t.py": text} if isinstance(text, str) else text).items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(each)
        main(["run", "--dry-run", "--json", "--", *command, *words])
        (line,) = capsys.readouterr().out.splitlines()
        shown = json.loads(line)
        assert shown.keys() >= KEYS
        assert shown["resume"].keys() >= {"will", "how", "source", "place", "why"}
        return shown

    return dry


OFF = {
    "a module variable": (NET + "RESUME = False\nif RESUME:" + NEWEST + LOOP, "RESUME is set (t.py:3)"),
    "a variable of the function": (
        "import glob, torch\ndef main(net, opt):\n  first, warm = 0, None\n  go_on = None\n  if go_on:\n"
        + NEWEST.replace("    ", "      ") + LOOP.replace("\n", "\n  ") + "\nmain(net, opt)\n",
        "go_on is set (t.py:4)",
    ),
    "a switch against it": (NET + "ANEW = True\nif not ANEW:" + NEWEST + LOOP, "ANEW is set (t.py:3)"),
    "an imported one": (
        {"t.py": "import settings\n" + NET + "if settings.RESUME:" + NEWEST + LOOP, "settings.py": "RESUME = 0\n"},
        "RESUME is set (settings.py:1)",
    ),
    "a field": (NET + "class C:\n    resume = False\nif C().resume:" + NEWEST + LOOP, "resume is set (t.py:4)"),
    "a default": (
        NET + "def train(resume=False):\n    if resume:" + NEWEST.replace("    ", "        ") + "train()\n" + LOOP,
        "resume is set (t.py:3)",
    ),
    "its config": (
        {
            "t.py": PARSER + "import yaml\np.add_argument('--config')\n" + PARSED + NET
            + "cfg = yaml.safe_load(open(args.config))\nif cfg['resume']:" + NEWEST + LOOP,
            "c.yaml": "lr: 1\nresume: false\n",
        },
        "resume is set (c.yaml)",
    ),
    "its config, which also says where it saves": (
        {
            "t.py": "import json, sys\n" + NET + "cfg = json.load(open(sys.argv[1])); out = cfg['io']['out']\n"
            "if cfg['io']['go_on']:" + NEWEST.replace("'out/", "out + '/") + LOOP.replace("out/", "{out}/"),
            "c.json": '{"io": {"out": "o", "go_on": false}}',
        },
        "io.go_on is set (c.json)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", OFF)
def test_a_load_that_is_switched_off_is_no_resume(dry: Any, kind: str) -> None:
    text, switch = OFF[kind]
    files = [] if isinstance(text, str) else [name for name in text if name.startswith("c.")]
    resume = dry(text, *(["--config", *files] if files == ["c.yaml"] else files))["resume"]
    assert resume["will"] == "no"
    assert resume["how"].startswith(f"only if {switch}")
    assert "ends this run" not in resume["how"]


SELF = {
    "a module variable": NET + f"RESUME = True\nif RESUME and {THERE}:" + NEWEST + LOOP,
    "skorch": "from skorch.callbacks import Checkpoint, LoadInitState\nc = Checkpoint()\n"
    "Net(callbacks=[c, LoadInitState(c)]).fit(x, y)\n",
    "SpeechBrain": "import speechbrain as sb\nclass B(sb.Brain): pass\n"
    "B(modules=h['modules'], checkpointer=h['checkpointer']).fit(h['epochs'], data)\n",
    "CatBoost": "from catboost import CatBoost\nCatBoost().fit(x, y, save_snapshot=True)\n",
    "CatBoost by its parameters": "import catboost\ncatboost.CatBoost({'iterations': 9, 'save_snapshot': True}).fit(x)\n",
    "orbax": "import orbax.checkpoint as ocp\nm = ocp.CheckpointManager('out')\nn = 0\nif m.latest_step() is not None:\n"
    "    state = m.restore(m.latest_step()); n = m.latest_step()\nfor n in range(n, 9):\n    m.save(n, args=state)\n",
    "Hugging Face": PARSER + PARSED + "from transformers import Trainer\nfrom transformers.trainer_utils import "
    "get_last_checkpoint\nTrainer(m).train(resume_from_checkpoint=get_last_checkpoint(args.out))\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", SELF)
def test_a_trainer_that_goes_on_by_itself(dry: Any, kind: str) -> None:
    resume = dry(SELF[kind], *(("--out", "o") if "--out" in SELF[kind] else ()))["resume"]
    assert (resume["will"], resume["source"]) == ("self", "self")


@pytest.mark.parametrize(
    "text",
    [
        "from skorch.callbacks import Checkpoint\nNet(callbacks=[Checkpoint()]).fit(x, y)\n",
        "from catboost import CatBoost\nCatBoost().fit(x, y, save_snapshot=False)\n",
        "import lightning as L\nCKPT = None\nL.Trainer().fit(Net(), ckpt_path=CKPT)\n",
        "import orbax.checkpoint as ocp\nm = ocp.CheckpointManager('out')\nfor n in range(9):\n    m.save(n)\n",
    ],
    ids=["skorch", "CatBoost", "Lightning", "orbax"],
)
def test_the_same_libraries_without_it(dry: Any, text: str) -> None:
    assert dry(text)["resume"]["will"] == "no"


def test_a_resume_that_restores_weights_only_is_told_as_that(dry: Any) -> None:
    option = PARSER + "p.add_argument('--resume')\n" + PARSED + NET
    weights = option + "if args.resume:\n    net.load_state_dict(torch.load(args.resume))\n" + LOOP
    assert dry(weights)["resume"]["lacks"] == "weights only, as far as its source shows"
    assert dry(option + "if args.resume:" + NEWEST.replace("newest)", "args.resume)") + LOOP)["resume"]["lacks"] is None
    kohya = ("python", "sdxl_train_network.py")
    without, with_state = (dry({}, *words, command=kohya)["resume"] for words in ((), ("--save_state",)))
    assert (without["how"], without["lacks"]) == ("network_weights = …", "weights only: save_state is not on")
    assert (with_state["how"], with_state["lacks"]) == ("network_weights = … or --resume …", None)


def test_a_switch_in_the_config_that_says_yes(dry: Any) -> None:
    files = {"t.py": "import sys, vast\nvast.Runner(sys.argv[1]).train()\n", "c.yaml": "resume: true\n"}
    resume = dry(files, "c.yaml")["resume"]
    assert (resume["will"], resume["source"]) == ("self", "config")
    files["c.yaml"] = "resume: false\n"
    assert dry(files, "c.yaml")["resume"]["will"] == "unknown"


def test_the_preset_of_a_framework_that_finds_its_newest_file(dry: Any) -> None:
    files = {
        "run.py": "import toolkit.job\n",
        "toolkit/config.py": "",
        "toolkit/job.py": "",
        "c.yaml": "job: extension\n",
    }
    resume = dry(files, command=("python", "run.py", "c.yaml"))["resume"]
    assert (resume["will"], resume["source"]) == ("self", "preset")


@pytest.mark.parametrize(
    "text",
    [
        PARSER + "for n in ('resume_from', 'x'):\n    p.add_argument('--' + n)\n" + PARSED + NET
        + "if args.resume_from:" + NEWEST + LOOP,
        NET + "import json\ncfg = json.load(open('c.json'))\nif cfg['resume']:" + NEWEST + LOOP,
        PARSER + "args, _ = p.parse_known_args()\n" + NET + LOOP,
        "from vast import train\ntrain()\n",
    ],
    ids=["computed names", "a file that is not read", "an open parser", "a library"],
)  # fmt: skip
def test_what_cannot_be_told_is_unknown(dry: Any, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dry(text)["resume"]["will"] == "unknown"
    main(["run", "--dry-run", "--", "python", "t.py"])
    assert "`trainwatch rehearse` tells in a minute" in capsys.readouterr().out


@pytest.mark.parametrize("use", ["safe_open(args.resume, 'pt')", "fetch_everything(path=args.resume)"])
@pytest.mark.parametrize("action", ["", ", action='store_true'"])
def test_an_option_named_after_it_is_one_whatever_reads_it(dry: Any, use: str, action: str) -> None:
    text = f"import argparse\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--resume'{action})\n"
    text += f"    args = p.parse_args()\n    if args.resume:\n        net.take({use})\nmain()\n"
    resume = dry(text)["resume"]
    assert (resume["will"], resume["source"], resume["place"]) == ("yes", "script", "t.py:4")


LOADS = "s = torch.load(path); net.load_state_dict(s['net']); opt.load_state_dict(s['opt'])\n"
SUBCOMMANDS = {
    "click": "import click, torch\n@click.group()\ndef cli(): pass\n@cli.command()\ndef fit(): pass\n@cli.command()\n"
    f"@click.option('--from-path', 'path')\ndef warm(path):\n    {LOADS}cli()\n",
    "typer": "import typer, torch\napp = typer.Typer()\n@app.command('fit')\ndef fit_cli(): pass\n@app.command('warm')\n"
    f"def warm_cli(path: str = typer.Option(None, '--from-path')):\n    {LOADS}app()\n",
    "argparse": "import argparse, torch\np = argparse.ArgumentParser()\nsub = p.add_subparsers()\nfit = sub.add_parser('fit')\n"
    "warm = sub.add_parser('warm')\nwarm.add_argument('--from-path', dest='path')\ndef run(args):\n    path = args.path\n"
    f"    {LOADS}warm.set_defaults(func=run)\nargs = p.parse_args()\nargs.func(args)\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", SUBCOMMANDS)
def test_options_are_those_of_the_subcommand_that_is_run(dry: Any, kind: str) -> None:
    assert dry(SUBCOMMANDS[kind], "warm")["resume"]["will"] == "yes"
    assert dry(SUBCOMMANDS[kind], "fit")["resume"]["will"] == "no"
    refused = dry(SUBCOMMANDS[kind], "fit", "--from-path", "{resume}")
    assert "t.py has no option --from-path" in refused["problem"]


def test_a_word_that_a_shell_script_takes_is_not_judged_by_the_trainers_parser(dry: Any) -> None:
    files = {
        "t.py": PARSER + "p.add_argument('--resume')\n" + PARSED + NET + LOOP,
        "t.sh": 'exec python t.py --out "$1" --resume "$2"\n',
    }
    shown = dry(files, "out", "{resume}", command=("bash", "t.sh"))
    assert shown["resume"]["will"] == "unknown", shown
    assert shown["start"] is not None


@pytest.mark.parametrize("option", ["--resume", "-r", "--go-on-from"])
def test_resume_behind_an_option_that_a_strict_parser_lacks_is_refused(
    dry: Any, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = dry(PARSER + PARSED + NET + LOOP, option, "{resume}")
    assert (shown["resume"]["will"], shown["resume"]["source"]) == ("no", "command")
    assert f"t.py has no option {option}" in shown["problem"]
    assert shown["start"] is None
    assert main(["run", "--headless", "--", "python", "t.py", option, "{resume}"]) == 2
    assert f"t.py has no option {option}" in capsys.readouterr().err


def test_resume_behind_an_option_that_the_parser_has(dry: Any) -> None:
    text = PARSER + "p.add_argument('-i', '--start-at')\n" + PARSED + "net = bring(args.start_at)\n" + LOOP
    for option in ("-i", "--start-at", "--start"):
        shown = dry(text, option, "{resume}")
        assert (shown["resume"]["will"], shown["problem"]) == ("yes", None)
        assert shown["argv"] == ["python", "t.py"]


@pytest.mark.parametrize("option", ["-i", "--trained-agent"])
@pytest.mark.parametrize(
    "text",
    [
        "import sys\nopts = read(sys.argv)\n",
        PARSER + "args, _ = p.parse_known_args()\n",
        "from vast import make_parser\np = make_parser()\nargs = p.parse_args()\n",
        (
            "import argparse, vast\nclass T:\n    def __init__(self):\n        self.p = argparse.ArgumentParser()\n"
            "        vast.add_to(self.p)\n        self.args = self.p.parse_args()\nT()\n"
        ),
        "import argparse\np = argparse.ArgumentParser()\n[p.add_argument('--' + n) for n in NAMES]\np.parse_args()\n",
    ],
    ids=["its own", "an open one", "one of a library", "one that a library fills", "computed names"],
)
def test_an_option_of_an_unknown_parser_is_left_out_with_its_value(dry: Any, option: str, text: str) -> None:
    shown = dry(text, "--lr", "1", option, "{resume}", "--bf16")
    assert shown["argv"][1:] == ["t.py", "--lr", "1", "--bf16"]
    assert (shown["resume"]["will"], shown["resume"]["source"]) == ("unknown", "command")
    line = dry(text, command=("bash", "-c", f"python t.py --lr 1 {option} {{resume}} --bf16"))
    assert line["argv"][2].split()[1:] == ["t.py", "--lr", "1", "--bf16"]


def test_a_flag_before_a_positional_word_stays(dry: Any) -> None:
    text = PARSER + "p.add_argument('--bf16', action='store_true')\np.add_argument('begin', nargs='?')\n" + PARSED
    shown = dry(text + "net = bring(args.begin)\n", "--bf16", "{resume}")
    assert shown["argv"][1:] == ["t.py", "--bf16"]
    assert shown["resume"]["will"] == "yes"


def test_a_preset_whose_option_the_scripts_own_parser_lacks_is_not_believed(dry: Any) -> None:
    text = PARSER + "from timm.utils import CheckpointSaver\n" + PARSED + NET + LOOP
    shown = dry({"train.py": text}, command=("python", "train.py"))
    assert shown["preset"] == "timm"
    assert (shown["resume"]["will"], shown["resume"]["source"]) == ("no", "none")


def test_a_command_that_cannot_be_planned_is_an_object_on_one_line_too(dry: Any) -> None:
    shown = dry("", "--config", "{config}")
    assert "{config}" in shown["problem"]
    shown = dry({"t.py": "", "c.toml": "a = [1\n"}, "--config_file", "c.toml", command=("sdxl_train_network.py",))
    assert shown["problem"]


def test_what_a_config_holds_is_not_the_file_that_is_saved(dry: Any) -> None:
    script = "import yaml\n" + NET + "cfg = yaml.safe_load(open('c.yaml')); out = cfg['io']['out']\n"
    script += "if cfg['io']['go_on']:" + NEWEST.replace("'out/", "out + '/") + LOOP.replace("out/", "{out}/")
    resume = dry({"t.py": script, "c.yaml": "io: {out: o, go_on: false}\n"})["resume"]
    assert resume["will"] in {"no", "unknown"}, "the config is loaded, not a training"
    assert "go_on" in resume["how"]


def test_a_script_without_a_parser_is_not_given_the_option_of_a_preset(dry: Any) -> None:
    script = "import sys, yaml\n" + NET + "cfg = yaml.safe_load(open(sys.argv[1]))\nold = glob.glob('out/*')\n"
    script += "ck = cfg.get('resume_from_checkpoint')\nif ck:\n    ck = old[-1] if ck is True else ck\n"
    script += "    net.load_state_dict(torch.load(ck))\n" + LOOP
    config = "model_name_or_path: tiny\nsave_strategy: steps\noutput_dir: out\n"
    resume = dry({"t.py": "import glob\n" + script, "c.yaml": config}, "c.yaml")["resume"]
    assert resume["how"] == "resume_from_checkpoint = …", "a key of its config, in a derived copy"

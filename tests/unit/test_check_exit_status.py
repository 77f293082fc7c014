"""Commands whose exit status is not that of the trainer: what the check says, and when it says nothing."""

from pathlib import Path

import pytest

from trainwatch.core.app.preflight.command_checks import hidden_status, is_timed, trains_in_stages
from trainwatch.core.model.run import RunSpec
from trainwatch.core.source.shell_text import commands_of


def found(*command: str, cwd: Path = Path("/")) -> str | None:
    said = hidden_status(command, cwd)
    return None if said is None else said[0]


HIDDEN = {
    "python t.py 2>&1 | tee log": "without pipefail the exit status is that of `tee`",
    "python t.py |& tee log": "that of `tee`",
    "cd x && python t.py | tee -a log.txt": "that of `tee`",
    "set -e; python t.py | tee log": "that of `tee`",
    "python t.py | grep -v Warn | tee log": "that of `tee`",
    "torchrun --nproc 2 t.py 2>&1 |\n  ts": "that of `ts`",
    "python fail.py; echo bye": "hidden by `echo bye`",
    "python fail.py\necho done\n": "hidden by `echo done`",
    "python t.py || true": "hidden by `|| true`",
    "python t.py || echo failed": "hidden by `|| echo failed`",
    "accelerate launch t.py; nvidia-smi; date": "hidden by `date`",
    "python t.py & wait": "hidden by `wait`",
    "for s in 1 2; do python t.py --seed $s; done; echo over": "hidden by `echo over`",
    "bash -c 'python t.py | tee log'": "that of `tee`",
    'source venv/bin/activate; python t.py --name "a | b" | tee log': "that of `tee`",
    "{ python t.py; } | tee log": "that of `tee`",
    "CUDA_VISIBLE_DEVICES=0 nohup python t.py | tee log": "that of `tee`",
    "script -qc 'python t.py' log": "`script` gives its own exit status",
}


@pytest.mark.parametrize("text", HIDDEN)
def test_what_hides_the_exit_status_of_the_trainer_is_named(text: str) -> None:
    command = ("script", "-qc", "python t.py", "log") if text.startswith("script") else ("bash", "-c", text)
    assert HIDDEN[text] in (found(*command) or "nothing")


SEEN = (
    "python t.py",
    "exec python t.py",
    "set -o pipefail; python t.py | tee log",
    "set -euo pipefail\npython t.py 2>&1 | tee log\n",
    "python t.py | tee log; exit ${PIPESTATUS[0]}",
    "cd x; export A=1; python t.py",
    "set -e; python t.py; echo done",
    "python t.py && echo done",
    "python t.py; rc=$?; echo $rc; exit $rc",
    "python t.py || exit 1; echo done",
    "python t.py || { echo failed; exit 3; }",
    "if python t.py; then echo good; else exit 1; fi",
    "yes | python t.py",
    "nvidia-smi | head -3; python t.py",
    "conda activate x; python t.py --text 'a; b | c'  # python t.py | tee log",
    "python t.py --sep '|' --other \\| x",
    "cat <<EOF > cfg\npython t.py | tee log\nEOF\npython t.py",
    "tensorboard --logdir runs & python t.py",
    "python t.py > log 2>&1",
    "python t.py &> log",
    "python t.py & pid=$!; wait $pid",
    "pip install -r r.txt | tail -1; python t.py",
    'x=$(python count.py | tail -1); python t.py --n "$x"',
)


@pytest.mark.parametrize("text", SEEN)
def test_a_command_that_passes_the_status_on_is_not_warned_of(text: str) -> None:
    assert found("bash", "-c", text) is None


@pytest.mark.parametrize(
    "command",
    [
        ("bash", "-o", "pipefail", "-c", "python t.py | tee log"),
        ("bash", "-eo", "pipefail", "-c", "python t.py | tee log"),
        ("bash", "-ec", "python t.py; echo done"),
        ("python", "t.py", "--shell", "bash", "-c", "a | b"),
        ("script", "-qec", "python t.py", "log"),
        (),
    ],
)
def test_options_of_the_shell_count(command: tuple[str, ...]) -> None:
    assert found(*command) is None


@pytest.mark.parametrize(
    "command", [("bash", "run.sh"), ("./run.sh",), ("bash", "-c", "bash run.sh"), ("srun", "-n", "1", "bash", "run.sh")]
)
def test_a_script_is_read(tmp_path: Path, command: tuple[str, ...]) -> None:
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/bash\n# trains\npython t.py 2>&1 | tee train.log\n")
    assert "run.sh: `python t.py 2>&1 | tee`: without pipefail" in (found(*command, cwd=tmp_path) or "")
    script.write_text("#!/bin/bash\nset -eo pipefail\npython t.py 2>&1 | tee train.log\necho done\n")
    assert found(*command, cwd=tmp_path) is None


def test_a_script_of_another_language_or_none_that_can_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("#!/usr/bin/env python\nprint(1) | 2; print(3)\n")
    assert found("./t", cwd=tmp_path) is None
    assert found("./nowhere.sh", cwd=tmp_path) is None
    (tmp_path / "endless.sh").write_text("bash endless.sh\n")
    assert found("bash", "endless.sh", cwd=tmp_path) is None
    (tmp_path / "e.sh").write_text("#!/bin/sh -e\npython t.py\necho done\n")
    assert found("./e.sh", cwd=tmp_path) is None
    assert "hidden by `echo done`" in (found("bash", "e.sh", cwd=tmp_path) or ""), (
        "bash takes its first line as a comment"
    )


@pytest.mark.parametrize(
    ("text", "timed"),
    [
        ("timeout 60 rsync a b; python train.py", False),
        ("timeout -k 5 8h env A=1 python train.py", True),
        ("make train", True),
    ],
)
def test_a_timeout_of_another_command_is_not_that_of_the_training(tmp_path: Path, text: str, timed: bool) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "run.sh").write_text(text)
    for command in (("bash", "-c", text), ("bash", "run.sh")):
        assert is_timed(RunSpec(id="a", name="a", command=command, cwd=str(tmp_path), created_wall=0.0)) is timed


OPTIONS = "import argparse\np = argparse.ArgumentParser()\n"


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("python pre.py && python a.py --epochs 3 && torchrun b.py", True),
        ("python pre.py; python a.py; python eval.py", False),
        ("if [ -n $N ]; then\npython a.py\nelse\ntorchrun a.py\nfi", False),
        ("python a.py --stage 1; python a.py --stage 2", True),
        ("python c.py --task train; python c.py --task eval", False),
        ("python d.py fit --lr 1; python d.py score", False),
        ("python d.py fit --lr 1; python d.py fit --lr 2", True),
        ("python a.py", False),
    ],
)
def test_several_trainings_of_one_script_are_told_from_what_prepares_and_evaluates(
    tmp_path: Path, text: str, stages: bool
) -> None:
    sources = {
        "pre": "import os",
        "a": "loss.backward()",
        "b": "import loop",
        "loop": "Trainer(m).train()",
        "eval": "import d\nm.eval()\nm.train()",
        "c": OPTIONS + "p.add_argument('--task')\na = p.parse_args()\nif a.task == 'train':\n    Trainer(m).fit()",
        "d": "def fit():\n    for x in y:\n        if s is not None:\n            s.scale(loss).backward()\n"
        "def main():\n    " + OPTIONS.replace("\n", "\n    ") + "s = p.add_subparsers(dest='what')\n"
        "    f = s.add_parser('fit')\n    f.add_argument('--lr')\n    g = s.add_parser('score')\n    g.add_argument('--k')\n    a = p.parse_args()\n    if a.what == 'fit':\n"
        "        fit()\nif __name__ == '__main__':\n    main()",
    }
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    (tmp_path / "run.sh").write_text(text)
    spec = RunSpec(id="a", name="a", command=("bash", "run.sh"), cwd=str(tmp_path), created_wall=0.0)
    assert trains_in_stages(spec) is stages


def test_text_that_is_no_shell_does_not_raise() -> None:
    for text in ("'", '"', "$(", "${", "<<", "<<A", "a\\", "|", ";;", "`", "&&", "((", "\n\n", "x | ", "<<A\nb"):
        commands_of(text)
        found("bash", "-c", text)


def test_a_script_that_a_shell_is_given_needs_no_ending(tmp_path: Path) -> None:
    (tmp_path / "go").write_text("python train.py | tee log\n")
    found = hidden_status(("bash", "go"), tmp_path)
    assert found is not None
    assert "tee" in found[0]

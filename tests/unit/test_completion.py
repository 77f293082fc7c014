"""``trainwatch completion``: the scripts name what the parser has, and bash completes with them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from trainwatch.cli import main
from trainwatch.cli.parser import listed_verbs, verbs
from trainwatch.cli.prepare.verb_completion import SHELLS, script
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.run_directory import RunDirectory

pytest.importorskip("shtab", reason="needs shtab, a dependency since this checkout was set up: ./trainwatch.sh setup")

COMPLETE = """source {script}
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_shtab_trainwatch
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "trainwatch"
    path.write_text(script("bash"))
    return path


def completed(words: str, bash_script: Path, folder: Path) -> set[str]:
    """What bash offers for a command line; the last word is the one that is typed."""
    (folder / "bin").mkdir(exist_ok=True)
    asked = folder / "bin" / "trainwatch"
    asked.write_text('#!/bin/sh\n[ "$*" = "completion --runs" ] && printf "lora\\nlora-2\\nsdxl\\n"\n')
    asked.chmod(0o755)
    shown = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE.format(script=bash_script, words=words)],
        check=True, capture_output=True, text=True, cwd=folder, env={"PATH": f"{folder}/bin:/usr/bin:/bin"},
    )  # fmt: skip
    return set(shown.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("trainwatch doc", {"doctor"}),
        ("trainwatch st", {"status", "stop"}),
        ("trainwatch superv", set()),  # hidden
        ("trainwatch status --js", {"--json"}),
        ("trainwatch stop lo", {"lora", "lora-2"}),
        ("trainwatch check --run s", {"sdxl"}),
        ("trainwatch checkpoints ver", {"verify"}),
        ("trainwatch checkpoints list ou", {"outputs"}),
        ("trainwatch run --config cf", {"cfg.yaml"}),
        ("trainwatch report --format h", {"html"}),
        ("trainwatch completion z", {"zsh"}),
    ],
)
def test_bash_completes(words: str, offered: set[str], bash_script: Path, tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    (tmp_path / "cfg.yaml").touch()
    assert completed(words, bash_script, tmp_path) == offered


@pytest.mark.parametrize("words", ["trainwatch run -- ou", "trainwatch run --detach -- python st"])
def test_bash_leaves_the_command_behind_the_dashes_to_the_shell(words: str, bash_script: Path, tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    assert completed(words, bash_script, tmp_path) == set()


def test_bash_completes_files_behind_the_dashes(bash_script: Path) -> None:
    """By the shell's own completion, which is asked if nothing of ours fits."""
    assert "complete -o bashdefault -o default -F _shtab_trainwatch trainwatch" in bash_script.read_text().splitlines()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_every_listed_verb_and_no_hidden_one(shell: str) -> None:
    text = script(shell)
    missing = [verb for verb in listed_verbs() if verb not in text]
    assert missing == []
    for hidden in set(verbs()) - set(listed_verbs()):
        assert f"trainwatch_{hidden}" not in text
        assert f"-a {hidden} " not in text


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_can_read_its_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    path = tmp_path / "script"
    path.write_text(script(shell))
    read = subprocess.run([shell, "-n", str(path)], check=False, capture_output=True, text=True)
    assert (read.returncode, read.stderr) == (0, "")


def test_a_name_that_several_runs_have_is_completed_to_their_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    for folder, name in (("lora-1", "lora"), ("lora-2", "lora"), ("sdxl-1", "sdxl"), ("two-1", "two words; ls")):
        RunDirectory.create(
            tmp_path, RunSpec(id=folder, name=name, command=("true",), cwd=str(tmp_path), created_wall=0.0)
        )
    assert main(["completion", "--runs"]) == 0
    assert capsys.readouterr().out.split("\n") == ["lora-1", "lora-2", "sdxl", "two-1", ""]


def test_without_a_shell_that_is_given_it_is_that_of_the_user(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert main(["completion"]) == 0
    assert "complete -c trainwatch" in capsys.readouterr().out
    monkeypatch.setenv("SHELL", "/bin/dash")
    assert main(["completion"]) == 2
    assert "trainwatch completion bash" in capsys.readouterr().err

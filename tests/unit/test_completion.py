"""``trainwatch completion``: the scripts name what the parser has, and bash, zsh and fish complete with them."""

import contextlib
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from trainwatch.cli import main
from trainwatch.cli.parser import listed_verbs, verbs
from trainwatch.cli.prepare import SHELLS, script
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


def test_bash_completes_files_behind_the_dashes(bash_script: Path) -> None:
    """By the shell's own completion, which is asked if nothing of ours fits."""
    assert "complete -o bashdefault -o default -F _shtab_trainwatch trainwatch" in bash_script.read_text().splitlines()


TYPED = {
    "trainwatch doc": "doctor",
    "trainwatch status --js": "status --json",
    "trainwatch stop sd": "stop sdxl",
    "trainwatch check --run s": "check --run sdxl",
    "trainwatch checkpoints ver": "checkpoints verify",
    "trainwatch checkpoints list ou": "checkpoints list outputs",
    "trainwatch run --config cf": "run --config cfg.yaml",
    "trainwatch report --format h": "report --format html",
    "trainwatch run --detach -- python cf": "run --detach -- python cfg.yaml",
}
"""What is typed before the tab, and what trainwatch is called with then."""


@pytest.fixture
def at_prompt(tmp_path: Path) -> Path:
    """A folder with files, and a trainwatch in ``bin`` that knows runs and says with what it is called."""
    (tmp_path / "outputs").mkdir()
    (tmp_path / "cfg.yaml").touch()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "trainwatch"
    program.write_text(
        '#!/bin/sh\n[ "$*" = "completion --runs" ] && exec printf "lora\\nlora-2\\nsdxl\\n"\necho "$*" >> called\n'
    )
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("way", ["fpath", "source"])
def test_zsh_completes(way: str, at_prompt: Path) -> None:
    """At a terminal, since zsh completes in its line editor alone."""
    if shutil.which("zsh") is None:
        pytest.skip("needs zsh")
    (at_prompt / "_trainwatch").write_text(script("zsh"))
    begin = ["autoload -U compinit", "compinit -u -D", "source ./_trainwatch"]
    if way == "fpath":
        begin = ["fpath=($PWD $fpath)", *begin[:2]]
    env = {"PATH": f"{at_prompt}/bin:/usr/bin:/bin", "HOME": str(at_prompt), "TERM": "dumb"}
    ours, theirs = os.openpty()
    try:
        process = subprocess.Popen(
            ["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=at_prompt,
            start_new_session=True,
        )  # fmt: skip
        reader = threading.Thread(target=read_all, args=(ours,), daemon=True)
        reader.start()
        os.write(ours, "".join(f"{line}\n" for line in [*begin, *(f"{typed}\t" for typed in TYPED), "exit"]).encode())
        process.wait()
    finally:
        process.kill()
        os.close(theirs)
    reader.join()
    os.close(ours)
    assert (at_prompt / "called").read_text().splitlines() == list(TYPED.values())


def read_all(terminal: int) -> None:
    """Else the shell waits for somebody who reads."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass


@pytest.mark.parametrize(("typed", "called"), TYPED.items())
def test_fish_completes(typed: str, called: str, at_prompt: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("needs fish")
    (at_prompt / "trainwatch.fish").write_text(script("fish"))
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source trainwatch.fish; complete -C '{typed}'"],
        check=True, capture_output=True, text=True, cwd=at_prompt,
        env={"PATH": f"{at_prompt}/bin:/usr/bin:/bin", "HOME": str(at_prompt)},
    )  # fmt: skip
    assert {line.partition("\t")[0].rstrip("/") for line in done.stdout.splitlines()} == {called.rpartition(" ")[2]}


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

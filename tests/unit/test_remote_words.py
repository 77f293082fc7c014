"""Words for trainwatch on another machine reach it as they are, through every login shell."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from trainwatch.cli.command_line import asks_screen, without_on
from trainwatch.core.act.remote import MARK, command_there, look_there
from trainwatch.core.app.errors import CliError
from trainwatch.core.app.hosts.run_there import detached, needs_terminal
from trainwatch.core.model.run import Host
from trainwatch.core.model.text import typed

SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh", "fish", "csh", "tcsh", "busybox") if shutil.which(shell)]
AWKWARD = ["a b", "it's", '"q"', "a;b", "$HOME", "`id`", "$(id)", "*", "!x", "\\", "\\n", "", "n\nl", "ends\n", "ü", "-x",
           "~", "#", "&&", "|", "{a,b}", "\x1e"]  # fmt: skip


def arrived(shell: str, words: list[str], tmp_path: Path) -> list[str]:
    """What a program there gets if ``shell`` is the login shell."""
    program = tmp_path / "trainwatch"
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo "trainwatch 9.9"; exit; }\nprintf "%s\\0" "$@" > "$OUT"\nexit 7\n'
    )
    program.chmod(0o755)
    host = Host(name="box1", ssh="box1", command=f"env OUT={tmp_path}/out {program}")
    shell_words = [shell, "sh"] if shell == "busybox" else [shell]
    done = subprocess.run([*shell_words, "-c", command_there(host, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    assert done.stdout == f"{MARK}trainwatch 9.9\n"
    return (tmp_path / "out").read_bytes().decode().split("\0")[:-1]


@pytest.mark.parametrize("shell", SHELLS)
def test_awkward_words_arrive_as_they_are(shell: str, tmp_path: Path) -> None:
    assert arrived(shell, AWKWARD, tmp_path) == AWKWARD


@settings(max_examples=examples(60))
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12), min_size=1))
def test_any_words_arrive_as_they_are(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    if words[0] != "--version":
        assert arrived("sh", words, tmp_path_factory.mktemp("there")) == words


def test_trainwatch_is_found_without_a_login_and_missing_is_told(tmp_path: Path) -> None:
    (tmp_path / ".local" / "bin").mkdir(parents=True)
    host = Host(name="box1", ssh="box1")
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-c", command_there(host, ["status"])], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (127, f"{MARK}\n")
    program = tmp_path / ".local" / "bin" / "trainwatch"
    program.write_text("#!/bin/sh\necho trainwatch 1.2\n")
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", command_there(host, ["status"])], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{MARK}trainwatch 1.2\ntrainwatch 1.2\n"
    looked = subprocess.run(["sh", "-c", look_there(host)], env=env, capture_output=True, text=True, check=False).stdout
    assert f"version=trainwatch 1.2\npath={program}\n" in looked


def test_the_folder_is_the_working_folder_there(tmp_path: Path) -> None:
    (tmp_path / "my runs").mkdir()
    host = Host(name="box1", ssh="box1", command="echo", folder="~/my runs")
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    shown = Host(name="box1", ssh="box1", command="pwd; :", folder="~/my runs")
    said = subprocess.run(
        ["sh", "-c", command_there(shown, [], terminal={})], env=env, capture_output=True, text=True, check=False
    )
    assert said.stdout.strip() == str(tmp_path / "my runs")
    gone = Host(name="box1", ssh="box1", command="echo", folder="~/elsewhere")
    code = subprocess.run(["sh", "-c", command_there(gone, [], terminal={})], env=env, check=False).returncode
    assert (code, host.folder) == (126, "~/my runs")


def test_what_starts_a_run_there_is_detached_and_only_questions_get_a_terminal() -> None:
    assert detached(["run", "--name", "x", "--", "python", "--headless"]) == [
        "run", "--name", "x", "--detach", "--", "python", "--headless"
    ]  # fmt: skip
    assert detached(["run", "--dry-run", "--", "x"]) == ["run", "--dry-run", "--", "x"]
    assert detached(["stop", "x"]) == ["stop", "x"]
    assert needs_terminal(["attach"])
    assert needs_terminal(["stop", "job"])
    assert not needs_terminal(["stop", "--yes"])
    assert not needs_terminal(["status"])
    assert not needs_terminal(["run", "--dry-run", "--", "x"])
    assert needs_terminal(["run", "--", "x", "--yes"])


def test_the_option_may_stand_before_or_behind_the_verb() -> None:
    assert without_on(["--on", "box1", "status", "--json"]) == ("box1", ["status", "--json"])
    assert without_on(["status", "--on=box1"]) == ("box1", ["status"])
    for wrong in (["--on"], ["--on", "--json"], ["--on", "a", "--on", "b"]):
        with pytest.raises(CliError, match="--on takes the name of one host"):
            without_on(wrong)


def test_only_options_of_the_screen_open_the_screen() -> None:
    assert asks_screen([])
    assert asks_screen(["--run", "job", "--read-only"])
    for words in (["status"], ["--headless"], ["--run"]):
        assert not asks_screen(words)


def test_the_screen_there_knows_the_terminal_and_prints_no_mark() -> None:
    host = Host(name="box1", ssh="box1", command='echo "$COLORTERM" "$TRAINWATCH_ON"; :')
    command = command_there(host, [], terminal={"COLORTERM": "true color"})
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "true color box1\n"


def test_commands_for_a_run_of_another_machine_can_be_pasted() -> None:
    assert typed("resume", "box1:job-1a2b3c4d") == "trainwatch --on box1 resume job-1a2b3c4d"
    assert typed("--run", "box1:job-1a2b3c4d") == "trainwatch --on box1 --run job-1a2b3c4d"
    assert typed("resume", "job-1a2b3c4d", "--from", "x:y") == "trainwatch resume job-1a2b3c4d --from x:y"

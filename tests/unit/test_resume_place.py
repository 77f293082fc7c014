"""What a command without a place for a checkpoint has to be given, said exactly."""

from pathlib import Path

import pytest

from tests.fakes.checkpoint_layouts import safetensors_file
from trainwatch.core.app.errors import CliError
from trainwatch.core.app.operate import send_command
from trainwatch.core.app.start.start_choice import option_of, what_to_add
from trainwatch.core.model.observation import Command
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.run_directory import RunDirectory


def spec(folder: Path, *command: str, project: str | None = None) -> RunSpec:
    return RunSpec(id="r-1", name="r", command=command, cwd=str(folder), created_wall=0.0, project=project)


SCRIPTS = {
    'p.add_argument("--resume_from", default=None)': "--resume_from",
    "p.add_argument('--ckpt-path')\np.add_argument('--ckpt-dir')": "--ckpt-path",
    'p.add_argument("--load_dir"); p.add_argument("-r", "--auto-resume")': "--auto-resume",
    'p.add_argument("--checkpoint_every"); p.add_argument("--init_from")': "--init_from",
    'p.add_argument("--load", "--resume")': "--resume",
    'p.add_argument("--lr")': None,
}


@pytest.mark.parametrize("text", SCRIPTS)
def test_the_option_is_the_one_that_the_script_has(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(text)
    assert option_of(spec(tmp_path, "python", "t.py")) == SCRIPTS[text]


def test_the_whole_command_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("p.add_argument('--resume_from')")
    command = ("python", "t.py", "--name", "a b")
    said = what_to_add(spec(tmp_path, *command), "trainwatch resume r-1 --from out/step-5")
    assert said == ("`trainwatch resume r-1 --from out/step-5 -- python t.py --name 'a b' --resume_from '{resume}'`")
    said = what_to_add(spec(tmp_path, *command, project="/p/trainwatch.toml"), "trainwatch --headless")
    assert said == 'add "--resume_from", "{resume}" to run.command in /p/trainwatch.toml, then `trainwatch --headless`'
    said = what_to_add(spec(tmp_path, "bash", "-c", "python t.py | tee log"), "trainwatch --headless")
    assert "write `--resume_from {resume}` into the shell line, behind the trainer" in said
    said = what_to_add(spec(tmp_path, *command, project="/p/trainwatch.toml"), "trainwatch resume r-1 --from x")
    assert said.endswith("`trainwatch resume r-1 --from x -- python t.py --name 'a b' --resume_from '{resume}'`")
    (tmp_path / "run.sh").write_text("#!/bin/sh\npython t.py\n")
    said = what_to_add(spec(tmp_path, "./run.sh"), "trainwatch run --from x")
    assert said.startswith('let ./run.sh pass it on, as `${1:+--resume_from "$1"}`; ')
    assert said.endswith("`trainwatch run --from x -- ./run.sh '{resume}'`")


def test_resume_from_a_checkpoint_says_what_to_add_and_asks_no_supervisor(tmp_path: Path) -> None:
    path = safetensors_file(tmp_path)
    run = RunDirectory.create(tmp_path, spec(tmp_path, "python", "t.py"))
    order = Command(t=0.0, verb="resume", by="test", checkpoint=str(path))
    with pytest.raises(CliError) as error:
        send_command(run, order, starts_supervisor=True)
    expected = f"`trainwatch resume {run.id} --from {path} -- python t.py --resume '{{resume}}'` (once the script has an option"
    assert expected in str(error.value)

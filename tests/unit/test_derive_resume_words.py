"""A checkpoint is named in the place where the trainer reads it: a shell text, the environment, an override, a word."""

from pathlib import Path

import pytest

from trainwatch.core.act.config.derive import Derived, DeriveError, preview
from trainwatch.core.model.preset import Preset, ResumeStyle
from trainwatch.core.model.run import RunSpec

SCRIPT = "#!/bin/bash\nset -e\n# python train.py is started here\npython -u train.py --steps 9 2>&1 | tee log\n"


def launched(folder: Path, command: tuple[str, ...], style: ResumeStyle) -> Derived:
    checkpoint = folder / "out" / "step 5.pt"
    checkpoint.parent.mkdir(exist_ok=True)
    checkpoint.touch()
    spec = RunSpec(id="a", name="a", command=command, cwd=str(folder), created_wall=0.0)
    preset = Preset(name="generic", resume_file=style)
    return preview(spec, preset, None, checkpoint, (), folder / "attempt", base_env={})


@pytest.mark.parametrize(
    ("command", "before"), [(("bash", "run.sh", "a"), ["bash"]), (("./run.sh", "a"), ["/bin/bash"])]
)
def test_a_shell_script_that_passes_nothing_on_is_run_as_text_with_the_words_in_it(
    tmp_path: Path, command: tuple[str, ...], before: list[str]
) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT)

    made = launched(tmp_path, command, ResumeStyle(args=("--resume", "{path}"), word="train.py", found="train.py:3"))

    text = SCRIPT.replace("-u train.py", f"-u train.py --resume '{tmp_path}/out/step 5.pt'")
    assert list(made.argv) == [*before, "-c", text, command[-2], "a"]
    assert made.told_resume
    assert (tmp_path / "run.sh").read_text() == SCRIPT


def test_a_shell_line_gets_the_words_behind_its_script(tmp_path: Path) -> None:
    style = ResumeStyle(args=("--resume",), word="train.py", found="train.py:3")

    made = launched(tmp_path, ("bash", "-c", "python train.py --lr 1 | tee log"), style)

    assert made.argv == ("bash", "-c", "python train.py --resume --lr 1 | tee log")


def test_a_shell_script_that_asks_where_it_lies_is_run_as_text_only_if_its_name_says_it(tmp_path: Path) -> None:
    script, style = tmp_path / "run.sh", ResumeStyle(args=("--resume",), word="train.py")
    script.write_text('cd "$(dirname "${BASH_SOURCE[0]}")"\npython train.py\n')

    made = launched(tmp_path, ("bash", "run.sh"), style)

    assert made.argv == ("bash", "-c", 'cd "$(dirname "$0")"\npython train.py --resume\n', "run.sh")
    script.write_text("echo ${BASH_SOURCE[1]}\npython train.py\n")
    with pytest.raises(DeriveError, match=r"write \{resume\}"):
        launched(tmp_path, ("bash", "run.sh"), style)


@pytest.mark.parametrize(
    ("command", "style", "expected"),
    [
        (("python", "t.py", "lr=1"), ResumeStyle(args=("ckpt='{path}'",)), ("python", "t.py", "lr=1", "ckpt='PATH'")),
        (("python", "t.py", "+ckpt=old"), ResumeStyle(args=("ckpt={path}",)), ("python", "t.py", "+ckpt=PATH")),
        (("python", "t.py"), ResumeStyle(args=("{path}",)), ("python", "t.py", "PATH")),
        (("python", "t.py"), ResumeStyle(args=("--load", "{name}")), ("python", "t.py", "--load", "step 5.pt")),
        (("python", "t.py"), ResumeStyle(args=("--load", "{name-.pt}")), ("python", "t.py", "--load", "step 5")),
        (("python", "t.py"), ResumeStyle(args=("--load={path-.pt}",)), ("python", "t.py", "--load=STEM")),
        (("python", "t.py"), ResumeStyle(args=("--resume", "{folder}")), ("python", "t.py", "--resume", "FOLDER")),
        (("python", "t.py"), ResumeStyle(by_itself=True), ("python", "t.py")),
    ],
)
def test_the_words_of_a_command_that_name_a_checkpoint(
    tmp_path: Path, command: tuple[str, ...], style: ResumeStyle, expected: tuple[str, ...]
) -> None:
    made = launched(tmp_path, command, style)

    folder = str(tmp_path / "out")
    filled = tuple(
        word.replace("PATH", f"{folder}/step 5.pt").replace("STEM", f"{folder}/step 5").replace("FOLDER", folder)
        for word in expected
    )
    assert made.argv == filled
    assert made.told_resume


def test_a_variable_of_the_environment_names_a_checkpoint(tmp_path: Path) -> None:
    made = launched(tmp_path, ("python", "t.py"), ResumeStyle(env={"RESUME_FROM": "{path}"}))

    assert made.env["RESUME_FROM"] == f"{tmp_path}/out/step 5.pt"
    assert [change.key for change in made.changes if change.where == "env"] == ["RESUME_FROM"]


def test_a_trainer_that_is_told_a_step_gets_the_number_in_the_name_of_the_checkpoint(tmp_path: Path) -> None:
    style = ResumeStyle(args=("--resume_step", "{step}"), found="train.py:3")
    made = launched(tmp_path, ("python", "train.py"), style)
    assert made.argv[-2:] == ("--resume_step", "5")
    joined = launched(tmp_path, ("python", "train.py"), ResumeStyle(args=("--from={step}",), found="train.py:3"))
    assert joined.argv[-1] == "--from=5"


def test_a_checkpoint_with_another_ending_than_the_trainer_adds_cannot_be_told(tmp_path: Path) -> None:
    with pytest.raises(DeriveError, match=r"step 5.pt: the trainer adds .pth"):
        launched(tmp_path, ("python", "t.py"), ResumeStyle(args=("--load", "{name-.pth}"), found="t.py:3"))


def test_a_checkpoint_without_a_number_cannot_be_told_by_its_step(tmp_path: Path) -> None:
    (tmp_path / "last.pt").touch()
    spec = RunSpec(id="a", name="a", command=("python", "train.py"), cwd=str(tmp_path), created_wall=0.0)
    preset = Preset(name="generic", resume_file=ResumeStyle(args=("--resume_step", "{step}"), found="train.py:3"))
    with pytest.raises(DeriveError, match="its name holds no step"):
        preview(spec, preset, None, tmp_path / "last.pt", (), tmp_path / "attempt", base_env={})

"""The shipped data loads, the user's own goes on top, and presets are detected."""

from pathlib import Path

import pytest

from trainwatch.core.config.detection import config_keys, recognise
from trainwatch.core.config.document import ConfigError
from trainwatch.core.config.shipped import load_presets, load_profiles, read_table
from trainwatch.core.model.preset import ResumeStyle
from trainwatch.core.model.shipped import FailureCatalogue


def project(folder: Path, kind: str, **files: str) -> Path:
    (folder / kind).mkdir()
    for name, text in files.items():
        (folder / kind / f"{name}.toml").write_text(text)
    return folder / "trainwatch.toml"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ('["batch", "2"]', 'type flags = ["--batch", "2"]'),
        ('["-1", "2"]', "type the option first"),
        ('["", "2"]', "type the option first"),
    ],
)
def test_flags_of_a_profile_that_begin_with_no_option_are_refused(tmp_path: Path, flags: str, told: str) -> None:
    path = project(tmp_path, "profiles", mine=f'title = "t"\nflags = {flags}\n')
    with pytest.raises(ConfigError) as caught:
        load_profiles(path)
    (problem,) = caught.value.problems
    assert (Path(problem.where).name, problem.line) == ("mine.toml", 2)
    assert problem.text.startswith('"flags" must begin with an option')
    assert told in problem.text


def test_project_profiles_are_merged_over_the_shipped_ones(tmp_path: Path) -> None:
    path = project(
        tmp_path,
        "profiles",
        balanced='title = "mine"\n[settings]\nlr = 1e-4\n"a.b" = 1\n[settings.t.deep]\nbatch_size = 2\nlist = [1]\n',
        mine='name = "other"\nflags = ["--x"]\n[env]\nA = "1"\n',
    )
    profiles = load_profiles(path)
    assert profiles["balanced"].title == "mine"
    assert profiles["balanced"].settings == {
        "lr": 1e-4,
        "a.b": 1,
        "t.deep.batch_size": 2,
        "t.deep.list": [1],
    }
    assert profiles["other"].flags == ("--x",)
    assert profiles["conservative"] == load_profiles()["conservative"]
    assert load_profiles()["balanced"].title != "mine"
    assert load_profiles(tmp_path / "elsewhere" / "trainwatch.toml") == load_profiles()


def test_problems_of_all_project_files_are_reported_together(tmp_path: Path) -> None:
    path = project(
        tmp_path,
        "profiles",
        a='\nflag = ["x"]\n',
        b="[settings",
        c="[env]\nA = 1\n",
        d='name = "../x"\n',
        e='name = "f"',
        f="",
    )
    with pytest.raises(ConfigError) as caught:
        load_profiles(path)
    assert [line.removeprefix(f"{tmp_path}/profiles/") for line in str(caught.value).splitlines()] == [
        'a.toml:2: unknown key "flag"; did you mean "flags"?',
        "b.toml:1: not TOML: Expected ']' at the end of a table declaration",
        'c.toml:1: "env" must be a table of texts, got {"A":1}',
        'd.toml:1: "name" may hold letters, digits and . _ - only, got "../x"',
        f'{tmp_path}/profiles/f.toml: a second "f"; names must differ'.removeprefix(f"{tmp_path}/profiles/"),
    ]


def test_project_presets_are_merged_over_the_shipped_ones(tmp_path: Path) -> None:
    path = project(
        tmp_path, "presets", mine="detect_command = ['my_train']\n[resume_file]\nargs = ['--from', '{path}']\n"
    )
    presets = load_presets(path)
    assert presets["mine"].resume_file == ResumeStyle(args=("--from", "{path}"))
    assert recognise(["python", "my_train.py"], None, presets).preset == "mine"
    (tmp_path / "presets" / "mine.toml").write_text("detect_command = ['(']\n[resume_file]\nflag = 1\n")
    with pytest.raises(ConfigError, match="holds no regular expression") as caught:
        load_presets(path)
    assert '"resume_file" must be a table with key and args' in str(caught.value)


def test_a_failure_catalogue_is_loaded_and_its_problems_have_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "failures.toml"
    good = (
        '[[classes]]\nname = "cuda_oom"\ntitle = "t"\nretryable = true\nexplanation = "e"\n'
        'signatures = [{pattern = "OOM", literal = "OOM", weight = 0.9, source = "s"}]\n'
    )
    path.write_text(good)
    catalogue = read_table(path, FailureCatalogue)
    assert catalogue.names == ("cuda_oom",)
    assert catalogue.classes[0].signatures[0].weight == 0.9
    path.write_text(good + '[[classes]]\nname = "x"\n')
    with pytest.raises(ConfigError, match=r"failures\.toml:7: Object missing required field `title`"):
        read_table(path, FailureCatalogue)


def test_invalid_or_missing_config_files_have_no_keys(tmp_path: Path) -> None:
    for name, text in (
        ("a.toml", "x = ["),
        ("b.yaml", "a: [\n - }"),
        ("c.yaml", "just text"),
        ("d.yaml", "!!python/x 1"),
    ):
        (tmp_path / name).write_text(text)
        assert config_keys(tmp_path / name) == frozenset()
    assert config_keys(tmp_path) == frozenset()
    assert config_keys(tmp_path / "none.toml") == frozenset()
    (tmp_path / "e.toml").write_text("[s]\nk = 1\n[[l]]\nm = 1\n")
    assert config_keys(tmp_path / "e.toml") == {"s", "k", "s.k", "l"}

"""trainwatch.toml: what it gives, and what it says when it is wrong."""

from pathlib import Path

import pytest

from trainwatch.core.config.document import ConfigError
from trainwatch.core.config.project import Project, find_project, load_project
from trainwatch.core.model.settings import Settings

# The example of the interface, whole.
INTERFACE = """\
[run]                                   # or [runs.NAME], several
name = "luca"
command = ["accelerate", "launch", "train_network.py", "--config_file", "{config}"]
cwd = "."
env = { TOKENIZERS_PARALLELISM = "false" }
preset = "kohya"
config = "configs/training/sdxl_16gb_stable.toml"
output_dir = "outputs/luca"
logs = ["outputs/luca/train.log"]
gpus = "auto"
terminal = "file"
[profiles]
use = "balanced"
ladder = ["conservative", "balanced", "aggressive"]
[watch]
interval_s = 1.0
[hang]
deadline_factor = 6.0
min_s = 90
max_s = 1800
[restart]
max_restarts = 3
backoff_s = [0, 10, 60, 600]
[checkpoints]
keep_last = 0
[notify]
command = []
urls = []
"""
PROFILES = {"conservative", "balanced", "aggressive"}
PRESETS = {"kohya", "generic"}


def load(folder: Path, text: str) -> Project:
    path = folder / "trainwatch.toml"
    path.write_text(text, encoding="utf-8")
    return load_project(path, profiles=PROFILES, presets=PRESETS)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    lines = str(caught.value).splitlines()
    assert [str(p) for p in caught.value.problems] == lines
    return [line.removeprefix(f"{folder}/") for line in lines]


def with_run(text: str) -> str:
    return f'[run]\ncommand = ["python"]\n{text}'


def test_the_documented_example_config_loads_unchanged(tmp_path: Path) -> None:
    project = load(tmp_path, INTERFACE)
    run = project.run()
    assert run.command[-1] == "{config}"
    assert run.cwd == str(tmp_path)
    assert run.config == f"{tmp_path}/configs/training/sdxl_16gb_stable.toml"
    assert run.output_dir == f"{tmp_path}/outputs/luca"
    assert run.logs == (f"{tmp_path}/outputs/luca/train.log",)
    assert run.gpus is None
    assert project.settings.restart == Settings().restart
    assert project.settings.profiles.ladder == ("conservative", "balanced", "aggressive")
    assert isinstance(project.settings.hang.min_s, float)


def test_every_value_has_the_file_and_line_it_comes_from(tmp_path: Path) -> None:
    project = load(tmp_path, INTERFACE)
    assert project.origin("hang", "min_s").endswith("trainwatch.toml:19")
    assert project.origin("run", "env").endswith("trainwatch.toml:5")
    assert project.origin("hang", "startup_s") == "default"


def test_all_problems_are_reported_together_in_file_order(tmp_path: Path) -> None:
    text = """\
[run]
name = ""
command = "python train.py --name 'a b'"
env = { A = 1, B = "x", "C=" = "y" }
gpus = [0, 0]
presett = "kohya"
max_restarts = 3
[watch]
interval_s = "fast"
[restart]
backoff_s = [0, "x"]
interrupt_grace_s = -1
if_gpu_not_clear = "panic"
[hang]
min_s = 900
max_s = 800
deadline_factor = nan
warmup_s = 2.5
[hangs]
x = 1
[profiles]
use = "balancd"
ladder = [
  "balanced",
  "nonesuch",
]
[notify]
command = "notify-send"
[tmux]
socket = ""
enabled = 1
[checkpoints]
keep_last = 2.5
"""
    assert problems(tmp_path, text) == [
        'trainwatch.toml:2: "name" must not be empty, got ""',
        'trainwatch.toml:3: "command" must be a list of words: command = ["python", "train.py", "--name", "a b"]',
        'trainwatch.toml:4: "A" must be a text in quotes, like "1", got 1',
        'trainwatch.toml:4: "C=" cannot be the name of a variable, or its value',
        'trainwatch.toml:5: "gpus" must not hold an index twice, got [0,0]',
        'trainwatch.toml:6: unknown key "presett"; did you mean "preset"?',
        'trainwatch.toml:7: unknown key "max_restarts"; did you mean "max_restarts" in [restart]?',
        'trainwatch.toml:9: "interval_s" must be a number, got "fast"',
        'trainwatch.toml:11: "backoff_s" must be a list of numbers, got "x" in it',
        'trainwatch.toml:12: "interrupt_grace_s" must be at least 0, got -1',
        'trainwatch.toml:13: "if_gpu_not_clear" must be "wait" or "go_on", got "panic"',
        'trainwatch.toml:15: "min_s" (900) must not be above "max_s" (800)',
        'trainwatch.toml:17: "deadline_factor" must be finite, got nan',
        'trainwatch.toml:18: unknown key "warmup_s"; did you mean "startup_s"?',
        'trainwatch.toml:19: unknown key "hangs"; did you mean "hang"?',
        'trainwatch.toml:22: unknown profile "balancd"; did you mean "balanced"?',
        'trainwatch.toml:25: unknown profile "nonesuch"; there are: aggressive, balanced, conservative',
        'trainwatch.toml:28: "command" must be a list of texts in quotes, got "notify-send"',
        'trainwatch.toml:30: "socket" must not be empty, got ""',
        'trainwatch.toml:31: "enabled" must be true or false, got 1',
        'trainwatch.toml:33: "keep_last" must be a whole number, got 2.5',
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'no [run]: add [run] with command = ["python", "train.py"]'),
        ("[watch]\n", "no [run]"),
        ("[run]\n", 'trainwatch.toml:1: [run] has no "command"; for example command = ["python", "train.py"]'),
        ("[runs.a]\n", 'trainwatch.toml:1: [runs.a] has no "command"'),
        ("[run]\ncommand = []", 'trainwatch.toml:2: "command" must begin with a program, got []'),
        ('[run]\ncommand = [""]', 'trainwatch.toml:2: "command" must begin with a program'),
        ("run = 3", 'trainwatch.toml:1: "run" is a table: write [run] and its keys below'),
        (with_run("[watch]\ninterval_s = 0"), '"interval_s" must be at least 0.1, got 0'),
        (with_run("[watch]\ninterval_s = 86400"), '"interval_s" must be at most 60, got 86400'),
        (with_run("[profiles]\nramp = ['3 days']"), '"ramp" must say how long'),
        (with_run("[profiles]\nramp = ['3 checkpoints']"), 'needs a "ladder" of two profiles'),
        (
            with_run("[profiles]\nladder = ['a', 'b']\nramp = ['3 checkpoints']"),
            'needs "use" to name the rung to begin on',
        ),
        (with_run("[profiles]\nladder = ['a', '']"), '"ladder" must not hold an empty name, got ["a",""]'),
        (with_run("[restart]\nbackoff_s = []"), '"backoff_s" needs at least one number of seconds, got []'),
        (with_run("[restart]\nmax_restarts = true"), '"max_restarts" must be a whole number, got true'),
        (
            with_run("[slurm]\noptions = ['--array=0-3']"),
            '"options" must not hold --array=0-3: each attempt is one job',
        ),
        (with_run('preset = "kohia"'), 'unknown preset "kohia"; did you mean "kohya"?'),
        (with_run("gpus = 'all'"), '"gpus" must be "auto" or a list of whole numbers, got "all"'),
        (with_run("gpus = [-1]"), '"gpus" must not hold a negative index'),
        (with_run("[health]\nram_warning_pct = 90"), '"ram_warning_pct" (90) must not be above "ram_danger_pct" (85)'),
        (with_run("cwd = 1979-05-27"), '"cwd" must be a text in quotes, got "1979-05-27"'),
        ('[run]\nname = "a"\nname = "b"', "trainwatch.toml:3: not TOML: Cannot overwrite a value"),
        (
            "[hang]\nmin_s = 60\n[run]\n[hang]\nmax_s = 3",
            "trainwatch.toml:4: not TOML: a second [hang]; the first one is in line 1: write all its keys there",
        ),
        (
            "[run]\n[runs.'x y']\n[runs.'x y']",
            "trainwatch.toml:3: not TOML: a second [runs.x y]; the first one is in line 2",
        ),
        ("[[a]]\n\n[a]", "trainwatch.toml:3: not TOML: a second [a]; the first one is in line 1"),
        ("a = {b = 1}\r\n[a]", "trainwatch.toml:2: not TOML: a second [a]; the first one is in line 1"),
        ("[a]\nb.c = 1\n[a.b]\nd = 1", "trainwatch.toml:3: not TOML: a second [a.b]; the first one is in line 2"),
        ("a = {b = 1}\na.c = 2", "not TOML: Cannot mutate immutable namespace [a]"),
        ("[run]\ncommand = [", "trainwatch.toml:2: not TOML"),
        ("[run\n", "trainwatch.toml:1: not TOML"),
        (with_run("[progress]\nshapes = ['it=(']"), "must hold regular expressions ('it=(': missing ), unterminated"),
        (with_run("[progress]\nshapes = ['it']"), "must name what it finds, as in (?P<step>\\d+) ('it' names nothing)"),
        (with_run("[progress]\nshapes = ['(?P<stepp>9)']"), 'has an unknown group "stepp"; did you mean "step"?'),
        (with_run("[progress]\nshapes = 'x'"), '"shapes" must be a list of texts in quotes, got "x"'),
        (with_run("[diagnose]\npatterns = ['x']"), '"patterns" must be a table whose values are a list of texts'),
        (
            with_run("[diagnose]\npatterns = {io_eror = ['x']}"),
            'unknown failure class "io_eror"; did you mean "io_error"?',
        ),
        (with_run("[diagnose]\npatterns = {io_error = ['(']}"), "must hold regular expressions ('(': "),
        (with_run("[diagnose]\npatterns = {io_error = ['x*']}"), "must be more specific: 'x*' matches every line"),
    ],
)
def test_each_invalid_value_is_reported_with_its_own_message(tmp_path: Path, text: str, said: str) -> None:
    assert said in "\n".join(problems(tmp_path, text))


def test_windows_line_ends_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "trainwatch.toml"
    path.write_bytes(b"\xef\xbb\xbf" + INTERFACE.replace("\n", "\r\n").encode())
    assert load_project(path).origin("notify", "urls").endswith("trainwatch.toml:28")


def test_project_with_several_runs_finds_each_by_name(tmp_path: Path) -> None:
    text = '[runs.one]\ncommand = ["a"]\n[runs."t.w o"]\ncommand = ["b"]\ncwd = "/abs/../x"\nlogs = ["~nobody/l"]\n'
    project = load(tmp_path, text)
    assert list(project.runs) == ["one", "t.w o"]
    assert project.run("t.w o").cwd == "/x"
    assert project.origin("runs.t.w o", "cwd").endswith(":5")
    with pytest.raises(ConfigError, match=r"which run\? there are: one, t.w o; name one of them"):
        project.run()
    with pytest.raises(ConfigError, match='no run "onee"; did you mean "one"'):
        project.run("onee")
    assert 'a second run named "one"' in "\n".join(problems(tmp_path, text + '[run]\nname = "one"\ncommand = ["c"]\n'))


def test_find_project_returns_the_nearest_project_file_upwards(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "a" / "trainwatch.toml").mkdir()
    assert find_project(deep) is None
    (tmp_path / "trainwatch.toml").touch()
    assert find_project(deep) == tmp_path / "trainwatch.toml"
    (deep / "trainwatch.toml").touch()
    assert find_project(deep) == deep / "trainwatch.toml"


def test_what_follows_the_end_may_stand_in_a_run_and_holds_for_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "trainwatch.toml"
    path.write_text(
        '[end]\nend_by = "08:00"\nat_finish = ["all"]\n'
        '[runs.a]\ncommand = ["python", "a.py"]\nat_finish = ["mine"]\n[runs.b]\ncommand = ["python", "b.py"]\n'
    )
    project = load_project(path)
    assert project.settings.end.at_finish == ("all",)
    assert (project.run("a").end, project.run("b").end) == ({"at_finish": ("mine",)}, {})
    path.write_text('[run]\ncommand = ["python", "a.py"]\nend_by = "25:00"\n')
    with pytest.raises(ConfigError, match=r':3: "end_by" must be a local time like "08:00".*got "25:00"'):
        load_project(path)

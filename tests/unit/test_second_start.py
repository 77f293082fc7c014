"""What ``run --dry-run --json`` says of a restart whose start would delete what the first one saved."""

import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fakes.e2e_world import in_this_process, stand_in_python
from tests.fakes.feed import created, started
from trainwatch.core import spool
from trainwatch.core.app.plan.launch_plan import plan_launch
from trainwatch.core.app.plan.resume_plan import sources_of
from trainwatch.core.app.preflight.check import Machine
from trainwatch.core.app.preflight.resume_checks import check_second_start
from trainwatch.core.model.fact import IncidentOpened, IncidentUpdated
from trainwatch.core.model.launch import Rehearsal, Verdict
from trainwatch.core.model.preset import Will
from trainwatch.core.model.run import Incident, LaunchOrder, RunSpec
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.learned import keep_rehearsal
from trainwatch.core.store.run_directory import RunDirectory

HEAD = """
import argparse, json, os, shutil, sys
from pathlib import Path
import torch
"""
TRAINS = """
for step in range(100):
    if step % 10 == 0:
        torch.save({"step": step}, os.path.join(out, f"step_{step}.pt"))
"""
RESUMES = """
if args.resume:
    state = torch.load(args.resume)
    model.load_state_dict(state["model"]); optimizer.load_state_dict(state["optimizer"]); first = state["step"]
"""


def planned(
    folder: Path, script: str, *words: str, files: dict[str, str] | None = None, program: str = "", **variables: str
) -> Any:
    """The object that a dry run prints."""
    for name, text in {"train.py": script, **(files or {})}.items():
        (folder / name).write_text(text)
    python = stand_in_python(folder)
    command = program.split() if program else [python, "train.py"]
    path = f"{Path(python).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "TRAINWATCH_HOME": str(folder / "home"), **variables}
    done = in_this_process(["run", "--dry-run", "--json", "--", *command, *words], folder, env)
    return done.json


def second(folder: Path, script: str, *words: str, **more: Any) -> Any:
    return planned(folder, script, *words, **more)["second_start"]


OVERWRITE = f"""{HEAD}
parser = argparse.ArgumentParser()
parser.add_argument("--place", default="saved"); parser.add_argument("--resume")
parser.add_argument("--FLAG", action="store_true", dest="again")
args = parser.parse_args()
out = Path(args.place) / "weights"
if os.path.exists(out):
    if args.again:
        REMOVES
    elif not args.resume:
        raise SystemExit(f"{{out}} exists")
os.makedirs(out, exist_ok=True)
{RESUMES}{TRAINS}
"""


def overwriting(flag: str, removes: str) -> str:
    return OVERWRITE.replace("FLAG", flag).replace("REMOVES", removes)


@pytest.mark.parametrize(
    ("flag", "removes"),
    [
        ("overwrite", "shutil.rmtree(out)"),
        ("do-over", "for name in os.listdir(out):\n            os.remove(os.path.join(out, name))"),
        ("clean", "os.system(f'rm -rf {out}')"),
    ],
)
def test_an_option_that_empties_the_folder_is_dropped_at_a_restart(tmp_path: Path, flag: str, removes: str) -> None:
    found = second(tmp_path, overwriting(flag, removes), f"--{flag}", "--place", "mine")

    assert found["drops"] == [f"--{flag}"]
    assert f"--{flag}" not in found["argv"]
    assert found["argv"][-2:] == ["--resume", "{resume}"]
    assert len(found["destroys"]) == 1
    assert "mine/weights" in found["destroys"][0]
    assert f"--{flag}" in found["destroys"][0]


def test_an_option_that_a_comment_of_the_shell_script_names_too_is_left_out(tmp_path: Path) -> None:
    text = '# --overwrite begins anew\npython train.py --overwrite "$@"\n'
    script = overwriting("overwrite", "shutil.rmtree(out)").replace("not args.resume", "False")
    found = second(tmp_path, script, files={"go.sh": text}, program="bash go.sh")

    assert found["drops"] == ["--overwrite"]
    assert found["argv"][2] == text.replace("py --overwrite", "py ")


def test_an_option_without_which_a_restart_would_fail_stays(tmp_path: Path) -> None:
    script = overwriting("again", "shutil.rmtree(out)").replace("out, exist_ok=True", "out")
    found = second(tmp_path, script, "--again", "--place", "mine")

    assert found["drops"] == []
    assert "mine/weights" in found["destroys"][0]


def test_without_the_option_nothing_is_destroyed(tmp_path: Path) -> None:
    found = second(tmp_path, overwriting("overwrite", "shutil.rmtree(out)"))

    assert (found["drops"], found["destroys"]) == ([], [])


CONFIGURED = f"""{HEAD}
import tomllib, yaml
def read(path):
    text = Path(path).read_text()
    return json.loads(text) if path.endswith("json") else tomllib.loads(text) if path.endswith("toml") else yaml.safe_load(text)
parser = argparse.ArgumentParser()
parser.add_argument("--config"); parser.add_argument("--resume")
args = parser.parse_args()
cfg = read(args.config)
out = cfg["folder"]
def prepare(folder, fresh):
    if fresh and os.path.isdir(folder):
        shutil.rmtree(folder)
    os.makedirs(folder, exist_ok=True)
prepare(out, cfg["start_clean"])
{RESUMES}{TRAINS}
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.yaml", "folder: saved\nstart_clean: true   # mine\n"),
        ("c.toml", 'folder = "saved"\nstart_clean = true\n'),
        ("c.json", '{"folder": "saved", "start_clean": true}'),
    ],
)
def test_a_key_of_the_config_is_switched_off_in_a_copy(tmp_path: Path, name: str, text: str) -> None:
    found = second(tmp_path, CONFIGURED, "--config", name, files={name: text})

    assert found["drops"] == ["start_clean"]
    assert "saved" in found["destroys"][0]
    assert found["argv"][3].endswith(f"/{name}")
    assert found["argv"][3] != name
    assert (tmp_path / name).read_text() == text


ALWAYS = f"""{HEAD}
parser = argparse.ArgumentParser()
parser.add_argument("--resume")
args = parser.parse_args()
out = "runs/now"
shutil.rmtree(out, ignore_errors=True)
os.makedirs(out, exist_ok=True)
{RESUMES}{TRAINS}
"""


def test_a_folder_that_is_always_emptied_is_told_and_does_not_refuse_a_trainer_that_takes_a_path(
    tmp_path: Path,
) -> None:
    found = planned(tmp_path, ALWAYS)

    assert found["problem"] is None
    assert "train.py:" in found["second_start"]["destroys"][0]
    assert "runs/now" in found["second_start"]["destroys"][0]
    assert found["second_start"]["drops"] == []


EMPTIES = {
    "def train(folder):\n    shutil.rmtree(folder)\n    for _ in range(9):\n        model.train()\ntrain(out)": 1,
    "def anew(d):\n    if os.path.exists(d):\n        shutil.rmtree(d)\nanew(out)\nanew('logs')": 1,
    "def anew(d):\n    shutil.rmtree(d)\nif args.resume == 'no':\n    anew(out)\nanew('logs')": 0,
    "for each in (out, 'logs'):\n    if os.path.exists(each):\n        shutil.rmtree(each)": 1,
    "import glob\nold = sorted(glob.glob(f'{out}/*'))\nfor each in old:\n    os.remove(each)": 1,
    "import glob\nfor each in glob.glob(f'{out}/*.tmp'):\n    os.remove(each)": 0,
    "for top, _, names in os.walk(out):\n    for name in names:\n        os.remove(os.path.join(top, name))": 1,
    "os.system('rm -rf %s' % out)": 1,
    "os.system('mkdir -p logs; rm -rf {}/*'.format(out))": 1,
    "shutil.rmtree(os.path.dirname(os.path.join(out, 'last.pt')))": 1,
    "@shutil.rmtree(out)": 0,
    "if os.path.exists(out):\n    os.rename(out, out + '.old')": 1,
    "out = out.replace('/', '_')": 0,
}
"""How scripts empty their folder at the start, and how often a restart does; behind @: once it has trained."""


@pytest.mark.parametrize("removes", EMPTIES)
def test_a_folder_that_is_emptied_is_seen_however_that_is_written(tmp_path: Path, removes: str) -> None:
    first, _, last = removes.partition("@")
    found = second(tmp_path, ALWAYS.replace("shutil.rmtree(out, ignore_errors=True)", first) + last)

    does = "moves" if "os.rename" in removes else "deletes"
    assert [f"{does} runs/now at the start" in each for each in found["destroys"]] == [True] * EMPTIES[removes]
    assert not any(each.startswith("may be") for each in found["destroys"])


REFUSES = {
    "os.makedirs(out)": True,
    "Path(out).mkdir(parents=True)": True,
    "os.makedirs(out, exist_ok=bool(args.resume))": False,
    "os.makedirs(out, 0o777, True)": False,
    "def make():\n    os.makedirs(out)\ntry:\n    make()\nexcept OSError:\n    pass": False,
    "if os.path.exists('runs/end'):\n    sys.exit('over')": False,
    "if not os.path.isdir(out):\n    os.makedirs(out)": False,
    "try:\n    os.makedirs(out)\nexcept FileExistsError:\n    pass": False,
    "import tempfile\ntmp = tempfile.mkdtemp()\nshutil.rmtree(tmp)": False,
    "os.makedirs('logs')": False,
    "if os.path.exists(out):\n    sys.exit('is there')": True,
    "if os.path.exists(out) and not args.resume:\n    sys.exit('is there')": False,
}
"""What stands before the training, and whether a restart ends there."""


@pytest.mark.parametrize("before", REFUSES)
def test_a_start_that_wants_no_folder_is_told(tmp_path: Path, before: str) -> None:
    script = ALWAYS.replace("shutil.rmtree(out, ignore_errors=True)\nos.makedirs(out, exist_ok=True)", before)
    found = planned(tmp_path, f"{script}torch.save(step, 'runs/end/model.pt')")

    told = [each["found"] for each in found["checks"] if each["name"] == "restart"]
    assert ["ends a start when runs/now is there" in each for each in told] == [True] * REFUSES[before]
    assert found["second_start"]["destroys"] == []


VARIABLES = {
    "env WIPE=1 python train.py": "runs/now",
    "bash go.sh export WIPE=1": "runs/now",
    "bash go.sh WIPE=1": "",
    "bash go.sh export WIPE=$(date)": "may be: ",
}


@pytest.mark.parametrize("command", VARIABLES)
def test_a_variable_that_the_command_sets_decides(tmp_path: Path, command: str) -> None:
    script = ALWAYS.replace("shutil.rmtree", 'if os.environ.get("WIPE") == "1":\n    shutil.rmtree')
    shell = f"{command.removeprefix('bash go.sh ')}\npython train.py\n"
    program = "bash go.sh" if command.startswith("bash") else command
    found = second(tmp_path, script, files={"go.sh": shell}, program=program)

    assert [VARIABLES[command] in each for each in found["destroys"]] == ([True] if VARIABLES[command] else [])


GIVEN = [
    ('"--again", action="store_true"', "args.again", "--aga", ["--aga"]),
    ('"--again", type=bool, default=False', "args.again", "--again False", ["--again"]),
    ('"--again", type=bool, default=True', "args.again", "", []),
    ('"--lr", type=float); parser.add_argument("again"', "args.again == 'yes'", "--lr 0.1 yes", []),
    ('"data"); parser.add_argument("again"', "args.again == 'yes'", "set.csv yes", []),
    ('"--again", action="store_true"', "args.again", "", None),
    ('"--config"', "cfg['train']['clean']", "--config c.yaml", None),
    (
        '"--config"); parser.add_argument("--again", action="store_true"',
        "cfg['again']",
        "--config c.yaml --again",
        None,
    ),
]
"""How an option is declared and given by which a start deletes, and what a restart leaves out; None: not known."""


@pytest.mark.parametrize(("declared", "test", "words", "drops"), GIVEN)
def test_an_option_is_read_as_its_parser_reads_it(
    tmp_path: Path, declared: str, test: str, words: str, drops: list[str] | None
) -> None:
    script = ALWAYS.replace('"--resume")', f'"--resume"); parser.add_argument({declared})')
    script = script.replace("\nout =", "\nargs.again = True\nout =") if not words and drops is None else script
    script = script.replace("shutil.rmtree", f"if {test}:\n    shutil.rmtree")
    files = {"c.yaml": "again: false\ntrain:\n  clean: true\ndata:\n  clean: false\n"}
    found = second(tmp_path, script, *words.split(), files=files)

    assert [each.startswith("may be: ") for each in found["destroys"]] == [drops is None]
    assert found["drops"] == (drops or [])


ALONE = f"""{HEAD}
out = Path("kept_here")
if out.exists():
    shutil.rmtree(out)
out.mkdir()
if (out / "last.pt").exists():
    state = torch.load(out / "last.pt")
    model.load_state_dict(state["model"]); optimizer.load_state_dict(state["optimizer"]); step = state["step"]
for step in range(100):
    torch.save({{"step": step}}, out / "last.pt")
"""


def test_a_trainer_that_deletes_what_it_would_resume_from_is_refused_beforehand(tmp_path: Path) -> None:
    found = planned(tmp_path, ALONE)

    assert found["resume"]["will"] == "self"
    assert "kept_here" in (found["problem"] or "")
    assert "--force" in found["problem"]


@pytest.mark.parametrize(("verdict", "will"), [("safe", "self"), ("safe", "yes"), ("unknown", "self")])
def test_a_rehearsal_of_the_command_that_went_on_by_itself_outranks_its_source(
    tmp_path: Path, verdict: Verdict, will: Will
) -> None:
    (tmp_path / "train.py").write_text(ALONE)
    spec = RunSpec(
        id="job", name="job", command=(stand_in_python(tmp_path), "train.py"), cwd=str(tmp_path), created_wall=0.0
    )
    seen = Rehearsal(run="job", command=spec.command, wall=0.0, verdict=verdict, will=will)
    keep_rehearsal(tmp_path / "home", spec.cwd, seen, sources_of(spec))
    assert (planned(tmp_path, ALONE)["problem"] is None) is (verdict == "safe" and will == "self")


@pytest.mark.parametrize("changed", ["nothing", "source", "command", "vanished"])
def test_a_resume_of_the_run_itself_outranks_its_source_while_both_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    script, wall = tmp_path / "train.py", time.time() + (3600.0 if changed != "source" else -3600.0)
    script.write_text(ALONE)
    command = (stand_in_python(tmp_path), "train.py")
    plan = plan_launch(RunSpec(id="job", name="job", command=command, cwd=str(tmp_path), created_wall=wall))
    run = RunDirectory.create(tmp_path / "home", plan.spec)
    argv = (*command, "--lr") if changed == "command" else command
    run.attempt(2).mkdir(parents=True)
    order = LaunchOrder(attempt=2, argv=argv, cwd=plan.spec.cwd, env={}, log="log")
    spool.write(str(run.attempt(2)), spool.ORDER, msgspec.to_builtins(order))
    crash = Incident(id=1, t=5.0, wall=wall, attempt=1, kind="crash", class_="unknown", reason="", open=False)
    taken = msgspec.structs.replace(crash, closed_t=9.0, resumed_from="out/last.pt")
    gone = msgspec.structs.replace(crash, id=2, kind="checkpoint", class_="vanished")
    with JournalWriter(run.journal) as journal:
        assert planned(tmp_path, ALONE)["problem"] is not None
        journal.append_all(0.0, wall, (*created(), *started(1), IncidentOpened(incident=crash)))
        journal.append_all(6.0, wall, (*started(2), *[IncidentOpened(incident=gone)] * (changed == "vanished")))
        journal.append_all(9.0, wall, (IncidentUpdated(incident=taken),))
    found = check_second_start(plan, Machine(home=tmp_path / "home"))
    assert found is not None
    assert found.result == ("pass" if changed == "nothing" else "fail")


def test_the_word_without_which_it_deletes_is_not_left_out(tmp_path: Path) -> None:
    """`resume=true` was dropped at the restart, which then emptied the folder and began anew."""
    over = 'over = dict(word.split("=", 1) for word in sys.argv[1:])\nout ='
    asks = 'if over.get("resume", "false") != "true" and out.exists():'
    script = ALONE.replace("out =", over, 1).replace("if out.exists():", asks, 1)
    found = second(tmp_path, script, "resume=true")
    assert found["drops"] == []
    assert found["destroys"][0].startswith("may be: train.py:")


DELETES = {
    'if [ -z "$KEEP" ]; then\n  rm -rf $OUT\nfi': (True, False),
    '[ "$KEEP" != 1 ] && rm -rf "$OUT"': (True, False),
    '[ -n "${KEEP:-}" ] || { rm -rf "$OUT"; }': (True, False),
    "if [[ -n $KEEP ]]; then exec python train.py --out $OUT; fi\nrm -rf $OUT": (True, False),
    "KEEP=${KEEP:-0}\nif test -d $OUT && [ $KEEP -eq 0 ]; then rm -rf $OUT; else true; fi": (True, False),
    'if [ -f done ]; then true; fi\nrm -rf "$OUT"': (True, True),
    "if [ -f done ]; then rm -rf $OUT; fi": (None, None),
    "rm -f $OUT/*.pt": (True, True),
    'sudo rm -rf "${OUT:?}"/*': (True, True),
    "rm -rf {$OUT,logs}": (True, True),
    "rm -f $OUT/*.log": (False, False),
    "find $OUT -name '*.pt' -delete": (True, True),
    "mv $OUT $OUT.old": (True, True),
    "mv new $OUT": (False, False),
    "# @ && rm -rf $OUT": (False, False),
    "set -e\n# @\nrm -rf $OUT": (False, False),
    'if [ "`hostname`" = a ]; then rm -rf $OUT; fi': (None, None),
    'read KEEP\n[ -z "$KEEP" ] && rm -rf $OUT': (None, None),
    'empty() {\n  rm -rf $OUT\n}\n[ -z "$KEEP" ] && empty': (None, None),
}
"""A shell script: whether it deletes its output without KEEP, and with KEEP=1; None: that cannot be told."""


@pytest.mark.parametrize("shell", DELETES)
def test_a_shell_script_that_deletes_its_output_is_refused_unless_its_variables_keep_it(
    tmp_path: Path, shell: str
) -> None:
    script = ALONE.replace('Path("kept_here")', "Path(sys.argv[2])").replace("shutil.rmtree(out)", "pass")
    before, _, after = shell.partition("# @")  # what stands behind the trainer
    text = f"OUT=${{OUT:-results}}\n{before}\npython train.py --out $OUT{after}\n"
    for variables, deletes in zip(({}, {"KEEP": "1"}), DELETES[shell], strict=True):
        found = planned(tmp_path, script, files={"go.sh": text}, program="bash go.sh", **variables)
        destroys, problem = found["second_start"]["destroys"], found["problem"]
        if deletes is False:
            assert (destroys, problem) == ([], None)
            continue
        assert ["rm -rf $OUT`" in each or "$OUT" not in shell or deletes for each in destroys] == [True]
        assert destroys[0].startswith("may be: go.sh" if deletes is None else "go.sh ")
        assert deletes is None or "s results" in destroys[0]
        assert problem.startswith(f"restart: {destroys[0]}")


@pytest.mark.parametrize(
    ("runs", "read"), [("A=1 exec $CMD", True), ('eval "$CMD"', True), ("$CMD $(date)", True), ("make train", False)]
)
def test_a_command_in_a_variable_is_read_and_of_others_it_is_unknown_what_they_delete(
    tmp_path: Path, runs: str, read: bool
) -> None:
    script = ALONE.replace('Path("kept_here")', "Path(sys.argv[2])").replace("shutil.rmtree(out)", "pass")
    shell = f'CMD="python train.py --out results"\nCLEAN="rm -rf results"\n$CLEAN\n{runs}\n'
    found = second(tmp_path, script, files={"go.sh": shell}, program="bash go.sh")
    assert (len(found["destroys"]), found["unknown"] is None) == (int(read), read)


def test_a_shell_script_that_removes_what_only_the_source_names_is_told(tmp_path: Path) -> None:
    script = f"""{HEAD}
BASE = "data"
parser = argparse.ArgumentParser()
parser.add_argument("--out", default="runs"); parser.add_argument("--resume")
args = parser.parse_args()
out = os.path.join(BASE, args.out)
os.makedirs(out, exist_ok=True)
{RESUMES}{TRAINS}
"""
    shell = 'rm -rf data/runs\npython train.py "$@"\n'
    found = second(tmp_path, script, files={"go.sh": shell}, program="bash go.sh")

    assert "go.sh deletes data/runs at the start" in found["destroys"][0]


ROTATES = f"""{HEAD}
parser = argparse.ArgumentParser()
parser.add_argument("--out", default="o"); parser.add_argument("--resume"); parser.add_argument("--keep", default=3)
args = parser.parse_args()
out = args.out
scratch = os.path.join(out, "scratch")
shutil.rmtree(scratch, ignore_errors=True)
def rotate(folder, keep):
    saves = sorted(Path(folder).glob("step_*"))
    for old in saves[:-keep]:
        shutil.rmtree(old)
def save(step):
    place = os.path.join(out, f"step_{{step}}")
    if os.path.exists(place):
        shutil.rmtree(place)
    os.makedirs(place)
    torch.save({{"step": step}}, os.path.join(place, "model.pt"))
    rotate(out, args.keep)
{RESUMES}
for step in range(100):
    save(step)
"""


@pytest.mark.parametrize(("name", "told"), [("last.pt", ["train.py:3 writes over out/last.pt"]), ("{step}.pt", [])])
def test_a_script_that_cannot_resume_writes_over_what_it_saved(tmp_path: Path, name: str, told: list[str]) -> None:
    text = f'import torch\nfor step in range(100):\n    torch.save({{"step": step}}, f"out/{name}")\n'
    assert second(tmp_path, text)["destroys"] == told


def test_old_checkpoints_that_are_removed_while_it_trains_are_no_start_that_destroys(tmp_path: Path) -> None:
    assert second(tmp_path, ROTATES)["destroys"] == []


def test_a_name_alone_is_no_more_than_a_possibility(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/true\n")
    (tmp_path / "tool").chmod(0o755)
    found = planned(tmp_path, "", "--resume", "{resume}", "--force-overwrite", program="./tool")

    assert found["problem"] is None
    assert found["second_start"]["drops"] == []
    assert found["second_start"]["destroys"][0].startswith("may be: by its name --force-overwrite")


CONDITIONS = {
    "args.clean > 0": "",
    "args.clean > 0 --clean 1": "sure",
    "args.start == 0": "",
    "args.start == 0 --start 0": "sure",
    "args.wipe": "",
    "args.wipe --wipe true": "sure",
    "int(os.environ.get('FRESH', '0'))": "",
    "not (out / 'last.pt').exists()": "",
    "not (out / 'best.pt').exists()": "may",
    "not glob.glob(os.path.join(out, '*.pt'))": "",
    "not glob.glob(os.path.join(out, '*.ckpt'))": "may",
    "newest(out) is None": "",
    "len(os.listdir(out)) == 1": "may",
    "len(os.listdir(out)) == 0": "",
    "input('overwrite? ') == 'y'": "may",
    "min(5, 0) == 0": "may",
    "len(args.word) < 5": "may",
    "args.word": "sure",
    "args.word == 'false'": "sure",
    "not loads(out)": "may",
    "not finds(out)": "may",
    "not wrapped(out)": "may",
}
"""What decides of a deletion at the start, with the words of the command: whether a restart deletes."""


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_trainer_that_finds_its_checkpoint_is_refused_only_if_it_may_delete_it(
    tmp_path: Path, condition: str
) -> None:
    test, *words = condition.split(" --")
    script = ALONE.replace("if out.exists():", f"if out.exists() and {test}:").replace(
        'out = Path("kept_here")',
        """import glob
def newest(folder):
    found = sorted(glob.glob(os.path.join(folder, "*.pt")), key=os.path.getmtime)
    return found[-1] if found else None
def loads(folder):
    try:
        os.stat(os.path.join(folder, "last.pt"))
        return True
    except OSError:
        return False
def finds(folder):
    for each in [name for name in os.listdir(folder) if "best" in name]:
        return True
    return False
@staticmethod
def wrapped(folder):
    return True
parser = argparse.ArgumentParser()
parser.add_argument("--clean", type=int, default=0); parser.add_argument("--start", type=int, default=-1)
parser.add_argument("--wipe", type=lambda text: text.lower() == "true", default="false")
parser.add_argument("--word", default="false")
args = parser.parse_args()
out = Path("kept_here")""",
    )
    found = planned(tmp_path, script, *(f"--{words[0]}".split() if words else ()))

    told = ["may" if each.startswith("may be: ") else "sure" for each in found["second_start"]["destroys"]]
    assert told == [CONDITIONS[condition]] * bool(CONDITIONS[condition])
    assert found["problem"] is None or CONDITIONS[condition]


def test_two_tests_of_which_one_is_not_understood_make_it_a_possibility(tmp_path: Path) -> None:
    script = overwriting("overwrite", "shutil.rmtree(out)").replace(
        "if args.again:", "if args.again and is_empty_enough(out):"
    )
    found = second(tmp_path, script, "--overwrite")

    assert found["destroys"][0].startswith("may be: ")
    assert json.dumps(found)


def test_a_start_that_deletes_before_it_ends_is_refused_all_the_same(tmp_path: Path) -> None:
    before = "shutil.rmtree('runs/now/kept', ignore_errors=True)\nos.makedirs(out)"
    script = ALWAYS.replace("shutil.rmtree(out, ignore_errors=True)\nos.makedirs(out, exist_ok=True)", before)
    script = script.replace('"--resume"', '"--resume", action="store_true"').replace("step_{step}.pt", "kept/{step}.pt")

    assert "deletes runs/now/kept" in planned(tmp_path, script)["problem"]


def test_an_option_that_a_known_program_empties_its_folder_by_is_left_out(tmp_path: Path) -> None:
    command = "./sockeye train --output out --overwrite-output"
    assert second(tmp_path, "", program=command)["drops"] == ["--overwrite-output"]

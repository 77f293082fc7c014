"""One launch plan: derived once, used by check, dry run, launch screen and the first launch itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.e2e_world import TRAINER, World
from tests.tiers import SECOND_TIER
from trainwatch.cli import main
from trainwatch.core.app.plan.launch_plan import LaunchPlan, plan_command, plan_launch
from trainwatch.core.app.preflight.checklist import RUN_CHECKS, why_not_start
from trainwatch.core.config.project import Overrides
from trainwatch.core.model.decision import StartAttempt

COUNTER = """
import collections, json, sys
from trainwatch.core.act.config import derive, trainer_config
from trainwatch.core.config import shipped

counts = collections.Counter()

def count(module, name):
    original = getattr(module, name)

    def counted(*args, **named):
        counts[name] += 1
        return original(*args, **named)

    setattr(module, name, counted)

count(derive, "preview")
count(shipped, "load_profiles")
count(shipped, "load_presets")
from trainwatch.cli import main

code = main(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    json.dump(counts, file)
sys.exit(code)
"""


@pytest.mark.parametrize("way", ["run", pytest.param("project", marks=SECOND_TIER)])
def test_a_run_derives_launch_and_restart_once_and_reads_profiles_once(world: World, way: str) -> None:
    (world.project / "cfg.yaml").write_text("steps: 5\n")
    command = [sys.executable, str(TRAINER), "--output-dir", str(world.out), "--steps", "5"]
    if way == "project":
        world.write("--steps", "5")
        words = ["--headless"]
    else:
        words = ["run", "--headless", "--output-dir", "out", "--", *command]
    counts = world.project / "counts.json"
    done = subprocess.run(
        [sys.executable, "-c", COUNTER, str(counts), *words],
        check=False, cwd=world.project, env=world.env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # The second derivation is that of a restart: what would it delete?
    assert json.loads(counts.read_text()) == {"preview": 2, "load_profiles": 1, "load_presets": 1}


@pytest.fixture
def folder(folder: Path) -> Path:
    (folder / "train.py").touch()
    (folder / "cfg.yaml").write_text("training:\n  batch_size: 4\n")
    return folder


def plan_here() -> LaunchPlan:
    return plan_command(("python3", "train.py", "--config", "cfg.yaml"), Overrides(config="cfg.yaml", output_dir="out"))


def first(plan: LaunchPlan, **more: object) -> StartAttempt:
    values = {"id": 1, "attempt": 1, "reason": "first launch", "profile": plan.spec.settings.profiles.use} | more
    return StartAttempt(**values)  # type: ignore[arg-type]


def test_the_first_launch_takes_what_the_plan_derived(folder: Path) -> None:
    plan = plan_here()
    attempt = folder / "home" / "runs" / plan.spec.id / "attempts" / "0001"
    assert plan.derived is not None
    assert plan.derived.config_path == attempt / "cfg.yaml"
    assert plan.derived_for(first(plan), attempt) is plan.derived
    assert plan.settings["batch_size"] == 4
    assert plan.command_shown == ("python3", "train.py", "--config", "ATTEMPT/cfg.yaml")
    assert not attempt.exists(), "a plan writes nothing"


def test_another_launch_is_derived_anew(folder: Path) -> None:
    plan = plan_here()
    attempt = folder / "home" / "runs" / plan.spec.id / "attempts" / "0001"
    others = (
        first(plan, attempt=2),
        first(plan, resume_from="out/a.pt"),
        first(plan, profile="conservative"),
    )
    assert [plan.derived_for(decision, attempt) for decision in others] == [None, None, None]
    assert plan.derived_for(first(plan), attempt.with_name("0001-2")) is None, "its config copy lies elsewhere"
    (folder / "cfg.yaml").write_text("training:\n  batch_size: 16\n")
    assert plan.derived_for(first(plan), attempt) is None, "the config was edited since"


def test_a_run_that_cannot_start_is_refused_by_every_way_with_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "file").touch()
    words = ["--output-dir", "file/out", "--", "python3", "train.py"]
    assert main(["run", "--dry-run", "--json", *words]) == 0
    problem = json.loads(capsys.readouterr().out)["problem"]
    assert "is no folder; choose another output folder" in problem
    assert main(["run", "--headless", *words]) == 1
    assert problem in capsys.readouterr().err
    assert not (folder / "home" / "runs").exists()


def test_a_config_that_cannot_be_read_is_a_plan_with_its_problem(folder: Path) -> None:
    (folder / "cfg.yaml").write_text("training: [1\n")
    plan = plan_here()
    assert plan.derived is None
    assert "cfg.yaml" in (plan.problem or "")
    obstacle = why_not_start(plan)
    assert obstacle is not None
    assert obstacle.exit_code == 2
    assert obstacle.sentence.startswith(plan.problem or "?")


def test_every_check_that_refuses_a_start_is_in_the_list_of_check() -> None:
    refusing = {row.function.__name__ for row in RUN_CHECKS if row.refuses is not None}
    assert refusing == {"check_launch", "check_command", "check_output_owner", "check_output_dir"}


def test_a_plan_of_a_known_run_reads_its_own_profiles(folder: Path) -> None:
    plan = plan_here()
    again = plan_launch(plan.spec)
    assert again.profiles == plan.profiles
    assert again.derived == plan.derived

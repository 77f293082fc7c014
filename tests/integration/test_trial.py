"""Trials of real trainings, each in a separate folder."""

import hashlib
import signal
import sys
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

from tests.fakes.e2e_world import World, until
from tests.tiers import SECOND_TIER
from trainwatch.core.act.overlay import NoOverlayError
from trainwatch.core.app import apart
from trainwatch.core.app.errors import CliError
from trainwatch.core.app.runs.known_runs import home
from trainwatch.core.app.trial import Trial, try_here
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.learned import newest_trials

TRAINER = Path(__file__).parents[2] / "configs" / "examples" / "char_trainer.py"
LADDER = ["calm", "brisk"]
SPEC = RunSpec(id="job", name="job", command=("python",), cwd="/", created_wall=0.0)


def prepare(world: World, *words: str, step_time: str = "0.02", **run: object) -> None:
    folder = world.project / "profiles"
    folder.mkdir(exist_ok=True)
    (folder / "calm.toml").write_text('title = "Calm"\nflags = ["--step-time", "0.04"]\n')
    (folder / "brisk.toml").write_text('title = "Brisk"\nflags = ["--step-time", "0.005"]\n')
    (folder / "fatal.toml").write_text('title = "Fatal"\nflags = ["--oom-at", "25"]\n')
    given = words or ("--output-dir", "{output_dir}")
    command = [sys.executable, str(TRAINER), *given, "--steps", "4000", "--step-time", step_time, "--save-every", "20"]
    world.write(more={"profiles": {"use": "calm", "ladder": LADDER}}, **({"command": command} | run))
    world.out.mkdir(exist_ok=True)
    (world.out / "demo-step00000020.safetensors").write_bytes(b"the user's own")


def fingerprint(folder: Path) -> dict[str, str]:
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


@SECOND_TIER
def test_a_trial_of_two_profiles_writes_only_to_its_scratch_folder(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(world)
    before = fingerprint(world.project)

    done = world.do("trial", "--profile", "calm", "--profile", "brisk", "--minutes", "0.2", "--json", patience_s=110.0)

    assert done.code == 0, done.err
    calm, brisk = done.json["trials"]
    assert (calm["profile"], brisk["profile"]) == ("calm", "brisk")
    for trial in (calm, brisk):
        assert trial["started"]
        assert trial["no_error"]
        assert trial["steps"] >= 20
        assert trial["loss_falling"] is True
        assert trial["ram_peak_bytes"] > 1e7
        assert trial["vram_peak_bytes"] is None
        assert trial["exit"] == "ended after its time"
        assert trial["stable"] is not False
    # A step cannot take less than its sleep of 0.04 s; both ends of about nine seconds are known to the second.
    assert calm["s_per_step"] > 0.04 * (1 - 2 / 9)
    assert calm["s_per_step"] > 2 * brisk["s_per_step"]
    assert fingerprint(world.project) == before
    assert not any((world.home / "trials" / "scratch").iterdir()), "what it wrote is gone"
    assert world.runs() == [], "a trial is no run of the user's"

    monkeypatch.setenv("TRAINWATCH_HOME", str(world.home))
    (results,) = (world.home / "trials" / "results").iterdir()
    assert set(newest_trials(home(), results.stem)) == {"calm", "brisk"}


def test_words_behind_the_dashes_that_begin_with_no_option_are_refused(world: World) -> None:
    prepare(world)
    done = world.asks("trial", "--profile", "brisk", "--", "-1", "--epochs", "5")
    assert (done.code, "'-1' behind --" in done.err) == (2, True), done
    assert not (world.home / "trials").exists()


def test_an_output_folder_that_has_another_name_goes_elsewhere_too(world: World) -> None:
    prepare(world, "--output-dir", "somewhere-else")
    done = world.do("trial", "--profile", "brisk", "--minutes", "0.05", patience_s=60.0)
    assert done.code == 0, done.err
    assert not (world.project / "somewhere-else").exists()


SAVES_WHERE_IT_WANTS = """import sys, time
from pathlib import Path
out = Path({out!r})
out.mkdir(exist_ok=True)
print(sys.argv[1:], "found", [p.name for p in out.iterdir()])
for step in range(1, 9):
    (out / f"step-{{step}}.txt").write_text("mine")
    print(f"step {{step}}/8, loss: {{1 / step}}", flush=True)
    time.sleep(0.05)
"""


@SECOND_TIER
@pytest.mark.usefixtures("overlays")
def test_a_trainer_whose_output_nobody_can_name_is_tried_behind_overlays(world: World) -> None:
    """It was refused. Options behind -- win over those of the profile and of the command."""
    folder = world.project / "profiles"
    folder.mkdir()
    (folder / "small.toml").write_text('title = "Small"\nflags = ["--batch_size", "8", "--quick"]\n')
    (world.project / "mine.py").write_text(SAVES_WHERE_IT_WANTS.format(out=str(world.out)))
    world.write(command=[sys.executable, "mine.py", "--epochs", "50"])
    world.out.mkdir()
    (world.out / "demo-step00000020.safetensors").write_bytes(b"the user's own")
    before = fingerprint(world.project)
    words = ("--epochs", "5", "--batch_size", "16", "--quiet")

    done = world.do("trial", "--profile", "small", "--timeout", "300", "--json", "--", *words, patience_s=60.0)

    assert done.code == 0, done
    (trial,) = done.json["trials"]
    assert trial["started"]
    assert trial["exit"] == "finished, exit code 0"
    said = Path(trial["log"]).read_text().splitlines()[0]
    assert said.startswith("['--epochs', '5', '--batch_size', '16', '--quick', '--quiet'] found []"), said
    assert fingerprint(world.project) == before
    assert not (world.home / "trials" / "results").exists(), "a result with other options is not that of the profile"


def test_a_trial_is_refused_if_its_output_can_be_kept_apart_by_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))

    def no_overlay(*_: object) -> NoReturn:
        raise NoOverlayError("user namespaces are not allowed here")

    monkeypatch.setattr(apart, "ordered", no_overlay)
    spec = msgspec.structs.replace(SPEC, cwd=str(tmp_path), command=("python3", "mine.py"))
    with pytest.raises(
        CliError, match=r"cannot be redirected.*Overlays .* not possible here: user namespaces"
    ) as error:
        try_here(spec, Trial(profile="normal"), tmp_path, keep=False)
    assert "{output_dir}" in str(error.value)


def test_a_trial_beside_a_live_run_needs_consent_and_an_interrupt_cleans_up(world: World) -> None:
    prepare(world)
    (world.out / "demo-step00000020.safetensors").unlink()  # a run is not started over it
    world.headless()
    world.in_state("running")
    done = world.asks("trial", "--profile", "brisk")
    assert done.code == 1
    assert "run job trains on this machine" in done.err
    assert "--yes runs it nevertheless" in done.err

    trial = world.begin("trial", "--profile", "brisk", "--yes", "--json", world.run.id)
    scratch = world.home / "trials" / "scratch"
    until(lambda: list(scratch.glob("*/out/*.safetensors")), "it saves where it may")
    trial.signal(signal.SIGINT)
    assert trial.ends() == 130
    assert not any(scratch.iterdir())
    assert world.alive(1)
    assert world.story().incidents == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--profile", "calm", "--minutes", "0"), "--minutes: must be more than 0"),
        (("--profile", "calm", "--minutes", "nan"), "--minutes: must be more than 0"),
        (("--profile", "calm", "--timeout", "0"), "--timeout: must be more than 0"),
    ],
)
def test_trial_refuses_invalid_options(world: World, words: tuple[str, ...], said: str) -> None:
    prepare(world)
    done = world.asks("trial", *words)
    assert done.code == 2
    assert said in done.err

"""``trainwatch rehearse`` with real trainers: those that resume, those that do not, and those that only seem to."""

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.e2e_world import Done, World, until
from tests.fakes.nvml.driver import FakeNvml
from tests.tiers import SECOND_TIER
from trainwatch.core import processes

TRAINER = Path(__file__).parents[1] / "fakes" / "rehearsal_trainer.py"
TOLD = ("--output-dir", "out", "--resume", "{resume}")
PATIENCE_S = 110.0


def fingerprint(folder: Path) -> dict[str, str]:
    return {
        str(p): hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else ""
        for p in sorted(folder.rglob("*"))
        if not p.is_relative_to(folder / "home")
    }


@pytest.fixture
def place(world: World) -> World:
    """A project with the script, and a folder for scratch folders."""
    text = TRAINER.read_text()
    (world.project / "train.py").write_text(text)
    # The option is found in a trainer's source: these have none, or a search of their own.
    option, chosen = '    parser.add_argument("--resume", type=Path)\n', "    found = args.resume\n"
    assert option in text
    assert chosen in text
    itself = text.replace(option, "").replace(chosen, "    found = None\n")
    (world.project / "itself.py").write_text(itself)
    newest = text[text.index("    if args.by_itself:") : text.index("    if found is not None and args.mismatch")]
    cannot = itself.replace(newest, "").replace("load(found) if found is not None else 0", "0")
    (world.project / "cannot.py").write_text(cannot)
    (world.short / "scratch").mkdir()
    return world


def rehearse(
    place: World, *words: str, script: str = "train.py", timeout: str = "60", prefix: tuple[str, ...] = ()
) -> Done:
    """Rehearse, and look that nothing of the user's was touched and nothing is left."""
    scratch = place.short / "scratch"
    before = fingerprint(place.project.parent)
    argv = [*prefix, sys.executable, "-m", "trainwatch", "rehearse", "--json", "--timeout", timeout]
    argv += ["--scratch", str(scratch), "--", sys.executable, script, *words]
    done = subprocess.run(
        argv, cwd=place.project, env=place.env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert fingerprint(place.project.parent) == before, "a file of the user was touched"
    assert not any(scratch.iterdir()), "the scratch folder is left"
    assert not left_of(scratch), "processes are left"
    return Done(done.returncode, done.stdout, done.stderr)


def left_of(scratch: Path) -> list[int]:
    found = []
    for pid in processes.all_processes():
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if str(scratch).encode() in environ:
            found.append(pid)
    return found


@SECOND_TIER
@pytest.mark.usefixtures("overlays")
def test_a_trainer_that_is_told_its_checkpoint_is_proven_without_touching_a_file(place: World) -> None:
    (place.out).mkdir()
    (place.out / "model-000007.safetensors").write_bytes(b"of an earlier night")
    elsewhere = place.project.parent / "elsewhere" / "metrics.csv"

    done = rehearse(place, *TOLD, "--also-write", str(elsewhere))

    assert done.code == 0, done
    result = done.json
    assert result["safe"] is True
    assert result["verdict"] == "safe"
    assert result["resume"]["will"] == "yes"
    assert result["resume"]["source"] == "command"
    assert "--resume {resume}" in result["resume"]["how"]
    steps = result["steps"]
    assert steps["holds"] is True
    assert steps["first_after"] == steps["checkpoint"] + 1 <= steps["killed_at"] + 1
    assert result["loss"]["holds"] is True
    assert 90 <= result["hang_after_s"] <= 400
    assert result["touched"] == []
    assert result["apart"] == "overlay", done.err


@SECOND_TIER
@pytest.mark.usefixtures("overlays")
@pytest.mark.parametrize(
    ("script", "words", "code", "verdict", "will"),
    [
        ("train.py", ("--output-dir", "out"), 0, "safe", "yes"),
        ("itself.py", ("--output-dir", "out", "--by-itself"), 0, "safe", "self"),
        ("cannot.py", ("--output-dir", "out"), 1, "unsafe", "no"),
        ("train.py", (*TOLD, "--lie", "step"), 1, "unsafe", "no"),
        ("train.py", (*TOLD, "--lie", "loss"), 1, "unsafe", "no"),
        ("train.py", (*TOLD, "--mismatch"), 1, "unsafe", "unknown"),
        ("train.py", (*TOLD, "--step-time", "1", "--save-every", "5", "--fail-at", "7"), 1, "unsafe", "unknown"),
        ("train.py", ("--resume", "{resume}"), 0, "safe", "yes"),  # saves in a folder that nobody named
        ("itself.py", ("--by-itself",), 0, "safe", "self"),
        (
            "train.py",
            (*TOLD, "--steps", "30", "--step-time", "0.05", "--save-every", "10"),
            0,
            "safe",
            "yes",
        ),  # done in a second
        ("itself.py", ("--by-itself", "--steps", "40", "--step-time", "0.05", "--linger", "30"), 0, "safe", "self"),
    ],
    ids=[
        "option in its source",
        "by itself",
        "cannot",
        "counts from zero",
        "loss restarts",
        "fails",
        "fails by itself",
        "fixed folder",
        "fixed, by itself",
        "short",
        "killed when it was done",
    ],
)
def test_a_rehearsal_tells_what_a_crash_does_tonight(
    place: World, script: str, words: tuple[str, ...], code: int, verdict: str, will: str
) -> None:
    done = rehearse(place, *words, script=script)
    assert done.code == code, done
    assert done.json["verdict"] == verdict, done
    assert done.json["resume"]["will"] == will, done


OPAQUE = """
import argparse, json, os, time, zipfile
p = argparse.ArgumentParser()
p.add_argument("--output-dir", default="outputs")
p.add_argument("--resume")
a = p.parse_args()
os.makedirs(a.output_dir, exist_ok=True)
start = 0
if a.resume:
    text = ZIP_READ
    start = json.loads(text)["step"]
for s in range(start + 1, 2001):
    time.sleep(0.05)
    print(f"step {s}/2000 loss {2.0 / (1 + s * 0.01):.4f}", flush=True)
    if s % 50 == 0:
        text = json.dumps({"step": s, "w": [0.5] * 500})
        path = os.path.join(a.output_dir, f"ckpt_{s}SUFFIX")
        ZIP_WRITE
"""
ZIP = {
    "SUFFIX": ".npz",
    "ZIP_READ": 'zipfile.ZipFile(a.resume).read("state.npy")',
    "ZIP_WRITE": 'z = zipfile.ZipFile(path, "w"); z.writestr("state.npy", text); z.close()',
}
OWN = {"SUFFIX": ".q7", "ZIP_READ": "open(a.resume).read()[2:]", "ZIP_WRITE": 'open(path, "w").write("Q7" + text)'}


@SECOND_TIER
@pytest.mark.usefixtures("overlays")
@pytest.mark.parametrize("form", [ZIP, OWN], ids=["npz", "own"])
@pytest.mark.parametrize("resumes", [True, False], ids=["resumes", "ignores it"])
def test_a_checkpoint_of_an_unknown_format_is_given_to_the_second_attempt(
    place: World, form: dict[str, str], resumes: bool
) -> None:
    text = OPAQUE
    for word, code in form.items():
        text = text.replace(word, code)
    if not resumes:
        text = text.replace('start = json.loads(text)["step"]', "start = 0")
    (place.project / "opaque.py").write_text(text)

    done = rehearse(place, "--output-dir", "out", script="opaque.py")

    result = done.json
    assert result["verdict"] == ("safe" if resumes else "unsafe"), done
    assert result["steps"]["holds"] is resumes


@SECOND_TIER
@pytest.mark.usefixtures("overlays")
def test_a_trainer_that_never_saves_is_unknown_and_named(place: World) -> None:
    done = rehearse(place, *TOLD, "--save-every", "0", "--steps", "4000", timeout="6")
    assert done.code == 1
    assert done.json["verdict"] == "unknown"
    assert "no checkpoint was reached within 6 s" in done.json["reason"]
    assert "save_every = 0" in " ".join(done.json["advice"])


@SECOND_TIER
def test_without_overlays_the_output_is_redirected_or_the_rehearsal_refused(place: World) -> None:
    no_namespaces = (
        "unshare", "-Ur", "sh", "-c",
        'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "$@"', "sh",
    )  # fmt: skip
    if subprocess.run([*no_namespaces, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine allows no user namespace to forbid them in")
    done = rehearse(place, *TOLD, prefix=no_namespaces)
    assert done.code == 0, done
    assert done.json["apart"] == "redirect"
    assert done.json["saved_in"] == str(place.out)

    refused = rehearse(place, "--resume", "{resume}", prefix=no_namespaces)
    assert refused.code == 1
    assert "{output_dir}" in refused.err
    assert "nothing was started" in refused.err


@SECOND_TIER
def test_on_a_machine_with_a_gpu_the_owner_of_the_folder_is_named_before_the_gpu(
    place: World, fake_nvml: FakeNvml, fake_nvml_library: Path
) -> None:
    fake_nvml.show("driver = 570.133.07\ngpus = 1\n[gpu 0]\nname = NVIDIA GeForce RTX 4080\nmem_total = 16376\n")
    place.env |= {"LD_LIBRARY_PATH": str(fake_nvml_library), "FAKE_NVML_STATE": str(fake_nvml.state)}
    place.write("--steps", "99999", "--step-time", "0.05")
    place.headless()
    place.in_state("running")
    refused = place.do("rehearse", "--", sys.executable, "train.py", *TOLD)
    assert refused.code == 4
    assert "out is in use by " in refused.err
    assert "nothing was started" in refused.err
    (place.project / "trainwatch.toml").unlink()
    beside = place.do("rehearse", "--", sys.executable, "train.py", "--output-dir", "other", "--resume", "{resume}")
    assert beside.code == 1
    assert "a rehearsal beside it would slow it" in beside.err


@SECOND_TIER
@pytest.mark.usefixtures("overlays")
def test_a_rehearsal_is_refused_beside_a_live_run_and_an_interrupt_leaves_nothing(place: World) -> None:
    place.write("--steps", "99999", "--step-time", "0.05")
    watcher = place.headless()
    place.in_state("running")
    refused = place.do("rehearse", "--", sys.executable, "train.py", *TOLD)
    assert refused.code == 4
    assert "out is in use by " in refused.err
    assert "nothing was started" in refused.err
    assert place.do("stop", "--yes").code == 0
    place.in_state("stopped")
    watcher.signal(signal.SIGTERM)
    watcher.ends()
    (place.project / "trainwatch.toml").unlink()

    scratch = place.short / "scratch"
    words = ["--scratch", str(scratch), "--", sys.executable, "train.py", *TOLD, "--save-every", "0", "--steps", "9999"]
    before = fingerprint(place.project)
    for begun in (lambda: any(scratch.glob("*")), lambda: len(left_of(scratch)) > 2):
        rehearsal = place.begin("rehearse", *words)
        until(begun, "its process starts, or its trainer runs")
        rehearsal.signal(signal.SIGINT)
        assert rehearsal.ends() == 130
        assert "Traceback" not in rehearsal.said
        assert not any(scratch.iterdir())
    assert not left_of(scratch)
    assert fingerprint(place.project) == before

    rehearsal = place.begin("rehearse", *words)
    until(lambda: len(left_of(scratch)) > 2, "its trainer runs")
    rehearsal.murder()
    until(lambda: not left_of(scratch) and not any(scratch.iterdir()), "its child ends the trainer and cleans up")


def test_rehearse_refuses_invalid_options(place: World) -> None:
    assert "--timeout: must be more than 0" in place.asks("rehearse", "--timeout", "0", "--", "true").err
    done = place.asks("rehearse")
    assert done.code == 2
    assert "no command to rehearse" in done.err

"""A machine that another local user shares: what they laid where trainwatch looks is neither used nor followed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.another_user import NOBODY, as_another_user
from tests.fakes.e2e_world import Done, in_this_process
from tests.tiers import second
from trainwatch.core.act.launch.locks import SLOT_BYTES, Owner, Taken, look
from trainwatch.core.act.launch.output_locks import NAME

LONG_AGO = 1_000_000_000
TRAINER = [sys.executable, "-c", "for n in range(1, 4): print(f'step {n}/3 loss 0.{9 - n}', flush=True)"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to lay things as another user")


def has_namespaces() -> bool:
    try:
        return subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def environment(folder: Path, home: Path) -> dict[str, str]:
    (folder / "cache").mkdir(exist_ok=True)
    kept = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(folder / "cache")}
    return {**kept, "TRAINWATCH_HOME": str(home)}


def run_beside(places: dict[str, Path], folder: Path, **given: str) -> Done:
    """``trainwatch run`` where each of ``places`` is what the other user has made there."""
    mounts = "".join(
        f"mkdir -p -m 700 {place}; mount --bind {laid} {place} || exit 99\n" for place, laid in places.items()
    )
    words = [sys.executable, "-m", "trainwatch", "run", "--headless", "--", *TRAINER]
    env = {**environment(folder, folder / "home"), **given}
    command = ["unshare", "-m", "sh", "-c", f'{mounts}exec "$@"', "sh", *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=100, check=False)
    if done.returncode == 99:
        pytest.skip(f"no mounts here: {done.stderr}")
    return Done(done.returncode, done.stdout, done.stderr)


def laid_by_another(folder: Path, **links: Path) -> Path:
    folder.mkdir(mode=0o777)
    for name, target in links.items():
        (folder / name).symlink_to(target)
        os.chown(folder / name, NOBODY, NOBODY, follow_symlinks=False)
    os.chown(folder, NOBODY, NOBODY)
    return folder


def own_files(folder: Path) -> dict[str, int]:
    """An own project with old empty files and old locks in it, and its files with their modes."""
    folder.mkdir()
    for name in ("__init__.py", ".gitkeep", f"folder-{'0' * 16}.lock"):
        (folder / name).touch()
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
    (folder / f"command-{'0' * 16}.lock").write_bytes(b" " * 2 * SLOT_BYTES)
    os.utime(folder / f"command-{'0' * 16}.lock", (LONG_AGO, LONG_AGO))
    return files(folder)


def files(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.lstat().st_mtime_ns for path in folder.rglob("*")}


@needs_root
@pytest.mark.skipif(not has_namespaces(), reason="needs mount namespaces")
@pytest.mark.parametrize(
    "whole", [second(False), True], ids=["a link inside", "the folder is ours, a link leads there"]
)
def test_a_link_that_another_user_laid_in_tmp_is_not_followed(tmp_path: Path, whole: bool) -> None:
    package = tmp_path / "package"
    before = own_files(package)
    laid = laid_by_another(tmp_path / "laid", locks=package)
    if whole:
        os.chown(laid, 0, 0)  # as if it was made for us in time, but others could write there
    done = run_beside({f"/tmp/trainwatch-{os.geteuid()}": laid}, tmp_path)
    assert done.code == 0, done.err
    assert files(package) == before
    assert done.err.count(f"/tmp/trainwatch-{os.geteuid()} ") <= 1, "what cannot be locked is said once"


@needs_root
@pytest.mark.skipif(not has_namespaces(), reason="needs mount namespaces")
def test_nothing_is_put_into_what_another_user_laid_in_the_other_shared_folders(tmp_path: Path) -> None:
    own = tmp_path / "own"
    before = own_files(own)
    links = dict.fromkeys(("gpu", "live", "slurm", "locks"), own)
    places = ("/dev/shm", "/var/tmp", "/tmp")
    laid = {
        f"{place}/trainwatch-{os.geteuid()}": laid_by_another(tmp_path / f"laid-{n}", **links)
        for n, place in enumerate(places)
    }
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    laid_by_another(runtime / "trainwatch", **links)
    done = run_beside(laid, tmp_path, XDG_RUNTIME_DIR=str(runtime))
    assert done.code == 0, done.err
    assert files(own) == before
    for folder in (*laid.values(), runtime / "trainwatch"):
        assert {path.name for path in folder.iterdir()} == set(links)


def asked(home: Path, folder: Path, *words: str) -> Done:
    return in_this_process([*words], folder, environment(folder, home))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder of a run that has finished."""
    folder = tmp_path_factory.mktemp("ended")
    words = [sys.executable, "-m", "trainwatch", "run", "--headless", "--", *TRAINER]
    env = environment(folder, folder / "home")
    subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True, timeout=100)
    return folder / "home"


@pytest.fixture
def finished(ended: Path, tmp_path: Path) -> Path:
    """A copy of it, whose modes and owners may be changed."""
    return Path(shutil.copytree(ended, tmp_path / "home", symlinks=True))


@pytest.mark.parametrize("part", ["", "runs", "runs/*"], ids=["home", "runs", "run"])
def test_a_state_folder_that_others_can_write_is_refused(finished: Path, tmp_path: Path, part: str) -> None:
    (folder,) = finished.glob(part) if part else (finished,)
    run = next((finished / "runs").iterdir()).name
    asking = [("status", run), ("restart", run, "--yes"), ("check", "--", "true")]
    if part == "runs/*":
        asking.pop()  # it looks at no run
    folder.chmod(0o777)
    for words in asking:
        done = asked(finished, tmp_path, *words)
        assert done.code == 2, words
        assert f"{folder} can be written by others" in done.err
        assert "chmod go-w" in done.err
    folder.chmod(0o700)
    assert asked(finished, tmp_path, "status", run).code == 0


@needs_root
@pytest.mark.parametrize("part", ["", "runs", "runs/*"], ids=["home", "runs", "run"])
def test_a_state_folder_of_another_user_is_refused(finished: Path, tmp_path: Path, part: str) -> None:
    (folder,) = finished.glob(part) if part else (finished,)
    run = next((finished / "runs").iterdir()).name
    os.chown(folder, NOBODY, NOBODY)
    for words in (("status", run), ("restart", run, "--yes"), ("resume", run)):
        done = asked(finished, tmp_path, *words)
        assert done.code == 2, words
        assert f"{folder} belongs to somebody else" in done.err


@needs_root
@pytest.mark.parametrize("how", [second("-s"), "-x"], ids=["shared", "alone"])
def test_a_reader_of_the_output_folder_cannot_keep_a_start_off(tmp_path: Path, how: str) -> None:
    """The lock was left by an earlier version, which let others read it."""
    for place in (tmp_path, *tmp_path.parents):
        if not place.stat().st_mode & 0o001:
            place.chmod(place.stat().st_mode | 0o011)
    out = tmp_path / "out"
    out.mkdir(mode=0o755)
    (out / "config.json").write_text("{}")
    (out / NAME).write_bytes(b" " * 2 * SLOT_BYTES)
    (out / NAME).chmod(0o644)
    holder = subprocess.Popen(
        ["flock", how, str(out / NAME), "sleep", "60"],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        start_new_session=True,
    )
    try:
        words = [sys.executable, "-m", "trainwatch", "run", "--headless", "--output-dir", str(out), "--", *TRAINER]
        env = environment(tmp_path, tmp_path / "home")
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        assert holder.poll() is None
    finally:
        os.killpg(holder.pid, signal.SIGTERM)
        holder.wait()


@needs_root
def test_the_lock_of_another_user_counts_as_held(tmp_path: Path) -> None:
    for place in (tmp_path, *tmp_path.parents):
        if not place.stat().st_mode & 0o001:
            place.chmod(place.stat().st_mode | 0o011)
    lock = tmp_path / NAME
    lock.touch(mode=0o600)

    def start() -> str:
        try:
            look(str(lock), Owner("mine-1", 1.0, "/h", str(tmp_path)))
        except Taken as taken:
            return f"{taken.why}, lives: {taken.lives}"
        return "free"

    assert as_another_user(start) == "it belongs to another user (root), lives: False"

"""The state folder: where it is, who may look inside, and how runs are found again."""

import os
import stat
from pathlib import Path

import msgspec
import pytest

from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.home import NoHomeError, make_private, trainwatch_home, write_atomically
from trainwatch.core.store.run_directory import RunDirectory, RunUnreadable, new_run_id, run_id_for
from trainwatch.core.store.run_lookup import AmbiguousRun, RunNotFound, find_run, list_runs, unreadable_runs


def spec(run_id: str, name: str, *, project: str | None = None, cwd: str = "/w", wall: float = 1.0) -> RunSpec:
    return RunSpec(id=run_id, name=name, command=("python",), cwd=cwd, created_wall=wall, project=project)


def never(_: RunDirectory) -> bool:
    return False


def test_state_folder_is_trainwatch_home_then_xdg_then_the_home_folder() -> None:
    assert trainwatch_home({"TRAINWATCH_HOME": "/t", "XDG_STATE_HOME": "/x"}) == Path("/t")
    assert trainwatch_home({"TRAINWATCH_HOME": "", "XDG_STATE_HOME": "/x"}) == Path("/x/trainwatch")
    assert trainwatch_home({"XDG_STATE_HOME": "relative", "HOME": "/h"}) == Path("/h/.local/state/trainwatch")
    assert trainwatch_home({"TRAINWATCH_HOME": "here"}).is_absolute()


def test_folders_that_exist_keep_their_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private(tmp_path / "new")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_run_id_that_exists_is_refused(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, spec("x-1", "x"))
    with pytest.raises(FileExistsError, match="x-1 already exists"):
        RunDirectory.create(tmp_path, spec("x-1", "other"))
    assert RunDirectory(tmp_path / "runs" / "x-1").load_spec().name == "x"
    assert [p.name for p in (tmp_path / "runs").iterdir()] == ["x-1"]


@pytest.mark.parametrize("run_id", ["", "../x", ".x", "a/b"])
def test_a_run_id_cannot_be_a_path_outside_the_runs_folder(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(ValueError, match="not a run id"):
        RunDirectory.create(tmp_path, spec(run_id, "x"))


def test_run_ids_are_readable_and_differ_between_projects(tmp_path: Path) -> None:
    one, two = run_id_for("Lüca XL #2", Path("/a")), run_id_for("Lüca XL #2", Path("/b"))
    assert one.startswith("luca-xl-2-")
    assert one != two
    assert run_id_for("日本", None).startswith("run-")
    assert new_run_id(tmp_path, "n", None) == run_id_for("n", None)
    RunDirectory.create(tmp_path, spec(new_run_id(tmp_path, "n", None), "n"))
    RunDirectory.create(tmp_path, spec(new_run_id(tmp_path, "n", None), "n"))
    assert new_run_id(tmp_path, "n", None) == run_id_for("n", None) + "-3"


def test_a_newer_or_damaged_run_spec_is_reported_and_hides_no_other_run(tmp_path: Path) -> None:
    good = RunDirectory.create(tmp_path, spec("good", "g"))
    newer = RunDirectory.create(tmp_path, spec("newer", "n"))
    newer.spec.write_bytes(msgspec.json.encode({"version": 99, "whatever": 1}))
    torn = RunDirectory.create(tmp_path, spec("torn", "t"))
    for path in (torn.spec, torn.spec_copy):
        path.write_bytes(path.read_bytes()[:20])
    (tmp_path / "runs" / "empty").mkdir()
    assert list_runs(tmp_path) == [good]
    with pytest.raises(RunUnreadable, match="newer trainwatch"):
        find_run(tmp_path, "newer")
    with pytest.raises(RunUnreadable, match="damaged"):
        torn.load_spec()


def test_one_bad_byte_in_a_run_spec_is_read_from_its_copy(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, spec("a", "a"))
    data = run.spec.read_bytes()
    for damaged in (data[:9] + b"\xff" + data[10:], data[:30], b"", b"[" * 100_000):
        run.spec.write_bytes(damaged)
        assert run.load_spec() == spec("a", "a")
        assert list_runs(tmp_path) == [run]
        assert unreadable_runs(tmp_path) == []
    run.spec.unlink()
    assert run.load_spec() == spec("a", "a")


def test_a_newer_run_spec_is_not_read_from_its_older_copy(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, spec("a", "a"))
    run.spec.write_bytes(msgspec.json.encode({"version": 99}))
    with pytest.raises(RunUnreadable, match="newer trainwatch"):
        run.load_spec()
    assert "newer trainwatch" in unreadable_runs(tmp_path)[0]


def test_a_command_that_is_not_utf_8_is_kept_byte_for_byte(tmp_path: Path) -> None:
    words = ("python", os.fsdecode(b"--name=\xff\xfe"), "--path=日本")
    run = RunDirectory.create(tmp_path, msgspec.structs.replace(spec("a", "a"), command=words))
    assert run.load_spec().command == words


def test_the_error_for_an_unknown_run_contains_the_command_to_use(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match=r'no run "luca"; start one with `trainwatch run'):
        find_run(tmp_path, "luca")
    RunDirectory.create(tmp_path, spec("a", "a"))
    with pytest.raises(RunNotFound, match=r"`trainwatch runs` lists"):
        find_run(tmp_path, "luca")
    with pytest.raises(RunNotFound, match="no run of this project yet; start it with `trainwatch`"):
        find_run(tmp_path, None, project=Path("/p/trainwatch.toml"), anywhere=False)


def test_find_run_returns_the_newest_launch_of_the_job(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, spec("n-1", "n", wall=1))
    newest = RunDirectory.create(tmp_path, spec("n-1-2", "n", wall=2))
    assert find_run(tmp_path, "n", live=never) == newest
    assert find_run(tmp_path, "n-1", live=never).id == "n-1"
    assert find_run(tmp_path, None, cwd=Path("/w"), live=never) == newest
    assert find_run(tmp_path, "n", live=lambda d: d.id == "n-1").id == "n-1"


def test_find_run_prefers_the_run_of_this_project(tmp_path: Path) -> None:
    here, there = Path("/here/trainwatch.toml"), Path("/there/trainwatch.toml")
    mine = RunDirectory.create(tmp_path, spec("n-1", "n", project=str(here), wall=1))
    RunDirectory.create(tmp_path, spec("n-2", "n", project=str(there), wall=2))
    assert find_run(tmp_path, "n", project=here, live=never) == mine
    assert find_run(tmp_path, None, project=here, live=never) == mine
    with pytest.raises(AmbiguousRun, match="which run\\? n-2, n-1; name one"):
        find_run(tmp_path, "n", live=never)
    assert find_run(tmp_path, "n", live=lambda d: d.id == "n-1") == mine


def test_find_run_returns_a_run_of_another_folder_only_if_it_is_unique(tmp_path: Path) -> None:
    only = RunDirectory.create(tmp_path, spec("a-1", "a", wall=1))
    assert find_run(tmp_path, None, cwd=Path("/elsewhere"), live=never) == only
    RunDirectory.create(tmp_path, spec("b-1", "b", wall=2))
    with pytest.raises(AmbiguousRun, match=r"no run was started in this folder; which one is meant\? b-1, a-1"):
        find_run(tmp_path, None, cwd=Path("/elsewhere"), live=lambda d: d.id == "a-1")


def test_atomic_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "f"
    target.mkdir()  # a rename of a file onto a folder fails
    with pytest.raises(OSError):
        write_atomically(target, b"x")
    assert target.is_dir()
    assert list(tmp_path.iterdir()) == [target]


def test_trainwatch_home_of_an_unknown_user_is_reported() -> None:
    with pytest.raises(NoHomeError, match="TRAINWATCH_HOME=~nosuchuser-/x names a user that does not exist; set"):
        trainwatch_home({"TRAINWATCH_HOME": "~nosuchuser-/x"})


def test_of_several_live_runs_none_is_chosen(tmp_path: Path) -> None:
    """``stop n`` ended the newest of two live runs."""
    here, there = Path("/here/trainwatch.toml"), Path("/there/trainwatch.toml")
    RunDirectory.create(tmp_path, spec("n-1", "n", project=str(here), wall=1))
    RunDirectory.create(tmp_path, spec("n-2", "n", project=str(there), wall=2))
    with pytest.raises(AmbiguousRun, match=r"which run\? several are live: n-2, n-1; .*: n-2 in /there; n-1 in /here"):
        find_run(tmp_path, "n", live=lambda _d: True)
    assert find_run(tmp_path, "n", project=here, live=lambda _d: True).id == "n-1"
    RunDirectory.create(tmp_path, spec("m-1", "m", wall=3))
    RunDirectory.create(tmp_path, spec("m-1-2", "m", wall=4))
    for name in ("m", None):
        with pytest.raises(AmbiguousRun, match=r"several are live: m-1-2, m-1; name one of them by its id$"):
            find_run(tmp_path, name, cwd=Path("/w"), live=lambda d: d.id.startswith("m"))

"""Where a run saves, found by who writes: real processes, real files, no name told."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from tests.integration.sense_world import ListInbox, RunClock, identity, running, target, wait_until
from trainwatch.core.checkpoints.listing import state_of
from trainwatch.core.model.observation import OutputSeen
from trainwatch.core.processes import read_process
from trainwatch.core.sense.files.inotify import open_for_writing
from trainwatch.core.sense.files.output_search import OutputSearch
from trainwatch.core.sense.files.writers import CLOCK_NS, Writers
from trainwatch.core.sense.process.run_tree import RunTree

WRITER = """
import os, sys, time
RUN = ("run.json", "journal.jsonl")
DATA = bytes.fromhex(sys.argv[1]) + bytes(int(sys.argv[2]))
def put(path, slow=0.0, held=False):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path + ".tmp", "wb") as f:
        f.write(DATA[:100]); f.flush(); time.sleep(slow)
        if held:
            print("held", flush=True)
            sys.stdin.readline()
        f.write(DATA[100:])
    os.rename(path + ".tmp", path)
for line in iter(sys.stdin.readline, ""):
    exec(line)
    print("done", flush=True)
"""


def header(size_bytes: int) -> str:
    """The beginning of a safetensors file with one tensor of zeros, in hex."""
    text = f'{{"w":{{"dtype":"U8","shape":[{size_bytes}],"data_offsets":[0,{size_bytes}]}}}}'.encode()
    return (len(text).to_bytes(8, "little") + text).hex()


class Writer:
    """A process that does what it is told and saves checkpoints in one call. ``stranger``: nobody here started it."""

    def __init__(self, folder: Path, size_bytes: int, *, stranger: bool = False, names: str = "") -> None:
        words = [sys.executable, "-S", "-c", WRITER, header(size_bytes), str(size_bytes), names]
        left = ["sh", "-c", 'exec 3<&0; "$@" <&3 & echo $!', "sh"] if stranger else []
        self.process = subprocess.Popen(
            [*left, *words], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.pid = int(self.process.stdout.readline()) if stranger else self.process.pid
        if stranger:
            self.process.wait()
        self.identity = identity(self.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.ends()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]

    def ends(self) -> None:
        """Die as a trainer does that is killed."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait()
        wait_until(lambda: not _lives(self.pid), "it has ended")

    def do(self, line: str, answer: str = "done") -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == f"{answer}\n"


def _lives(pid: int) -> bool:
    stat = read_process(pid)
    return stat is not None and stat.state not in "ZX"


def writers_of(folder: Path, open_files: Any = open_for_writing) -> Writers:
    return Writers(working_folder=str(folder), directory="", tree=RunTree(), open_files=open_files)


@contextlib.contextmanager
def apart() -> Iterator[str]:
    """A folder above which nobody works: no two tests at once, as the search of one opens what is beside it."""
    with open(__file__) as lock, tempfile.TemporaryDirectory(dir="/var/tmp") as place:  # noqa: PTH123
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


class World:
    """A working folder, the run's trainer in it, and another process that is not of the run."""

    def __init__(self, folder: Path, *, looks: bool = True, size_bytes: int = 4096, adopted: bool = False) -> None:
        self.folder, self.inbox = folder, ListInbox()
        self.trainer = Writer(folder, size_bytes, stranger=adopted)
        self.stranger = Writer(folder, size_bytes, stranger=True)
        self.watched: list[str] = []
        self.written: list[str] = []
        self.writers = writers_of(folder, open_for_writing if looks else lambda _pids: ())
        self.search = OutputSearch(
            inbox=self.inbox,
            clock=RunClock(),
            roots=[str(folder)],
            watched=lambda: self.watched,
            state_of=state_of,
            writers=self.writers,
            written=self.written.append,
        )

    def follow(self) -> None:
        self.trainer.do("pass")
        self.search.follow(target(identity(self.trainer.process.pid)))
        wait_until(lambda: self.search.members, "the run's processes are known")

    def saves(self, path: str) -> None:
        """The trainer saves there, and its file is open until the search has seen that."""
        self.trainer.do(f"put({path!r}, held=True)", "held")
        open_now = os.path.realpath(self.folder / f"{path}.tmp")
        wait_until(lambda: open_now in self.written and self.writers.whose(open_now), "the open file is seen")
        self.trainer.do("")

    def seen(self) -> dict[str, bool]:
        """Folder → whether it is sure that the run wrote there."""
        return {os.path.relpath(each.folder, self.folder): each.sure for each in self.inbox.of(OutputSeen)}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    folder = tmp_path / "work"
    (folder / "old").mkdir(parents=True)
    made = World(folder)
    with made.trainer, made.stranger, running(made.search):
        made.stranger.do("pass")
        made.follow()
        yield made


def test_a_new_folder_in_a_new_folder_is_found(world: World) -> None:
    world.saves("results/2026-11-22/checkpoints/0000010.safetensors")
    wait_until(lambda: world.seen() == {"results/2026-11-22/checkpoints": True}, "the folder is found")


def test_a_folder_far_from_the_working_folder_is_found_by_its_open_file(world: World, tmp_path: Path) -> None:
    away = tmp_path / "disk" / "runs" / "a"
    world.saves(str(away / "model_10.safetensors"))
    wait_until(lambda: world.inbox.of(OutputSeen), "the folder is found")
    assert [each.folder for each in world.inbox.of(OutputSeen)] == [str(away)]


def test_a_trainer_that_saves_while_it_is_adopted_is_no_other_process(tmp_path: Path) -> None:
    """Nobody here started it, and its saves are seen before its processes are (an adopted run, killed at once)."""
    for number in range(200):  # so many that the first saves are seen while these are listed
        (tmp_path / "work" / "data" / str(number)).mkdir(parents=True)
    made = World(tmp_path / "work", adopted=True)
    made.stranger.ends()
    with made.trainer, made.stranger:
        made.trainer.do("from threading import Thread")
        made.trainer.do("put = lambda file: (file.write(DATA), file.flush(), time.sleep(0.005), file.close())")
        made.trainer.do("save = lambda n: [put(open(f'{n}-{i % 50}.safetensors', 'wb')) for i in range(10**6)]")
        made.trainer.do("[Thread(target=save, args=[n], daemon=True).start() for n in range(4)]")
        made.search.follow(target(made.trainer.identity))
        with running(made.search):
            wait_until(lambda: made.search.members, "the run's processes are known")
            assert made.search.drain(60.0)
            saved = list(made.folder.glob("*.safetensors"))
            assert saved
            assert {made.search.whose(each, told=True) for each in saved} <= {"run", None}


def test_a_log_that_is_open_in_a_new_folder_says_nothing_of_the_checkpoints_in_it(world: World) -> None:
    world.trainer.do("os.makedirs('logs/a'); os.makedirs('logs/b'); log = open('logs/a/metrics.csv', 'w')")
    wait_until(lambda: world.writers.whose(str(world.folder / "logs/a/metrics.csv")), "the open log is seen")
    world.stranger.do("put('logs/b/step=3.safetensors', 0.3)")
    world.saves("logs/a/step=3.safetensors")
    wait_until(lambda: world.seen().get("logs/a"), "the folder is found")
    assert world.search.drain(60.0)
    assert not world.seen().get("logs/b")


def test_what_another_process_writes_is_not_the_runs(world: World) -> None:
    world.stranger.do("put('theirs/checkpoint_10.safetensors', 0.3)")
    world.stranger.do("put('old/checkpoint_11.safetensors')")
    world.saves("mine/checkpoint_12.safetensors")
    wait_until(lambda: "mine" in world.seen(), "the folder of the run is found")
    assert world.search.drain(60.0)
    assert not any(sure for folder, sure in world.seen().items() if folder != "mine")


def test_in_one_folder_each_checkpoint_is_its_writers(world: World) -> None:
    world.stranger.do("put('shared/b_1.safetensors', 0.3)")
    world.saves("shared/a_1.safetensors")
    whose = world.search.whose
    wait_until(lambda: whose(world.folder / "shared/b_1.safetensors") == "other", "the stranger's file is known")
    assert whose(world.folder / "shared/a_1.safetensors") == "run"
    world.trainer.do("os.rename('shared/a_1.safetensors', 'shared/a_last.safetensors')")
    assert whose(world.folder / "shared/a_last.safetensors") == "run"
    world.stranger.do("os.rename('shared/b_1.safetensors', 'shared/b_last.safetensors')")
    assert whose(world.folder / "shared/b_last.safetensors") == "other"


def test_a_probe_file_of_tempfile_makes_the_temporary_folder_nobodys(world: World, tmp_path: Path) -> None:
    common = tmp_path / "tmp"
    common.mkdir()
    world.saves(str(common / "probe.safetensors"))
    world.stranger.do(f"put({str(common / 'model_5.safetensors')!r}, 0.1)")
    world.stranger.do(f"put({str(common / 'other' / 'model_6.safetensors')!r}, 0.1)")
    assert world.search.drain(60.0)
    assert world.search.look_again(60.0)
    assert {each.path for each in world.inbox.of(OutputSeen)} <= {str(common / "probe.safetensors")}


def test_what_a_supervisor_keeps_and_the_inside_of_an_orbax_item_are_no_output_folders(world: World) -> None:
    world.trainer.do("os.makedirs('state/runs/a'); [open(f'state/runs/a/{n}', 'w') for n in RUN]")
    world.saves("state/runs/a/attempts/model_1.safetensors")
    world.trainer.do("os.makedirs('ckpts/50.orbax-checkpoint-tmp/default/ocdbt.process_0/d')")
    for name in ("_CHECKPOINT_METADATA", "default/manifest.ocdbt", "default/_METADATA"):
        world.trainer.do(f"open('ckpts/50.orbax-checkpoint-tmp/{name}', 'w').write('x')")
    world.saves("ckpts/50.orbax-checkpoint-tmp/default/ocdbt.process_0/d/model_4f9a.safetensors")
    world.trainer.do("time.sleep(1.0); os.rename('ckpts/50.orbax-checkpoint-tmp', 'ckpts/50')")
    wait_until(lambda: world.seen() == {"ckpts": True}, "the folder of the items is found")
    assert world.search.look_again(60.0)
    assert world.seen() == {"ckpts": True}


@pytest.mark.parametrize("unfinished", ["checkpoint-50.tmp", "tmp-checkpoint-50"])
def test_a_checkpoint_that_was_never_given_its_name_is_no_output_folder(world: World, unfinished: str) -> None:
    world.watched.append(str(world.folder / "out"))
    world.saves(f"out/{unfinished}/model.safetensors")
    assert world.search.look_again(60.0)
    assert world.seen() == {}


def test_caches_trackers_and_watched_folders_are_left_out(world: World) -> None:
    world.watched.append(str(world.folder / "known"))
    for folder in ("wandb/run-1/files", "cache", ".cache/hub", "known", "tokenizer"):
        world.trainer.do(f"put('{folder}/checkpoint_1.safetensors', 0.05)")
    world.trainer.do("open('notes.txt', 'w').write('x'); open('train.log', 'w').write('step 1')")
    world.saves("out/checkpoint_2.safetensors")
    wait_until(lambda: "out" in world.seen(), "the folder of the run is found")
    assert list(world.seen()) == ["out"]


@pytest.mark.parametrize(
    ("before", "writer", "whose"),
    [("", "other", "unsure"), ("", "run", "run"), ("saved", "run", "run"), ("ended", "run", "run")],
)
def test_in_a_folder_that_was_told_only_one_that_names_it_and_wrote_as_much_speaks_against_the_run(
    before: str, writer: str, whose: str
) -> None:
    """Also not one that saved there, and has written nothing since, or has ended."""
    with apart() as place:
        folder = Path(place)
        (folder / "out").mkdir()
        made, saved = World(folder, looks=False), folder / "out/checkpoint_2.safetensors"
        other = Writer(folder, 4096, stranger=True, names="out")
        with made.trainer, made.stranger, other, running(made.search):
            made.watched.append(str(folder / "out"))
            made.follow()
            if before:
                other.do("put('out/theirs.safetensors', held=True)", "held")
                made.writers.look_beside(float("inf"), 0.0)
                other.do("")
                assert made.search.whose(folder / "out/theirs.safetensors", told=True) == "other"
                other.ends() if before == "ended" else other.do("pass")
            made.writers.look_beside(float("inf"), 0.0)
            looked_ns = time.time_ns()
            wait_until(lambda: time.time_ns() > looked_ns + CLOCK_NS, "the clock of files is behind that look")
            (other if writer == "other" else made.trainer).do("put('out/checkpoint_2.safetensors')")
            wait_until(lambda: str(saved) in made.written, "it is seen")
            made.writers.look_beside(float("inf"), 0.0)
            made.writers.count()
            assert made.search.whose(saved, told=True) == whose


SURE = {"gone": True, "idle": True, "above": True, "inside": False, "writes": False, "wakes": False}


@pytest.mark.parametrize(("stranger", "sure"), SURE.items())
def test_a_save_that_nobody_saw_open_is_sure_only_if_nobody_else_can_have_written_it(stranger: str, sure: bool) -> None:
    with apart() as place:
        folder = Path(place, "work")
        (folder / "out").mkdir(parents=True)
        made = World(folder, looks=False)
        if stranger == "inside":
            made.stranger.do("os.chdir('out')")
        elif stranger == "gone":
            made.stranger.ends()
        elif stranger == "idle":  # a program that saves nothing
            made.stranger.do("os.chdir('out'); print('now', flush=True); os.execlp('tail', 'tail', '-f', 'x')", "now")
        with made.trainer, made.stranger, running(made.search):
            made.follow()
            time.sleep(2.0 * (stranger == "wakes"))  # it is counted more seldom then
            made.trainer.do("put('out/checkpoint_2.safetensors', held=True)", "held")
            if stranger in {"writes", "wakes"}:
                made.stranger.do("put('theirs/checkpoint_2.safetensors')")
            made.trainer.do("")
            wait_until(lambda: "out" in made.seen() and made.search.look_again(60.0), "the folder is found")
            assert made.seen() in ({"out": sure}, {"out": sure, "theirs": False})  # unless theirs was seen open
            assert (made.search.whose(folder / "out/checkpoint_2.safetensors") == "unsure") != sure


def late_search(world: World, folder: Path, *, elsewhere: Sequence[str] = (), **more: Any) -> OutputSearch:
    """A search that begins after the attempt has saved, as after a gap of the supervisor."""
    attempt = folder.parent / "attempt"
    attempt.mkdir(exist_ok=True)
    if not (attempt / "order.json").exists():
        (attempt / "order.json").write_text("{}")
        os.utime(attempt / "order.json", (1000.0, 1000.0))
    return OutputSearch(
        inbox=world.inbox,
        clock=RunClock(),
        roots=[str(folder), *elsewhere],
        watched=lambda: world.watched,
        state_of=more.pop("state_of", state_of),
        writers=writers_of(folder, more.pop("open_files", open_for_writing)),
        last=target(world.trainer.identity, directory=str(attempt)),
        **more,
    )


@contextlib.contextmanager
def begun(folder: Path) -> Iterator[World]:
    """A world whose processes run and whose search has not begun."""
    folder.mkdir()
    world = World(folder, size_bytes=4_000_000)
    with world.trainer, world.stranger:
        yield world


def look_late(world: World, folder: Path, **more: Any) -> None:
    search = late_search(world, folder, **more)
    with running(search):
        assert search.look_again(60.0)


def test_a_save_that_nobody_saw_is_found_before_the_next_launch_and_is_not_sure(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    with begun(folder) as world:
        world.trainer.do("put('runs/2026-11-22/model_10.safetensors')")
        world.trainer.ends()
        look_late(world, folder)
        assert world.seen() == {"runs/2026-11-22": False}


def test_a_place_that_the_source_saves_to_is_the_runs_though_nobody_saw_the_save(tmp_path: Path) -> None:
    folder, away = tmp_path / "work", tmp_path / "disk" / "out"
    with begun(folder) as world:
        world.trainer.do(f"put({str(away / 'model_10.safetensors')!r})")
        world.trainer.ends()
        look_late(world, folder, saved={str(away): "train.py:3"}, elsewhere=[str(away)])
        assert [(each.folder, each.sure) for each in world.inbox.of(OutputSeen)] == [(str(away), True)]


def test_a_folder_of_another_process_is_taken_back_once_it_was_seen_writing(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    looks = False
    world = World(folder)
    writers = world.search._writers
    look_beside = writers.look_beside
    writers._open_files = lambda pids: open_for_writing(pids) if looks else ()

    def look(now: float, max_age_s: float) -> None:
        if looks or not writers._others:
            look_beside(now, max_age_s)

    writers.look_beside = look  # type: ignore[method-assign]
    with world.trainer, world.stranger, running(world.search):
        world.follow()
        wait_until(lambda: writers._others, "the other processes are known")
        world.stranger.do("put('theirs/model_1.safetensors')")
        wait_until(lambda: world.seen() == {"theirs": False}, "a save of an unknown writer is told")
        looks = True
        world.stranger.do("put('theirs/model_2.safetensors', 0.5)")
        wait_until(lambda: world.inbox.of(OutputSeen)[-1].others, "it is taken back")


def test_what_another_process_was_seen_writing_is_left_out_of_a_late_search(world: World) -> None:
    world.stranger.do("put('theirs/model_10.safetensors', 1.5)")
    assert world.search.look_again(60.0)
    assert world.seen() == {}


def test_a_folder_that_another_run_saves_to_is_left_out_of_a_late_search(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    with begun(folder) as world:
        world.trainer.do("put('claimed/model_10.safetensors')")
        taken = str(folder / "claimed")
        look_late(world, folder, taken=lambda where: where == taken)
        assert world.seen() == {}


def test_what_was_there_before_the_attempt_and_our_own_copies_are_left_out_of_a_late_search(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    with begun(folder) as world:
        world.trainer.do("put('old/model_10.safetensors')")
        late_search(world, folder)
        later = (folder / "old" / "model_10.safetensors").stat().st_ctime + 1.0
        os.utime(tmp_path / "attempt" / "order.json", (later, later))
        world.trainer.do("put('out.kept/1/model_10.safetensors')")
        os.utime(folder / "out.kept" / "1" / "model_10.safetensors", (later, later))
        look_late(world, folder)
        assert world.seen() == {}


def test_a_search_that_fails_never_says_that_it_is_over(tmp_path: Path) -> None:
    folder = tmp_path / "work"

    def fails(_path: Path, _stops: object) -> None:
        raise RuntimeError

    with begun(folder) as world:
        world.trainer.do("put('out/model_10.safetensors')")
        search = late_search(world, folder, state_of=fails)
        with running(search):
            assert not search.look_again(0.5)


def test_a_folder_behind_a_link_of_the_working_folder_is_watched(tmp_path: Path) -> None:
    folder, disk = tmp_path / "work", tmp_path / "disk"
    folder.mkdir()
    disk.mkdir()
    (folder / "outputs").symlink_to(disk)
    world = World(folder)
    with world.trainer, world.stranger, running(world.search):
        world.follow()
        world.saves("outputs/a/model_10.safetensors")
        wait_until(lambda: world.inbox.of(OutputSeen), "the folder is found")
        assert [each.folder for each in world.inbox.of(OutputSeen)] == [str(disk / "a")]


def test_a_late_search_finds_state_of_any_make_and_leaves_it_to_a_person(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    with begun(folder) as world:
        world.trainer.do("[open(f'w{n}.qq', 'wb').write(b'QQ' + bytes(5_000_000)) for n in range(3)]")
        world.trainer.do("open('notes.txt', 'w').write('x'); open('curve.png', 'wb').write(bytes(9))")
        look_late(world, folder)
        assert [(each.unknown_make, each.sure) for each in world.inbox.of(OutputSeen)] == [(True, False)]


def test_a_copy_with_the_time_of_its_original_is_seen_and_is_not_sure(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    with begun(folder) as world:
        world.trainer.do("put('out/model_10.safetensors'); os.utime('out/model_10.safetensors', (500, 500))")
        look_late(world, folder)
        assert world.seen() == {"out": False}

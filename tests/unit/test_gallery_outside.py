"""What the gallery says of a neighbour's files (bench/gallery/outside.py)."""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
from bench.gallery.faults import BY_NAME
from bench.gallery.outside import Outside
from bench.gallery.place import Place
from bench.gallery.row import Row

SCRIPT = "mkdir out_{name}; head -c 400 /dev/urandom > out_{name}/a.bin; mv out_{name}/a.bin out_{name}/b.bin; sleep 60"
ROW = Row(
    name="copy", title="", environment="", packages=(), command=("bash", "-c", SCRIPT), hook="",
    output_dir="out_{name}", checkpoints="out_{name}/*.bin", ends={"neighbour": "kept"},
)  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="a neighbour's group needs root")
def test_what_others_do_in_a_neighbours_folder_is_told(tmp_path: Path) -> None:
    watched = Outside(Place(ROW, BY_NAME["neighbour"], tmp_path / "run", Path(sys.prefix)))
    watched.neighbour = watched.start_neighbour()
    folder = watched.folder("two")
    try:
        until = time.monotonic() + 20
        while not (folder / "b.bin").exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert watched.foreign([]) == set()
        (folder / "note").touch()
        shutil.copy(folder / "b.bin", watched.place.root / "home" / "kept.bin")
        started = {"fact": "attempt_started", "resume_from": str(folder / "b.bin")}
        found = watched.foreign([{"fact": started}, {"fact": {"fact": "output_known", "folder": "out_two"}}])
        os.link(folder / "b.bin", watched.place.work / "linked.bin")
        assert found == {
            "made work/out_two/note", "copied to home/kept.bin", f"resumed from {folder}/b.bin",
            f"taken for the run's: {folder}",
        }  # fmt: skip
        assert "linked work/out_two/b.bin" in watched.foreign([])
    finally:
        os.killpg(watched.neighbour.pid, signal.SIGKILL)
        watched.neighbour.wait()

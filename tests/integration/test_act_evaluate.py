"""Evaluations of a checkpoint with real commands that behave and misbehave."""

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.e2e_world import lives
from tests.integration.act_world import growing, python, wait_for
from trainwatch.core.act.evaluator import CheckpointCommands
from trainwatch.core.checkpoints.inspection import verify
from trainwatch.core.model.decision import EndEvaluation, EvaluateCheckpoint
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Evaluate, Settings
from trainwatch.core.store.home import write_atomically

SLEEPS = """if True:
    import os, subprocess, sys, time
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    open("pids.tmp", "w").write(f"{os.getpid()} {child.pid}")
    os.rename("pids.tmp", "pids")
    time.sleep(600)"""


class Place:
    """A checkpoint, and an evaluator with a command for it."""

    def __init__(self, folder: Path, command: Sequence[str] | str, **settings: Any) -> None:
        self.folder = folder
        self.checkpoint = folder / "a b.safetensors"
        header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        self.checkpoint.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0\0\0")
        told = command if isinstance(command, str) else tuple(command)
        spec = msgspec.convert(
            {"id": "r", "name": "r", "command": ["x"], "cwd": str(folder), "created_wall": 0}, RunSpec
        )
        spec = msgspec.structs.replace(spec, settings=Settings(evaluate=Evaluate(command=told, **settings)))
        self.evaluator = CheckpointCommands(
            spec=spec,
            folders=folder / "evaluations",
            verify=lambda path, deep, progress=None: verify(path, deep=deep, progress=progress),
            base_env=os.environ,
            write=write_atomically,
            copy=lambda _source, _target: 0,
        )

    def order(self, number: int = 7, **fields: Any) -> EvaluateCheckpoint:
        asked: dict[str, Any] = {"memory_bytes": 8e9, "timeout_s": 60.0, "mtime": self.checkpoint.stat().st_mtime}
        return EvaluateCheckpoint(id=number, reason="", path=str(self.checkpoint), **(asked | fields))

    def pids(self) -> list[int]:
        file = self.folder / "pids"
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []


SCORE = """if True:
    import json, os, sys
    open("calls", "a").write(sys.argv[1] + "\\n")
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    oom = int(open("/proc/self/oom_score_adj").read())
    print(json.dumps({"fid": 12.5, "nice": nice, "oom": oom, "cuda": len(os.environ["CUDA_VISIBLE_DEVICES"])}))"""


def test_the_score_of_a_command_that_ran_behind_everything_else(tmp_path: Path) -> None:
    place = Place(tmp_path, [*python(SCORE), "{checkpoint}"])
    ok, detail, data = place.evaluator.evaluate(place.order())
    assert (ok, detail, data["metric"], data["score"]) == (True, "fid 12.5", "fid", 12.5)
    assert data["values"] == {"fid": 12.5, "nice": 19.0, "oom": 1000.0, "cuda": 0.0}


def test_a_result_that_is_there_is_not_measured_again(tmp_path: Path) -> None:
    place = Place(tmp_path, [*python(SCORE), "{checkpoint}"])
    first = place.evaluator.evaluate(place.order())
    assert place.evaluator.evaluate(place.order(8)) == first
    assert (tmp_path / "calls").read_text().splitlines() == [str(place.checkpoint)]


def test_a_command_as_a_text_is_given_to_the_shell_with_the_path_quoted(tmp_path: Path) -> None:
    place = Place(tmp_path, "test -f {checkpoint} && echo CUDA=$CUDA_VISIBLE_DEVICES")
    assert place.evaluator.evaluate(place.order(gpu=3))[:2] == (True, "CUDA 3")


def test_a_command_that_takes_too_long_is_ended_after_its_processes_were_written_down(tmp_path: Path) -> None:
    for number, timeout_s in enumerate(growing(1.5), 1):
        (tmp_path / str(number)).mkdir()
        place = Place(tmp_path / str(number), python(SLEEPS))
        ok, why, data = place.evaluator.evaluate(place.order(timeout_s=timeout_s))
        assert not ok
        assert f"took more than {timeout_s:g} s" in why
        if place.pids():
            break
    evidence = (Path(data["folder"]) / "ended.txt").read_text()
    assert all(str(pid) in evidence for pid in place.pids())
    assert len(place.pids()) == 2
    wait_for(lambda: not any(lives(pid) for pid in place.pids()), "both are gone")


def test_a_command_above_its_memory_is_ended(tmp_path: Path) -> None:
    place = Place(tmp_path, python("x = bytearray(300_000_000); import time; time.sleep(600)"))
    ok, why, _ = place.evaluator.evaluate(place.order(memory_bytes=1e8))
    assert not ok
    assert "more than 95 MiB (evaluate.memory_bytes), and was ended" in why


def test_an_evaluation_is_ended_for_the_training_and_leaves_no_result(tmp_path: Path) -> None:
    place = Place(tmp_path, python(SLEEPS))
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(place.evaluator.evaluate(place.order())))
    thread.start()
    wait_for(lambda: len(place.pids()) == 2, "it runs")
    assert place.evaluator.end(EndEvaluation(id=8, reason="", of=7))[0]
    thread.join()
    assert found[0][2]["interrupted"]
    wait_for(lambda: not any(lives(pid) for pid in place.pids()), "both are gone")
    assert list((tmp_path / "evaluations").glob("*/result.json")) == []


def test_what_gives_no_score_is_unknown_with_a_reason(tmp_path: Path) -> None:
    def why(command: Sequence[str] | str, number: int) -> str:
        place = Place(tmp_path / str(number), command)
        ok, _, data = place.evaluator.evaluate(place.order(number))
        assert not ok
        return str(data["why"])

    for number in range(1, 7):
        (tmp_path / str(number)).mkdir()
    assert why("echo no luck >&2; exit 3", 1) == "it ended with exit code 3: no luck"
    assert why("true", 2) == "it printed nothing"
    assert why("echo nan", 3) == "it printed NaN as score"
    assert "not-a-program" in why(["not-a-program", "{checkpoint}"], 4)
    assert why("echo 1 >> {checkpoint}; echo 3", 5) == "the checkpoint was written to during its evaluation"
    assert why("rm {checkpoint}; echo 3", 6) == "the checkpoint was written to during its evaluation"


def test_what_is_not_verified_is_not_evaluated(tmp_path: Path) -> None:
    place = Place(tmp_path, [*python(SCORE), "{checkpoint}"])
    torn = place.order()
    whole = place.checkpoint.read_bytes()
    place.checkpoint.write_bytes(whole[:-2])
    os.utime(place.checkpoint, (torn.mtime, torn.mtime))
    assert "not verified" in place.evaluator.evaluate(place.order())[1]
    assert "written to before" in place.evaluator.evaluate(place.order(mtime=5.0))[1]
    place.checkpoint.unlink()
    assert place.evaluator.evaluate(torn)[1] == "it is gone"
    assert not (tmp_path / "calls").exists()

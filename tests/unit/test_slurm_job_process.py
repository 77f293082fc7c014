"""The process that stands for a job: what it submits, what it follows, and how it ends. Slurm's commands are scripts."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.tiers import SECOND_TIER
from trainwatch.core import spool
from trainwatch.core.act.slurm import job_process
from trainwatch.core.act.slurm.commands import SEPARATOR, SlurmError
from trainwatch.core.act.slurm.commands import Slurm as Commands
from trainwatch.core.act.slurm.job_start import (
    EXIT_FILE,
    LOG_FILE,
    ORDER,
    STARTED_FILE,
    JobOrder,
    begin,
    end_job,
    script_of,
    tag_of,
)
from trainwatch.core.model.run import JobHandle, JobRecord, RunSpec
from trainwatch.core.model.settings import Settings, Slurm


class Cluster:
    """Commands on a PATH of their own, which print what the test wrote and note how they were called."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.calls = folder / "calls"
        self.directory = folder / "attempts" / "0001"
        self.directory.mkdir(parents=True)
        order = {"tag": tag_of("r1"), "poll_s": 0.1, "settle_s": 0.05}
        (self.directory / ORDER).write_text(json.dumps(order))
        self.answers("sbatch", "77")
        self.answers("scontrol", "ClusterName = c")
        self.answers("scancel", "")

    def answers(self, name: str, text: str, code: int = 0) -> None:
        said = self.bin / f"{name}.txt"
        said.write_text(text)
        script = self.bin / name
        script.write_text(f'#!/bin/sh\necho {name} "$@" >> {self.calls}\ncat {said}\nexit {code}\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)

    def refuses(self, name: str, complaint: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\necho '{complaint}' >&2\nexit 1\n")

    def job(self, state: str, tag: str = "trainwatch:r1:1", number: str = "77") -> None:
        self.answers("squeue", SEPARATOR.join((number, state, "None", "n1", "2026-11-22T23:05:28", "9:59", tag)) + "\n")

    def called(self, name: str) -> int:
        return self.calls.read_text().count(f"{name} ") if self.calls.exists() else 0

    @property
    def env(self) -> dict[str, str]:
        return os.environ | {"PATH": f"{self.bin}:{os.environ['PATH']}"}

    @property
    def follower(self) -> list[str]:
        return [sys.executable, "-P", "-m", "trainwatch.core.act.slurm.job_process", str(self.directory)]

    def runs(self) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(self.follower, env=self.env, capture_output=True, text=True, timeout=60, check=False)

    def record(self) -> JobRecord:
        return msgspec.json.decode((self.directory / spool.JOB).read_bytes(), type=JobRecord)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_a_live_job_of_the_run_is_followed_and_no_other_submitted(cluster: Cluster) -> None:
    cluster.job("RUNNING")
    (cluster.directory / EXIT_FILE).write_text('{"code": 0}')
    cluster.answers("scontrol", "JobId=77 JobState=COMPLETED SubmitTime=2026-11-22T23:05:28 NodeList=n1")
    script = cluster.bin / "squeue"
    script.write_text(
        f"#!/bin/sh\nif [ -e {cluster.directory}/{spool.JOB} ]; then :; else cat {cluster.bin}/squeue.txt; fi\n"
    )
    done = cluster.runs()
    assert done.returncode == 0
    assert "no other is submitted" in done.stdout
    assert cluster.called("sbatch") == 0


@pytest.mark.parametrize(("state", "run", "waits"), [("COMPLETING", "r1", True), ("RUNNING", "r12", False)])
def test_the_next_job_starts_after_one_of_the_run_that_is_ending(
    cluster: Cluster, state: str, run: str, waits: bool
) -> None:
    cluster.job(state, tag=f"trainwatch:{run}:1", number="76")
    (cluster.directory / EXIT_FILE).write_text('{"code": 0}')
    cluster.answers("scontrol", "JobId=77 JobState=COMPLETED NodeList=n1")
    done = cluster.runs()
    assert done.returncode == 0
    assert cluster.called("sbatch") == 1
    assert ("job 77 submitted, to start after job 76" in done.stdout) is waits
    assert ("--dependency=afterany:76" in cluster.calls.read_text()) is waits


def test_without_an_answer_nothing_is_submitted(cluster: Cluster) -> None:
    cluster.answers("squeue", "slurm_load_jobs error: Unable to contact slurm controller", code=1)
    done = cluster.runs()
    assert done.returncode == 255
    assert "no job: squeue" in done.stdout
    assert cluster.called("sbatch") == 0


def test_a_job_that_slurm_suspends_waits(cluster: Cluster) -> None:
    (cluster.directory / STARTED_FILE).write_text("{}")
    cluster.job("SUSPENDED")
    (cluster.bin / "squeue").write_text(
        f"#!/bin/sh\necho squeue >> {cluster.calls}\nif [ $(grep -c squeue {cluster.calls}) -lt 4 ]; then "
        f"cat {cluster.bin}/squeue.txt; else echo '{{\"code\": 0}}' > {cluster.directory}/{EXIT_FILE}; fi\n"
    )
    cluster.answers("scontrol", "JobId=77 JobState=COMPLETED SubmitTime=2026-11-22T23:05:28")
    assert re.findall(r"job 77: (\w+)", cluster.runs().stdout) == ["RUNNING", "SUSPENDED", "COMPLETED"]


@pytest.mark.parametrize("ordered", [False, True])
def test_only_a_stop_of_the_run_cancels_its_job(cluster: Cluster, ordered: bool) -> None:
    cluster.job("RUNNING")
    if ordered:
        spool.write(str(cluster.directory), spool.STOP, {})
    with subprocess.Popen(cluster.follower, env=cluster.env, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert next(line for line in follower.stdout if "job 77: RUNNING" in line)
        follower.terminate()
        assert next(line for line in follower.stdout if "job 77 is cancelled" in line or "job 77 goes on" in line)
        follower.kill()
    assert cluster.called("scancel") == ordered


@SECOND_TIER
def test_a_job_that_slurm_forgot_goes_on_as_long_as_something_of_it_is_written(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_process, "LOST_S", 0.0)
    order = JobOrder(tag=tag_of("r1"), poll_s=0.0, settle_s=0.0)
    handle = JobHandle(cluster="c", id="77")
    followed = job_process.JobProcess(cluster.directory, order, Commands(cluster.env))
    followed.follow(JobRecord(handle=handle, phase="running", attempt_directory=str(cluster.directory)))
    cluster.answers("squeue", "")
    cluster.refuses("scontrol", "slurm_load_jobs error: Invalid job id specified")
    for step in range(2 * job_process.LOST_AFTER):
        with (cluster.directory / LOG_FILE).open("a") as file:
            file.write(f"step {step}\n")
        followed.ask()
        assert cluster.record().phase == "unknown"
    for _ in range(job_process.LOST_AFTER - 2):
        followed.ask()
        assert cluster.record().phase == "unknown"
    followed.ask()
    assert cluster.record().phase == "ended"


def test_a_command_that_fails_says_nothing_about_a_job(cluster: Cluster) -> None:
    cluster.refuses("scontrol", "Unable to contact slurm controller (connect failure)")
    with pytest.raises(SlurmError):
        Commands(cluster.env).job(JobHandle(cluster="c", id="77"))


def test_a_time_limit_is_told_from_an_exit(cluster: Cluster) -> None:
    cluster.answers("squeue", "")
    cluster.answers("scontrol", "JobId=77 JobState=TIMEOUT SubmitTime=2026-11-22T23:05:28 NodeList=n1")
    (cluster.directory / EXIT_FILE).write_text('{"code": 0}')
    done = cluster.runs()
    assert (done.returncode, cluster.record().cause) == (255, "time_limit")


@pytest.mark.parametrize(("said", "refused"), [("no", True), ("Socket timed out on send/recv operation", False)])
def test_an_answer_that_was_lost_is_no_refusal(cluster: Cluster, said: str, refused: bool) -> None:
    cluster.refuses("sbatch", f"sbatch: error: {said}")
    with pytest.raises(SlurmError) as raised:
        Commands(cluster.env).submit("job.sh")
    assert raised.value.refused is refused


def script(save_file: str | None = None, **given: object) -> str:
    slurm = Slurm(**given)  # type: ignore[arg-type]
    spec = RunSpec(
        id="r1", name="x", command=("true",), cwd="/w d", created_wall=0.0, settings=Settings(slurm=slurm)
    )  # fmt: skip
    return script_of(spec, (None, save_file), ("python", "train.py", "--name", "a b"), Path("/s/0001"), 1)


def test_the_script_asks_for_what_is_set_and_nothing_else() -> None:
    text = script(partition="gpu", gpus=2, time="1-00:00:00", nodes=2, exclude=("n7",), options=("--mem=64G",))
    head = [row for row in text.splitlines() if row.startswith("#SBATCH")]
    for option in (
        "--partition=gpu", "--gres=gpu:2", "--time=1-00:00:00", "--nodes=2", "--exclude=n7", "--mem=64G",
        "--no-requeue", "--open-mode=append", "--comment=trainwatch:r1:1", '--chdir="/w d"',
    ):  # fmt: skip
        assert f"#SBATCH {option}" in head
    assert not any("account" in row or "qos" in row for row in head)
    assert "srun --kill-on-bad-exit=1 --unbuffered python train.py --name 'a b' &" in text


def test_before_a_time_limit_a_file_is_touched_and_only_who_catches_a_signal_gets_one(tmp_path: Path) -> None:
    file = tmp_path / "save now's"
    text = script(save_file=str(file), time="5-0")
    assert "#SBATCH --signal=B:USR2@180" in text
    assert "#SBATCH --signal=B:USR2@30" in script(time="2")  # a short job has to train, too
    assert not re.search(r"pass USR|kill -s USR", text)
    body = re.search(r"^save\(\) \{\n.*?\n\}\n", text, re.MULTILINE | re.DOTALL)
    assert body is not None
    put = "put() { :; }; agent=\n"
    subprocess.run(["bash", "-c", f"{put}{body[0]}trap save USR2; kill -USR2 $$"], check=True)
    assert file.exists()
    assert "agent.py --save /s/0001 --last <" in text


def test_a_job_that_slurm_starts_again_unasked_runs_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    path = tmp_path / "0001" / "job.sh"
    path.parent.mkdir()
    path.write_text(
        script_of(
            RunSpec(
                id="t", name="x", command=("true",), cwd="/", created_wall=0.0,
                settings=Settings(slurm=Slurm(setup=(f"touch {marker}", "exit 0"))),
            ),
            (None, None), ("true",), path.parent, 1,
        )
    )  # fmt: skip
    again = os.environ | {"SLURM_RESTART_COUNT": "1"}
    done = subprocess.run(["bash", str(path)], env=again, capture_output=True, text=True, check=False)
    assert (done.returncode, marker.exists()) == (75, False)
    assert "no attempt asked for that" in done.stdout
    assert subprocess.run(["bash", str(path)], check=False).returncode == 0
    assert marker.exists()


def test_nodes_with_a_bad_gpu_are_left_out_unless_no_other_is_left(cluster: Cluster) -> None:
    cluster.answers("squeue", "")
    order = JobOrder(tag=tag_of("r1"), poll_s=0.1, exclude=("n1", "n2"))
    begin(cluster.directory, order, Commands(cluster.env), lambda _text: None)
    assert "sbatch --parsable --exclude=n1,n2 " in cluster.calls.read_text()
    refuses = (
        '#!/bin/sh\ncase "$*" in *exclude*) echo Requested node configuration is not available >&2; exit 1;; esac\n'
    )
    (cluster.bin / "sbatch").write_text(f"{refuses}echo 78\n")
    said: list[str] = []
    assert begin(cluster.directory, order, Commands(cluster.env), said.append).handle.id == "78"
    assert "submitted with all nodes" in said[0]


@pytest.mark.parametrize(
    ("text", "node"),
    [
        (b"step 1\nsrun: error: n2: task 1: Exited with exit code 3\n", "n2"),
        (b"srun: error: n[1-2]: tasks 0-1: Killed\n", ""),
        (b"RuntimeError: x\n", ""),
    ],
)
def test_the_node_on_which_a_task_failed_first(text: bytes, node: str) -> None:
    assert job_process.node_in(text) == node


def test_a_job_whose_follower_could_not_note_it_is_ended_by_its_comment(cluster: Cluster) -> None:
    cluster.job("RUNNING", tag="trainwatch:r1:1")
    cluster.answers("scontrol", "JobId=77 JobState=CANCELLED SubmitTime=2026-11-22T23:05:28 NodeList=n1")
    slurm = Commands(cluster.env)
    assert end_job(str(cluster.directory), "trainwatch:r1:2", slurm) == ""
    assert cluster.called("scancel") == 0
    assert end_job(str(cluster.directory), "trainwatch:r1:1", slurm) == ""
    assert "scancel 77" in cluster.calls.read_text()


def test_without_an_answer_it_is_not_known_whether_a_job_is_left(cluster: Cluster) -> None:
    cluster.refuses("squeue", "Unable to contact slurm controller")
    told = end_job(str(cluster.directory), "trainwatch:r1:1", Commands(cluster.env))
    assert "cannot be told whether a job was submitted" in told


def test_a_command_to_slurm_is_not_ended_by_the_stop_that_it_tells_of(cluster: Cluster) -> None:
    told = cluster.bin / "told"
    (cluster.bin / "scancel").write_text(
        f"#!{sys.executable}\nimport os\nfor number in (2, 15): os.kill(os.getpid(), number)\nopen({str(told)!r}, 'w')\n"
    )
    Commands(cluster.env).signal(JobHandle(cluster="c", id="77"), "INT")
    assert told.exists()

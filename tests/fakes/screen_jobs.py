"""What the numbered screens ask for, answered from memory; and a run that has something to show on each of them."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tests.fakes.feed import HOUR, PROFILES, WALL0, checkpoint, hung, open_run
from trainwatch.core.model.checkpoint import Checkpoint, Listing, MemberOverview, Overview
from trainwatch.core.model.decision import (
    CaptureStacks,
    ClearGpu,
    Decision,
    Record,
    StartAttempt,
    StopAttempt,
    VerifyCheckpoint,
)
from trainwatch.core.model.fact import CheckpointKnown, IncidentOpened, ProfileChanged
from trainwatch.core.model.machine_details import (
    GpuDetail,
    GpuDetails,
    GpuProcess,
    HostDetails,
    MachineDetails,
    Traffic,
    TreeDetails,
    TreeProcess,
)
from trainwatch.core.model.observation import Outcome
from trainwatch.core.model.ports import OnProgress, OpenRun
from trainwatch.core.model.preset import Change, Profile
from trainwatch.core.model.run import Evidence, EvidenceFile, Incident
from trainwatch.core.model.story import RunStory, Situation
from trainwatch.core.model.story_fold import apply

DUMP = """\
Process {pid}: python train_network.py --config_file sdxl.toml
Python v3.11.7 (/usr/bin/python3.11)

Thread {pid} (idle): "MainThread"
    wait (threading.py:327)
    get (queue.py:171)
    _try_get_data (torch/utils/data/dataloader.py:1251)
    {frame}
    train (train_network.py:1408)
    <module> (train_network.py:1712)
Thread {thread} (idle): "Thread-3 (_pin_memory_loop)"
    select (selectors.py:415)
    wait (multiprocessing/connection.py:1136)
    do_one_step (torch/utils/data/_utils/pin_memory.py:35)
"""


def dump(pid: int, frame: str = "__next__ (torch/utils/data/dataloader.py:701)") -> str:
    return DUMP.format(pid=pid, thread=pid + 3, frame=frame)


FILES = (
    EvidenceFile(name="log-tail.txt", text="epoch 8/12\nsteps:  71%|███████   | 7302/10260\n"),
    EvidenceFile(name="proc-4202.txt", text="python (4202), state S, parent 4192\n\n== wchan\nfutex_wait_queue\n"),
    EvidenceFile(name="stacks-4202-1.txt", text=dump(4202)),
    EvidenceFile(name="stacks-4202-2.txt", text=dump(4202)),
    EvidenceFile(name="stacks-4207-1.txt", text=dump(4207, "read (PIL/ImageFile.py:233)")),
    EvidenceFile(name="stacks-4207-2.txt", text=dump(4207, "decode (PIL/Image.py:712)")),
)


class FakeIncidentFiles:
    """The folder of one incident."""

    def __init__(self, files: Sequence[EvidenceFile] = FILES, error: OSError | None = None) -> None:
        self.kept, self.error = tuple(files), error

    def __call__(self, incident: int) -> Sequence[EvidenceFile]:
        if self.error is not None:
            raise self.error
        return self.kept if incident == 2 else ()


def overview(found: Checkpoint, *, compiled: bool = False) -> Overview:
    """What a checkpoint holds."""
    members = (
        ("model.safetensors", 640_000_000, 722),
        ("optimizer.bin", 229_000_000, 1444),
        ("train_state.json", 188, None),
    )
    return Overview(
        checkpoint=found,
        layout="accelerate state",
        members=tuple(
            MemberOverview(name=n, size_bytes=size, tensors=count, elements=None) for n, size, count in members
        ),
        tensors=(),
        parameters=57_410_560,
        dtypes={"bfloat16": 57_410_560},
        has_optimizer=True,
        has_ema=False,
        compiled=compiled,
        state={"current_epoch": 7, "current_step": 6148},
        metadata={"ss_network_dim": "64"},
    )


class FakeCheckpoints:
    """Remembers what it was asked. ``gate``: work waits for it half-way, so that tests see it under way."""

    def __init__(self, checkpoints: Sequence[Checkpoint], directory: str | None = "/data/outputs/luca") -> None:
        self.checkpoints, self._directory = tuple(checkpoints), directory
        self.asked: list[tuple[str, ...]] = []
        self.verdicts: dict[str, Checkpoint] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.refusal = ""

    @property
    def directory(self) -> str | None:
        return self._directory

    def _work(self, progress: OnProgress, *what: str) -> None:
        self.asked.append(what)
        if self.refusal:
            raise RuntimeError(self.refusal)
        progress(300_000_000, 870_000_000)
        while not self.gate.wait(0.01):
            progress(300_000_000, 870_000_000)
        progress(870_000_000, 870_000_000)

    def listing(self) -> Listing:
        return Listing(checkpoints=self.checkpoints, resume_point=None)

    def verify(self, path: str, *, deep: bool, progress: OnProgress) -> Checkpoint:
        self._work(progress, "deep" if deep else "verify", path)
        return self.verdicts.get(path) or next(c for c in self.checkpoints if c.path == path)

    def show(self, path: str) -> Overview:
        self.asked.append(("show", path))
        return overview(next(c for c in self.checkpoints if c.path == path))


class FakeLaunch:
    """What a launch would change: the profile's settings, over a config of its own."""

    own: Mapping[str, object] = {"vae_batch_size": 2, "workers": 2, "lowram": True, "learning_rate": 1e-4}

    def __call__(self, profile: Profile | None) -> Sequence[Change]:
        if profile is None:
            return ()
        if profile.name == "broken":
            raise RuntimeError("sdxl.toml: the file is gone; nothing can be derived from it")
        return [
            Change(where="config", key=k, before=self.own.get(k), after=v, why=f"profile {profile.name}", of="profile")
            for k, v in profile.settings.items()
            if self.own.get(k) != v
        ]


def tell(story: RunStory, t: float, **body: Any) -> RunStory:
    return apply(story, Record(seq=story.seq + 1, t=t, wall=WALL0 + t, **body))


def decided(story: RunStory, t: float, decision: Decision, took_s: float, detail: str, *, ok: bool = True) -> RunStory:
    story = tell(story, t, decision=decision)
    outcome = Outcome(t=t + took_s, decision=decision.id, action="done", ok=ok, detail=detail)
    return tell(story, t + took_s, outcome=outcome)


def troubled() -> Situation:
    """A night with a crash that was cured, a stall, a damaged checkpoint, a changed profile, and a hang under way."""
    now = hung()
    story = now.story
    t = 1.63 * HOUR
    story = decided(
        story,
        t + 1,
        StopAttempt(id=1, reason="restart after crash (cuda_oom): end what is left of it first", incident=1, attempt=1),
        0.2,
        "9 processes ended by SIGTERM",
    )
    story = decided(
        story,
        t + 2,
        ClearGpu(id=2, reason="wait until the GPU memory of the ended processes is released", incident=1, attempt=1),
        4.1,
        "GPU memory is released (4.1 s)",
    )
    story = decided(
        story,
        t + 7,
        VerifyCheckpoint(id=3, reason="prove the resume point before the launch", incident=1, path="x"),
        9.0,
        "luca-step00002160-state: complete",
    )
    story = decided(
        story,
        t + 28,
        StartAttempt(
            id=4, reason="restart after crash (cuda_oom): start attempt 2 from step 2160", incident=1, attempt=2
        ),
        1.2,
        "shown again in tmux session trainwatch-luca",
    )
    end = now.now_t
    story = decided(story, end - 6, CaptureStacks(id=5, reason="take evidence of the hang before anything is ended",
                                                  incident=2, attempt=2), 4.0,
                    "process 4202 was in _try_get_data (torch/utils/data/dataloader.py:1251), and stayed there")  # fmt: skip
    stall = Incident(
        id=3, t=3 * HOUR, wall=WALL0 + 3 * HOUR, attempt=2, kind="stall", class_="starved", severity="warning",
        reason="4.1 s a step for 10 min, usually 2.5 s: waiting for data", open=False, closed_t=3.4 * HOUR,
        ending="as fast as usual again", evidence=(Evidence(what="GPU 0 at 41 %, usually 98 %"),), step=4100,
    )  # fmt: skip
    torn = checkpoint(6800, end - 900, verdict="torn", reason="optimizer.bin: 12.1 MB of 229 MB are missing")
    for fact in (
        IncidentOpened(incident=stall),
        CheckpointKnown(checkpoint=torn),
        ProfileChanged(profile="conservative", pending=True, why="asked for by ada, at the next checkpoint"),
    ):
        story = tell(story, end - 4, fact=fact)
    cascade = (
        Evidence(what="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB", line=48_211),
        Evidence(what="exit code 1"),
        Evidence(
            then=True,
            what="subprocess.CalledProcessError: Command '['python', 'train_network.py']' returned non-zero exit status 1",
            line=48_260,
        ),
    )
    story = msgspec.structs.replace(
        story,
        incidents=tuple(msgspec.structs.replace(i, evidence=cascade) if i.id == 1 else i for i in story.incidents),
    )
    first, second = story.attempts
    launched = tuple(FakeLaunch()(RICH_PROFILES[1]))
    # The remedy stands over the profile's own value: one entry a key.
    remedy = second.changes
    story = msgspec.structs.replace(
        story,
        attempts=(
            msgspec.structs.replace(first, changes=launched),
            msgspec.structs.replace(second, changes=(*launched, *remedy)),
        ),
    )
    return msgspec.structs.replace(now, story=story)


LADDER = tuple(p.name for p in PROFILES)
RICH_PROFILES = tuple(
    msgspec.structs.replace(
        p,
        settings={**p.settings, "cache_latents_to_disk": True, "optimizer_type": "AdamW8bit"},
        expect={"VRAM": vram, "speed": speed},
    )
    for p, vram, speed in zip(
        PROFILES, ("11.2 GB", "15.2 GB", "22 GB"), ("3.9 s/step", "2.5 s/step", "1.4 s/step"), strict=True
    )
)


GPU_DETAIL = GpuDetail(
    index=0, clock_sm_mhz=2706, clock_sm_max_mhz=3105, clock_mem_mhz=11_201, clock_mem_max_mhz=11_201, mem_util_pct=47,
    fan_pct=59, slowdown_c=101, shutdown_c=104, pcie_generation=4, pcie_generation_max=4, pcie_width=8,
    pcie_width_max=16, pcie_received=8.6e6, pcie_sent=2.2e6, ecc=True, ecc_corrected=3, ecc_uncorrected=0,
)  # fmt: skip
GPU_PROCESSES = (
    GpuProcess(gpu=0, pid=4202, mem_bytes=14.2 * 2**30, sm_pct=80, own=True, user="mira", cpu_pct=112, rss_bytes=3e9,
               age_s=7200, command="/usr/bin/python train_network.py --config_file sdxl.toml"),
    GpuProcess(gpu=0, pid=812, kind="G", mem_bytes=0.3 * 2**30, own=False, user="root", command="/usr/lib/xorg/Xorg"),
)  # fmt: skip


def machine_details(now: Situation, gpus: int = 1) -> MachineDetails:
    """Details of the moment of a situation."""
    return MachineDetails(
        gpus=GpuDetails(
            t=now.now_t, driver="570.133.07", cuda="12.8", processes=GPU_PROCESSES,
            gpus=tuple(msgspec.structs.replace(GPU_DETAIL, index=i) for i in range(gpus)),
        ),
        host=HostDetails(
            t=now.now_t, cores_pct=(96.0, 12.0, None, 3.0), load=(2.4, 2.1, 1.9), cpu_temp_c=61.0, cpu_mhz=4200.0,
            ram_cached_bytes=8e9, swap_in=0.0, swap_out=0.0,
            disks=(Traffic(name="nvme0n1", received=120e6, sent=2e6, busy_pct=40.0),),
            networks=(Traffic(name="eth0", received=1200.0, sent=None),),
        ),
        tree=TreeDetails(
            t=now.now_t,
            processes=(
                TreeProcess(pid=4202, state="R", threads=40, cpu_pct=112.0, rss_bytes=3e9, read=1e6, written=0.0,
                            age_s=7200, user="mira", command="/usr/bin/python train_network.py"),
                TreeProcess(pid=4207, depth=1, state="D", cpu_pct=None, rss_bytes=1e9, age_s=7190, user="mira",
                            command="python -c from multiprocessing.spawn import spawn_main"),
            ),
            others=(TreeProcess(pid=77, state="S", cpu_pct=88.0, rss_bytes=9e9, user="root", command="/usr/bin/backup"),),
        ),
    )  # fmt: skip


class FakeDetails:
    """What the GPU page and the host page show; counts looks."""

    def __init__(self, details: MachineDetails) -> None:
        self.details = details
        self.looks = 0

    def __call__(self) -> MachineDetails:
        self.looks += 1
        return self.details


def rich_run(now: Situation, run_id: str = "luca-1", **doors: Any) -> OpenRun:
    """A run with every door open."""
    usual: dict[str, Any] = {
        "profiles": RICH_PROFILES,
        "ladder": LADDER,
        "incident_files": FakeIncidentFiles(),
        "checkpoints": FakeCheckpoints(tuple(reversed(now.story.checkpoints))),
        "launch": FakeLaunch(),
        "details": FakeDetails(machine_details(now, len(now.gpu.gpus) if now.gpu is not None else 1)),
    }
    return open_run(now, run_id, **(usual | doors))

"""The sensors of a run."""

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec

from trainwatch import __version__

from ...checkpoints import inspect_any, state_in, state_of, verify
from ...checkpoints.formats.reading_pace import BESIDE_TRAINING_BYTES_PER_S
from ...judge.failure.log_evidence import is_news
from ...judge.progress.log_progress import progress_of
from ...model.checkpoints.checkpoint import Checkpoint
from ...model.checkpoints.origin import Whose
from ...model.launch.output_place import is_below
from ...model.ports.supervision import AttemptTarget, DetailDesk, Inbox, Sensor
from ...model.run import RunSpec
from ...model.settings import Watch
from ...model.shipped.preset import Preset
from ...model.text.setting_place import place_of
from ...sense.files.checkpoint_directory import CheckpointDirectory
from ...sense.files.checkpoint_folders import CheckpointFolders
from ...sense.files.checkpoint_values import CheckpointValuesSensor
from ...sense.files.outputs.output_search import OutputSearch
from ...sense.files.scalar_files import ScalarFiles
from ...sense.gpu.gpu_sensor import GpuSensor
from ...sense.gpu.shared_readings import SharedReadings
from ...sense.gpu.simulated_gpu import SimulatedGpu
from ...sense.host.disk_only import DiskOnly
from ...sense.host.host_sensor import Host
from ...sense.host.kernel_log import KernelLog
from ...sense.host.termination import Cloud, TerminationNotices, cloud_of
from ...sense.log.heartbeat_page import HeartbeatPage
from ...sense.log.log_tail import LogTail
from ...sense.log.own_log import OwnLog
from ...sense.process.exit_watch import ExitWatch, nothing
from ...sense.process.job_record import JobRecords
from ...sense.process.node_samples import NodeSamples
from ...sense.process.other_trainers import OtherTrainers
from ...sense.process.process_tree import ProcessTree
from ...sense.process.run_tree import RunTree
from ...sense.sampler import Sampler, SamplersInOneThread
from ...store.atomic import write_atomically
from ...store.clock import RunClock
from ...store.home import runtime_folder
from ...store.run_directory import RunDirectory
from ..plan.launch_plan import LaunchPlan
from ..plan.named_places import folders_elsewhere, saved_places
from ..preflight.beside_attempt import BesideAttempt
from ..runs.known_runs import home
from ..runs.output_claim import OutputClaim, is_network
from ..runs.output_lists import OutputLists
from ..supervise.launch_memory import refusal_of
from ..supervise.run_output import RunOutput
from .judge_of_run import compiled_catalogue


def checkpoint_sensor(
    output: RunOutput,
    preset: Preset,
    inbox: Inbox,
    clock: RunClock,
    *,
    known: Sequence[str],
    on_complete: Callable[[Path, float], None],
    lists: OutputLists,
    whose: Callable[[Path, bool], Whose | None],
    on_problem: Callable[[str], None],
) -> CheckpointFolders:
    globs, layout = preset.checkpoint_globs, preset.layout
    told = output.spec.without_outputs().output_dir

    def whose_here(path: Path) -> Whose | None:
        return whose(path, told is not None and is_below(str(path), told))

    def look(path: Path, *, rewritten: bool = False) -> Checkpoint | None:
        if output.holds_output(path):
            return None
        return inspect_any(path, layout=layout, rewritten=rewritten, named=bool(globs))

    def listed(folder: Path) -> tuple[Checkpoint, ...]:
        found = state_in(folder, globs, layout=layout)
        return tuple(checkpoint for checkpoint in found if not output.holds_output(Path(checkpoint.path)))

    def sensor(folder: str) -> CheckpointDirectory:
        return CheckpointDirectory(
            inbox=inbox,
            clock=clock,
            watch=output.spec.settings.watch,
            directory=folder,
            inspect=look,
            inspect_rewritten=partial(look, rewritten=True),
            list_directory=listed,
            globs=globs,
            known=known,
            on_complete=on_complete,
            listed=lists.of,
            whose=whose_here,
            refusal=lambda checkpoint: refusal_of(output.spec, preset, checkpoint),
            on_problem=on_problem,
        )

    return CheckpointFolders(sensor, output.folders)


def list_all(checkpoints: CheckpointFolders, search: OutputSearch, limit_s: float, *, expected: bool) -> str | None:
    """List all output folders, after a search for further ones. Returns why the list is not complete, else None."""
    end = time.monotonic() + limit_s
    if not search.look_again(limit_s):
        return f"the search for what the attempt saved was not over within {limit_s:.0f} s"
    return checkpoints.list_all(max(0.0, end - time.monotonic()), expected=expected)


def output_search(
    output: RunOutput,
    run: RunDirectory,
    inbox: Inbox,
    clock: RunClock,
    claim: OutputClaim,
    *,
    last: AttemptTarget | None,
    written: Callable[[str], None],
    tree: RunTree,
    on_problem: Callable[[str], None],
) -> OutputSearch:
    """``last``: the newest attempt, also one that has ended."""
    spec = output.spec
    unknown = not output.folders
    hint = () if spec.output_hint is None else (spec.output_hint,)
    rehearsal = "rehearsal_of" in spec.labels
    overlays = [str(run.path.parents[2] / "upper")] if rehearsal else []
    return OutputSearch(
        inbox=inbox,
        clock=clock,
        roots=[spec.cwd, *output.folders, *hint, *(folders_elsewhere(spec, os.environ) if unknown else ())],
        watched=lambda: output.folders,
        state_of=state_of,
        ignored=[str(run.path.parents[1]), *overlays],
        taken=claim.is_taken,
        saved=saved_places(spec, os.environ) if unknown else {},
        last=last,
        created_wall=spec.created_wall,
        written=written,
        tree=tree,
        directory=str(run.path),
        apart=rehearsal,
        is_network=is_network,
        on_problem=on_problem,
    )


def scalar_files(
    output: RunOutput, inbox: Inbox, clock: RunClock, tree: RunTree, on_problem: Callable[[str], None]
) -> ScalarFiles:
    return ScalarFiles(
        inbox=inbox, clock=clock, roots=lambda: (*output.folders, output.spec.cwd), tree=tree, on_problem=on_problem
    )


def other_trainers(
    plan: LaunchPlan,
    output: RunOutput,
    run: RunDirectory,
    inbox: Inbox,
    clock: RunClock,
    *,
    tree: RunTree,
    on_problem: Callable[[str], None],
) -> list[Sensor]:
    """What sees a trainer that is started by hand beside an attempt; nothing for a run that writes apart."""
    examine = BesideAttempt(plan, run, lambda: output.folders)
    if not examine.wanted:
        return []
    return [OtherTrainers(inbox=inbox, clock=clock, examine=examine, tree=tree, on_problem=on_problem)]


def host_sensor(
    spec: RunSpec, inbox: Inbox, clock: RunClock, details: DetailDesk, on_problem: Callable[[str], None]
) -> Host:
    return Host(
        inbox=inbox if spec.capabilities.here else DiskOnly(inbox),
        clock=clock,
        interval_s=spec.settings.watch.interval_s,
        output_dir=spec.output_dir or spec.cwd,
        details=details,
        on_problem=on_problem,
    )


def values_sensor(
    spec: RunSpec, inbox: Inbox, clock: RunClock, on_problem: Callable[[str], None]
) -> CheckpointValuesSensor | None:
    """Reads the values of new checkpoints, unless the settings ask for their structure only."""
    if spec.settings.checkpoints.verify != "deep":
        return None
    return CheckpointValuesSensor(
        inbox=inbox,
        clock=clock,
        verify=lambda path, progress: verify(
            path, deep=True, progress=progress, rate_limit_bytes_per_s=BESIDE_TRAINING_BYTES_PER_S
        ),
        verify_fast=lambda path, progress: verify(path, deep=True, progress=progress),
        on_problem=on_problem,
    )


def sensors(
    spec: RunSpec,
    files: tuple[CheckpointFolders, CheckpointValuesSensor | None, OutputSearch, ScalarFiles],
    host: Host,
    inbox: Inbox,
    clock: RunClock,
    *,
    tree: RunTree,
    details: DetailDesk,
    backlog: Callable[[Callable[[], int]], None],
    log_looked: Callable[[], None],
    has_steps: Callable[[], bool],
    on_problem: Callable[[str], None],
) -> list[Sensor]:
    watch = spec.settings.watch
    checkpoints, values, search, metrics = files
    catalogue = compiled_catalogue(spec)

    def looked() -> None:
        log_looked()
        own_log.look()

    log = LogTail(
        inbox=inbox,
        clock=clock,
        logs=spec.logs,
        is_news=lambda line: is_news(line, catalogue),
        looked=looked,
        on_problem=on_problem,
    )
    own_log = OwnLog(
        pids=lambda: search.members,
        folder=spec.output_dir,
        step_of=lambda text: progress_of(text.splitlines(keepends=True), catalogue.shapes).step,
        has_steps=has_steps,
        followed=lambda: log.followed,
        follow=lambda path: log.add(path, 0),
        tell=on_problem,
        logs_place=place_of(spec, "logs"),
    )

    beats = HeartbeatPage(inbox=inbox, clock=clock, found=on_problem, on_problem=on_problem)
    last, others = _of_place(spec, inbox, clock, (details, tree), on_problem)
    backlog(log.lines_behind)

    def last_look() -> None:
        """Read the last log lines, memory, disk, checkpoints, metrics: why it ended, and what to resume from."""
        log.drain()
        beats.sample()
        host.sample()
        checkpoints.drain()
        search.drain()
        metrics.drain()
        for sampler in last:
            sampler.sample()

    return [
        SamplersInOneThread(host, *others, beats, *last),
        log,
        checkpoints,
        search,
        metrics,
        *(() if values is None else (values,)),
        ExitWatch(
            inbox=inbox,
            clock=clock,
            before_exit=last_look,
            before_success=nothing if values is None else values.finish,
            on_output=log.add,
            on_problem=on_problem,
        ),
        TerminationNotices(
            inbox=inbox,
            clock=clock,
            cloud=_cloud(watch.termination_notices),
            address=watch.metadata_url,
            on_problem=on_problem,
        ),
        *_gpus(spec, inbox, clock, details, tree),
    ]


def _of_place(
    spec: RunSpec,
    inbox: Inbox,
    clock: RunClock,
    here: tuple[DetailDesk, RunTree],
    on_problem: Callable[[str], None],
) -> tuple[list[Sampler], list[Sampler]]:
    """What samples the processes: on this machine, or of a job elsewhere. The first look once more at its end."""
    interval_s = spec.settings.watch.interval_s
    if not spec.capabilities.here:
        return [
            JobRecords(inbox=inbox, clock=clock, interval_s=interval_s, on_problem=on_problem),
            NodeSamples(
                inbox=inbox,
                clock=clock,
                interval_s=interval_s,
                line_s=spec.settings.slurm.sample_s,
                keep=lambda path, nodes: write_atomically(path, msgspec.json.encode(nodes)),
                on_problem=on_problem,
            ),
        ], []
    details, tree = here
    processes = ProcessTree(
        inbox=inbox, clock=clock, interval_s=interval_s, details=details, tree=tree, on_problem=on_problem
    )
    return [KernelLog(inbox=inbox, clock=clock, on_problem=on_problem)], [processes]


def _gpus(spec: RunSpec, inbox: Inbox, clock: RunClock, details: DetailDesk, tree: RunTree) -> list[Sensor]:
    """What samples the GPUs of this machine. Those of a job come from its nodes."""
    watch = spec.settings.watch
    if not spec.capabilities.here:
        return []
    if spec.labels.get("simulated_gpu"):
        return [SimulatedGpu(inbox=inbox, clock=clock, interval_s=watch.interval_s)]
    shared = _shared_readings(watch)
    return [
        GpuSensor(inbox=inbox, clock=clock, watch=watch, own_gpus=spec.gpus, shared=shared, details=details, tree=tree)
    ]


def _shared_readings(watch: Watch) -> SharedReadings | None:
    """Where the supervisors of this machine that read as often, and with the same driver, share GPU readings."""
    place = runtime_folder(os.environ)
    if place is None:
        return None
    driver = os.environ.get("LD_LIBRARY_PATH", "")
    told = (str(home()), driver, f"{watch.interval_s:g}", f"{watch.gpu_timeout_s:g}", __version__)
    return SharedReadings(place / "gpu" / sha256("\0".join(told).encode()).hexdigest()[:16])


def _cloud(setting: Literal["auto", "off", "aws", "gcp", "azure"]) -> Cloud | None:
    """The cloud whose notices are read."""
    return cloud_of() if setting == "auto" else None if setting == "off" else setting

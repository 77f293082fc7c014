"""The sensors of a run."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...act.elsewhere import ContainerWatch
from ...checkpoints.formats.byte_range import BESIDE_TRAINING_BYTES_PER_S
from ...checkpoints.inspection import inspect_any, verify
from ...checkpoints.listing import state_in, state_of
from ...config.bounds import end_after
from ...config.shipped import load_failures, load_log_shapes, load_remedies
from ...judge.failure.catalogue import CompiledCatalogue
from ...judge.failure.diagnosis import is_news
from ...judge.knowledge import Knowledge
from ...judge.progress import LogLineRead, progress_of
from ...judge.step import Judge
from ...judge.text.shapes import ShapeTable
from ...model.checkpoint import Checkpoint, Whose
from ...model.ports import AttemptTarget, Inbox, Sensor
from ...model.preset import Preset, Profile, resume_support, usual_ladders
from ...model.progress import ExpectedLength
from ...model.run import RunSpec, is_below, place_of
from ...replay import Replay
from ...sense.files.checkpoint_directory import CheckpointDirectory, CheckpointFolders
from ...sense.files.checkpoint_scan import Looks
from ...sense.files.checkpoint_values import CheckpointValuesSensor
from ...sense.files.output_search import OutputSearch
from ...sense.files.scalars import ScalarFiles
from ...sense.files.writers import Writers
from ...sense.gpu.gpu_sensor import GpuSensor, SimulatedGpu
from ...sense.host.host_sensor import Host, is_wsl
from ...sense.host.kernel_log import KernelLog, TerminationNotices, cloud_of
from ...sense.log.burst_reduction import HeartbeatPage
from ...sense.log.log_tail import LogTail, OwnLog
from ...sense.process.exit_watch import ExitWatch
from ...sense.process.process_tree import ProcessTree
from ...sense.process.ranks import JobRecords, NodeSamples, OtherTrainers
from ...sense.process.run_tree import RunTree
from ...sense.sampler import Sampler, SamplersInOneThread
from ...store.home import write_atomically
from ...store.latest import DetailFiles
from ...store.log_index import FILE_NAME as LOG_INDEX
from ...store.log_index import LogIndex
from ...store.run_directory import RunDirectory
from ...store.supervision import RunClock
from ..plan.launch_plan import LaunchPlan
from ..plan.resume_plan import declared_options
from ..plan.specs import Definitions
from ..plan.trainer_folders import folders_elsewhere, saved_places, trainer_values
from ..plan.trainer_settings import save_request, told_lengths
from ..preflight.command_checks import handed_over, hidden_status, is_timed, trains_in_stages
from ..preflight.other_trainer import BesideAttempt
from ..preflight.resume_checks import load_refusal
from ..runs.output_claim import OutputClaim, is_network
from ..runs.output_folder import OutputLists
from ..supervise.machine_end import SleepInhibitor
from ..supervise.recorder import RunRecorder, harmless
from ..supervise.run_output import RunOutput


def checkpoint_sensor(
    output: RunOutput,
    preset: Preset,
    values: CheckpointValuesSensor | None,
    lists: OutputLists,
    whose: Callable[[Path, bool], Whose | None],
    *,
    known: Sequence[str],
    **common: Any,
) -> CheckpointFolders:
    """``values``: reads what is complete. ``whose``: who wrote a path; whether its folder was told."""
    globs, layout, told = preset.checkpoint_globs, preset.layout, output.spec.without_outputs().output_dir

    def look(path: Path, rewritten: bool) -> Checkpoint | None:
        if output.holds_output(path):
            return None
        return inspect_any(path, layout=layout, rewritten=rewritten, named=bool(globs))

    def listed(folder: Path) -> tuple[Checkpoint, ...]:
        found = state_in(folder, globs, layout=layout)
        return tuple(checkpoint for checkpoint in found if not output.holds_output(Path(checkpoint.path)))

    looks = Looks(
        inspect=look,
        list_directory=listed,
        on_complete=(lambda _path, _mtime: None) if values is None else values.completed,
        listed=lists.of,
        whose=lambda path: whose(path, told is not None and is_below(str(path), told)),
        refusal=harmless(
            "foreseeing the load of a checkpoint", lambda checkpoint: load_refusal(output.spec, preset, checkpoint)
        ),
    )
    settle_s = output.spec.settings.watch.settle_s
    return CheckpointFolders(
        lambda folder: CheckpointDirectory(
            settle_s=settle_s, directory=folder, looks=looks, globs=globs, known=known, **common
        ),
        output.folders,
    )


class RunSensors(NamedTuple):
    """All sensors of a run, and those of them that others ask or tell."""

    all: list[Sensor]
    checkpoints: CheckpointFolders
    search: OutputSearch
    host: Host

    def list_all(self, limit_s: float, expected: bool) -> str | None:
        """List all output folders, after a search for further ones. Returns why the list is not complete, else None."""
        end = time.monotonic() + limit_s
        if not self.search.look_again(limit_s):
            return f"the search for what the attempt saved was not over within {limit_s:.0f} s"
        return self.checkpoints.list_all(max(0.0, end - time.monotonic()), expected=expected)


def build_sensors(  # noqa: PLR0917
    plan: LaunchPlan,
    output: RunOutput,
    run: RunDirectory,
    inbox: Inbox,
    clock: RunClock,
    claim: OutputClaim,
    recorder: RunRecorder,
    lists: OutputLists,
    *,
    catalogue: CompiledCatalogue,
    known: Sequence[str],
    last: AttemptTarget | None,
    note: Callable[[str], None],
) -> RunSensors:
    """``known``: paths of checkpoints that the judge knows. ``last``: the newest attempt, also one that has ended."""
    spec, watch, here = output.spec, output.spec.settings.watch, output.spec.capabilities.here
    common: dict[str, Any] = {"inbox": inbox, "clock": clock, "on_problem": note}
    details, tree = DetailFiles(run.path), RunTree()
    metrics = ScalarFiles(roots=lambda: (*output.folders, spec.cwd), **common)
    rehearsal, unknown = "rehearsal_of" in spec.labels, not output.folders
    hint = () if spec.output_hint is None else (spec.output_hint,)
    search = OutputSearch(
        roots=[spec.cwd, *output.folders, *hint, *(folders_elsewhere(spec, os.environ) if unknown else ())],
        watched=lambda: output.folders,
        state_of=state_of,
        ignored=[str(run.path.parents[1]), *([str(run.path.parents[2] / "upper")] if rehearsal else [])],
        taken=claim.is_taken,
        saved=saved_places(spec, os.environ) if unknown else {},
        last=last,
        created_wall=spec.created_wall,
        written=metrics.noticed,
        writers=Writers(
            working_folder=spec.cwd, directory=str(run.path), tree=tree, apart=rehearsal, is_network=is_network
        ),
        **common,
    )
    values = None
    if spec.settings.checkpoints.verify == "deep":  # else only their structure is read
        values = CheckpointValuesSensor(
            verify=lambda path, progress: verify(
                path, deep=True, progress=progress, rate_limit_bytes_per_s=BESIDE_TRAINING_BYTES_PER_S
            ),
            verify_fast=lambda path, progress: verify(path, deep=True, progress=progress),
            **common,
        )
    checkpoints = checkpoint_sensor(
        output, plan.preset, values, lists, lambda path, told: search.whose(path, told=told), known=known, **common
    )
    host = Host(
        interval_s=watch.interval_s,
        output_dir=spec.output_dir or spec.cwd,
        details=details,
        disk_only=not here,
        **common,
    )

    def looked() -> None:
        recorder.look_at_log(clock.now())
        own_log.look()

    log = LogTail(
        logs=spec.logs,
        is_news=lambda line: is_news(line, catalogue),
        looked=looked,
        known=lambda log: LogIndex(Path(log).with_name(LOG_INDEX)).since(recorder.drawn_t),
        **common,
    )
    own_log = OwnLog(
        pids=lambda: search.members,
        folder=spec.output_dir,
        step_of=lambda text: progress_of(text.splitlines(keepends=True), catalogue.shapes).step,
        has_steps=lambda: recorder.has_steps,
        followed=lambda: log.followed,
        follow=lambda path: log.add(path, 0),
        tell=note,
        logs_place=place_of(spec, "logs"),
    )
    recorder.lines_behind = log.lines_behind
    beats = HeartbeatPage(found=note, **common)
    processes, last_samplers, gpus = _of_place(spec, details, tree, common)
    examine = BesideAttempt(plan, run, lambda: output.folders)
    # a run that writes apart cannot be disturbed
    others = [OtherTrainers(examine=examine, tree=tree, **common)] if examine.wanted else []

    def last_look() -> None:
        """Read the last log lines, memory, disk, checkpoints, metrics: why it ended, and what to resume from."""
        log.drain()
        beats.sample_now()
        host.sample_now()
        checkpoints.drain()
        search.drain()
        metrics.drain()
        for sampler in last_samplers:
            sampler.sample_now()

    exits = ExitWatch(
        before_exit=last_look,
        before_success=(lambda: None) if values is None else values.finish,
        on_output=log.add,
        **common,
    )
    named = watch.termination_notices
    cloud = cloud_of() if named == "auto" else None if named == "off" else named
    notices = TerminationNotices(cloud=cloud, **common)
    samplers = SamplersInOneThread(host, *processes, beats, *last_samplers)
    may_block = SamplersInOneThread(*others, metrics)
    own: list[Sensor] = [samplers, log, checkpoints, search, may_block, *([] if values is None else [values])]
    inhibitor = SleepInhibitor(spec.name, note, os.environ)
    whole: list[Sensor] = [claim, inhibitor, ContainerWatch(note), *own, exits, notices, *gpus]
    return RunSensors(whole, checkpoints, search, host)


def _of_place(
    spec: RunSpec, details: DetailFiles, tree: RunTree, common: dict[str, Any]
) -> tuple[list[Sampler], list[Sampler], list[Sensor]]:
    """What samples processes and GPUs, of this machine or of a job elsewhere. The second look once more at its end."""
    watch = spec.settings.watch
    if not spec.capabilities.here:
        keep = lambda path, nodes: write_atomically(path, msgspec.json.encode(nodes))  # noqa: E731
        nodes = NodeSamples(interval_s=watch.interval_s, line_s=spec.settings.slurm.sample_s, keep=keep, **common)
        return [], [JobRecords(interval_s=watch.interval_s, **common), nodes], []
    own = {name: common[name] for name in ("inbox", "clock")}
    gpus: Sensor = (
        SimulatedGpu(interval_s=watch.interval_s, **own)
        if spec.labels.get("simulated_gpu")
        else GpuSensor(watch=watch, own_gpus=spec.gpus, details=details, tree=tree, **own)
    )
    processes = ProcessTree(interval_s=watch.interval_s, details=details, tree=tree, **common)
    return [processes], [KernelLog(**common)], [gpus]


def knowledge(
    spec: RunSpec,
    preset: Preset,
    profiles: Mapping[str, Profile],
    expected: ExpectedLength | None = None,
    line_read: LogLineRead | None = None,
) -> Knowledge:
    """``expected``: the estimated length of the run. ``line_read``: told of each line of its logs."""
    shapes = ShapeTable(load_log_shapes(), spec.settings.progress.shapes)
    return Knowledge(
        catalogue=CompiledCatalogue(load_failures(), shapes, spec.settings.diagnose.patterns),
        settings=spec.settings,
        preset=preset,
        profiles=tuple(profiles),
        run=spec.name,
        run_id=spec.id,
        created_wall=spec.created_wall,
        output_dir=spec.without_outputs().output_dir,
        cwd=spec.cwd,
        remedies=load_remedies(),
        values=trainer_values(spec, preset, profiles, load_remedies(), os.environ),
        families={name: profile.family for name, profile in profiles.items()},
        usual_ladders=usual_ladders(profiles.values()),
        traits=frozenset({"wsl2"} if is_wsl() else ()),
        options=declared_options(spec, load_remedies()),
        resume_support=resume_support(preset, spec.command, spec.second_start),
        begin_from=spec.begin_from,
        handed_over=handed_over(spec),
        end_after=end_after(spec.settings.end.end_by),
        own_ends=spec.own_ends,
        status_hidden=(hidden_status(spec.command, Path(spec.cwd)) or ("",))[0],
        stages=trains_in_stages(spec),
        timed=is_timed(spec),
        told=told_lengths(spec, preset, profiles, expected),
        line_read=line_read,
        can_ask_to_save=any(save_request(spec, preset)),
    )


def replay_of(spec: RunSpec, definitions: Definitions) -> Replay:
    """A judge of this run, with its settings, for observations that are fed to it."""
    return Replay(Judge(knowledge(spec, definitions.preset_of(spec), definitions.profiles)))

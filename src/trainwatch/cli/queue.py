"""``trainwatch queue``: runs one after the other, when a GPU has room."""

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import CliError, ExitCode

from .output import print_json, put, warn
from .start import asked_plan, launch_options, overrides_of, words_of
from .verb import PART_JSON, Verb, Verbs, arg, flag, usage

if TYPE_CHECKING:
    from trainwatch.core.model.launch import QueueEntry


VERBS = Verbs()


VERBS.add("queue", Verb(
    "start runs one after the other, when a GPU has room",
    "Runs that wait for GPUs of this machine. Each is started in its turn on the least loaded GPUs that have enough "
    "free memory, never beside a process that the queue did not start. The need is measured by `trainwatch trial` or "
    "stated; without either a run gets a GPU for itself alone. The queue outlives this terminal; after a reboot it "
    "goes on with `trainwatch queue work`, or by itself with `trainwatch queue enable`.",
    "add --gpu-memory 10GB -- python train.py --config cfg.yaml",
    (), None,
))  # fmt: skip
ENTRY = arg("entry", type=int, help="the number of the entry")
PLACE = arg("place", type=int, help="its new place among those that wait; 1 is the next one")


@VERBS(
    "queue add",
    "add a run at the end",
    "",
    "--gpu-memory 10GB -- python train.py",
    usage("trainwatch queue add [options] [-- COMMAND …]"),
    arg("--gpu-memory", metavar="SIZE", help="GPU memory that it needs on each GPU: 10GB, 10000MiB"),
    arg("--gpus", type=int, default=1, metavar="N", help="how many GPUs it gets (default 1; 0: none)"),
    flag("--beside", "it may share a GPU with processes that the queue did not start"),
    arg("--profile", help="profile of training settings (see `trainwatch profiles`)"),
    arg("--from", dest="checkpoint", metavar="CHECKPOINT", help='begin from a checkpoint, or "newest"'),
    flag("--fresh", "start from the beginning, even over the checkpoints that are there"),
    *launch_options(queued=True),
)
def act_add(args: argparse.Namespace) -> int:
    """Add the run, and start the process that starts queued runs."""
    import msgspec

    from trainwatch.core.app.plan.trainer_folders import not_used_for_a_command
    from trainwatch.core.app.queue import add_entry, amount, ensure_worker, measured_need
    from trainwatch.core.app.runs.known_runs import home

    if args.gpus < 0:
        raise CliError(ExitCode.USAGE, "--gpus: must not be negative")
    words, overrides = words_of(args), overrides_of(args)
    plan = asked_plan(args, overrides)
    if plan is None:
        raise CliError(ExitCode.USAGE, "give a command: trainwatch queue add -- COMMAND …")
    if plan.derived is None:
        raise CliError(ExitCode.USAGE, f"{plan.problem}; nothing was added")
    if words and (unused := not_used_for_a_command()) is not None:
        warn(unused)
    need, why = (amount(args.gpu_memory), "stated") if args.gpu_memory else measured_need(plan)
    entry, place = add_entry(
        os.environ, name=plan.spec.name, command=words, options=msgspec.to_builtins(overrides),
        checkpoint=args.checkpoint, fresh=args.fresh, wants=args.gpus, need_bytes=need if args.gpus else None,
        need_why=why if args.gpus else "", beside=args.beside,
    )  # fmt: skip
    pid = ensure_worker(home())
    return put(
        args,
        {**_as_json(entry, place), "worker": pid},
        f"{entry.id}: {entry.name} is queued, place {place}; {_need(entry)}",
        "look at it with `trainwatch queue list`; after a reboot: `trainwatch queue work` (`queue enable` does it)",
    )


@VERBS("queue list", "what waits, runs and is over", "", "--json", PART_JSON)
def act_list(args: argparse.Namespace) -> int:
    """0 also if nothing is queued."""
    from trainwatch.core.app.queue import queue_now
    from trainwatch.core.views.columns import QUEUE, text_rows

    queue, pid, alive = queue_now()
    places = {entry.id: place for place, entry in enumerate(queue.waiting, 1)}
    entries = [(entry, places.get(entry.id)) for entry in queue.entries]
    told = [_as_json(entry, place) for entry, place in entries]
    lines = text_rows(QUEUE, entries) or ["the queue is empty: add a run with `trainwatch queue add -- COMMAND`"]
    put(args, {"queue": told, "worker": {"pid": pid, "alive": alive}}, *lines)
    if queue.waiting and not alive and not args.json:
        warn("nobody starts these runs now: `trainwatch queue work --detach` does")
    return ExitCode.DONE


@VERBS("queue move", "change the place of an entry that waits", "", "4 1", PART_JSON, ENTRY, PLACE)
def act_move(args: argparse.Namespace) -> int:
    """3 if there is no such entry, 2 if it does not wait."""
    from trainwatch.core.app.queue import move_entry

    place = move_entry(args.entry, args.place)
    return put(args, {"id": args.entry, "place": place}, f"{args.entry}: place {place}")


@VERBS("queue remove", "remove an entry that waits or is over", "", "4", PART_JSON, ENTRY)
def act_remove(args: argparse.Namespace) -> int:
    """3 if there is no such entry, 2 if it is started."""
    from trainwatch.core.app.queue import remove_entry

    entry = remove_entry(args.entry)
    return put(args, _as_json(entry, None), f"{entry.id}: {entry.name} is removed")


@VERBS(
    "queue work", "start queued runs until none is left (`add` does this)", "", "", PART_JSON,
    flag("--detach", "in the background"),
)  # fmt: skip
def act_work(args: argparse.Namespace) -> int:
    """Start queued runs; 4 if another process does it already."""
    import logging

    from trainwatch.core.app.queue import ensure_worker, work
    from trainwatch.core.app.runs.known_runs import home

    if args.detach:
        ensure_worker(home())
        return ExitCode.DONE
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    return work()


@VERBS(
    "queue enable", "go on with the queue after a reboot", "", "--print", PART_JSON,
    flag("--print", "show what would be written, and write nothing"),
)  # fmt: skip
def act_enable(args: argparse.Namespace) -> int:
    from trainwatch.core.app.enable import enabling_of_queue
    from trainwatch.core.app.runs.known_runs import home

    from .control import enable

    return enable(enabling_of_queue(home()), args)


@VERBS("queue start", None, "Starts the run of one entry; the queue itself calls it.", "4", ENTRY)
def act_start(args: argparse.Namespace) -> int:
    """Start the run of one entry; prints what became of it as JSON."""
    from trainwatch.core.app.queue import queue_now, start_entry

    entry = queue_now()[0].find(args.entry)
    if entry is None or not entry.holds:
        raise CliError(ExitCode.NOT_FOUND, f"entry {args.entry} is not to be started; the queue starts its runs itself")
    print_json(start_entry(entry))
    return ExitCode.DONE


AS_IT_IS = ("id", "name", "run", "beside", "cwd", "why", "added_wall", "started_wall", "over_wall")


def _as_json(entry: "QueueEntry", place: int | None) -> dict[str, Any]:
    """``state``: queued, starting, started, or how it ended. ``gpus``: those that it has."""
    return {
        **{name: getattr(entry, name) for name in AS_IT_IS},
        "state": entry.ending if entry.state == "over" else entry.state,
        "over": entry.state == "over",
        "place": place,
        "gpus": list(entry.on),
        "gpus_wanted": entry.wants,
        "gpu_memory_bytes": entry.need_bytes,
        "gpu_memory_why": entry.need_why,
        "command": list(entry.command),
        "waits_s": round(time.time() - entry.added_wall, 1) if entry.state == "queued" else None,
    }


def _need(entry: "QueueEntry") -> str:
    from trainwatch.core.model.text import memory

    if entry.wants == 0:
        return "it needs no GPU"
    what = "a GPU" if entry.wants == 1 else f"{entry.wants} GPUs"
    if entry.need_bytes is None:
        return f"its need for GPU memory is {entry.need_why.replace('a GPU', what)}"
    return f"it needs {memory(entry.need_bytes)} of {what} ({entry.need_why})"

"""``trainwatch queue``: runs one after the other, when a GPU has room."""

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import CliError, ExitCode

from .output import put, warn
from .start import BEGIN, asked_plan, launch_options, overrides_of, words_of
from .verb import PART_JSON, Verb, Verbs, arg, flag, usage

if TYPE_CHECKING:
    from trainwatch.core.model.launch import QueueEntry


VERBS = Verbs()


VERBS.add("queue", Verb(
    "start runs one after the other, when a GPU has room",
    "Runs that wait for GPUs of this machine. Each is started in its turn on the least loaded GPUs that have enough "
    "free memory, never beside a process that the queue did not start. The need is measured by `trainwatch trial` or "
    "stated; without either a run gets a GPU for itself alone. The queue outlives this terminal; after a reboot it "
    "goes on with `trainwatch queue work`.",
    "add --gpu-memory 10GB -- python train.py --config cfg.yaml",
    (), None,
))  # fmt: skip
OWN = (
    arg("--gpu-memory", metavar="SIZE", help="GPU memory that it needs on each GPU: 10GB, 10000MiB"),
    arg("--gpus", type=int, default=1, metavar="N", help="how many GPUs it gets (default 1; 0: none)"),
    flag("--beside", "it may share a GPU with processes that the queue did not start"),
)
_OF_QUEUE = argparse.ArgumentParser(add_help=False)
"""What ``queue add`` takes beside the options of ``trainwatch run``, and what says that it starts without a screen."""
for _argument in (*OWN, arg("of_verb", nargs=2), *(flag(f"--{word}", "") for word in ("json", "headless", "detach"))):
    _argument(_OF_QUEUE)
ENTRY = arg("entry", type=int, help="the number of the entry")
PLACE = arg("place", type=int, help="its new place among those that wait; 1 is the next one")


@VERBS(
    "queue add",
    "add a run at the end",
    "",
    "--gpu-memory 10GB -- python train.py",
    usage("trainwatch queue add [options] [-- COMMAND …]"),
    *OWN,
    *BEGIN,
    *launch_options(queued=True),
)
def act_add(args: argparse.Namespace) -> int:
    """Add the run, and start the process that starts queued runs."""
    from trainwatch.core.app.plan.trainer_folders import not_used_for_a_command
    from trainwatch.core.app.queue import add_entry, amount, ensure_worker, measured_need
    from trainwatch.core.app.runs.known_runs import home
    from trainwatch.core.model.text import memory

    if args.gpus < 0:
        raise CliError(ExitCode.USAGE, "--gpus: must not be negative")
    command = words_of(args)
    plan = asked_plan(args, overrides_of(args))
    if plan is None:
        raise CliError(ExitCode.USAGE, "give a command: trainwatch queue add -- COMMAND …")
    if plan.derived is None:
        raise CliError(ExitCode.USAGE, f"{plan.problem}; nothing was added")
    if command and (unused := not_used_for_a_command()) is not None:
        warn(unused)
    need, why = (amount(args.gpu_memory), "stated") if args.gpu_memory else measured_need(plan)
    what = "no GPU" if args.gpus == 0 else "a GPU" if args.gpus == 1 else f"{args.gpus} GPUs"
    told = f"it needs {what}" if args.gpus == 0 else f"its need for GPU memory is {why.replace('a GPU', what)}"
    told = f"it needs {memory(need)} of {what} ({why})" if args.gpus and need is not None else told
    typed = args.typed[: args.typed.index("--") if "--" in args.typed else len(args.typed) - len(args.words)]
    of_run = _OF_QUEUE.parse_known_args(typed)[1]
    entry, place = add_entry(
        os.environ, name=plan.spec.name, words=(*of_run, "--", *command) if command else of_run, wants=args.gpus,
        need_bytes=need if args.gpus else None, need_why=why if args.gpus else "", beside=args.beside,
    )  # fmt: skip
    pid = ensure_worker(home())
    return put(
        args,
        {**_as_json(entry, place), "worker": pid},
        f"{entry.id}: {entry.name} is queued, place {place}; {told}",
        "look at it with `trainwatch queue list`; after a reboot: `trainwatch queue work --detach`",
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


AS_IT_IS = ("id", "name", "run", "beside", "cwd", "why", "added_wall")


def _as_json(entry: "QueueEntry", place: int | None) -> dict[str, Any]:
    """``state``: queued, started, or how it ended. ``gpus``: those that it has."""
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

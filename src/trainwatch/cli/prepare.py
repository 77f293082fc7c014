"""The verbs that prepare a run."""

import argparse
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainwatch import __version__
from trainwatch.core.app.errors import CliError, ExitCode

from .output import RESULT_WORDS, printable, put, warn
from .parser import every_action, whole_parser
from .start import asked_plan, overrides_of, words_of
from .verb import JSON, PART_JSON, RUN, Verb, Verbs, arg, command_words, flag, usage

if TYPE_CHECKING:
    from trainwatch.core.app.preflight.check import Check
    from trainwatch.core.model.launch import Rehearsal, TrialResult
    from trainwatch.core.model.run import Host


VERBS = Verbs()


@VERBS(
    "check",
    "pre-flight: find what could end the run before it does",
    "Checks config, disk, GPU, the trainer's interpreter, the resume point, tmux, and settings of the host that "
    "end processes (logout, sleep), for COMMAND or for the run of this folder's trainwatch.toml. Changes nothing. "
    "Without either it checks the machine, as `trainwatch doctor`.",
    "-- python train.py --config cfg.yaml",
    usage("trainwatch check [options] [-- COMMAND …]"),
    arg("--run", dest="run_name", metavar="NAME", help="which run, if there are several"),
    flag("--after", "check a run that is over instead: log, loss, every checkpoint, what to keep and to back up"),
    JSON,
    command_words(),
)
def check_verb(args: argparse.Namespace) -> int:
    """1 if a check failed."""
    if args.after:
        from trainwatch.core.app.preflight.after_run import checks_after

        checks = checks_after(args.run_name, warn)
    else:
        from trainwatch.core.app.plan.launch_plan import plan_command
        from trainwatch.core.app.preflight.checklist import preflight, preflight_here

        words = words_of(args)
        checks = preflight(plan_command(words)) if words else preflight_here(args.run_name)
    return show_checks(args, checks)


@VERBS(
    "doctor",
    "is this machine ready: GPUs, driver, memory, tmux, logout, sleep",
    "Checks this machine, with no project and no run: GPUs and their driver, memory, tmux, trainwatch's own state "
    "folder, and settings of the host that end processes (logout, sleep, WSL2). It is the part of `trainwatch check` "
    "that is about the machine. Changes nothing.",
    "--json",
    JSON,
)
def doctor_verb(args: argparse.Namespace) -> int:
    """1 if a check failed."""
    from trainwatch.core.app.preflight.checklist import machine_checks

    return show_checks(args, machine_checks())


@VERBS(
    "rehearse",
    "train to the first checkpoint, kill it, prove that it resumes",
    "Runs COMMAND (without one: the run of this folder's trainwatch.toml) in a scratch folder to its first checkpoint, "
    "kills it, resumes it as a real run would be, and checks whether the step and the loss go on and a hang would be "
    "seen. No file of yours is written. Exit code 0: tonight is safe; 1: it is not, or it cannot be told.",
    "-- python train.py --output_dir outputs --resume '{resume}'",
    usage("trainwatch rehearse [options] -- COMMAND …"),
    arg("--timeout", type=float, default=1800.0, metavar="S", help="longest time, seconds (default 1800)"),
    arg("--name", help="which run of trainwatch.toml, or the name of the command's run"),
    arg("--preset", help="framework preset (default: recognised from the command)"),
    arg("--profile", help="profile of training settings"),
    arg("--config", metavar="F", help="the trainer's own TOML or YAML"),
    arg("--output-dir", metavar="D", help="where the trainer saves checkpoints"),
    arg("--scratch", metavar="DIR", help="where the scratch folder is made (default: where there is room)"),
    flag("--keep", "keep the scratch folder"),
    JSON,
    command_words(),
)
def rehearse_verb(args: argparse.Namespace) -> int:
    """0 if the rehearsal found nothing that would stop the real run."""
    from trainwatch.core.app.plan.trainer_folders import not_used_for_a_command
    from trainwatch.core.app.rehearse import rehearse
    from trainwatch.core.views.length_words import rehearsal_lines

    scratch = _scratch_of(args)
    plan = asked_plan(args, overrides_of(args))
    if plan is None:
        raise CliError(
            ExitCode.USAGE, "no command to rehearse: trainwatch rehearse -- COMMAND, or write a trainwatch.toml"
        )
    if words_of(args) and (unused := not_used_for_a_command("rehearse that with `trainwatch rehearse`")) is not None:
        warn(unused)
    say = lambda line: print(f"rehearsal: {printable(line)}", file=sys.stderr, flush=True)  # noqa: E731
    result = rehearse(plan, args.timeout, scratch, say, keep=args.keep)
    put(args, rehearsal_object(result), *rehearsal_lines(result))
    return ExitCode.DONE if result.safe else ExitCode.FAILED


def rehearsal_object(result: "Rehearsal") -> dict[str, Any]:
    """The object of ``--json``; docs/how-to/rehearse.md explains its fields."""
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(result)
    resume = {"will": found.pop("will"), "how": found.pop("how"), "source": found.pop("source")}
    return {"safe": result.safe, **found, "resume": resume}


@VERBS(
    "trial",
    "measure a profile on this machine for some minutes",
    "Runs this project's command under a profile for some minutes (from its first step on), with its output apart from "
    "yours, ends it gently, and shows what it needed here: seconds per step, GPU memory, RAM, GPU load, and whether it "
    "was stable: it started, showed no error, its memory did not grow, the loss fell, evaluations got no worse. Your "
    "checkpoints are not touched. Options after -- are added to the command and override those of the profile; a "
    "COMMAND after -- is tried as it is.",
    "--profile safe_mode --timeout 300 -- --epochs 5 --batch_size 16 --quiet",
    usage("trainwatch trial [options] [RUN] [-- OPTIONS … | -- COMMAND …]"),
    arg(
        "--profile",
        metavar="P",
        action="append",
        default=[],
        help="which profile; may be given several times (default: the run's)",
    ),
    arg("--minutes", type=float, default=5.0, metavar="M", help="length of each trial (default 5)"),
    arg("--timeout", type=float, metavar="S", help="longest time of each trial, start-up included"),
    arg("--scratch", metavar="DIR", help="where trials write (default: below TRAINWATCH_HOME)"),
    flag("--keep", "keep what the trainer wrote"),
    arg("--yes", "-y", action="store_true", help="even while a run trains on the same GPU"),
    JSON,
    arg("run", nargs="?", help="run whose command is used (default: this project's, else one started in this folder)"),
)
def trial_verb(args: argparse.Namespace) -> int:
    """One trial after the other; 1 if one of them was not stable."""
    from msgspec import to_builtins

    from trainwatch.core.app.plan.trainer_folders import not_used_for_a_command
    from trainwatch.core.app.trial import Trial, run_to_try, try_here

    scratch = _scratch_of(args)
    words = tuple(args.command_after_dashes or ())
    extra = words if words and (words[0].startswith("-") or "=" in words[0]) else ()
    spec, names = run_to_try(args.run, args.profile, beside_others=args.yes, command=() if extra else words)
    if words and not extra and (unused := not_used_for_a_command("try that with `trainwatch trial`")) is not None:
        warn(unused)
    results: list[TrialResult] = []
    for number, name in enumerate(names, 1):
        trial = Trial(profile=name, minutes=args.minutes, limit_s=args.timeout, extra=extra)
        print(f"trial {number} of {len(names)}: {name}", file=sys.stderr, flush=True)
        results.append(try_here(spec, trial, scratch, keep=args.keep))
    told = [{**to_builtins(each), "stable": each.stable, "doubts": list(each.doubts)} for each in results]
    put(args, {"run": spec.name, "trials": told}, *table(results))
    return ExitCode.FAILED if any(result.stable is False for result in results) else ExitCode.DONE


def table(results: "list[TrialResult]") -> list[str]:
    """One line for each profile, then the doubts."""
    from trainwatch.core.views.columns import TRIALS, text_rows

    lines = text_rows(TRIALS, results, titles=True)
    wide = max(7, *(len(r.profile) for r in results))
    for r in results:
        lines += [f"{'':{wide}}  {r.profile}: {doubt}" for doubt in r.doubts]
    if any(r.simulated_gpu for r in results):
        lines.append("the GPU values are of a simulated GPU")
    return lines


def _scratch_of(args: argparse.Namespace) -> Path | None:
    """The folder of ``--scratch``. Raises CliError if there is none, or if a time makes no sense."""
    for option in ("minutes", "timeout"):
        value = getattr(args, option, None)
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise CliError(ExitCode.USAGE, f"--{option}: must be more than 0, got {value:g}")
    if args.scratch and not Path(args.scratch).is_dir():
        raise CliError(ExitCode.NOT_FOUND, f"--scratch: no folder {args.scratch}")
    return Path(args.scratch) if args.scratch else None


NAME = arg("name", help="which one (see list)")


@VERBS("profiles list", "all profiles", "", "", PART_JSON)
@VERBS("presets list", "all presets", "", "", PART_JSON)
@VERBS(
    "profiles", "bundles of training settings",
    "Shows profiles: bundles of training settings, shipped and your own.", "show balanced", JSON,
)  # fmt: skip
@VERBS(
    "presets", "what trainwatch knows about frameworks",
    "Shows presets: what trainwatch knows about frameworks, shipped and your own.", "show kohya", JSON,
)  # fmt: skip
def list_definitions(args: argparse.Namespace) -> int:
    from msgspec import to_builtins

    known = _definitions(args).values()
    told = {args.verb: [to_builtins(item) for item in known]}
    return put(args, told, *(f"{item.name:18} {item.title}" for item in known))


@VERBS("profiles show", "one of the profiles, as a TOML file would define it", "", "balanced", PART_JSON, NAME)
@VERBS("presets show", "one of the presets, as a TOML file would define it", "", "kohya", PART_JSON, NAME)
def show_definition(args: argparse.Namespace) -> int:
    """3 if there is none of that name."""
    from msgspec import to_builtins
    from tomlkit import dumps

    item = to_builtins(_named(args, args.name))
    filled = {key: value for key, value in item.items() if value not in (None, "", (), [], {})}
    return put(args, item, *([] if args.json else dumps(_without_none(filled)).splitlines()))


@VERBS(
    "profiles diff", "how two profiles differ", "", "balanced aggressive", PART_JSON,
    arg("a", help="name of a profile"), arg("b", help="name of another one"),
)  # fmt: skip
def diff_verb(args: argparse.Namespace) -> int:
    """3 if there is none of that name."""
    a, b = _named(args, args.a), _named(args, args.b)
    both = {key: {"a": a.settings.get(key), "b": b.settings.get(key)} for key in sorted({*a.settings, *b.settings})}
    changes = {key: values for key, values in both.items() if values["a"] != values["b"]}
    lines = [f"{key:34} {a.name} {v['a']!r:12} {b.name} {v['b']!r}" for key, v in changes.items()]
    same = f"{a.name} and {b.name} set the same"
    return put(args, {"a": a.name, "b": b.name, "changes": changes}, *(lines or [same]))


def _definitions(args: argparse.Namespace) -> Mapping[str, Any]:
    """Those that the verb is about."""
    from trainwatch.core.app.plan.specs import definitions_here

    found: Mapping[str, Any] = getattr(definitions_here(), args.verb)
    return found


def _named(args: argparse.Namespace, name: str) -> Any:
    """The definition of that name; ends the verb with exit code 3 if there is none."""
    known = _definitions(args)
    if name not in known:
        raise CliError(ExitCode.NOT_FOUND, f'no {args.verb.removesuffix("s")} "{name}"; there are: {", ".join(known)}')
    return known[name]


@VERBS(
    "hosts",
    "other machines: which answer",
    "Lists the machines of [hosts.NAME] and asks each for its trainwatch. "
    "`trainwatch --on NAME VERB` runs a verb there, `trainwatch --on NAME` opens the screen "
    "there, `trainwatch runs --on all` lists the runs of all.",
    "list box1",
    arg("part", nargs="?", choices=("list",), default="list", help="default: list"),
    arg("name", nargs="?", help="the host"),
    flag("--json", 'one JSON object: {"hosts": […]}'),
)
def hosts_verb(args: argparse.Namespace) -> int:
    """1 if a host that was named on the command line does not answer."""
    from concurrent.futures import ThreadPoolExecutor

    from trainwatch.core.app.hosts.run_there import NONE_KNOWN, all_hosts, host_named
    from trainwatch.core.views.columns import HOSTS, text_rows

    is_named = args.name is not None
    may_ask = is_named and sys.stdin.isatty() and sys.stderr.isatty()
    hosts = {args.name: host_named(args.name)} if is_named else all_hosts()
    with ThreadPoolExecutor(max_workers=max(1, len(hosts))) as threads:
        rows = list(threads.map(lambda host: _row(host, may_ask=may_ask), hosts.values()))
    own = f"this machine has {__version__}"
    other = [r | {"trouble": r["trouble"] or ("" if r["version"] == __version__ else own)} for r in rows]
    put(args, {"hosts": rows, "version": __version__}, *(text_rows(HOSTS, other) if rows else [NONE_KNOWN]))
    return ExitCode.FAILED if is_named and rows[0]["trouble"] else ExitCode.DONE


def _row(host: "Host", *, may_ask: bool) -> dict[str, Any]:
    from trainwatch.core.app.hosts.run_there import look, missing_there

    told = {"name": host.name, "ssh": host.ssh, "reached": False, "version": None, "path": None, "trouble": None}
    try:
        found = look(host, may_ask=may_ask)
    except CliError as error:
        return told | {"trouble": str(error).removeprefix(f"{host.name}: ")}
    trouble = None if found.version else missing_there(host).removeprefix(f"{host.name}: ")
    return told | {"reached": True, "version": found.version or None, "path": found.path or None, "trouble": trouble}


NOTIFY_HELP = "send a test notice to all that [notify] names"
VERBS.add("notify", Verb(
    NOTIFY_HELP,
    "`trainwatch notify test` sends one notice as a run would, and says who was notified. It needs a trainwatch.toml "
    "with [notify] urls or command, or a run that was started with one.",
    "test",
    (), None,
))  # fmt: skip


@VERBS("notify test", NOTIFY_HELP, "", "", PART_JSON, RUN)
def notify_verb(args: argparse.Namespace) -> int:
    """1 if somebody was not notified."""
    from trainwatch.core.app.operate import send_test_notice

    result = send_test_notice(args.run)
    said = f"{'ok' if result['ok'] else 'FAILED'}: {result['detail']}"
    put(args, result, said, *str(result["output"] or "").splitlines())
    return ExitCode.DONE if result["ok"] else ExitCode.FAILED


SHELLS = ("bash", "zsh", "fish")
FILES = frozenset({"F", "FILE", "LOG", "PATH", "CHECKPOINT", "TRACE", "A", "B"})
"""Metavars of arguments that name a file or a folder."""
FOLDERS = frozenset({"DIR", "DEST", "DIRECTORY"})
RUNS = frozenset({"run", "run_name"})
"""Arguments that name a run."""
ASK_RUNS = "trainwatch completion --runs 2>/dev/null"
BASH_REST = "complete -o bashdefault -o default -F _shtab_trainwatch trainwatch\n"
"""With ``default`` the shell completes file names if nothing of ours fits: the command behind ``--``."""
ZSH_END = "typeset -A opt_args\n"
"""What shtab ends the script with. Its own end registers nothing for a script that is read by ``source``."""
ZSH_REST = """_trainwatch() {  # behind -- stands a command with completions of its own
  local at=${words[(i)--]}
  if (( at < CURRENT )); then
    shift at words
    (( CURRENT -= at ))
    _normal
  else
    _shtab_trainwatch "$@"
  fi
}

if [[ $zsh_eval_context[-1] == (eval|file) ]]; then
  compdef _trainwatch trainwatch
else  # found in $fpath, when it is first needed
  _trainwatch "$@"
fi
"""
FISH_REST = """function _trainwatch_command  # behind -- stands a command with completions of its own
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    set -l before (string escape -- $words[(math $at + 1)..-1])
    complete -C (string join ' ' -- $before (commandline -ct))
end
complete -c trainwatch -n 'contains -- -- (commandline -opc)' -ka '(_trainwatch_command)'
"""


_WORD = r"[\w.][\w.-]*"


@VERBS(
    "completion",
    "print the completion script of your shell (bash, zsh, fish)",
    "Prints a script that completes verbs, options, files and names of runs. Put it where your shell finds it. "
    "bash: ~/.local/share/bash-completion/completions/trainwatch, or without the package bash-completion the line "
    "`source <(trainwatch completion bash)` in ~/.bashrc; zsh: a file _trainwatch in a folder of $fpath, or after "
    "compinit the line `source <(trainwatch completion zsh)` in ~/.zshrc; "
    "fish: ~/.config/fish/completions/trainwatch.fish. Then open a new shell. After an update print it again.",
    "bash",
    arg("shell", nargs="?", choices=SHELLS, help="which shell (default: that of $SHELL)"),
    flag("--runs", "print the names of your runs instead, one per line"),
)
def completion_verb(args: argparse.Namespace) -> int:
    """Print the script. 2 without a shell that is known."""
    if args.runs:
        for name in _names_of_runs():
            print(name)
        return ExitCode.DONE
    shell = args.shell or os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119
    if shell not in SHELLS:
        raise CliError(ExitCode.USAGE, "which shell? `trainwatch completion bash`, `zsh` or `fish`")
    sys.stdout.write(script(shell))
    return ExitCode.DONE


def script(shell: str) -> str:
    """The completion script of a shell. Raises CliError if shtab is not installed."""
    try:
        import shtab
    except ModuleNotFoundError:
        raise CliError(
            ExitCode.FAILED, f"shtab is not installed beside trainwatch: {sys.executable} -m pip install shtab"
        ) from None
    parser = whole_parser()
    runs = shtab.cmd(ASK_RUNS)
    for action in every_action(parser):
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  # has no public name
            action.help = "verb"  # `--help` lists the verbs itself, so that this list is suppressed there
            for verb in action._choices_actions:  # noqa: SLF001  # has no public name either
                action.choices[verb.dest].description = verb.help
            continue
        name = action.metavar or action.dest.upper()
        if action.dest in RUNS and action.nargs != 0:
            action.complete = runs  # type: ignore[attr-defined]  # where shtab looks for it
        elif name in FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif name in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    text = shtab.complete(parser, shell=shell)
    if shell == "zsh":
        return text.partition(ZSH_END)[0] + ZSH_END + "\n" + ZSH_REST
    return f"{text.rstrip()}\n{BASH_REST if shell == 'bash' else FISH_REST}"


def _names_of_runs() -> list[str]:
    """The name of each run; its id, if several have that name or it is not one plain word."""
    import re
    from collections import Counter

    from trainwatch.core.app.runs.known_runs import all_runs

    names = [(run.load_spec().name, run.id) for run in all_runs()]
    often = Counter(name for name, _ in names)
    return sorted(name if often[name] == 1 and re.fullmatch(_WORD, name) else run_id for name, run_id in names)


def show_checks(args: argparse.Namespace, checks: Sequence["Check"]) -> int:
    """Print the results. The exit code is 1 if a check failed."""
    failed = any(c.result == "fail" for c in checks)
    lines = []
    for check in checks:
        first, *more = check.found.splitlines() or [""]
        more += [f"-> {check.remedy}"] if check.remedy and check.result != "pass" else []
        lines += [f"{RESULT_WORDS[check.result]:4}  {check.name:14} {first}", *(f"{'':21}{line}" for line in more)]
    put(args, {"passed": not failed, "checks": checks}, *lines)
    return ExitCode.FAILED if failed else ExitCode.DONE


def _without_none(value: Any) -> Any:
    """The value without keys that are None, which TOML cannot express."""
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return list(value) if isinstance(value, tuple) else value

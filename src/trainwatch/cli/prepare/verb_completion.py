"""``trainwatch completion``: what a shell needs to complete trainwatch's verbs, options, files and run names."""

import argparse
import os
import sys

from trainwatch.core.app.errors import CliError, ExitCode

from ..parser import every_action, whole_parser

SHELLS = ("bash", "zsh", "fish")
HELP = "print the completion script of your shell (bash, zsh, fish)"
DESCRIPTION = (
    "Prints a script that completes verbs, options, files and names of runs. Put it where your shell finds it. "
    "bash: ~/.local/share/bash-completion/completions/trainwatch, or without the package bash-completion the line "
    "`source <(trainwatch completion bash)` in ~/.bashrc; zsh: a file _trainwatch in a folder of $fpath, or after "
    "compinit the line `source <(trainwatch completion zsh)` in ~/.zshrc; "
    "fish: ~/.config/fish/completions/trainwatch.fish. Then open a new shell. After an update print it again."
)
EXAMPLE = "bash"
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", choices=SHELLS, help="which shell (default: that of $SHELL)")
    parser.add_argument("--runs", action="store_true", help="print the names of your runs instead, one per line")


def act(args: argparse.Namespace) -> int:
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

"""What to add to a command that has no place for the path of a checkpoint."""

import re
import shlex
from pathlib import Path

from ...model.launch.resume_support import PLACEHOLDER
from ...model.run import RunSpec
from ...model.text.setting_place import place_of
from ..preflight.exit_status_check import LONGEST_BYTES, shell_program, without_wrappers

USUAL = "--resume"
OPTION = re.compile(
    r"""["'](--?(?:auto[-_])?(?:resume|restore|continue|ckpt|checkpoint|load|init)(?:[-_](?:from|training|path|file|ckpt|"""
    r"""checkpoint|weights|model|state|run))*)["']"""
)
"""An option for a checkpoint to begin from, as a Python script names it: ``add_argument("--resume_from")``."""
NO_PATH = re.compile(r"[-_](dir|every|steps|interval|freq)$")


def what_to_add(spec: RunSpec, start: str) -> str:
    """How the command gets a place, as a clause. ``start``: the command line that begins then, up to ``--``.

    A run of a trainwatch.toml is started without a command, unless ``start`` is a resume: that has the stored one.
    """
    option = option_of(spec)
    named = "" if option else f" (in place of {USUAL}: the option that your script has for it)"
    option = option or USUAL
    program = shell_program(without_wrappers(spec.command), Path(spec.cwd))
    whole = spec.project is None or start.startswith("trainwatch resume")
    if program is not None and not program.file:
        again = f"{start} -- NEW COMMAND" if whole else start
        return f"write `{option} {PLACEHOLDER}` into the shell line, behind the trainer{named}, then `{again}`"
    in_script = ""
    words: tuple[str, ...] = (option,)
    if program is not None:
        in_script, words = f'let {program.file} pass it on, as `${{1:+{option} "$1"}}`{named}; ', ()
        named = ""
    added = ", ".join(f'"{word}"' for word in (*words, PLACEHOLDER))
    in_file = "" if spec.project is None else f"add {added} to {place_of(spec, 'command')}{named}, then "
    line = f"{start} -- {shlex.join((*spec.command, *words))} '{PLACEHOLDER}'" if whole else start
    return f"{in_script}{in_file}`{line}`{'' if in_file else named}"


def option_of(spec: RunSpec) -> str | None:
    """The option of the Python script in the command that names a checkpoint to begin from; None if none is seen."""
    for word in spec.command:
        if not word.endswith(".py"):
            continue
        try:
            with Path(spec.cwd, word).open("rb") as file:
                text = file.read(LONGEST_BYTES).decode("utf-8", "replace")
        except OSError:
            return None
        found = [each for each in OPTION.findall(text) if not NO_PATH.search(each)]
        return min(found, key=lambda each: ("resume" not in each, text.index(each)), default=None)
    return None

"""What to add to a command that has no place for the path of a checkpoint."""

import shlex
from pathlib import Path

from ...model.launch.resume_support import PLACEHOLDER
from ...model.run import RunSpec
from ...model.text.setting_place import place_of
from ...source.trainer_source import read_source
from ...source.words import CHECKPOINT, RESUME, SAVING
from ..preflight.exit_status_check import shell_program, without_wrappers

USUAL = "--resume"


def what_to_add(spec: RunSpec, start: str) -> str:
    """How the command gets a place, as a clause. ``start``: the command line that begins then, up to ``--``.

    A run of a trainwatch.toml is started without a command, unless ``start`` is a resume: that has the stored one.
    """
    option = option_of(spec)
    named = "" if option else f" (once the script has an option for it, in place of {USUAL})"
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
    """The option of the script in the command that names a checkpoint to begin from; None if none is seen."""
    source = read_source(spec.command, spec.cwd, spec.env)
    options = () if isinstance(source, str) else source.options
    found = [(option, name) for option in options if option.kind == "option" for name in option.aliases]
    found = [each for each in found if CHECKPOINT.search(each[1]) or RESUME.search(each[1])]
    found = [(option, name) for option, name in found if not SAVING.search(name) and not name.endswith("dir")]
    return min(found, key=lambda each: not RESUME.search(each[1]), default=(None, None))[1]

"""Where a person set a value of a run: a key of its config file, an option, or the command line itself.

A run of a trainwatch.toml has keys there. A bare command has options only: a key would name a file that is not there.
"""

from ..run import RunSpec

OPTIONS = {
    "name": "--name",
    "preset": "--preset",
    "config": "--config",
    "output_dir": "--output-dir",
    "save_signal": "--save-signal",
    "save_file": "--save-file",
}
"""Key of ``[run]`` → the option that sets it for one start."""


def place_of(spec: RunSpec, key: str) -> str:
    """Where ``key`` of ``[run]`` is set, or can be: ``run.output_dir in …/trainwatch.toml``, ``--output-dir``."""
    if spec.project is not None and key not in spec.typed:
        return f"{spec.section}.{key} in {spec.project}"
    if key in OPTIONS:
        return OPTIONS[key]
    return "the command" if key == "command" else f"run.{key} of a trainwatch.toml"


def with_place(text: str, spec: RunSpec, *keys: str) -> str:
    """``text (run.command in …/trainwatch.toml)``; a bare command is where the person has just typed it."""
    if spec.project is None or all(key in spec.typed for key in keys):
        return text
    named = " and ".join(f"{spec.section}.{key}" for key in keys if key not in spec.typed)
    return f"{text} ({named} in {spec.project})"

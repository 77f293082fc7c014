"""How a run's trainer is asked for a checkpoint: as the run says, else as its preset does."""

from ...model.run import RunSpec
from ...model.shipped.preset import Preset


def save_request(spec: RunSpec, preset: Preset) -> tuple[str | None, str | None]:
    """The signal's name and the path of the file, ``{output_dir}`` filled in; None = not this way."""
    own = spec.save_signal is not None or spec.save_file is not None
    name, file = (spec.save_signal, spec.save_file) if own else (preset.save_signal, preset.save_file)
    if file is not None and "{output_dir}" in file:
        file = None if spec.output_dir is None else file.replace("{output_dir}", spec.output_dir)
    return name, file

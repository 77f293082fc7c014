"""Length of a training as its settings say it, for a log that does not show it."""

import msgspec

EPOCH_NAMES = (
    "max_train_epochs", "num_train_epochs", "num_epochs", "max_epochs", "n_epochs", "train_epochs", "total_epochs",
    "nb_epochs", "epochs",
)  # fmt: skip
"""Names of the number of epochs, the least doubtful first. ``epoch`` alone is as often the first one."""
STEP_NAMES = (
    "max_train_steps", "max_steps", "num_train_steps", "total_steps", "train_steps", "training_steps", "max_iters",
    "max_iter", "max_iterations", "num_iterations", "total_iters", "train_iters", "iterations", "iters", "steps",
)  # fmt: skip
"""The same for steps. ``num_steps`` alone is as often that of a sampler."""

BATCH_NAMES = ("per_device_train_batch_size", "train_batch_size", "batch_size", "batch")


DOUBTFUL_NAMES = frozenset({"steps", "iterations", "iters", "epochs"})
"""Names that other parts of a program have, too: the steps of a sampler, of an evaluation."""
UNIT_NAMES = (
    ("gradient_accumulation_steps", "accumulate_grad_batches", "grad_accumulation_steps", "grad_accum_steps",
     "accumulation_steps", "accum_steps", "gradient_accumulation", "grad_accum", "accum_iter", "update_freq"),
    ("nproc_per_node", "num_processes", "world_size"),
    BATCH_NAMES,
)  # fmt: skip
"""Numbers by which a told step and a printed one may differ: accumulated batches, processes, samples."""
SOONER_NAMES = (
    "early_stopping_patience", "early_stop_patience", "patience", "early_stopping", "early_stop", "max_time",
    "time_limit", "max_hours", "max_minutes", "max_seconds", "max_duration", "time_budget",
)  # fmt: skip
"""Settings that end a training before its last step."""


class ToldLength(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``epochs``, ``steps``: None = not set. ``*_by``: where it is set, for people (``--epochs 50``).

    ``*_sure``: that it is the length of the training, not of another thing of that name. ``units``: numbers by which a
    told step and a printed one may differ (batches of an accumulated step, processes, samples of a batch).
    ``sooner_by``: a setting by which the training may end before (``patience 10``); ``resumes_by``: an option of the
    command by which it goes on from an earlier training.
    ``guess``: steps as the trainer will print them, estimated from settings and data; ``guess_by``: from what.
    """

    epochs: int | None = None
    epochs_by: str = ""
    steps: int | None = None
    steps_by: str = ""
    epochs_sure: bool = True
    steps_sure: bool = True
    units: tuple[int, ...] = ()
    sooner_by: str = ""
    resumes_by: str = ""
    guess: int | None = None
    guess_by: str = ""

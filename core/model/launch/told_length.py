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


class ToldLength(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``epochs``, ``steps``: None = not set. ``*_by``: where it is set, for people (``--epochs 50``).

    ``guess``: steps as the trainer will print them, estimated from settings and data; ``guess_by``: from what.
    """

    epochs: int | None = None
    epochs_by: str = ""
    steps: int | None = None
    steps_by: str = ""
    guess: int | None = None
    guess_by: str = ""

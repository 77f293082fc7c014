"""Actions that carry out the judge's decisions: launch, stop, derive configs, clear GPUs, collect evidence, notify."""

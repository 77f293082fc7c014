"""From log text to step, epoch, loss and phase."""

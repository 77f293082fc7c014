"""trainwatch: the terminal that looks after a long training run."""

__version__ = "0.1.0"

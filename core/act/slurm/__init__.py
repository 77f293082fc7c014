"""Attempts as jobs of Slurm, through its own commands."""

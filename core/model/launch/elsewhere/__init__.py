"""Attempts that do not run as plain processes of this machine: as jobs of Slurm, in containers, behind ssh or sudo."""

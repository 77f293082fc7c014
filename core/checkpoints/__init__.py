"""Checkpoints: which are there, whether they are complete, and what may be done with them.

Nothing here executes a pickle, imports torch or follows a link out of the directory it was given. numpy is loaded only
by a deep verification and by comparisons. Why a package of its own: docs/decisions/README.md.
"""

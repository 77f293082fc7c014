"""Copies of runs of other machines: a cache in the user's cache folder, never among this machine's runs."""

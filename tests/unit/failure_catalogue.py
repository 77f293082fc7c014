"""The shipped failure catalogue, compiled once for all tests that judge logs."""

import tomllib
from importlib import resources

import msgspec

from trainwatch.core.judge.failure.diagnosis import compile_catalogue
from trainwatch.core.model.failure import FailureCatalogue

TEXT = resources.files("trainwatch.configs").joinpath("failures.toml").read_text(encoding="utf-8")
SHIPPED = msgspec.convert(tomllib.loads(TEXT), FailureCatalogue)
CATALOGUE = compile_catalogue(SHIPPED)

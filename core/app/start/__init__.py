"""From a command or a trainwatch.toml to a run that is started."""

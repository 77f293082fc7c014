"""From a command or a trainwatch.toml to the plan of a launch. Writes nothing."""
